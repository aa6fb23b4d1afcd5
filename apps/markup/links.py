"""What a link address is, and which keys it may mean (``markup.md`` 5, ``collections.md`` 6.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from apps.markup.values import LinkType

MARKDOWN_ENDINGS = (".md", ".mdx", ".markdown")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


_REFERENCE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:[^/]+")
_FILE_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}\Z")


def is_reference(key: str) -> bool:
    """Whether a key is no path but the name of a page elsewhere, such as ``confluence:DOCS:3474267#sec-000``."""
    return _REFERENCE.fullmatch(key) is not None and _FILE_ENDING.search(key) is None


def split_href(href: str) -> tuple[LinkType, str, str, str]:
    """Type, path, query, fragment of an address written outside double brackets, cut at its first # and then ?."""
    path, fragment, query = href, "", ""
    if "#" in path:
        path, _, fragment = path.partition("#")
    if "?" in path:
        path, _, query = path.partition("?")
    kind: LinkType
    if href.startswith(("https:", "http:", "//")) or _SCHEME.match(href):
        kind = "absolute"
    elif href.startswith("#"):
        kind = "anchor"
    elif path.lower().endswith(MARKDOWN_ENDINGS):
        kind = "markdown"
    else:
        kind = "relative"
    return kind, path, query, fragment


DOCUMENT_ENDINGS = (".md", ".mdx", ".markdown", ".rst", ".txt")
_FOLDER_PAGES = ("index", "README", "_index")
_SWAPPED = {".md": ".mdx", ".mdx": ".md"}


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """Keys that one rule tries together: more than one document among them is ambiguous.

    ``exact``: the whole key; ``fold``: the whole key, both sides case-folded; ``name``: the last segment of a key;
    ``name_fold``: that, both sides case-folded. Keys to be compared folded are folded here already.
    """

    rule: int
    match: Literal["exact", "fold", "name", "name_fold"]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What an address may mean. ``outside``: it climbs above the root, which is a broken link, whatever exists."""

    outside: bool = False
    href: str = ""
    path: str = ""
    """Decoded, with forward slashes; empty when nothing is to be tried but ``places``."""
    places: tuple[tuple[int, str], ...] = ()
    """The path from the root, once a reading: rule 1 for the source's folder, rule 5 for each root."""

    def groups(self) -> Iterator[KeyGroup]:
        """Keys by rules 0 (the address as it stands) to 7, made as they are asked for: most links end at rule 1."""
        if not self.path:
            yield from (KeyGroup(rule, "exact", (place,)) for rule, place in self.places)
            return
        yield KeyGroup(0, "exact", (self.href,))
        tried: list[str] = []
        for first_rule, place in self.places:
            for rule, keys in _by_rules(place, self.path):
                yield KeyGroup(max(rule, first_rule), "exact", keys)
                tried += keys
        yield KeyGroup(6, "fold", tuple(dict.fromkeys(map(str.casefold, tried))))
        if "/" not in self.path:
            names = _names(self.path)
            yield KeyGroup(7, "name", names)
            yield KeyGroup(7, "name_fold", tuple(dict.fromkeys(each.casefold() for each in names)))


def candidates(href: str, source_path: str, roots: Sequence[str] = ()) -> Candidates:
    """Keys to try for an address in the document ``source_path``; the first group with a hit decides.

    ``roots`` are folders from which a path that begins with a slash is tried after the root. No file is touched. No
    keys for absolute addresses; the document itself for fragments and for the empty address.
    """
    kind, path, _, _ = split_href(href)
    if kind == "absolute":
        return Candidates()
    path = _decoded(path).replace("\\", "/")
    if not path:
        return Candidates(places=((1, source_path),))
    places: list[tuple[int, str]] = []
    if not path.startswith("/"):
        place = joined(source_path.rpartition("/")[0], path)
        if place is None:
            return Candidates(outside=True)
        places.append((1, place))
    # Read from a root the path may not climb above that root either.
    inner = joined("", path)
    if inner is not None:
        tried = ("", *roots) if path.startswith("/") else ("",)
        places += [(5, f"{root.strip('/')}/{inner}".strip("/")) for root in tried]
    if not places:
        return Candidates(outside=True)
    return Candidates(href=href, path=path, places=tuple(places))


def _decoded(path: str) -> str:
    """Percent-decoded once; a path with a broken escape stays as it is written."""
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        return path


def joined(folder: str, path: str) -> str | None:
    """The path from the root, without ``.`` and ``..``; None when it climbs above the root.

    SECURITY: the only place where a link becomes a key, so ``../../etc/passwd`` and ``%2e%2e/`` end here.
    """
    steps = folder.split("/") if folder else []
    for step in path.split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return "/".join(steps)


def _by_rules(place: str, path: str) -> list[tuple[int, tuple[str, ...]]]:
    """Rules 1 to 4 for one place; ``path`` as written says whether a folder was meant."""
    found: list[tuple[int, tuple[str, ...]]] = []
    base = place
    if path.endswith(("/index.html", "/index.htm")) or path in ("index.html", "index.htm"):
        base = place.rpartition("/")[0]
    if place:
        found += [(1, (place,)), (2, tuple(place + ending for ending in DOCUMENT_ENDINGS))]
        stem, dot, ending = place.rpartition(".")
        if dot and ending.lower() in ("html", "htm"):
            found.append((3, tuple(stem + each for each in DOCUMENT_ENDINGS)))
        elif swapped := _SWAPPED.get(dot + ending.lower()):
            found.append((3, (stem + swapped,)))
    inside = f"{base}/" if base else ""
    found.append((4, tuple(inside + page + ending for page in _FOLDER_PAGES for ending in DOCUMENT_ENDINGS)))
    return found


def _names(path: str) -> tuple[str, ...]:
    stem, dot, ending = path.rpartition(".")
    if dot and dot + ending.lower() in DOCUMENT_ENDINGS:
        return (path, stem)
    return (path, *(path + each for each in DOCUMENT_ENDINGS))
