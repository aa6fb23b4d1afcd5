"""Where the links of documents lead, within the synced commit (``repository-documents.md`` 9.1, ``collections.md`` 6).

All keys, titles and anchors are read once; links are worked on in memory; changed rows are written in bulk.
"""

from __future__ import annotations

import difflib
import hashlib
import posixpath
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from apps.jobs.running import JobRun
from apps.markup.anchors import match_fragment, slugify
from apps.repos.hosts import own_path
from apps.repos.models import LinkState, Repository, RepositoryDocument, RepositoryDocumentLink, RepositoryFile

RULES_VERSION = 1
ENDINGS = (".md", ".mdx", ".markdown", ".rst", ".txt")
INDEX_NAMES = ("index", "README", "_index")
WRITE_BATCH = 1000
ALIKE = 0.6
SUGGESTED_AT_MOST = 500
"""Broken addresses of one run for which a near name is looked for; more say that a whole tree is missing."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a link leads: a document, else a tracked file or folder."""

    document: uuid.UUID | None
    path: str


@dataclass(frozen=True, slots=True)
class Resolution:
    state: LinkState
    reason: str = ""
    rule: int | None = None
    target: Target | None = None
    anchor: str = ""
    candidates: tuple[str, ...] = ()
    suggestion: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """What is known of a document for links to it."""

    id: uuid.UUID
    path: str
    slug: str
    title: str
    anchors: frozenset[str]
    aliases: tuple[str, ...]


