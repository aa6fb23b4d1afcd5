"""From pages to the graph of one source: all at once, or the difference that some changed documents make.

Both give the same graph; the second looks only at what the change can reach (``knowledge-graph.md`` 7). Pure: the
stored pages are asked through ``Pages``, which a dictionary or a database may stand behind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from apps.knowledge_graph.resolution import (
    Answer,
    PageGraph,
    Question,
    claim_rank,
    dangling_node,
    names_of,
    resolve_page,
    wanted_names,
    withheld,
)
from apps.knowledge_graph.values import EdgeValue, EvidenceValue, GraphValue, Meaning, NodeValue, Page

PROJECTOR = 2
"""Raised with every change of the rules: sources projected by an older number are rebuilt."""


def project(pages: Iterable[Page]) -> GraphValue:
    """The graph of all kept pages of a source; their order does not matter."""
    claims: defaultdict[str, list[Page]] = defaultdict(list)
    for page in pages:
        claims[page.uid].append(page)
    bearers = {uid: min(claimants, key=page_rank) for uid, claimants in claims.items()}
    names: defaultdict[str, set[Meaning]] = defaultdict(set)
    for page in bearers.values():
        for name in names_of(page):
            names[name].add(Meaning(page.uid, page.header.node_type))
    nodes: dict[str, NodeValue] = {}
    edges: dict[str, EdgeValue] = {}
    evidence: dict[UUID, tuple[EvidenceValue, ...]] = {}
    for claimants in claims.values():
        for page in claimants:
            own = resolve_page(page, lambda name: names.get(name, ())) if bearers[page.uid] is page else withheld(page)
            evidence[page.document] = own.evidence
            edges.update(own.edges)
            if own.node is not None:
                nodes[page.uid] = own.node
    for edge in edges.values():
        nodes.setdefault(edge.to_uid, dangling_node(edge.to_uid))
    return GraphValue(nodes, edges, evidence, {uid: page.document for uid, page in bearers.items()})


def page_rank(page: Page) -> tuple[bool, bool, str]:
    return claim_rank(live=page.live, node_type=page.header.node_type, path=page.path)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """What is known of a projected document without its occurrences. ``bears``: it has its slug and a node."""

    document: UUID
    uid: str
    node_type: str
    path: str
    live: bool
    bears: bool
    names: tuple[str, ...]

    @property
    def rank(self) -> tuple[bool, bool, str]:
        return claim_rank(live=self.live, node_type=self.node_type, path=self.path)

    @property
    def pairs(self) -> set[tuple[str, Meaning]]:
        return {(name, Meaning(self.uid, self.node_type)) for name in self.names}


def stored_form(page: Page, *, bears: bool) -> StoredPage:
    return StoredPage(page.document, page.uid, page.header.node_type, page.path, page.live, bears, names_of(page))


@dataclass(frozen=True, slots=True)
class Projected:
    """A page as it was projected last, with what became of its occurrences. ``bears``: it had its slug then."""

    page: Page
    bears: bool
    answers: Mapping[Question, Answer]


class Pages(Protocol):
    """The projected pages of one source, as they were before the change. ``live`` is the present state, though."""

    def claimants(self, documents: Collection[UUID], uids: Collection[str]) -> Sequence[StoredPage]:
        """The pages of ``documents``, and all pages whose slug is one of theirs or of ``uids``."""
        ...

    def wanting(self, names: Collection[str]) -> Collection[UUID]:
        """Documents with an occurrence that wants one of ``names``, bearers of their slug or not."""
        ...

    def bearing(self, names: Collection[str]) -> Sequence[StoredPage]:
        """Pages that bear their slug and one of ``names``."""
        ...

    def load(self, documents: Collection[UUID]) -> Mapping[UUID, Projected]:
        """Those of ``documents`` that were projected before."""
        ...


@dataclass(slots=True)
class Reprojection:
    """What becomes of the documents that a change can reach.

    ``graphs``: document -> what it gives now; None for a document that is no page any more. ``bearers``: slug -> who
    bears it now, for the slugs concerned. ``pages``: the pages behind ``graphs``.
    """

    graphs: dict[UUID, PageGraph | None] = field(default_factory=dict)
    pages: dict[UUID, Page] = field(default_factory=dict)
    bearers: dict[str, UUID | None] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    """Slugs that were borne before and are borne by nobody now: they dangle while an edge points there."""


def reproject(store: Pages, changes: Mapping[UUID, Page | None]) -> Reprojection:
    """What ``changes`` (document -> its page now, or None) make of everything that they can reach."""
    result = Reprojection()
    slugs = {page.uid for page in changes.values() if page is not None}
    before: dict[str, StoredPage] = {}
    standing: defaultdict[str, list[StoredPage]] = defaultdict(list)
    for claimant in store.claimants(changes, slugs):
        slugs.add(claimant.uid)
        if claimant.bears:
            before[claimant.uid] = claimant
        if claimant.document not in changes:
            standing[claimant.uid].append(claimant)
    for page in changes.values():
        if page is not None:
            standing[page.uid].append(stored_form(page, bears=False))
    after = {uid: min(claimants, key=lambda each: each.rank) for uid, claimants in standing.items() if claimants}
    pairs_before = {pair for page in before.values() for pair in page.pairs}
    pairs_after = {pair for page in after.values() for pair in page.pairs}
    changed_names = {name for name, _ in pairs_before ^ pairs_after}
    affected = set(changes)
    for uid in slugs:
        was, now = before.get(uid), after.get(uid)
        result.bearers[uid] = now.document if now else None
        if (was and was.document) != (now and now.document):
            affected |= {each.document for each in (was, now) if each}
        if was and not now:
            result.lost.add(uid)
    affected |= set(store.wanting(changed_names)) if changed_names else set()
    projected = store.load(affected)

    def bears(page: Page) -> bool:
        return after[page.uid].document == page.document if page.uid in slugs else projected[page.document].bears

    open_: dict[UUID, Mapping[Question, Answer]] = {}
    wanted: set[str] = set()
    for document in affected:
        page = changes[document] if document in changes else projected[document].page
        if page is None:
            result.graphs[document] = None
            continue
        result.pages[document] = page
        if not bears(page):
            result.graphs[document] = withheld(page)
            continue
        open_[document] = _still_true(page, projected.get(document), changed_names)
        wanted |= wanted_names(page, open_[document])
    names: defaultdict[str, set[Meaning]] = defaultdict(set)
    for stored in store.bearing(wanted) if wanted else ():
        for name in stored.names:
            names[name].add(Meaning(stored.uid, stored.node_type))
    for name, meaning in pairs_before - pairs_after:
        names[name].discard(meaning)
    for name, meaning in pairs_after:
        names[name].add(meaning)
    for document, answers in open_.items():
        result.graphs[document] = resolve_page(result.pages[document], lambda name: names.get(name, ()), answers)
    return result


def _still_true(page: Page, before: Projected | None, changed_names: Set[str]) -> Mapping[Question, Answer]:
    """What became of occurrences and cannot have changed: the page is named as before and so is all that they want."""
    if before is None or not before.bears:
        return {}
    was = before.page
    if (page.uid, page.header.node_type, page.path) != (was.uid, was.header.node_type, was.path):
        return {}
    return {
        question: answer
        for question, answer in before.answers.items()
        if not changed_names or changed_names.isdisjoint(answer.wanted)
    }
