"""Running a set: every question through the search itself, its rows measured (``retrieval.md`` 15.4, 15.5)."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.conf import settings

from apps.access.errors import Invalid
from apps.collections.models import Collection, Document, DocumentChunk
from apps.indexing.models import EmbeddingProfile
from apps.indexing.scope import Scope, visible_blocks
from apps.indexing.serving import active_profile
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.models_code import CodeFile
from apps.retrieval.evaluation.metrics import METRICS, Difference, bootstrap, mean, measure, percentile
from apps.retrieval.models_evaluation import EvaluationRun, EvaluationSet, Judgement, Level
from apps.retrieval.ordering import fuse_streams
from apps.retrieval.streams import Mode, run_blocks

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.indexing.stores import Block
    from apps.retrieval.shelf_values import Candidate

MODES: tuple[Mode, ...] = ("hybrid", "lexical", "dense")
MOST_RANKED = 1000
MOVED = 5
SEPARATOR = "\x1f"
COMPARED = "ndcg@10"


@dataclass(frozen=True, slots=True)
class Measured:
    """``scores``: level -> query -> metric -> value. Times in milliseconds, one for each question asked."""

    set: EvaluationSet
    mode: Mode
    profile: str
    scores: Mapping[str, Mapping[str, Mapping[str, float]]]
    wall: Sequence[float]
    cpu: Sequence[float]
    stale: int
    """Judgements whose place is gone; they are left out."""

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """level -> metric -> mean over its judged questions."""
        return {
            level: {metric: round(mean([one[metric] for one in by_query.values()]), 6) for metric in METRICS}
            for level, by_query in self.scores.items()
        }

    @property
    def times(self) -> dict[str, float]:
        found = {"wall": self.wall, "cpu": self.cpu}
        return {
            f"{name} p{share}": round(percentile(values, share / 100), 2)
            for name, values in found.items()
            for share in (50, 95)
        }


@dataclass(frozen=True, slots=True)
class Moved:
    query: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Compared:
    """``level`` by nDCG@10: the difference of the second profile to the first, and the questions that moved most."""

    level: str
    difference: Difference
    moved: tuple[Moved, ...]


@dataclass(slots=True)
class _Judged:
    """level -> query -> key -> grade."""

    by_level: dict[str, dict[str, dict[str, int]]] = field(default_factory=lambda: defaultdict(dict))
    texts: dict[str, str] = field(default_factory=dict)
    stale: int = 0


def evaluate(
    *, set_: EvaluationSet, viewer: User, mode: Mode = "hybrid", profile: EmbeddingProfile | None = None
) -> Measured:
    """Every judged question of the set, inside what ``viewer`` may read. ``profile`` in place of the serving one.

    Raises Invalid for a set in which nothing that he reads is judged.
    """
    judged = _judged(set_, viewer)
    if not judged.texts:
        raise Invalid(f"Nothing is judged in “{set_}” that you can read.", field="set")
    profile = profile or active_profile()
    scores: dict[str, dict[str, dict[str, float]]] = {level: {} for level in judged.by_level}
    wall: list[float] = []
    cpu: list[float] = []
    for key, text in judged.texts.items():
        began, used = time.perf_counter(), time.process_time()
        rows = _asked(set_, viewer, text, mode, profile)
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - used) * 1000)
        keys = _keys(set_, rows)
        for level, by_query in judged.by_level.items():
            if key in by_query:
                scores[level][key] = measure(keys[level], by_query[key])
    label = profile.label if profile is not None and mode != "lexical" else ""
    return Measured(set_, mode, label, scores, wall, cpu, judged.stale)


def record(measured: Measured, *, by: User | None, commit: str = "") -> EvaluationRun:
    """The run as a row, with the constants that it depended on."""
    return EvaluationRun.objects.create(
        set=measured.set,
        mode=measured.mode,
        profile=measured.profile,
        weights=dataclasses.asdict(settings.COGRAPH.retrieval),
        commit=commit,
        metrics=measured.metrics,
        milliseconds=measured.times,
        queries=len(measured.wall),
        stale=measured.stale,
        by=by,
    )


def compare(before: Measured, after: Measured) -> list[Compared]:
    """The same questions under two profiles."""
    found = []
    for level, by_query in before.scores.items():
        pairs = [
            Moved(key, scores[COMPARED], after.scores[level][key][COMPARED])
            for key, scores in by_query.items()
            if key in after.scores.get(level, {})
        ]
        moved = sorted(pairs, key=lambda one: (-abs(one.after - one.before), one.query))[:MOVED]
        difference = bootstrap([one.after - one.before for one in pairs])
        found.append(Compared(level, difference, tuple(one for one in moved if one.after != one.before)))
    return found


def _asked(
    set_: EvaluationSet, viewer: User, text: str, mode: Mode, profile: EmbeddingProfile | None
) -> list[Candidate]:
    scope = _scope(set_, viewer)
    (streams,) = run_blocks([scope], text, only=mode, profile=profile)
    return fuse_streams(streams).order[:MOST_RANKED]


def _scope(set_: EvaluationSet, viewer: User) -> Scope:
    block = cast("Block", set_.block)
    named = [(Collection.kind, set_.collection_id)] if set_.collection_id else None
    (scope,) = visible_blocks(viewer, blocks={block: None}, sources=named, evaluation=named is not None)
    return scope


def _keys(set_: EvaluationSet, rows: Sequence[Candidate]) -> dict[str, list[str]]:
    """What the rows are called in judgements, by level."""
    if set_.collection_id is None:
        return {
            Level.PAGE: [row.document for row in rows],
            Level.SECTION: [SEPARATOR.join((row.document, *_tail(row))) for row in rows],
            Level.CHUNK: [SEPARATOR.join((row.document, *_tail(row))) for row in rows],
        }
    chunks = DocumentChunk.objects.filter(collection=set_.collection_id, pk__in=[row.chunk_id for row in rows])
    known = {pk: (flags, anchor) for pk, flags, anchor in chunks.values_list("pk", "flags", "section_anchor")}
    held = [row for row in rows if row.chunk_id in known]
    return {
        Level.PAGE: [row.path for row in held],
        Level.SECTION: [known[row.chunk_id][1] for row in held],
        Level.CHUNK: [known[row.chunk_id][0][0] for row in held],
    }


def _tail(row: Candidate) -> tuple[str, ...]:
    """The headings above a section, or the qualified name of a symbol."""
    return row.heading_path if row.symbol is None else (row.title,)


def _judged(set_: EvaluationSet, viewer: User) -> _Judged:
    """Judgements that the viewer may read. Those of an imported set are an administrator's, like its collection."""
    rows = Judgement.objects.filter(query__set=set_).select_related("query").order_by("query_id", "pk")
    found = _Judged()
    if set_.collection_id is not None:
        if Collection.objects.of_evaluation(viewer).filter(pk=set_.collection_id).exists():
            for row in rows:
                _hold(found, row, row.target)
        return found
    seen: Any = rows.visible_to(viewer)
    places = _documents([row.document_id for row in seen if row.document_id], viewer)
    paths = {(kind, source, path): document for document, (kind, source, path) in places.items()}
    for row in seen:
        document = row.document_id if row.document_id in places else None
        document = document or paths.get((row.source_kind, row.source_id, row.path))
        if document is None:
            found.stale += 1
            continue
        tail = row.heading_path if row.level != Level.PAGE else ()
        _hold(found, row, SEPARATOR.join((str(document), *tail)))
    return found


def _hold(found: _Judged, row: Judgement, key: str) -> None:
    by_query = found.by_level[row.level].setdefault(row.query.key, {})
    by_query[key] = max(row.grade, by_query.get(key, 0))
    found.texts[row.query.key] = row.query.text


def _documents(ids: Sequence[UUID], viewer: User) -> dict[UUID, tuple[str, UUID, str]]:
    """Kind, source and path of those documents and source files that are there."""
    files = CodeFile.objects.visible_to(viewer).filter(pk__in=ids)
    repository = RepositoryDocument.objects.visible_to(viewer).filter(pk__in=ids)
    collection = Document.objects.visible_to(viewer).live().filter(pk__in=ids)
    found = {
        pk: (Repository.kind, source, path)
        for rows in (repository, files)
        for pk, source, path in rows.values_list("pk", "repository_id", "path")
    }
    found |= {
        pk: (Collection.kind, source, path)
        for pk, source, path in collection.values_list("pk", "collection_id", "source_key")
    }
    return found
