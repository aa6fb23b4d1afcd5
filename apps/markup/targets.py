"""Which keys the path of a link may mean, in the order in which they are tried. Pure; nothing is ever opened.

Rules 1 to 5 of ``collections.md`` 6.3. What goes beyond a single key (equal but for case, a bare name that is unique)
needs all keys and belongs to the rooms.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from urllib.parse import unquote_to_bytes

ENDINGS = (".md", ".mdx", ".markdown", ".rst", ".txt")
INDEX_STEMS = ("index", "README", "_index")


def decoded_path(written: str) -> str:
    """The path as a person means it: percent-decoded once (a broken escape stays), ``\\`` as ``/``."""
    try:
        path = unquote_to_bytes(written).decode("utf-8") if "%" in written else written
    except UnicodeDecodeError:
        path = written
    return path.replace("\\", "/")


def join(folder: str, path: str) -> str | None:
    """``path`` seen from ``folder``, dots worked out; None when it rises above the root."""
    parts = [part for part in folder.split("/") if part]
    for part in path.split("/"):
        if part in {"", "."}:
            continue
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def candidates(path: str, source_path: str, roots: Sequence[str] = ("",)) -> list[tuple[int, str]] | None:
    """(rule, key) pairs to try for a decoded path on the page ``source_path``; None when it leads outside.

    ``roots`` are the folders that count as root, the real one (``""``) among them. A path that begins with ``/`` is
    tried from these alone.
    """
    rooted = path.startswith("/")
    found: list[tuple[int, str]] = []
    if not rooted:
        place = join(posixpath.dirname(source_path), path)
        if place is None:
            return None
        found += _spellings(place, path)
    for root in roots:
        place = join(root, path)
        if place is not None:
            found += [(5, key) for _, key in _spellings(place, path)]
        elif rooted:
            return None
    return list(dict.fromkeys(found))


def _spellings(place: str, written: str) -> Iterator[tuple[int, str]]:
    folder_meant = written.endswith("/") or not place
    if not folder_meant:
        yield 1, place
        yield from ((2, place + ending) for ending in ENDINGS)
        stem, dot, last = place.rpartition(".")
        last = last.lower()
        if dot and last in {"html", "htm"}:
            yield from ((3, stem + ending) for ending in ENDINGS)
        elif dot and last in {"md", "mdx"}:
            yield 3, stem + (".mdx" if last == "md" else ".md")
    folders = [place]
    name = posixpath.basename(place).lower()
    if name in {"index.html", "index.htm"}:
        folders.append(posixpath.dirname(place))
    for folder in folders:
        for stem in INDEX_STEMS:
            yield from ((4, posixpath.join(folder, stem + ending)) for ending in ENDINGS)
