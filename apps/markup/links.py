"""What a link address is, and which keys it may mean (``markup.md`` 5, ``collections.md`` 6.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from apps.markup.values import LinkType

MARKDOWN_ENDINGS = (".md", ".mdx", ".markdown")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


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

    ``exact``: the whole key; ``fold``: the whole key, both sides case-folded; ``name``: the last segment of a document's
    key; ``name_fold``: that, case-folded. Folded keys are folded here already.
    """

    rule: int
    match: Literal["exact", "fold", "name", "name_fold"]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What an address may mean. ``outside``: it climbs above the root, which is a broken link, whatever exists."""

    groups: tuple[KeyGroup, ...] = ()
    outside: bool = False


def candidates(href: str, source_path: str, roots: Sequence[str] = ()) -> Candidates:
    """Keys to try in this order, by rules 0 (the address as it stands) to 7; the first group with a hit decides.

    ``roots`` are folders from which addresses that begin with a slash are tried too, after the root itself. No file is
    touched. Empty for absolute addresses; the document itself for fragments and for the empty address.
    """
    kind, path, _, _ = split_href(href)
    if kind == "absolute":
        return Candidates()
    path = _decoded(path).replace("\\", "/")
    if not path:
        return Candidates((KeyGroup(1, "exact", (source_path,)),))
    groups = [KeyGroup(0, "exact", (href,))]
    folder = source_path.rpartition("/")[0]
    if not path.startswith("/"):
        place = _joined(folder, path)
        if place is None:
            return Candidates(outside=True)
        groups += [KeyGroup(rule, "exact", keys) for rule, keys in _by_rules(place, path)]
    from_root = [_joined(root.strip("/"), path.lstrip("/")) for root in ("", *roots)]
    if path.startswith("/") and from_root[0] is None:
        return Candidates(outside=True)
    for place in from_root:
        if place is not None:
            groups += [KeyGroup(5, "exact", keys) for _, keys in _by_rules(place, path)]
    folded = dict.fromkeys(key.casefold() for group in groups[1:] for key in group.keys)
    groups.append(KeyGroup(6, "fold", tuple(folded)))
    if "/" not in path:
        names = _names(path)
        groups.append(KeyGroup(7, "name", names))
        groups.append(KeyGroup(7, "name_fold", tuple(dict.fromkeys(each.casefold() for each in names))))
    return Candidates(tuple(groups))


def _decoded(path: str) -> str:
    """Percent-decoded once; a path with a broken escape stays as it is written."""
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        return path


def _joined(folder: str, path: str) -> str | None:
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
