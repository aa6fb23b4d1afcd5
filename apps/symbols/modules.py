"""Which files of a repository an import means, language by language. Pure.

An import of a package that the repository does not hold means no file, whatever a local one is called.
"""

from __future__ import annotations

import posixpath
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from apps.symbols.languages.base import dotted_path
from apps.symbols.layout import Layout
from apps.symbols.values import Import

_ENDINGS = frozenset({".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"})
_RELATIVE = frozenset({"crate", "self", "super"})
_STANDARD_PYTHON = sys.stdlib_module_names - {"test"}
_GO = (
    "archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go"
    " hash html image index io iter log maps math mime net os path plugin reflect regexp runtime slices sort strconv"
    " strings structs sync syscall testing text time unicode unique unsafe weak"
)
_STANDARD_GO = frozenset(_GO.split())


@dataclass(frozen=True, slots=True)
class FileScope:
    """What one file brings to the resolution of its references."""

    path: str
    language: str
    package: str
    imports: tuple[Import, ...]


class ModulePaths:
    """The files of a repository by what imports call them."""

    def __init__(self, files: Iterable[FileScope], layout: Layout) -> None:
        self._layout = layout
        self._packages: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._go_folders: dict[str, list[str]] = defaultdict(list)
        self._crates: dict[str, set[str]] = defaultdict(set)
        self.scopes: dict[str, FileScope] = {}
        for file in files:
            group = family(file.language)
            self._packages[group, file.package].append(file.path)
            self.scopes[file.path] = file
            if group == "go" and not file.path.endswith("_test.go"):
                self._go_folders[posixpath.dirname(file.path)].append(file.path)
            elif group == "rust":
                crate = crate_of(file.path)
                self._crates[posixpath.basename(crate).replace("-", "_")].add(crate)
        for paths in [*self._packages.values(), *self._go_folders.values()]:
            paths.sort(key=lambda path: (path.endswith(".d.ts"), path))

    def of_package(self, language: str, package: str, path: str) -> list[str]:
        """The files that belong to the package of ``path`` without an import, itself included."""
        paths = self._packages.get((family(language), package), [])
        if language == "go":
            folder = posixpath.dirname(path)
            return [one for one in paths if posixpath.dirname(one) == folder]
        if language == "rust":
            crate = crate_of(path)
            return [one for one in paths if crate_of(one) == crate]
        return paths

    def find(self, scope: FileScope, module: str) -> list[str]:
        """The files that an import of ``module`` means in the file of ``scope``, the likeliest first."""
        group = family(scope.language)
        if group == "python":
            return self._python(scope, module)
        if group == "ecmascript":
            return self._ecmascript(scope, module)
        if group == "go":
            return self._go(scope, module)
        if group == "rust":
            return self._rust(scope, module)
        return self._packages.get((group, module), [])

    def _python(self, scope: FileScope, module: str) -> list[str]:
        absolute = absolute_python(scope, module)
        first = absolute.split(".", 1)[0]
        if not module.startswith("."):
            if first in _STANDARD_PYTHON and scope.package.split(".", 1)[0] != first:
                return []
            if root := self._python_root(scope.path):
                below = self._packages.get(("python", f"{root}.{absolute}"))
                if below:
                    return below
        return self._packages.get(("python", absolute), [])

    def _python_root(self, path: str) -> str:
        """The dotted folder from which the packages around a file are imported; empty for the root, and for a file
        that stands in no package: what such a script imports by a bare name may come from anywhere."""
        folder = posixpath.dirname(path)
        inner = folder
        while inner and f"{inner}/__init__.py" in self.scopes:
            inner = posixpath.dirname(inner)
        return "" if inner in {"", folder} else dotted_path(f"{inner}/_.py").removesuffix("_").rstrip(".")

    def _ecmascript(self, scope: FileScope, module: str) -> list[str]:
        if module.startswith("."):
            targets: Iterable[str] = [posixpath.normpath(posixpath.join(posixpath.dirname(scope.path), module))]
        else:
            targets = self._layout.targets(scope.path, module)
        for target in targets:
            stem, ending = posixpath.splitext(target)
            index = f"{target}/index" if target else "index"
            for name in (target, stem.removesuffix(".d") if ending in _ENDINGS else target, index):
                if found := self._packages.get(("ecmascript", name)):
                    return found
        return []

    def _go(self, scope: FileScope, module: str) -> list[str]:
        for one in self._layout.go:
            if module == one.name or module.startswith(f"{one.name}/"):
                return self._go_folders.get(_below(one.folder, module[len(one.name) + 1 :]), [])
        if self._layout.go:
            return self._go_folders.get(f"vendor/{module}", [])
        # Without a go.mod the end of the path must be a folder, and the path more than that.
        if module.split("/", 1)[0] in _STANDARD_GO:
            return []
        parts = module.split("/")
        for at in range(1, len(parts)):
            if found := self._go_folders.get("/".join(parts[at:])):
                return found
        return []

    def _rust(self, scope: FileScope, module: str) -> list[str]:
        parts = module.split("::")
        crate = crate_of(scope.path)
        here = scope.package.split("::") if scope.package else []
        if parts[0] in _RELATIVE:
            return self._in_crate(crate, _rust_absolute(here, parts))
        if found := self._in_crate(crate, [*here, *parts]):
            return found
        for other in sorted(self._crates.get(parts[0], ())):
            if found := self._in_crate(other, parts[1:]):
                return found
        return []

    def _in_crate(self, crate: str, parts: list[str]) -> list[str]:
        return [path for path in self._packages.get(("rust", "::".join(parts)), []) if crate_of(path) == crate]


def family(language: str) -> str:
    """Languages whose files import each other."""
    return "ecmascript" if language in {"javascript", "typescript"} else language


def absolute_python(scope: FileScope, module: str) -> str:
    """A relative module worked out from the package of the file; ``.`` is the folder of the file."""
    if not module.startswith("."):
        return module
    name = module.lstrip(".")
    parts = scope.package.split(".") if scope.package else []
    if not scope.path.endswith(("__init__.py", "__init__.pyi")):
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


def crate_of(path: str) -> str:
    """The folder of the crate that a Rust file belongs to: what stands before ``src``."""
    parts = path.split("/")
    return "/".join(parts[: parts.index("src")]) if "src" in parts else ""


def _below(folder: str, rest: str) -> str:
    return f"{folder}/{rest}".strip("/")


def _rust_absolute(here: list[str], parts: list[str]) -> list[str]:
    if parts[0] == "crate":
        return parts[1:]
    while parts and parts[0] in {"self", "super"}:
        if parts[0] == "super":
            here = here[:-1]
        parts = parts[1:]
    return [*here, *parts]
