"""Calls, imports and bases inside one repository: from names as written to the symbols they mean.

Pure and set-based: an index over the symbols of all files, then one look-up a reference. What cannot be told stays
unresolved and keeps its name; an import of a package that the repository does not hold resolves to nothing, never to
something else of that name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apps.symbols.builtin_names import OBJECTS, OF_VALUES
from apps.symbols.languages.go import package_of
from apps.symbols.layout import Layout
from apps.symbols.modules import FileScope, ModulePaths, family, join_module
from apps.symbols.values import TYPE_KINDS, Import, Reference, ReferenceKind, SymbolKind

OWN = 100
"""Same file or same type: certain."""
IMPORTED = 95
PACKAGE = 90
"""Same package, where the language needs no import."""
UNIQUE = 70
"""The only symbol of that name and language in the repository."""

_SELF = frozenset({"self", "this", "cls", "Self"})
_SUPER = frozenset({"super"})
_NAMED_TYPES = frozenset({"python", "java", "rust", "ecmascript"})
"""Families of languages in which a name that begins in upper case is that of a type."""
MOST_STEPS = 16
"""Files through which an import is followed that is handed on, and bases through which a member is looked for."""


@dataclass(frozen=True, slots=True)
class Known:
    """A symbol as far as resolution needs it. ``key`` is the caller's own."""

    key: object
    kind: SymbolKind
    name: str
    qualified_name: str
    path: str
    language: str
    package: str
    parent: object | None
    test: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    kind: ReferenceKind
    source: object
    target: object | None
    """None: unresolved, the name is kept."""
    name: str
    line: int
    confidence: int


@dataclass(slots=True)
class _FileNames:
    by_name: dict[str, list[Known]] = field(default_factory=lambda: defaultdict(list))
    module: Known | None = None


