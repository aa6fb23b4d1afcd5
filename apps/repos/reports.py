"""What a sync tells: six counters, totals, reasons, and the sentence that stands first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count
from django.utils import timezone

from apps.access.errors import NotFound
from apps.access.querysets import first_or_absent
from apps.jobs.items import follow_up_counters
from apps.jobs.models import Job
from apps.jobs.running import JobRun
from apps.repos.models import Repository, SyncReport
from apps.repos.plan import SAMPLES, Plan

NAMED = 10
COUNTERS = (
    "discovered_files",
    "indexed_documents",
    "indexed_chunks",
    "unchanged_documents",
    "deleted_documents",
    "replaced_files",
)
REWRITTEN = (
    "History was rewritten upstream, or goes on beyond the depth of the mirror; the result is that of a fresh clone."
)
REPEATED = """
INSERT INTO repo_sync_reports (
    job_id, repository_id, commit, previous_commit, branch, totals, created_at, not_taken)
SELECT %(job)s, %(repository)s, %(commit)s, %(commit)s, %(branch)s, %(totals)s, %(now)s, coalesce((
    SELECT not_taken FROM repo_sync_reports WHERE repository_id = %(repository)s ORDER BY created_at DESC LIMIT 1
), '{}')
ON CONFLICT (job_id) DO UPDATE SET
    (commit, previous_commit, branch, totals, not_taken) =
    (excluded.commit, excluded.previous_commit, excluded.branch, excluded.totals, excluded.not_taken)
