"""How a repository is laid out, as far as its own configuration says what imports mean. Pure.

``go.mod`` names the module whose packages are its folders, ``tsconfig.json`` and ``jsconfig.json`` give folders other
names, ``package.json`` names the packages of a workspace and what comes from outside.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CONFIGURATIONS = ("go.mod", "tsconfig.json", "tsconfig.base.json", "jsconfig.json", "package.json")
MOST_BYTES = 262_144
MOST_STEPS = 5
_MODULE = re.compile(r"^[ \t]*module[ \t]+[\"`]?([^\s\"`]+)", re.MULTILINE)
_JSON_PIECE = re.compile(r'"(?:\\.|[^"\\\n])*"?|//[^\n]*|/\*|,(?=\s*[}\]])')
"""What is not closed is a piece too, so that no text is looked through twice."""
_ENTRIES = ("source", "types", "typings", "module", "main")


@dataclass(frozen=True, slots=True)
class GoModule:
    name: str
    folder: str


@dataclass(frozen=True, slots=True)
class Aliases:
    """Of the TypeScript files below ``folder``: ``paths`` from patterns with at most one ``*`` to where they lead, from
    the root of the repository; ``base`` is where plain names are looked for, None for nowhere."""

    folder: str
    base: str | None
    paths: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Package:
    """A package of JavaScript. ``entry`` is what an import of its name means, without ending, empty when not said;
    ``outside`` are the packages that it takes from elsewhere."""

    name: str
    folder: str
    entry: str
    outside: frozenset[str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Innermost folders first."""

    go: tuple[GoModule, ...] = ()
    aliases: tuple[Aliases, ...] = ()
    packages: tuple[Package, ...] = ()

    def targets(self, path: str, module: str) -> Iterator[str]:
        """Where an import of ``module`` in the TypeScript or JavaScript file ``path`` may lead, from the root."""
        around = next((one for one in self.packages if _is_below(path, one.folder)), None)
        named = {one.name: one for one in reversed(self.packages) if one.name}
        package = _package_name(module)
        if around is None or package not in around.outside or package in named:
            aliases = next((one for one in self.aliases if _is_below(path, one.folder)), None)
            if aliases is not None:
                yield from _by_alias(aliases, module)
        if package in named:
            yield from _in_package(named[package], module[len(package) + 1 :])


def read_layout(files: Mapping[str, str]) -> Layout:
    """``files``: the texts of configuration files by path. What cannot be read says nothing."""
    go: list[GoModule] = []
    aliases: list[Aliases] = []
    packages: list[Package] = []
    parsed = {path: _json(text) for path, text in files.items() if path.endswith(".json")}
    for path, text in files.items():
        folder, _, name = path.rpartition("/")
        if name == "go.mod":
            if match := _MODULE.search(text):
                go.append(GoModule(match[1], folder))
        elif name == "package.json":
            packages.append(_package(parsed[path], folder))
        elif name != "tsconfig.base.json" and (found := _aliases(path, parsed)):
            aliases.append(found)
    return Layout(
        tuple(sorted(go, key=lambda one: (-len(one.name), one.folder))),
        tuple(sorted(aliases, key=lambda one: (-len(one.folder), one.folder))),
        tuple(sorted(packages, key=lambda one: (-len(one.folder), one.folder))),
    )


def _json(text: str) -> dict[str, Any]:
    """JSON as these tools take it, with comments and commas at the end; empty when it is none."""
    try:
        found = json.loads(_plain(text.removeprefix("\ufeff")))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _plain(text: str) -> str:
    """Without comments, and without commas at the end of a list."""
    kept: list[str] = []
    at = 0
    while (piece := _JSON_PIECE.search(text, at)) is not None:
        kept.append(text[at : piece.start()])
        at = piece.end()
        if piece[0].startswith('"'):
            kept.append(piece[0])
        elif piece[0] == "/*":
            end = text.find("*/", at)
            at = end + 2 if end >= 0 else len(text)
    return "".join([*kept, text[at:]])


def _package(given: Mapping[str, Any], folder: str) -> Package:
    name = given.get("name")
    entry = next((value for key in _ENTRIES if isinstance(value := given.get(key), str) and value), "")
    outside: set[str] = set()
    for key in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        held = given.get(key)
        if isinstance(held, dict):
            outside.update(map(str, held))
    return Package(
        name if isinstance(name, str) else "", folder, _joined(folder, entry) if entry else "", frozenset(outside)
    )


def _aliases(path: str, parsed: Mapping[str, Mapping[str, Any]]) -> Aliases | None:
    """The options of a configuration, those that it extends included, as long as these lie in the repository."""
    base: str | None = None
    paths: list[tuple[str, tuple[str, ...]]] = []
    at = path
    for _ in range(MOST_STEPS):
        given = parsed.get(at, {})
        options = given.get("compilerOptions")
        folder = posixpath.dirname(at)
        if isinstance(options, dict):
            root = options.get("baseUrl")
            if base is None and isinstance(root, str):
                base = _joined(folder, root)
            held = options.get("paths")
            if not paths and isinstance(held, dict):
                start = _joined(folder, root) if isinstance(root, str) else folder
                paths = [(str(key), _targets(start, value)) for key, value in held.items()]
        extends = given.get("extends")
        if not isinstance(extends, str) or not extends.startswith("."):
            break
        at = _joined(folder, extends if extends.endswith(".json") else f"{extends}.json")
    if base is None and not paths:
        return None
    return Aliases(posixpath.dirname(path), base, tuple(sorted(paths, key=lambda one: (-len(one[0]), one[0]))))


def _targets(start: str, value: Any) -> tuple[str, ...]:
    return tuple(_joined(start, one) for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _by_alias(aliases: Aliases, module: str) -> Iterator[str]:
    for pattern, targets in aliases.paths:
        before, star, after = pattern.partition("*")
        if not star:
            if module == pattern:
                yield from targets
        elif len(module) >= len(before) + len(after) and module.startswith(before) and module.endswith(after):
            rest = module[len(before) : len(module) - len(after)]
            yield from (posixpath.normpath(target.replace("*", rest, 1)) for target in targets)
    if aliases.base is not None:
        yield _joined(aliases.base, module)


def _in_package(package: Package, rest: str) -> Iterator[str]:
    if rest:
        yield _joined(package.folder, rest)
        yield _joined(package.folder, f"src/{rest}")
        return
    if package.entry:
        yield package.entry
    yield from (_joined(package.folder, place) for place in ("src", ".", "lib"))


def _package_name(module: str) -> str:
    parts = module.split("/")
    return "/".join(parts[:2]) if module.startswith("@") else parts[0]


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _joined(folder: str, rest: str) -> str:
    joined = posixpath.normpath(posixpath.join(folder, rest))
    return "" if joined == "." else joined
