"""The report lines of what a sync leaves as it is, written by the database from its own rows, however many."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection

from apps.jobs.running import JobRun
from apps.repos.models import Repository

STANDING = """
SELECT count(*), count(*) FILTER (WHERE state = 'indexed'), count(*) FILTER (WHERE state = 'skipped'),
       count(*) FILTER (WHERE state IN ('error', 'quarantined')),
       (SELECT count(*) FROM repo_documents WHERE repository_id = %(id)s AND absence = 'held')
FROM repo_files WHERE repository_id = %(id)s
"""
UNCHANGED = """
INSERT INTO jobs_jobitem (job_id, path, state, reason, message, line, "column", size, warning, details)
SELECT %s, path, 'unchanged', coalesce(warnings -> 0 ->> 'code', ''), coalesce(warnings -> 0 ->> 'message', ''),
       (warnings -> 0 ->> 'line')::int, (warnings -> 0 ->> 'column')::int, size, warnings <> '[]', '{}'
FROM repo_documents WHERE repository_id = %s AND absence = '' AND (%s::uuid[] IS NULL OR id = ANY(%s::uuid[]))
ON CONFLICT (job_id, path) DO NOTHING
"""
REPORTED = """
SELECT item.job_id, count(*) FILTER (WHERE state = 'unchanged'), count(*) FILTER (WHERE state = 'skipped'),
       count(*) FILTER (WHERE state = 'held'), count(*), count(*) FILTER (WHERE warning)
FROM jobs_jobitem item WHERE item.job_id = (
    SELECT coalesce(job.same_as_id, job.id) FROM jobs_job job
    WHERE job.id = (SELECT job_id FROM repo_sync_reports WHERE repository_id = %s ORDER BY created_at DESC LIMIT 1)
    AND job.status = 'success' AND job.counters @> '{"indexed_documents": 0, "moved": 0, "deleted_documents": 0}'
) AND NOT EXISTS (SELECT FROM jobs_jobitem WHERE job_id = %s)
GROUP BY item.job_id
"""
SKIPPED = """
INSERT INTO jobs_jobitem (job_id, path, state, reason, message, size, warning, details)
SELECT %s, path, 'skipped', reason, message, size, reason NOT IN ('symlink', 'submodule not fetched'), '{}'
FROM repo_files WHERE repository_id = %s AND state = 'skipped'
ON CONFLICT (job_id, path) DO NOTHING
"""
HELD = """
INSERT INTO jobs_jobitem (job_id, path, state, reason, message, size, warning, details)
SELECT %s, path, 'held', '', %s, size, false, '{}'
FROM repo_documents WHERE repository_id = %s AND absence = 'held'
ON CONFLICT (job_id, path) DO NOTHING
"""
WHOLE = """
SELECT EXISTS (SELECT FROM code_states WHERE repository_id = %(id)s AND commit = %(commit)s
               AND is_resolved AND is_linked)
   AND NOT EXISTS (SELECT FROM repo_documents WHERE repository_id = %(id)s AND absence = 'approved')
"""
HELD_WORDS = "Not in the latest commit; its deletion waits for a writer."


@dataclass(frozen=True, slots=True)
class Standing:
    """How many paths of the synced commit are in which state."""

    listed: int
    indexed: int
    skipped: int
    open: int
    """Errors and quarantined files: a sync tries them again."""
    held: int

    @property
    def discovered(self) -> int:
        return self.indexed + self.skipped


def is_whole(repository: Repository) -> bool:
    """Whether nothing is left to do at the synced commit: all that is derived from code stands there too (a run that
    died there left it behind), and no approved deletion waits."""
    with connection.cursor() as cursor:
        cursor.execute(WHOLE, {"id": repository.pk, "commit": repository.synced_commit})
        (whole,) = cursor.fetchone()
    return bool(whole)


def standing_of(repository: Repository) -> Standing:
    """By one statement."""
    with connection.cursor() as cursor:
        cursor.execute(STANDING, {"id": repository.pk})
        return Standing(*cursor.fetchone())


def report_unchanged(run: JobRun, repository: Repository, ids: Collection[uuid.UUID] | None = None) -> None:
    """One item for each document that stays as it is (all, or those of ``ids``), with the warning that it has. What an
    earlier attempt of the job reported is kept. The caller is inside a batch."""
    wanted = None if ids is None else list(ids)
    with connection.cursor() as cursor:
        cursor.execute(UNCHANGED, [run.job.pk, repository.pk, wanted, wanted])


def report_all(run: JobRun, repository: Repository, standing: Standing) -> int:
    """The report of a commit that was synced before: unchanged documents, skipped paths, held deletions. Gives how many
    lines warn.

    When the sync before told just that, and this job nothing else, its lines are this one's too, however many.
    """
    wanted = (standing.indexed, standing.skipped, standing.held)
    with connection.cursor() as cursor:
        cursor.execute(REPORTED, [repository.pk, run.job.pk])
        reported = cursor.fetchone()
        if reported is not None and reported[1:5] == (*wanted, sum(wanted)):
            run.reports_as(reported[0])
            return int(reported[5])
        run.reports_as(None)
        report_unchanged(run, repository)
        if standing.skipped:
            cursor.execute(SKIPPED, [run.job.pk, repository.pk])
        if standing.held:
            cursor.execute(HELD, [run.job.pk, HELD_WORDS, repository.pk])
    return run.item_counts()["warnings"]