class SymbolIndex:
    """Where each name of a repository stands. Built once, asked for every reference.

    ``bindings`` are the imports of files that others may import from, by path: what a file brings in it hands on.
    ``exports``: by path, names for others with the name in the file, where the two differ.
    """

    def __init__(
        self,
        symbols: Iterable[Known],
        *,
        layout: Layout | None = None,
        bindings: Mapping[str, Sequence[Import]] | None = None,
        exports: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._files: dict[str, _FileNames] = defaultdict(_FileNames)
        self._scopes: dict[str, FileScope] = {}
        self._members: dict[tuple[object, str], Known] = {}
        self._by_name: dict[tuple[str, str], list[Known]] = defaultdict(list)
        self._of: dict[object, Known] = {}
        self._owners: dict[object, Known] = {}
        self._bases: dict[object, list[Reference]] = {}
        self._bindings = bindings or {}
        self._exports = exports or {}
        for symbol in symbols:
            self._of[symbol.key] = symbol
            names = self._files[symbol.path]
            if symbol.kind == "module":
                names.module = symbol
                self._scopes[symbol.path] = FileScope(symbol.path, symbol.language, symbol.package, ())
                continue
            names.by_name[symbol.name].append(symbol)
            self._by_name[family(symbol.language), symbol.name].append(symbol)
            if symbol.parent is not None:
                self._members.setdefault((symbol.parent, symbol.name), symbol)
        self._modules = ModulePaths(self._scopes.values(), layout or Layout())
        self._adopt()

    def _adopt(self) -> None:
        """Methods that are written outside their type (Go receivers, Rust impl blocks) become members of it."""
        for methods in self._by_name.values():
            for method in methods:
                holder = self._of.get(method.parent)
                if method.kind != "method" or holder is None or holder.kind != "module":
                    continue
                owner = method.qualified_name.replace("::", ".").split(".")[-2:-1]
                places = [method.path, *self._modules.of_package(method.language, holder.package, method.path)]
                for known in (one for path in places for one in self._files[path].by_name.get("".join(owner), ())):
                    if known.kind in TYPE_KINDS:
                        self._members.setdefault((known.key, method.name), method)
                        self._owners[method.key] = known
                        break

    def resolve(self, scope: FileScope, references: Sequence[tuple[object, Reference]]) -> Iterator[Edge]:
        """Edges of one file: ``references`` come with the key of the symbol that holds each."""
        local = {self._local_name(scope, entry): entry for entry in scope.imports if entry.local not in {"", "*"}}
        stars = [entry for entry in scope.imports if entry.local == "*"]
        self._bases = defaultdict(list)
        for source, reference in references:
            if reference.kind == "inherits":
                self._bases[source].append(reference)
        for source, reference in references:
            target, confidence = self._find(scope, source, reference, local, stars)
            name = f"{reference.qualifier}.{reference.name}" if reference.qualifier else reference.name
            key = target.key if target is not None else None
            yield Edge(reference.kind, source, key, name, reference.line, confidence if target is not None else 0)

    def _local_name(self, scope: FileScope, entry: Import) -> str:
        """What an import is called in the file: without a name of its own, a package of Go as its files call it."""
        if scope.language == "go" and entry.local == package_of(entry.module):
            for path in self._modules.find(scope, entry.module):
                return self._scopes[path].package
        return entry.local

    def imports(self, scope: FileScope) -> Iterator[Edge]:
        """Import edges: from the module of the file to the module or member that it names."""
        names = self._files.get(scope.path)
        source = names.module.key if names is not None and names.module is not None else None
        for entry in scope.imports:
            target = self._imported(scope, entry)
            name = f"{entry.module}.{entry.member}" if entry.member not in {"", "*"} else entry.module
            yield Edge("imports", source, target.key if target else None, name, entry.line, IMPORTED if target else 0)

    def _find(
        self, scope: FileScope, source: object, reference: Reference, local: dict[str, Import], stars: list[Import]
    ) -> tuple[Known | None, int]:
        name, qualifier = reference.name, reference.qualifier
        if qualifier in _SELF or qualifier in _SUPER:
            return self._of_own_type(scope, source, name, local, stars, above=qualifier in _SUPER)
        if qualifier == "?":
            return self._unique(scope, name, members=True), UNIQUE
        if qualifier:
            return self._qualified(scope, source, qualifier, name, local)
        if name in local:
            # An import that leads out of the repository hides every other meaning of the name.
            return self._imported(scope, local[name]), IMPORTED
        own = self._in_file(scope.path, name, source)
        if own is not None:
            return own, OWN
        package = self._in_package(scope, name)
        if package is not None:
            return package, PACKAGE
        for entry in stars:
            found = self._of_module(scope, entry.module, name)
            if found is not None:
                return found, IMPORTED
        if scope.language == "javascript" and not scope.imports:
            return self._unique(scope, name, members=False), UNIQUE
        # Elsewhere a bare name that is neither declared nor imported is a local variable or built in.
        return None, 0

    def _qualified(
        self, scope: FileScope, source: object, qualifier: str, name: str, local: dict[str, Import]
    ) -> tuple[Known | None, int]:
        parts = qualifier.split(".")
        entry, length = _import_of(parts, local)
        if entry is None and scope.language == "rust" and self._modules.find(scope, "::".join(parts)):
            entry, length = Import("::".join(parts), "", "", 0), len(parts)
        if entry is not None:
            holder = self._imported(scope, entry)
            for part in [*parts[length:], name]:
                holder = self._member(holder, part) if holder is not None else None
            return holder, IMPORTED
        last = parts[-1]
        group = family(scope.language)
        for known in (*self._files[scope.path].by_name.get(last, ()), *self._package_names(scope, last)):
            member = self._members.get((known.key, name))
            if member is not None and (known.kind in TYPE_KINDS or known.path == scope.path):
                return member, OWN if known.path == scope.path else PACKAGE
        if last in OBJECTS.get(group, ()) or (group in _NAMED_TYPES and last[:1].isupper() and not last.isupper()):
            return None, 0  # a type that the repository does not have here, or what the language brings
        # A variable holds something: only a name that is unique in the repository can be meant.
        return self._unique(scope, name, members=True), UNIQUE

    def _of_own_type(
        self,
        scope: FileScope,
        source: object,
        name: str,
        local: dict[str, Import],
        stars: list[Import],
        *,
        above: bool,
    ) -> tuple[Known | None, int]:
        """A member of the type around the reference, or of what it inherits from, as far as its file tells; of these
        alone when ``above``."""
        own = self._type_around(source)
        waiting = [own] if own is not None else []
        seen: set[object] = set()
        while waiting and len(seen) < MOST_STEPS:
            known = waiting.pop(0)
            if known.key in seen:
                continue
            seen.add(known.key)
            if not above or known is not own:
                member = self._members.get((known.key, name))
                if member is not None:
                    return member, OWN if known is own else IMPORTED
            for base in self._bases.get(known.key, ()):
                found, _ = self._find(scope, known.key, base, local, stars)
                if found is not None and found.kind in TYPE_KINDS:
                    waiting.append(found)
        return None, 0

    def _type_around(self, source: object) -> Known | None:
        holder = self._of.get(source)
        while holder is not None:
            holder = self._owners.get(holder.key, holder)
            if holder.kind in TYPE_KINDS or holder.parent is None:
                return holder if holder.kind in TYPE_KINDS else None
            holder = self._of.get(holder.parent)
        return None

    def _member(self, holder: Known, name: str) -> Known | None:
        if holder.kind != "module":
            return self._members.get((holder.key, name))
        if holder.language == "go":
            paths = self._modules.of_package("go", holder.package, holder.path)
            return next((found for path in paths if (found := self._in_file(path, name, None)) is not None), None)
        found = self._handed_on(holder.path, name, set())
        if found is None and holder.language in {"python", "rust"}:
            inner = join_module(holder.language, "crate" if holder.language == "rust" else "", holder.package)
            scope = self._scopes[holder.path]
            for path in self._modules.find(scope, join_module(holder.language, inner, name)):
                return self._files[path].module
        return found

    def _in_file(self, path: str, name: str, source: object) -> Known | None:
        """A top-level symbol of the file, or one that stands beside the reference."""
        names = self._files.get(path)
        if names is None:
            return None
        module = names.module.key if names.module is not None else None
        found = names.by_name.get(name, ())
        for known in found:
            if known.kind != "method" and (known.parent in {module, None} or known.parent == source):
                return known
        holder = self._of.get(source)
        beside = holder.parent if holder is not None else None
        return next(
            (known for known in found if beside is not None and known.parent == beside and beside != module), None
        )

    def _package_names(self, scope: FileScope, name: str) -> Iterator[Known]:
        if scope.language not in {"go", "java"}:
            return
        for path in self._modules.of_package(scope.language, scope.package, scope.path):
            if path != scope.path:
                yield from self._files[path].by_name.get(name, ())

    def _in_package(self, scope: FileScope, name: str) -> Known | None:
        for known in self._package_names(scope, name):
            holder = self._of.get(known.parent)
            if known.kind != "method" and (holder is None or holder.kind == "module"):
                return known
        return None

    def _unique(self, scope: FileScope, name: str, *, members: bool) -> Known | None:
        if len(name) < 3 or (members and name in OF_VALUES.get(family(scope.language), ())):
            return None
        found = [
            known
            for known in self._by_name.get((family(scope.language), name), ())
            if known.kind not in {"variable", "field"} and members == self._is_member(known)
        ]
        if len(found) > 1:
            found = [known for known in found if not known.test]
        return found[0] if len(found) == 1 else None

    def _is_member(self, known: Known) -> bool:
        holder = self._of.get(known.parent)
        return known.kind == "method" or (holder is not None and holder.kind in TYPE_KINDS)

    def _imported(self, scope: FileScope, entry: Import, seen: set[tuple[str, str]] | None = None) -> Known | None:
        """What an import means: a module, or a member of one, however many files hand it on."""
        seen = seen if seen is not None else set()
        member = entry.member
        paths = self._modules.find(scope, entry.module)
        if member in {"", "*"}:
            return self._files[paths[0]].module if paths else None
        for path in paths:
            found = self._handed_on(path, member, seen)
            if found is None and member == "default":
                found = self._in_file(path, entry.local, None) or self._files[path].module
            if found is not None:
                return found
        # `from package import module`
        for path in self._modules.find(scope, join_module(scope.language, entry.module, member)):
            return self._files[path].module
        return self._of_module(scope, entry.module, member) if scope.language == "java" else None

    def _of_module(self, scope: FileScope, module: str, name: str) -> Known | None:
        """A name that an import of all of a module brings. Java imports members of types in the same way."""
        for path in self._modules.find(scope, module):
            found = self._handed_on(path, name, set())
            if found is not None:
                return found
        if scope.language == "java":
            package, _, holder = module.rpartition(".")
            for path in self._modules.find(scope, package) if package else ():
                for known in self._files[path].by_name.get(holder, ()):
                    if known.kind in TYPE_KINDS and (member := self._members.get((known.key, name))) is not None:
                        return member
        return None

    def _handed_on(self, path: str, name: str, seen: set[tuple[str, str]]) -> Known | None:
        """What others get who import ``name`` from a file: its own, or what it imports itself."""
        if (path, name) in seen or len(seen) > MOST_STEPS:
            return None
        seen.add((path, name))
        scope = self._scopes.get(path)
        own = self._exports.get(path, {}).get(name, name)
        found = self._in_file(path, own, None)
        if found is not None or scope is None:
            return found
        bindings = self._bindings.get(path, ())
        for entry in bindings:
            if entry.local == own:
                return self._imported(scope, entry, seen)
        if name != "default":
            for entry in bindings:
                for other in self._modules.find(scope, entry.module) if entry.local == "*" else ():
                    found = self._handed_on(other, name, seen)
                    if found is not None:
                        return found
        return None


def _import_of(parts: Sequence[str], local: Mapping[str, Import]) -> tuple[Import | None, int]:
    """The import that the begin of a dotted name refers to, and how many of its parts it takes."""
    for length in range(len(parts), 0, -1):
        entry = local.get(".".join(parts[:length]))
        if entry is not None:
            return entry, length
    begin = f"{parts[0]}."
    if any(name.startswith(begin) for name in local):  # `import a.b` binds `a`
        return Import(parts[0], "", parts[0], 0), 1
    return None, 0
