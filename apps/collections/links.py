"""Where the links of a collection lead: all of them at once, in memory, inside the collection and nowhere else.

Rules: ``collections.md`` 6. Linear in documents plus links; changed rows are written in bulk.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import UUID

from apps.collections.link_rows import RESOLUTION, update
from apps.collections.models import Asset, Collection, Document, DocumentLink, LinkState
from apps.markup.anchors import match_fragment, slugify
from apps.markup.edge_types import EDGE_TYPES
from apps.markup.links import KeyGroup, candidates
from apps.markup.nearest import NearestFiles, NearestNames, foreign_ending
from apps.markup.page_names import (
    LINES,
    SHOWN_CANDIDATES,
    SUGGESTED_AT_MOST,
    PageNames,
    name_key,
    names_other_source,
    wiki_fragment,
)

if TYPE_CHECKING:
    from apps.jobs.running import JobRun

READ_AT_ONCE = 5000
WRITE_AT_ONCE = 5000
_NO_PATH = re.compile(r"[:?#%]")
_PAGE_ID = re.compile(r"/pages/([0-9]+)(?:[/?#]|$)")


@dataclass(frozen=True, slots=True)
class Page:
    """What links must know of a document."""

    id: UUID
    key: str
    title: str
    slug: str = ""
    aliases: tuple[str, ...] = ()
    page_id: str = ""
    canonical: bool = False
    anchors: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Written:
    """A link as its document holds it."""

    source_key: str
    link_type: str
    href: str
    fragment: str = ""
    rel_type: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    state: str
    reason: str = ""
    rule: int | None = None
    document: UUID | None = None
    asset: UUID | None = None
    anchor: str = ""
    candidates: tuple[str, ...] = ()
    suggestion: str = ""


class Shelf:
    """Every key, name and anchor of one collection, ready to be asked for links."""

    def __init__(self, pages: Sequence[Page], assets: Iterable[tuple[str, UUID]] = ()) -> None:
        self.pages = {page.key: page for page in pages}
        self.assets = dict(assets)
        self._lower: defaultdict[str, list[str]] = defaultdict(list)
        self._names: PageNames[Page] = PageNames()
        self._page_ids: defaultdict[str, list[Page]] = defaultdict(list)
        for key in (*self.pages, *self.assets):
            self._lower[key.casefold()].append(key)
        for page in pages:
            self._learn(page)
        self._suggestions = 0

    def _learn(self, page: Page) -> None:
        self._names.learn(page.key, page)
        ids = {page.page_id} if page.page_id else set()
        numbered = page.key.partition("#")[0]
        last = numbered.rsplit(":", 1)[-1] if numbered.count(":") >= 2 else ""
        if last.isdigit():
            ids.add(last)
        for number in ids:
            self._page_ids[number].append(page)

    # -- one link

    def resolve(self, link: Written) -> Resolution:
        """Where ``link`` leads; asks nothing but this shelf."""
        if link.link_type == "wiki":
            return self._wiki(link)
        if link.link_type == "anchor":
            return self._at(link.source_key, link.fragment, None)
        if link.link_type == "absolute" and link.href in self.pages:  # a key such as `wiki:OPS:12`
            return self._at(link.href, "", 0)
        if link.link_type == "absolute":
            return self._by_page_id(link) or Resolution(LinkState.EXTERNAL)
        return self._by_path(link)

    def _by_path(self, link: Written) -> Resolution:
        tried = candidates(link.href, link.source_key)
        if tried.outside:
            return Resolution(LinkState.BROKEN, "outside")
        for group in tried.groups():
            hits = sorted({key for wanted in group.keys for key in self._hits(group, wanted)})
            if len(hits) > 1:
                return self._ambiguous(group.rule, hits)
            if hits:
                (key,) = hits
                if key in self.assets:
                    return Resolution(LinkState.ASSET, rule=group.rule, asset=self.assets[key])
                return self._at(key, link.fragment if group.rule else "", group.rule)
        numbered = self._by_page_id(link)
        return numbered or Resolution(LinkState.BROKEN, "not found", suggestion=self._near_key(tried.path))

    def _hits(self, group: KeyGroup, wanted: str) -> Iterable[str]:
        if group.match == "exact":
            # Images answer to their own key alone, by rules 1 and 5; a key of rule 0 is one that no path can spell.
            if wanted in self.pages and (group.rule or _NO_PATH.search(wanted)):
                return (wanted,)
            return (wanted,) if wanted in self.assets and group.rule in {1, 5} else ()
        return {"fold": self._lower, "name": self._names.files, "name_fold": self._names.folded_files}[group.match].get(
            wanted, ()
        )

    def _by_page_id(self, link: Written) -> Resolution | None:
        found = _PAGE_ID.search(link.href)
        if found is None:
            return None
        pages = self._page_ids.get(found.group(1), [])
        if len(pages) == 1:
            return Resolution(LinkState.RESOLVED, rule=10, document=pages[0].id)
        return self._ambiguous(10, [page.key for page in pages]) if pages else None

    def _wiki(self, link: Written) -> Resolution:
        name, _, heading = link.href.partition("#")
        rule = 8
        if link.rel_type:
            rule = 9
            name = name.partition("::")[2]
            if link.rel_type.replace("-", "_") not in EDGE_TYPES:
                return Resolution(LinkState.BROKEN, "unknown type", 9)
        name = name.strip()
        if name in self.pages and ":" in name:
            return self._at(name, heading, rule)
        if names_other_source(name):
            return Resolution(LinkState.EXTERNAL)
        fragment = wiki_fragment(heading)
        if not name:
            return self._at(link.source_key, fragment, rule)
        for hits in self._names.steps(name, lambda: self._pages_at(name, link.source_key)):
            if len(hits) == 1:
                return self._at(hits[0].key, fragment, rule)
            if hits:
                return self._ambiguous(rule, [page.key for page in hits])
        return Resolution(LinkState.BROKEN, "not found", suggestion=self._near_key(name))

    def _pages_at(self, name: str, source_key: str) -> list[Page]:
        for group in candidates(name, source_key).groups():
            if group.match in {"exact", "fold"}:
                hits = {key for wanted in group.keys for key in self._hits(group, wanted) if key in self.pages}
                if hits:
                    return [self.pages[key] for key in sorted(hits)]
        return []

    def _at(self, key: str, fragment: str, rule: int | None) -> Resolution:
        page = self.pages.get(key)
        if page is None:
            return Resolution(LinkState.BROKEN, "not found")
        if not fragment or fragment.startswith("^"):
            return Resolution(LinkState.RESOLVED, rule=rule, document=page.id)
        anchor = match_fragment(fragment, page.anchors)
        if anchor is not None:
            return Resolution(LinkState.RESOLVED, rule=rule, document=page.id, anchor=anchor)
        if LINES.fullmatch(fragment):
            return Resolution(LinkState.RESOLVED, rule=rule, document=page.id, anchor=fragment)
        near = NearestNames(page.anchors).find(slugify(unquote(fragment)))
        return Resolution(
            LinkState.ANCHOR_MISSING, "anchor", rule, document=page.id, suggestion=f"#{near}" if near else ""
        )

    @staticmethod
    def _ambiguous(rule: int, keys: Iterable[str]) -> Resolution:
        return Resolution(LinkState.BROKEN, "ambiguous", rule, candidates=tuple(sorted(keys)[:SHOWN_CANDIDATES]))

    # -- suggestions

    def _near_key(self, written: str) -> str:
        """The nearest key or title of the collection, at least 60 % alike; shown, never bound."""
        self._suggestions += 1
        if self._suggestions > SUGGESTED_AT_MOST:
            return ""
        name = written.rstrip("/").rsplit("/", 1)[-1]
        if foreign_ending(name):
            return self._near_assets.find(name) or ""
        near = self._near_names.find(name)
        if near:
            return min(self._names.files[near])
        titled = self._near_titles.find(name_key(name))
        return self._names.titles[titled][0].key if titled else ""

    @cached_property
    def _near_names(self) -> NearestNames:
        return NearestNames(self._names.files)

    @cached_property
    def _near_assets(self) -> NearestFiles:
        return NearestFiles(self.assets)

    @cached_property
    def _near_titles(self) -> NearestNames:
        return NearestNames(self._names.titles)


# -- all links of a collection


def load_shelf(collection: Collection) -> Shelf:
    """All names of a collection by two queries."""
    rows = (
        Document.objects.live()
        .filter(collection=collection)
        .values_list("id", "source_key", "title", "frontmatter", "parsed__anchors")
    )
    pages = [
        Page(
            id=id,
            key=key,
            title=title,
            slug=_text(frontmatter.get("slug")),
            aliases=_texts(frontmatter.get("aliases")),
            page_id=_text(frontmatter.get("page_id")),
            canonical=bool(_text(frontmatter.get("slug")) and _text(frontmatter.get("type"))),
            anchors=frozenset(anchors or ()),
        )
        for id, key, title, frontmatter, anchors in rows.iterator(chunk_size=READ_AT_ONCE)
    ]
    return Shelf(pages, Asset.objects.filter(collection=collection).values_list("source_key", "id"))


def resolve_all(run: JobRun, collection: Collection) -> None:
    """Look at every link of the collection again and write the rows that changed."""
    total = DocumentLink.objects.filter(collection=collection, document__trashed_at=None).count()
    run.progress("reading", 0, total)
    shelf = load_shelf(collection)
    rows: Any = (
        DocumentLink.objects.filter(collection=collection, document__trashed_at=None)
        .order_by("pk")
        .values_list("pk", "document__source_key", "link_type", "href", "fragment", "rel_type", *RESOLUTION)
    )
    changed: list[tuple[Any, ...]] = []
    done = written = 0
    counts: dict[str, int] = {}
    for pk, source_key, link_type, href, fragment, rel_type, *stored in rows.iterator(chunk_size=READ_AT_ONCE):
        found = shelf.resolve(Written(source_key, link_type, href, fragment, rel_type))
        counts[found.state] = counts.get(found.state, 0) + 1
        done += 1
        values = values_of(found)
        if values != tuple(stored):
            changed.append((pk, *values))
        if len(changed) >= WRITE_AT_ONCE:
            written += _write(run, changed, done, total)
        elif done % READ_AT_ONCE == 0:
            run.progress("resolving", done, total)
    written += _write(run, changed, done, total)
    run.counters.update(
        {
            "links": done,
            "changed": written,
            **{state.replace(" ", "_"): count for state, count in sorted(counts.items())},
        }
    )
    broken = counts.get(LinkState.BROKEN, 0) + counts.get(LinkState.ANCHOR_MISSING, 0)
    run.note(f"{done} links, {broken} of them lead nowhere; {written} changed.")


def values_of(found: Resolution) -> tuple[Any, ...]:
    """The columns of a row, in the order of ``link_rows.RESOLUTION``."""
    return (
        str(found.state),
        found.reason,
        found.rule,
        found.document,
        found.asset,
        found.anchor,
        list(found.candidates),
        found.suggestion,
    )


def _write(run: JobRun, changed: list[tuple[Any, ...]], done: int, total: int) -> int:
    if not changed:
        run.progress("resolving", done, total)
        return 0
    with run.batch():
        count = update(changed)
        run.progress("resolving", done, total)
    changed.clear()
    return count


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()
