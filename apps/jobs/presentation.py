"""Jobs as a person reads them: words for kinds and progress, the source by its name, times of the stages."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from apps.access.compiled import MARK_OF_ID, ReadableRows, among
from apps.access.errors import NotFound
from apps.access.sources import Source, find_source, source_model
from apps.jobs.models import Job, JobAttempt, Status

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

KIND_WORDS = {
    "sync": "Sync",
    "upload": "Upload",
    "embed": "Embed",
    "resolve_links": "Resolve links",
    "link_symbols": "Link symbols",
    "project_document": "Graph of one page",
    "merge_postings": "Index upkeep",
    "describe_source": "Source description",
    "project_graph": "Graph rebuild",
    "lint_graph": "Graph lint",
    "propose_edges": "Propose edges",
    "profile_switch": "Embedding profile switch",
    "purge": "Purge",
    "retention": "Retention",
}
UNITS = {"sync": "files", "upload": "files", "embed": "texts"}
CAUSES = {
    "manual": "asked for",
    "schedule": "schedule",
    "webhook": "webhook",
    "follow_up": "follow-up",
    "system": "system",
}
STATE_CLASS = {
    Status.QUEUED: "",
    Status.RUNNING: "info",
    Status.SUCCESS: "ok",
    Status.ERROR: "bad",
    Status.CANCELLED: "",
}


COUNTER_ORDER = (
    "discovered_files",
    "indexed_documents",
    "indexed_chunks",
    "unchanged_documents",
    "deleted_documents",
    "replaced_files",
)


def counters(job: Job) -> list[tuple[str, int]]:
    """The counters of a job in words: the six of a sync in their order, then the others by name."""
    known = {name: value for name, value in job.counters.items() if isinstance(value, int)}
    order = [name for name in COUNTER_ORDER if name in known] + sorted(set(known) - set(COUNTER_ORDER))
    return [(name.replace("_", " "), known[name]) for name in order]


def kind_words(kind: str) -> str:
    return KIND_WORDS.get(kind, kind.replace("_", " ").capitalize())


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job with everything that a row or a bar shows. ``source`` is None for jobs of the deployment."""

    job: Job
    source: Source | None = None

    @property
    def kind(self) -> str:
        return kind_words(self.job.kind)

    @property
    def state_class(self) -> str:
        """The class of the badge; a job that is done with warnings warns."""
        if self.job.status == Status.SUCCESS and self.job.warnings:
            return "warn"
        return STATE_CLASS[Status(self.job.status)]

    @property
    def asked_by(self) -> str:
        by = self.job.requested_by
        return by.get_username() if by is not None and self.job.cause == "manual" else CAUSES.get(self.job.cause, "")

    @property
    def source_label(self) -> str:
        return self.source.label if self.source is not None else ""

    @property
    def source_href(self) -> str:
        return self.source.get_absolute_url() if self.source is not None else ""

    @property
    def unit(self) -> str:
        return UNITS.get(self.job.kind, "items")

    @property
    def indexed(self) -> int:
        """Documents whose chunks were built by this job."""
        return int(self.job.counters.get("indexed_documents", 0))

    @property
    def removed(self) -> int:
        return int(self.job.counters.get("deleted_documents", 0))

    @property
    def counted(self) -> str:
        """The counters in words, for a kind that says nothing else of what it did."""
        return ", ".join(f"{value:,} {name}" for name, value in counters(self.job) if value)

    @property
    def moving(self) -> bool:
        """Whether the bar has no value yet: the total is unknown."""
        return self.job.is_live and self.job.percentage is None


def lines(jobs: Iterable[Job], viewer: Viewer) -> list[JobLine]:
    """Jobs with their sources, by one scoped query for each kind of source."""
    rows = list(jobs)
    wanted: dict[str, set[UUID]] = {}
    for job in rows:
        if job.source_id is not None:
            wanted.setdefault(job.source_kind, set()).add(job.source_id)
    found: dict[tuple[str, UUID], Source] = {}
    for kind, ids in wanted.items():
        for source in _readable(source_model(kind)).all(viewer, list(ids)):
            found[kind, source.pk] = source
    return [JobLine(job, found.get((job.source_kind, job.source_id)) if job.source_id else None) for job in rows]


@functools.cache
def _readable(model: type[Source]) -> ReadableRows[Source]:
    return ReadableRows(lambda viewer, ids: model.objects.visible_to(viewer).filter(among("pk", ids)), MARK_OF_ID)


def source_of(job: Job, viewer: Viewer) -> Source | None:
    return _found(job.source_kind, job.source_id, viewer) if job.source_id is not None else None


def label_of(kind: str, id: UUID, viewer: Viewer) -> str:
    """What people call a source; empty when it is hidden or gone."""
    source = _found(kind, id, viewer)
    return source.label if source is not None else ""


def _found(kind: str, id: UUID, viewer: Viewer) -> Source | None:
    try:
        return find_source(kind, id, viewer)
    except NotFound:
        return None


@dataclass(frozen=True, slots=True)
class StageTime:
    """A stage of an attempt and how long it took; None while it runs."""

    name: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class AttemptLine:
    attempt: JobAttempt
    stages: Sequence[StageTime]


def attempt_lines(attempts: Iterable[JobAttempt]) -> list[AttemptLine]:
    """Attempts with the length of each stage, which ends where the next one begins."""
    found = []
    for attempt in attempts:
        marks = [(str(mark.get("stage", "")), float(mark.get("at", 0))) for mark in attempt.stages]
        ends = [at for _, at in marks[1:]]
        if marks:
            ends.append(attempt.finished_at.timestamp() if attempt.finished_at else -1.0)
        stages = [
            StageTime(name, max(0.0, end - at) if end >= 0 else None)
            for (name, at), end in zip(marks, ends, strict=True)
        ]
        found.append(AttemptLine(attempt, stages))
    return found
