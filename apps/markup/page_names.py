"""The names by which the links of one source reach its pages (``collections.md`` 6). Pure, in memory."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from apps.markup.anchors import slugify

SHOWN_CANDIDATES = 10
"""Of a name that several pages bear."""
SUGGESTED_AT_MOST = 500
"""Addresses of one run for which a near name is looked for; more say that a whole tree is missing."""
LINES = re.compile(r"L\d+(?:-L?\d+)?")

_ENDINGS = (".markdown", ".mdx", ".md", ".rst", ".txt")
_BLANKS = re.compile(r"[\s_]+")
_SOURCE = re.compile(r"[A-Za-z0-9._/~-]+")


class NamedPage(Protocol):
    """What makes the names of a page. ``slug`` is the one of its header, ``canonical`` pages go before others."""

    @property
    def id(self) -> UUID: ...
    @property
    def title(self) -> str: ...
    @property
    def slug(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...
    @property
    def canonical(self) -> bool: ...


P = TypeVar("P", bound=NamedPage)


class PageNames(Generic[P]):
    """Pages of one source by file name, slug, alias, stem and title."""

    def __init__(self) -> None:
        self.files: defaultdict[str, list[str]] = defaultdict(list)
        """Paths by the name of their file, with and without its ending."""
        self.folded_files: defaultdict[str, list[str]] = defaultdict(list)
        self.titles: defaultdict[str, list[P]] = defaultdict(list)
        self._slugs: defaultdict[str, list[P]] = defaultdict(list)
        self._aliases: defaultdict[str, list[P]] = defaultdict(list)
        self._stems: defaultdict[str, list[P]] = defaultdict(list)

    def learn(self, path: str, page: P) -> None:
        name = posixpath.basename(path)
        stem = name.rsplit(".", 1)[0] if "." in name.lstrip(".") else name
        for word in dict.fromkeys((name, stem)):
            self.files[word].append(path)
            self.folded_files[word.casefold()].append(path)
        if page.slug:
            self._slugs[name_key(page.slug)].append(page)
        for alias in page.aliases:
            self._aliases[name_key(alias)].append(page)
        self._stems[name_key(name)].append(page)
        self.titles[name_key(page.title)].append(page)

    def steps(self, name: str, at_path: Callable[[], list[P]]) -> Iterator[list[P]]:
        """What a name may mean, step by step, canonical pages first within each: slug, alias, path, stem, title.

        ``at_path`` looks for the pages that the name reaches as a path; it is asked only when its turn comes.
        """
        key, last = name_key(name), name_key(name.rsplit("/", 1)[-1])
        yield _preferred(self._slugs.get(key, []))
        yield _preferred(self._aliases.get(key, []))
        yield at_path()
        if "/" not in name:
            yield _preferred(self._stems.get(last, []))
        yield _preferred(self.titles.get(key, []))


def name_key(name: str) -> str:
    """The form in which names are compared: NFC, trimmed, case folded, without the ending of a text file, blanks and
    ``_`` as ``-``."""
    text = unicodedata.normalize("NFC", name).strip().casefold()
    for ending in _ENDINGS:
        if text.endswith(ending) and len(text) > len(ending):
            text = text.removesuffix(ending).rstrip()
            break
    return _BLANKS.sub("-", text)


def names_other_source(name: str) -> bool:
    """``[[source:slug]]`` names a page of another source: the graph's matter, external here."""
    source, colon, slug = name.partition(":")
    return bool(colon and slug) and " " not in name and _SOURCE.fullmatch(source) is not None


def wiki_fragment(heading: str) -> str:
    """The fragment that the part of a wiki link after ``#`` asks for."""
    return heading if heading.startswith("^") else slugify(heading) if heading else ""


def _preferred(pages: Sequence[P]) -> list[P]:
    return [page for page in pages if page.canonical] or list({page.id: page for page in pages}.values())