class Tree:
    """Every tracked path, folder and document of one commit, ready to be asked for links."""

    def __init__(
        self, paths: Iterable[str], pages: Sequence[Page], roots: Sequence[str] = (), git_url: str = ""
    ) -> None:
        self.pages = {page.path: page for page in pages}
        self.by_id = {page.id: page for page in pages}
        self.paths = set(paths) | set(self.pages)
        self.folders: set[str] = {""}
        for path in self.paths:
            folder = posixpath.dirname(path)
            while folder and folder not in self.folders:
                self.folders.add(folder)
                folder = posixpath.dirname(folder)
        self.roots = tuple(dict.fromkeys(root.strip("/") for root in roots))
        self.git_url = git_url
        self._lower: dict[str, list[str]] = defaultdict(list)
        for path in (*self.paths, *self.folders):
            self._lower[path.lower()].append(path)
        self._names: dict[str, list[str]] = defaultdict(list)
        self._lower_names: dict[str, list[str]] = defaultdict(list)
        self._wiki: list[dict[str, set[str]]] = [defaultdict(set) for _ in range(5)]
        for page in pages:
            name = page.path.rsplit("/", 1)[-1]
            stem = name.rsplit(".", 1)[0]
            for key in dict.fromkeys((name, stem)):
                self._names[key].append(page.path)
                self._lower_names[key.lower()].append(page.path)
            self._wiki[0][page.slug].add(page.path)
            for alias in page.aliases:
                self._wiki[1][alias.strip().lower()].add(page.path)
            self._wiki[3][stem.lower()].add(page.path)
            self._wiki[3][slugify(stem)].add(page.path)
            self._wiki[4][page.title.strip().lower()].add(page.path)

    # -- one link

    def resolve(self, source: Page, link: RepositoryDocumentLink) -> Resolution:
        """Where ``link`` on ``source`` leads. Asks nothing but this value."""
        href, fragment = link.href, link.fragment
        if link.link_type == "absolute":
            inside = own_path(self.git_url, href)
            if inside is None:
                return Resolution(LinkState.EXTERNAL)
            path, _, fragment = inside.partition("#")
            return self._found(source, self._by_path("/" + path.partition("?")[0], ""), fragment, "/" + path)
        if link.link_type == "anchor":
            return self._at(source.path, fragment, rule=None)
        if link.link_type == "wiki":
            return self._wiki_link(source, link)
        path = href.partition("#")[0].partition("?")[0]
        fragment = fragment or href.partition("#")[2]
        if not path:
            return self._at(source.path, fragment, rule=None)
        return self._found(source, self._by_path(path, source.path), fragment, path)

    def _wiki_link(self, source: Page, link: RepositoryDocumentLink) -> Resolution:
        name, _, heading = link.href.partition("#")
        if link.rel_type:
            name = name.partition("::")[2] or name
        name = name.strip()
        fragment = slugify(heading) if heading and not heading.startswith("^") else heading
        if not name:
            return self._at(source.path, fragment, rule=8)
        low = name.lower()
        for step, keys in enumerate(self._wiki):
            if step == 2:
                found = [path for _, path in self._by_path(name, source.path) or () if path in self.pages]
                if not found and "/" in name:
                    found = [path for _, path in self._by_path("/" + name, "") or () if path in self.pages]
            else:
                wanted = {low, slugify(name)} if step in (0, 3) else {low}
                found = sorted(set().union(*(keys.get(key, set()) for key in wanted)))
            if len(found) == 1:
                return self._at(found[0], fragment, rule=8)
            if found:
                return Resolution(LinkState.BROKEN, "ambiguous", 8, candidates=tuple(found[:10]))
        return Resolution(LinkState.BROKEN, "not found", suggestion=self.suggest(name))

    def _found(self, source: Page, hits: Sequence[tuple[int, str]] | None, fragment: str, written: str) -> Resolution:
        if hits is None:
            return Resolution(LinkState.BROKEN, "outside")
        if not hits:
            return Resolution(LinkState.BROKEN, "not found", suggestion=self.suggest(unquote(written)))
        if len(hits) > 1:
            return Resolution(
                LinkState.BROKEN, "ambiguous", hits[0][0], candidates=tuple(sorted(path for _, path in hits)[:10])
            )
        rule, path = hits[0]
        return self._at(path, fragment, rule=rule)

    def _at(self, path: str, fragment: str, *, rule: int | None) -> Resolution:
        page = self.pages.get(path) or self._index_of(path)
        if page is None:
            return Resolution(LinkState.ASSET, rule=rule, target=Target(None, path))
        target = Target(page.id, page.path)
        if not fragment:
            return Resolution(LinkState.RESOLVED, rule=rule, target=target)
        anchor = match_fragment(fragment, page.anchors)
        if anchor is None and fragment.startswith("L") and fragment[1:].split("-")[0].isdigit():
            anchor = fragment
        if anchor is None:
            near = difflib.get_close_matches(unquote(fragment), sorted(page.anchors), n=1, cutoff=ALIKE)
            return Resolution(
                LinkState.ANCHOR_MISSING, "anchor", rule, target, suggestion=f"#{near[0]}" if near else ""
            )
        return Resolution(LinkState.RESOLVED, rule=rule, target=target, anchor=anchor)

    def _index_of(self, folder: str) -> Page | None:
        """The page that a link to a folder opens."""
        if folder not in self.folders:
            return None
        for name in INDEX_NAMES:
            for ending in ENDINGS:
                page = self.pages.get(posixpath.join(folder, name + ending))
                if page is not None:
                    return page
        return None

    # -- paths

    def _by_path(self, written: str, source_path: str) -> Sequence[tuple[int, str]] | None:
        """(rule, path) of the first rule with a hit: one hit, or several that are ambiguous; None outside the root."""
        place = unquote(written, errors="surrogateescape").replace("\\", "/")
        if "\udc80" <= max(place, default="") <= "\udcff":
            place = written.replace("\\", "/")
        from_root = place.startswith("/")
        bases = [""] if from_root else [posixpath.dirname(source_path)]
        first = _joined(bases[0], place)
        if first is None:
            return None
        tries: list[tuple[int, str]] = [] if from_root else list(_keys(first, place))
        rooted = [_joined("", place.lstrip("/"))]
        rooted += (
            [_joined(root, place.lstrip("/")) for root in (*_docs_above(source_path), *self.roots)]
            if (from_root or not place.startswith("."))
            else []
        )
        for base in rooted:
            if base is not None:
                tries += [(5, key) for _, key in _keys(base, place)]
        for rule, key in tries:
            if key in self.paths or key in self.folders:
                return [(rule, key)]
        for _, key in tries:
            alike = self._lower.get(key.lower(), [])
            if len(alike) == 1:
                return [(6, alike[0])]
        if "/" not in place.strip("/") and not from_root and place not in ("", ".", ".."):
            for names, wanted in ((self._names, place), (self._lower_names, place.lower())):
                hits = names.get(wanted, [])
                if hits:
                    return [(7, path) for path in hits]
        return []

    def suggest(self, written: str) -> str:
        """The nearest tracked name, at least 60 % alike; shown, never bound."""
        name = written.rstrip("/").rsplit("/", 1)[-1]
        near = difflib.get_close_matches(name, self._names, n=1, cutoff=ALIKE)
        return min(self._names[near[0]]) if near else ""


