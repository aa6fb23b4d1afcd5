"""Calls, imports and bases inside one repository: from names as written to the symbols they mean.

Pure and set-based: an index over the symbols of all files, then one look-up a reference. What cannot be told stays
unresolved and keeps its name; an import of a package that the repository does not hold resolves to nothing, never to
something else of that name.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from apps.symbols.values import TYPE_KINDS, Import, Reference, ReferenceKind, SymbolKind

OWN = 100
"""Same file or same type: certain."""
IMPORTED = 95
PACKAGE = 90
"""Same package, where the language needs no import."""
UNIQUE = 70
"""The only symbol of that name and language in the repository."""

_INDEX_STEMS = ("index",)
_SELF = frozenset({"self", "this", "cls", "super", "Self"})


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
class FileScope:
    """What one file brings to the resolution of its references."""

    path: str
    language: str
    package: str
    imports: tuple[Import, ...]


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
    """Where each name of a repository stands. Built once, asked for every reference."""

    def __init__(self, symbols: Iterable[Known]) -> None:
        self._files: dict[str, _FileNames] = defaultdict(_FileNames)
        self._packages: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._members: dict[tuple[object, str], Known] = {}
        self._by_name: dict[tuple[str, str], list[Known]] = defaultdict(list)
        self._of: dict[object, Known] = {}
        self._owners: dict[object, Known] = {}
        for symbol in symbols:
            self._of[symbol.key] = symbol
            names = self._files[symbol.path]
            if symbol.kind == "module":
                names.module = symbol
                self._packages[family(symbol.language), symbol.package].append(symbol.path)
                continue
            names.by_name[symbol.name].append(symbol)
            self._by_name[family(symbol.language), symbol.name].append(symbol)
            if symbol.parent is not None:
                self._members.setdefault((symbol.parent, symbol.name), symbol)
        for paths in self._packages.values():
            paths.sort()
        self._adopt()

    def _adopt(self) -> None:
        """Methods that are written outside their type (Go receivers, Rust impl blocks) become members of it."""
        for methods in self._by_name.values():
            for method in methods:
                holder = self._of.get(method.parent)
                if method.kind != "method" or holder is None or holder.kind != "module":
                    continue
                owner = method.qualified_name.replace("::", ".").split(".")[-2:-1]
                places = [method.path, *self._packages[family(method.language), holder.package]]
                for known in (one for path in places for one in self._files[path].by_name.get("".join(owner), ())):
                    if known.kind in TYPE_KINDS:
                        self._members.setdefault((known.key, method.name), method)
                        self._owners[method.key] = known
                        break

    def resolve(self, scope: FileScope, references: Sequence[tuple[object, Reference]]) -> Iterator[Edge]:
        """Edges of one file: ``references`` come with the key of the symbol that holds each."""
        local = {entry.local: entry for entry in scope.imports if entry.local != "*"}
        stars = [entry for entry in scope.imports if entry.local == "*"]
        for source, reference in references:
            target, confidence = self._find(scope, source, reference, local, stars)
            name = f"{reference.qualifier}.{reference.name}" if reference.qualifier else reference.name
            key = target.key if target is not None else None
            yield Edge(reference.kind, source, key, name, reference.line, confidence if target is not None else 0)

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
        if qualifier in _SELF:
            return self._member_of_own_type(source, name), OWN
        if qualifier == "?":
            return self._unique(scope, name, members=True), UNIQUE
        if qualifier:
            return self._qualified(scope, qualifier, name, local)
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
            for path in self._module_paths(scope, entry.module):
                found = self._in_file(path, name, None)
                if found is not None:
                    return found, IMPORTED
        if scope.language == "javascript" and not scope.imports:
            return self._unique(scope, name, members=False), UNIQUE
        # Elsewhere a bare name that is neither declared nor imported is a local variable or built in.
        return None, 0

    def _qualified(
        self, scope: FileScope, qualifier: str, name: str, local: dict[str, Import]
    ) -> tuple[Known | None, int]:
        first, _, rest = qualifier.partition(".")
        entry = local.get(qualifier) or local.get(first)
        if entry is not None:
            holder = self._imported(scope, entry)
            remaining = "" if entry.local == qualifier else rest
            if holder is None:
                return None, 0
            for part in [*filter(None, remaining.split(".")), name]:
                member = self._member(holder, part)
                if member is None:
                    return None, 0
                holder = member
            return holder, IMPORTED
        last = qualifier.rsplit(".", 1)[-1]
        types = [known for known in self._files[scope.path].by_name.get(last, ()) if known.kind in TYPE_KINDS]
        types += [known for known in self._package_names(scope, last) if known.kind in TYPE_KINDS]
        for known in types:
            member = self._members.get((known.key, name))
            if member is not None:
                return member, OWN if known.path == scope.path else PACKAGE
        # A variable holds something: only a name that is unique in the repository can be meant.
        return self._unique(scope, name, members=True), UNIQUE

    def _member_of_own_type(self, source: object, name: str) -> Known | None:
        holder = self._of.get(source)
        while holder is not None:
            holder = self._owners.get(holder.key, holder)
            if holder.kind in TYPE_KINDS:
                return self._members.get((holder.key, name))
            if holder.parent is None:
                return None
            holder = self._of.get(holder.parent)
        return None

    def _member(self, holder: Known, name: str) -> Known | None:
        if holder.kind == "module":
            paths = (
                self._packages[family(holder.language), holder.package] if holder.language == "go" else [holder.path]
            )
            for path in paths:
                found = self._in_file(path, name, None)
                if found is not None:
                    return found
            return None
        return self._members.get((holder.key, name))

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
        folder = posixpath.dirname(scope.path)
        for path in self._packages.get((family(scope.language), scope.package), ()):
            if path != scope.path and (scope.language == "java" or posixpath.dirname(path) == folder):
                yield from self._files[path].by_name.get(name, ())

    def _in_package(self, scope: FileScope, name: str) -> Known | None:
        for known in self._package_names(scope, name):
            holder = self._of.get(known.parent)
            if known.kind != "method" and (holder is None or holder.kind == "module"):
                return known
        return None

    def _unique(self, scope: FileScope, name: str, *, members: bool) -> Known | None:
        if len(name) < 3:
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

    def _imported(self, scope: FileScope, entry: Import) -> Known | None:
        for path in self._module_paths(scope, entry.module):
            names = self._files[path]
            if entry.member in {"", "*"}:
                return names.module
            member = entry.member
            if member == "default":
                return self._default_of(path, entry.local) or names.module
            found = self._in_file(path, member, None)
            if found is not None:
                return found
        if entry.member and entry.member != "*":
            # `from package import module`
            for path in self._module_paths(scope, join_module(scope.language, entry.module, entry.member)):
                return self._files[path].module
        return None

    def _default_of(self, path: str, local: str) -> Known | None:
        return self._in_file(path, local, None)

    def _module_paths(self, scope: FileScope, module: str) -> list[str]:
        group = family(scope.language)
        if scope.language == "python":
            return self._packages.get((group, absolute_python(scope, module)), [])
        if group == "ecmascript":
            if not module.startswith("."):
                return []
            base = posixpath.normpath(posixpath.join(posixpath.dirname(scope.path), module))
            stems = (base, base.rsplit(".", 1)[0], *(f"{base}/{stem}" for stem in _INDEX_STEMS))
            return next((self._packages[group, stem] for stem in stems if (group, stem) in self._packages), [])
        if scope.language == "go":
            last = module.rsplit("/", 1)[-1]
            paths = self._packages.get((group, last), [])
            return [path for path in paths if module.endswith(posixpath.dirname(path)) and posixpath.dirname(path)]
        if scope.language == "rust":
            parts = module.split("::")
            if parts[0] in {"crate", "self", "super"}:
                parts = _rust_absolute(scope, parts)
            return self._packages.get((group, "::".join(parts)), [])
        paths = self._packages.get((group, module), [])
        return paths or self._packages.get((group, module.rpartition(".")[0]), [])


def family(language: str) -> str:
    """Languages whose files import each other."""
    return "ecmascript" if language in {"javascript", "typescript"} else language


def absolute_python(scope: FileScope, module: str) -> str:
    """A relative module worked out from the package of the file; ``.`` is the folder of the file."""
    if not module.startswith("."):
        return module
    name = module.lstrip(".")
    parts = scope.package.split(".") if scope.package else []
    if not scope.path.endswith("__init__.py"):
        parts = parts[:-1]
    up = len(module) - len(name) - 1
    if up > len(parts):
        return "?"
    base = parts[: len(parts) - up]
    return ".".join([*base, name] if name else base)


def join_module(language: str, module: str, member: str) -> str:
    separator = "::" if language == "rust" else "."
    if not module or module.endswith("."):
        return module + member
    return f"{module}{separator}{member}"


def _rust_absolute(scope: FileScope, parts: list[str]) -> list[str]:
    here = scope.package.split("::") if scope.package else []
    if parts[0] == "crate":
        return parts[1:]
    while parts and parts[0] in {"self", "super"}:
        if parts[0] == "super":
            here = here[:-1]
        parts = parts[1:]
    return [*here, *parts]