"""


@dataclass(slots=True)
class Tally:
    """The counts of one job. What batches stored is kept with them, so that a second attempt goes on counting."""

    discovered: int = 0
    indexed: int = 0
    chunks: int = 0
    deleted: int = 0
    replaced: int = 0
    moved: int = 0
    redacted: int = 0
    kept_chunks: int = 0
    new_chunks: int = 0
    skipped: int = 0
    errors: int = 0
    quarantined: int = 0
    held: int = 0

    @classmethod
    def begin(cls, run: JobRun) -> Tally:
        """A tally that goes on from an earlier attempt of the same job."""
        before = run.counters
        return cls(
            indexed=before.get("indexed_documents", 0),
            chunks=before.get("indexed_chunks", 0),
            deleted=before.get("deleted_documents", 0),
            replaced=before.get("replaced_files", 0),
            moved=before.get("moved", 0),
            redacted=before.get("redacted", 0),
            kept_chunks=before.get("chunks_kept", 0),
            new_chunks=before.get("chunks_new", 0),
        )

    def save(self, run: JobRun) -> None:
        """Hand the counts to the batch under way."""
        run.counters.update(
            {
                "discovered_files": self.discovered,
                "indexed_documents": self.indexed,
                "indexed_chunks": self.chunks,
                "unchanged_documents": max(
                    0, self.discovered - self.indexed - self.skipped - self.errors - self.quarantined
                ),
                "deleted_documents": self.deleted,
                "replaced_files": self.replaced,
                "moved": self.moved,
                "held": self.held,
                "redacted": self.redacted,
                "chunks_kept": self.kept_chunks,
                "chunks_new": self.new_chunks,
                "skipped": self.skipped,
                "errors": self.errors,
                "quarantined": self.quarantined,
            }
        )


def write_report(
    run: JobRun, repository: Repository, plan: Plan, tally: Tally, *, previous: str, rewritten: bool
) -> None:
    """Counters, sentence and report row of a finished sync; the caller is inside its last batch."""
    tally.save(run)
    counts = run.item_counts()
    clean = max(0, tally.discovered - counts.get("warnings", 0))
    totals = {"listed": plan.listed, "clean": clean, "rewritten": rewritten}
    run.counters.update({"clean": clean})
    if plan.listed and not _kinds_found(plan):
        run.warn("nothing_taken", f"0 of {plan.listed} files matched", samples=_left_out(plan))
    sentences = [_sentence(repository, tally, clean)]
    if not repository.synced_commit:
        sentences = ["The repository has no commit yet."]
    if tally.held:
        sentences.append(f"{tally.held} deletions wait for a writer.")
    if rewritten:
        sentences.append(REWRITTEN)
    run.note(" ".join(sentences))
    not_taken = {
        reason: {"count": group.count, "samples": group.samples[:SAMPLES]}
        for reason, group in sorted(plan.not_taken.items())
    }
    _store(run, repository, previous=previous, totals=totals, not_taken=not_taken)


def repeat_report(run: JobRun, repository: Repository, tally: Tally, *, listed: int, warned: int) -> None:
    """The report of a sync that found the commit that is stored already; the caller is inside its only batch."""
    tally.save(run)
    clean = max(0, tally.discovered - warned)
    run.counters.update({"clean": clean})
    run.note(
        f"{_files(tally)} at {repository.synced_commit[:7]}: unchanged; {clean} of {tally.discovered} clean."
        + (f" {tally.held} deletions wait for a writer." if tally.held else "")
    )
    totals = json.dumps({"listed": listed, "clean": clean, "rewritten": False})
    values: dict[str, Any] = {
        "branch": repository.synced_branch,
        "commit": repository.synced_commit,
        "now": timezone.now(),
    }
    with connection.cursor() as cursor:
        cursor.execute(REPEATED, {**values, "job": run.job.pk, "repository": repository.pk, "totals": totals})


def _store(
    run: JobRun, repository: Repository, *, previous: str, totals: Mapping[str, Any], not_taken: Mapping[str, Any]
) -> None:
    """The report row of the job, by one statement; a second attempt writes over that of the first."""
    report = SyncReport(
        job=run.job,
        repository=repository,
        commit=repository.synced_commit,
        previous_commit=previous,
        branch=repository.synced_branch,
        totals=totals,
        not_taken=not_taken,
    )
    SyncReport.objects.bulk_create(
        [report],
        update_conflicts=True,
        unique_fields=["job"],
        update_fields=["repository", "commit", "previous_commit", "branch", "totals", "not_taken"],
    )


def _sentence(repository: Repository, tally: Tally, clean: int) -> str:
    changed = tally.indexed + tally.moved + tally.deleted
    if tally.discovered and not changed and not tally.skipped and not tally.errors:
        what = "all as they were"
    else:
        what = f"{tally.indexed} indexed, {tally.skipped} skipped, {tally.errors + tally.quarantined} with errors"
        what += f", {tally.moved} moved" * bool(tally.moved) + f", {tally.deleted} deleted" * bool(tally.deleted)
    return f"{_files(tally)} at {repository.synced_commit[:7]}: {what}; {clean} of {tally.discovered} clean."


def _files(tally: Tally) -> str:
    return f"{tally.discovered} file{'s' * (tally.discovered != 1)}"


def _kinds_found(plan: Plan) -> bool:
    return bool(plan.read or plan.unchanged or plan.moved) or any(skip.kind for skip in plan.skipped)


def _left_out(plan: Plan) -> list[dict[str, str]]:
    """Ten paths with the reason each was left out; those that only a filter keeps out first."""
    order = {"filtered": 0, "no rule": 1}
    left = sorted(plan.left_out.values(), key=lambda pair: (order.get(pair[1], 2), pair[0].raw_path))
    return [{"path": entry.path, "reason": reason} for entry, reason in left[:NAMED]]


@dataclass(frozen=True, slots=True)
class ReportView:
    """A sync report as the page and the API show it."""

    job: Job
    report: SyncReport | None
    counters: Mapping[str, int]
    """The six, in their order."""
    totals: Mapping[str, Any]
    """moved, held, redacted, chunks_kept, chunks_new, clean, listed, …"""
    reasons: Mapping[str, int]
    """Reason of an item -> how many."""
    states: Mapping[str, int]


def report_of(repository: Repository, job_id: object = None) -> ReportView:
    """The report of the newest finished sync, or of one job. Raises NotFound. The caller has scoped the repository."""
    jobs: Any = Job.objects.of_source(repository.kind, repository.pk).filter(kind="sync")
    if job_id is None:
        job = jobs.finished().order_by("-finished_at").first()
        if job is None:
            raise NotFound
    else:
        job = first_or_absent(jobs, pk=job_id)
    report = SyncReport.objects.filter(job=job).first()
    items = job.items
    reasons = items.exclude(reason="").values_list("reason").annotate(Count("pk")).order_by("-pk__count", "reason")
    states = items.values_list("state").annotate(Count("pk")).order_by("state")
    rest = {name: value for name, value in job.counters.items() if name not in COUNTERS}
    return ReportView(
        job=job,
        report=report,
        counters={name: job.counters.get(name, 0) for name in COUNTERS},
        totals={**follow_up_counters(job), **rest, **(report.totals if report else {})},
        reasons=dict(reasons),
        states=dict(states),
    )