def _docs_above(source_path: str) -> Iterator[str]:
    """Folders named ``docs`` above the source document, the nearest first, and the one in the root."""
    folder = posixpath.dirname(source_path)
    while folder:
        if posixpath.basename(folder).lower() == "docs":
            yield folder
        folder = posixpath.dirname(folder)
    yield "docs"


def _joined(base: str, place: str) -> str | None:
    """``place`` seen from ``base``, with dots worked out; None when it climbs above the root."""
    parts: list[str] = [part for part in base.split("/") if part]
    for part in place.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _keys(path: str, written: str) -> Iterator[tuple[int, str]]:
    """Rules 1 to 4: the path itself, with endings, with endings exchanged, as a folder with an index."""
    folder_meant = written.endswith("/") or path == ""
    if path and not folder_meant:
        yield 1, path
        for ending in ENDINGS:
            yield 2, path + ending
    stem, dot, ending = path.rpartition(".")
    low = ending.lower()
    if dot and low in ("html", "htm"):
        for other in ENDINGS:
            yield 3, stem + other
    elif dot and low in ("md", "mdx"):
        yield 3, stem + (".mdx" if low == "md" else ".md")
    bases = [path]
    if stem.endswith("index") and low in ("html", "htm"):
        bases.append(posixpath.dirname(path))
    for base in bases:
        for name in INDEX_NAMES:
            for other in ENDINGS:
                yield 4, posixpath.join(base, name + other)
    if folder_meant and path:
        yield 1, path
        for other in ENDINGS:
            yield 2, path + other


# -- all links of a repository


def resolve_links(run: JobRun, repository: Repository, *, only_if_needed: bool = False) -> None:
    """Resolve every link of the repository again and write the rows that changed, in one batch each."""
    digest = _digest(repository)
    if only_if_needed and repository.linked_with == digest and not run.counters.get("indexed_documents"):
        counters = run.counters
        if not (counters.get("moved") or counters.get("deleted_documents")):
            return
    run.progress("link")
    tree = load_tree(repository)
    changed: list[RepositoryDocumentLink] = []
    suggestions = 0
    rows: Any = RepositoryDocumentLink.objects.filter(repository=repository).order_by("pk")
    for link in rows.iterator(chunk_size=5000):
        source = tree.by_id.get(link.document_id)
        if source is None:
            continue
        resolution = tree.resolve(source, link)
        if resolution.suggestion:
            suggestions += 1
        if _apply(link, resolution):
            changed.append(link)
    for at in range(0, len(changed), WRITE_BATCH):
        with run.batch():
            RepositoryDocumentLink.objects.bulk_update(changed[at : at + WRITE_BATCH], FIELDS)
    with run.batch():
        Repository.objects.filter(pk=repository.pk).update(linked_with=digest)
        run.counters["links_changed"] = len(changed)


FIELDS = ["state", "reason", "rule", "target_document", "target_path", "anchor", "candidates", "suggestion"]


def _apply(link: RepositoryDocumentLink, found: Resolution) -> bool:
    """Bring the row in line with ``found``. True when something changed."""
    target = found.target
    values: dict[str, object] = {
        "state": found.state.value,
        "reason": found.reason,
        "rule": found.rule,
        "target_document_id": target.document if target else None,
        "target_path": target.path if target else "",
        "anchor": found.anchor,
        "candidates": list(found.candidates),
        "suggestion": found.suggestion,
    }
    changed = False
    for name, value in values.items():
        if getattr(link, name) != value:
            setattr(link, name, value)
            changed = True
    return changed


def load_tree(repository: Repository) -> Tree:
    """Paths and pages of the synced commit; held documents are pages too, since they are readable."""
    paths = RepositoryFile.objects.filter(repository=repository).values_list("path", flat=True)
    documents = RepositoryDocument.objects.filter(repository=repository).values_list(
        "id", "path", "slug", "title", "anchors", "frontmatter__aliases"
    )
    pages = [
        Page(id_, path, slug, title, frozenset(anchors), _aliases(aliases))
        for id_, path, slug, title, anchors, aliases in documents.iterator(chunk_size=2000)
    ]
    return Tree(paths.iterator(chunk_size=5000), pages, repository.docs_roots, repository.git_url)


def _aliases(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _digest(repository: Repository) -> str:
    parts = (str(RULES_VERSION), repository.synced_commit, repository.synced_with, *repository.docs_roots)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
