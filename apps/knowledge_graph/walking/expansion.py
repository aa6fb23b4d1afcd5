"""Neighbours of what a search has found, ranked (``knowledge-graph.md`` 9)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef

from apps.access.compiled import MARK_OF_ID, ReadableRows, among
from apps.knowledge_graph.models import CanonicalPage, GraphSource
from apps.knowledge_graph.reader import Reader, SeenNode, overlay_of
from apps.knowledge_graph.vocabulary import PROJECT, REJECTED
from apps.knowledge_graph.walking.steps import (
    FACTORS,
    Departure,
    Filters,
    Key,
    Met,
    Newest,
    Step,
    departures_from,
    newest,
    steps,
)

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

IN_FORCE = ("accepted", "review")
"""Status of a rejected approach that is shown although it is no hit."""
OTHER_PATHS = 5
FRONTIER = 100
"""Nodes that are walked through after one hop, best first."""
_SPARE = 24
"""Neighbours asked for beyond those that can be shown: pages may turn out to be replaced by others."""
_ROUNDING = 1e-6
"""Scores are compared after rounding to six decimals."""


@dataclass(frozen=True, slots=True)
class Options:
    """Bounds of an expansion; the defaults are those of the deployment."""

    hops: int = 1
    max_nodes: int = 20
    decay: float = 0.6
    inferred: bool = False
    types: tuple[str, ...] = ()

    @classmethod
    def of_settings(cls) -> Options:
        chosen = settings.COGRAPH.graph
        return cls(
            chosen.expansion_hops,
            chosen.expansion_max_nodes,
            chosen.expansion_decay,
            chosen.expansion_inferred,
            chosen.expansion_types,
        )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A page near the hits. ``path`` leads from a seed to it; ``label`` says what it replaces, or what replaced it."""

    source: GraphSource
    node: SeenNode
    document: UUID
    path: str
    score: float
    hops: int
    steps: tuple[Step, ...]
    label: str = ""
    other_paths: tuple[tuple[Step, ...], ...] = ()

    @property
    def words(self) -> str:
        """The path as a sentence: ``a uses b, b affects c``."""
        return ", ".join(step.words for step in self.steps)


@dataclass(frozen=True, slots=True)
class Seed:
    """A page among the hits. ``rejected``: it belongs to the block of rejected approaches, not among the seeds."""

    met: Met
    score: float

    @property
    def rejected(self) -> bool:
        return self.met.node.node_type == REJECTED


@dataclass(frozen=True, slots=True)
class Found:
    """The readable pages behind an answer. ``near``: rejected approaches in force that are no primary hits."""

    reader: Reader
    seeds: tuple[Seed, ...] = ()
    near: tuple[Seed, ...] = ()

    @property
    def rejected(self) -> tuple[Seed, ...]:
        """Hits that leave for the block of rejected approaches, best first."""
        gone = [seed for seed in self.seeds if seed.rejected]
        return tuple(sorted(gone, key=lambda seed: (-seed.score, seed.met.node.uid)))

    def source_of(self, seed: Seed) -> GraphSource:
        return self.reader.graphs[seed.met.node.source]


