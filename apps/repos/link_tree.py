"""Where one link leads within a commit (``repository-documents.md`` 9.1, ``collections.md`` 6). Pure, in memory."""

from __future__ import annotations

import hashlib
import posixpath
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from apps.markup.anchors import match_fragment, slugify
from apps.markup.edge_types import EDGE_TYPES
from apps.markup.links import Candidates, KeyGroup, candidates
from apps.markup.nearest import NearestFiles, NearestNames, foreign_ending
from apps.markup.page_names import (
    LINES,
    SHOWN_CANDIDATES,
    SUGGESTED_AT_MOST,
    PageNames,
    names_other_source,
    wiki_fragment,
)
from apps.repos.hosts import own_path

RULES_VERSION = 3
"""Of what is told here of a link: when it is another, the next sync looks at all links again."""
RESOLVED, ANCHOR_MISSING, ASSET, EXTERNAL, BROKEN = "resolved", "anchor missing", "asset", "external", "broken"


@dataclass(frozen=True, slots=True)
class Page:
    """What links must know of a document. ``slug`` is the one of its header, not of its address."""

    id: uuid.UUID
    path: str
    title: str
    anchors: frozenset[str] = frozenset()
    slug: str = ""
    aliases: tuple[str, ...] = ()
    canonical: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A link as its document holds it."""

    link_type: str
    href: str
    fragment: str = ""
    rel_type: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """``document`` with its ``path``, else the ``path`` of a tracked file or folder. ``rule`` is that of collections
    6.3."""

    state: str
    reason: str = ""
    rule: int | None = None
    document: uuid.UUID | None = None
    path: str = ""
    anchor: str = ""
    candidates: tuple[str, ...] = ()
    suggestion: str = ""


class LinkTree:
    """Every tracked path, folder and document of one commit, ready to be asked for links."""

    def __init__(
        self, paths: Iterable[str], pages: Sequence[Page], roots: Sequence[str] = (), git_url: str = ""
    ) -> None:
        self.pages = {page.path: page for page in pages}
        self.by_id = {page.id: page for page in pages}
        self.paths = set(paths) | set(self.pages)
        self.folders = _folders(self.paths)
        self.roots = tuple(dict.fromkeys(root.strip("/") for root in roots))
        self.git_url = git_url
        self._names: PageNames[Page] = PageNames()
        self._suggestions = 0
        self._nearest: dict[str, str] = {}
        for page in pages:
            self._names.learn(page.path, page)

    def digest(self, rules: int) -> str:
        """32 characters that tell all that decides where links lead, by the version ``rules`` of this."""
        pages = sorted(
            (page.path, page.id.hex, page.title, sorted(page.anchors), page.slug, page.aliases, page.canonical)
            for page in self.pages.values()
        )
        known = (rules, self.git_url, self.roots, sorted(self.paths), pages)
        return hashlib.blake2b(repr(known).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def resolve(self, source: Page, link: Written) -> Resolution:
        """Where ``link`` on ``source`` leads; asks nothing but this tree."""
        if link.link_type == "wiki":
            return self._wiki(source, link)
        if link.link_type == "anchor":
            return self._own_anchor(source, link.fragment)
        if link.link_type != "absolute":
            return self._by_path(candidates(link.href, source.path, self._roots_of(source.path)), link.fragment)
        inside = own_path(self.git_url, link.href)
        if inside is None:
            return Resolution(EXTERNAL)
        place, _, fragment = inside.partition("#")
        return self._by_path(candidates("/" + place, source.path), fragment)

    def _roots_of(self, path: str) -> tuple[str, ...]:
        """Folders named ``docs`` above the document, the nearest first, then the one in the root and those set."""
        found: dict[str, None] = {}
        folder = posixpath.dirname(path)
        while folder:
            if posixpath.basename(folder).lower() == "docs":
                found[folder] = None
            folder = posixpath.dirname(folder)
        found["docs"] = None
        return (*found, *self.roots)

    def _own_anchor(self, source: Page, fragment: str) -> Resolution:
        if source.path.endswith(".rst") and match_fragment(fragment, source.anchors) is None:
            # A label of reStructuredText is known in the whole source.
            holders = [page for page in self._labels.get(fragment, ()) if page is not source]
            if len(holders) == 1:
                return self._at(holders[0].path, fragment, None)
        return self._at(source.path, fragment, None)

    def _by_path(self, tried: Candidates, fragment: str) -> Resolution:
        if tried.outside:
            return Resolution(BROKEN, "outside")
        folder: tuple[int, str] | None = None
        for group in tried.groups():
            if group.rule > 5 and folder is not None:
                break
            hits = self._found(group)
            if len(hits) > 1:
                return _ambiguous(group.rule, hits)
            if hits:
                return self._at(hits.pop(), fragment, group.rule)
            if folder is None and group.match == "exact":
                folder = next(((group.rule, key) for key in group.keys if key in self.folders), None)
        if folder is not None:
            return Resolution(ASSET, rule=folder[0], path=folder[1])
        return Resolution(BROKEN, "not found", suggestion=self._near(tried.path))

    def _found(self, group: KeyGroup) -> set[str]:
        """The paths that one of the keys means."""
        if group.match == "exact":
            return self.paths.intersection(group.keys) if group.rule else set()
        known = {"fold": self._folded, "name": self._names.files, "name_fold": self._names.folded_files}[group.match]
        return {path for key in group.keys if key in known for path in known[key]}

    def _wiki(self, source: Page, link: Written) -> Resolution:
        name, _, heading = link.href.partition("#")
        rule = 8
        if link.rel_type:
            rule, name = 9, name.partition("::")[2]
            if link.rel_type.replace("-", "_") not in EDGE_TYPES:
                return Resolution(BROKEN, "unknown type", 9)
        name = name.strip()
        if names_other_source(name):
            return Resolution(EXTERNAL)
        fragment = wiki_fragment(heading)
        if not name:
            return self._at(source.path, fragment, rule)
        for hits in self._names.steps(name, lambda: self._pages_at(name, source.path)):
            if len(hits) == 1:
                return self._at(hits[0].path, fragment, rule)
            if hits:
                return _ambiguous(rule, [page.path for page in hits])
        return Resolution(BROKEN, "not found", suggestion=self._near(name))

    def _pages_at(self, name: str, source_path: str) -> list[Page]:
        for group in candidates(name, source_path).groups():
            if group.match in {"exact", "fold"}:
                hits = [path for path in self._found(group) if path in self.pages]
                if hits:
                    return [self.pages[path] for path in sorted(hits)]
        return []

    def _at(self, path: str, fragment: str, rule: int | None) -> Resolution:
        page = self.pages.get(path)
        if page is None:
            return Resolution(ASSET, rule=rule, path=path)
        if not fragment or fragment.startswith("^"):
            return Resolution(RESOLVED, rule=rule, document=page.id, path=path)
        anchor = match_fragment(fragment, page.anchors)
        if anchor is None and LINES.fullmatch(fragment):
            anchor = fragment
        if anchor is not None:
            return Resolution(RESOLVED, rule=rule, document=page.id, path=path, anchor=anchor)
        near = NearestNames(page.anchors).find(slugify(unquote(fragment)))
        suggestion = f"#{near}" if near else ""
        return Resolution(ANCHOR_MISSING, "anchor", rule, page.id, path, suggestion=suggestion)

    def _near(self, written: str) -> str:
        """The path of the nearest name, at least 60 % alike; shown, never bound."""
        self._suggestions += 1
        if self._suggestions > SUGGESTED_AT_MOST:
            return ""
        name = written.rstrip("/").rsplit("/", 1)[-1]
        if name not in self._nearest:
            self._nearest[name] = self._nearest_path(name)
        return self._nearest[name]

    def _nearest_path(self, name: str) -> str:
        if foreign_ending(name):
            return self._near_files.find(name) or ""
        near = self._near_names.find(name)
        return min(self._names.files[near]) if near else ""

    @cached_property
    def _near_files(self) -> NearestFiles:
        return NearestFiles(self.paths)

    @cached_property
    def _near_names(self) -> NearestNames:
        return NearestNames(self._names.files)

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.paths:
            found[path.casefold()].append(path)
        return found

    @cached_property
    def _labels(self) -> dict[str, list[Page]]:
        found: defaultdict[str, list[Page]] = defaultdict(list)
        for page in self.pages.values():
            if page.path.endswith(".rst"):
                for anchor in page.anchors:
                    found[anchor].append(page)
        return found


def _folders(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        folder = posixpath.dirname(path)
        while folder and folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)
    return found


def _ambiguous(rule: int, paths: Iterable[str]) -> Resolution:
    return Resolution(BROKEN, "ambiguous", rule, candidates=tuple(sorted(paths)[:SHOWN_CANDIDATES]))