@dataclass(frozen=True, slots=True)
class Expansion:
    """``neighbours`` in order. ``successors``: rejected page -> the pages that have taken its place; ``replaced``: the
    same for the seeds, whatever their own header says."""

    neighbours: tuple[Neighbour, ...] = ()
    successors: Mapping[UUID, tuple[Met, ...]] = field(default_factory=dict)
    replaced: Mapping[UUID, tuple[Met, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Candidate:
    met: Met
    value: float
    """Seed score times weights times decay, without the factor of the page's own status."""
    factor: float
    steps: tuple[Step, ...]
    label: str

    @property
    def score(self) -> float:
        return round(self.value * self.factor, 6)


def expand(viewer: Viewer, seeds: Mapping[UUID, float], options: Options | None = None) -> Expansion:
    """The neighbours of ``seeds`` (document -> its best fused score divided by the answer's best).

    Seeds that are no pages the viewer may read are passed over; without any, nothing more is asked. At most
    1 + 2 x hops queries (the chunks of the neighbours are the caller's), plus those of sources with pages in the trash.
    """
    return walk(find_pages(viewer, seeds), options)


def walk(found: Found, options: Options | None = None) -> Expansion:
    """The neighbours of pages that were found, and what has taken the place of the rejected ones. At most 2 x hops
    queries."""
    if not found.seeds and not found.near:
        return Expansion()
    return _Walk(found, options or Options.of_settings()).run()


def _pages_of(viewer: Viewer, documents: Any) -> Any:
    trash = CanonicalPage.objects.filter(source=OuterRef("source")).kept().trashed()
    return (
        CanonicalPage.objects.visible_to(viewer)
        .filter(among("repository_document_id", documents) | among("document_id", documents))
        .kept()
        .live()
        .filter(bears=True)
        .with_key()
        .select_related("source__repository", "source__collection")
        .annotate(has_trash=Exists(trash))
        .order_by("pk")
    )


_PAGES_OF: ReadableRows[Any] = ReadableRows(_pages_of, MARK_OF_ID)


def find_pages(viewer: Viewer, seeds: Mapping[UUID, float], near: Mapping[UUID, float] | None = None) -> Found:
    """The pages among ``seeds``, and the rejected approaches in force among the documents ``near``. One query."""
    near = {document: score for document, score in (near or {}).items() if document not in seeds}
    found: list[Seed] = []
    beside: list[Seed] = []
    graphs: dict[int, GraphSource] = {}
    with_trash: set[int] = set()
    documents = [*seeds, *near]
    for page in _PAGES_OF.all(viewer, documents) if documents else ():
        is_seed = page.key in seeds
        if not is_seed and not (page.node_type == REJECTED and page.status in IN_FORCE):
            continue
        graphs[page.source_id] = page.source
        if page.has_trash:
            with_trash.add(page.source_id)
        node = SeenNode(
            page.source_id, page.uid, page.node_type, page.label, page.status, page.header["priority"], page.pk, False
        )
        seed = Seed(Met(node, page.key, page.path), seeds[page.key] if is_seed else near[page.key])
        (found if is_seed else beside).append(seed)
    reader = Reader(list(graphs.values()), {key: overlay_of(graphs[key]) for key in sorted(with_trash)})
    return Found(reader, tuple(found), tuple(beside))


class _Walk:
    def __init__(self, found: Found, options: Options) -> None:
        self.reader, self.options = found.reader, options
        self.rejected = (*found.rejected, *found.near)
        self.seeds = {seed.met.key: seed for seed in found.seeds if not seed.rejected}
        self.never = {seed.met.key for seed in (*found.seeds, *found.near)}
        self.first: list[_Candidate] = []
        self.found: dict[Key, list[_Candidate]] = {}
        self.successors: dict[UUID, tuple[Met, ...]] = {}
        self.replaced: dict[UUID, tuple[Met, ...]] = {}

    def run(self) -> Expansion:
        frontier = {key: _Candidate(seed.met, seed.score, 1.0, (), "") for key, seed in self.seeds.items()}
        filters = Filters(types=self.options.types, inferred=self.options.inferred, readable_only=True)
        needed = self.options.max_nodes + len(self.never)
        for hop in range(1, self.options.hops + 1):
            departures = self._departures(hop, frontier)
            if hop > 1 and not departures:
                break
            taken = steps(self.reader, departures, filters, needed=needed, cap=needed + len(self.found) + _SPARE)
            asked = {met.key for _, met in taken} | (self.never if hop == 1 else set())
            replaced = newest(self.reader, asked) if taken or hop == 1 else {}
            if hop == 1:
                self._replace_seeds(replaced)
            frontier = self._take(hop, frontier, taken, replaced)
            if not frontier:
                break
        return Expansion(self._ranked(), self.successors, self.replaced)

    def _departures(self, hop: int, frontier: Mapping[Key, _Candidate]) -> list[Departure]:
        """What is walked from. Once the list is full, only what may still reach the score of its last entry."""
        room = self.options.max_nodes - len(self.first)
        ahead = {each.met.key for each in self.first}
        scores = sorted(
            (max(each.score for each in ways) for key, ways in self.found.items() if key not in ahead), reverse=True
        )
        if room <= 0:
            return []
        floor = scores[room - 1] - _ROUNDING if room <= len(scores) else 0.0
        decay = self.options.decay if hop > 1 else 1.0
        return departures_from({key: each.value * decay for key, each in frontier.items()}, floor)

    def _replace_seeds(self, replaced: Mapping[Key, Newest]) -> None:
        for seed in self.rejected:
            ends = replaced.get(seed.met.key)
            if ends and seed.met.document is not None:
                self.successors[seed.met.document] = ends.ends
        named: dict[Key, _Candidate] = {}
        for key, seed in self.seeds.items():
            ends = replaced.get(key)
            if ends is None:
                continue
            if ends.ends and seed.met.document is not None:
                self.replaced[seed.met.document] = ends.ends
            for end in ends.ends:
                if end.key in self.never or not _emitted(end.node):
                    continue
                label = f"replaces {seed.met.node.uid}"
                candidate = _Candidate(end, seed.score, FACTORS[end.node.status], (), label)
                if end.key not in named or _order(self.reader, candidate) < _order(self.reader, named[end.key]):
                    named[end.key] = candidate
        self.first = sorted(named.values(), key=lambda each: _order(self.reader, each))

    def _take(
        self,
        hop: int,
        frontier: Mapping[Key, _Candidate],
        taken: list[tuple[Step, Met]],
        replaced: Mapping[Key, Newest],
    ) -> dict[Key, _Candidate]:
        onward: dict[Key, _Candidate] = {}
        for step, met in taken:
            base = frontier[step.at]
            if any(step.other in (each.at, each.other) for each in base.steps):
                continue
            value = base.value * step.weight * (self.options.decay if hop > 1 else 1.0)
            for end, factor, label in _present(met, replaced.get(met.key)):
                if end.key in self.never or not _emitted(end.node):
                    continue
                candidate = _Candidate(end, value, factor, (*base.steps, step), label)
                self.found.setdefault(end.key, []).append(candidate)
                if end.node.node_type != PROJECT:
                    known = onward.get(end.key)
                    if known is None or (-value, step.rank) < (-known.value, known.steps[-1].rank):
                        onward[end.key] = candidate
        best = sorted(onward.values(), key=lambda each: (-each.value, _order(self.reader, each)))[:FRONTIER]
        return {each.met.key: each for each in best}

    def _ranked(self) -> tuple[Neighbour, ...]:
        ahead = {each.met.key for each in self.first}
        ranked: list[tuple[Any, _Candidate, list[_Candidate]]] = []
        for key, candidates in self.found.items():
            if key in ahead:
                continue
            candidates.sort(key=lambda each: _order(self.reader, each))
            ranked.append((_order(self.reader, candidates[0]), candidates[0], candidates[1 : OTHER_PATHS + 1]))
        ranked.sort(key=lambda entry: entry[0])
        nothing: list[_Candidate] = []
        chosen = [(each, nothing) for each in self.first] + [(best, others) for _, best, others in ranked]
        return tuple(self._neighbour(best, others) for best, others in chosen[: self.options.max_nodes])

    def _neighbour(self, best: _Candidate, others: Collection[_Candidate]) -> Neighbour:
        node = best.met.node
        assert best.met.document is not None  # noqa: S101 - only real nodes are emitted
        return Neighbour(
            self.reader.graphs[node.source],
            node,
            best.met.document,
            best.met.path,
            best.score,
            len(best.steps),
            best.steps,
            best.label,
            tuple(each.steps for each in others),
        )


def _present(met: Met, replaced: Newest | None) -> list[tuple[Met, float, str]]:
    """What stands for a page that was met: itself, or its newest on the spot; with its factor and a label."""
    if replaced is not None and replaced.ends:
        return [(end, FACTORS.get(end.node.status, 0.0), f"replaces {met.node.uid}") for end in replaced.ends]
    if replaced is not None and replaced.cycle:
        return [(met, FACTORS["superseded"], "superseded in a circle")]
    if met.node.status == "superseded":
        return [(met, FACTORS["superseded"], "superseded, without a successor")]
    return [(met, FACTORS.get(met.node.status, 0.0), "")]


def _emitted(node: SeenNode) -> bool:
    return not node.dangling and node.status != "archived" and node.node_type != REJECTED


def _order(reader: Reader, candidate: _Candidate) -> tuple[Any, ...]:
    node = candidate.met.node
    return (
        -candidate.score,
        len(candidate.steps),
        candidate.steps[-1].rank if candidate.steps else (0, 0),
        node.node_type == PROJECT,
        -node.priority,
        reader.graphs[node.source].owner.label,
        node.uid,
        tuple(step.words for step in candidate.steps),
    )
