"""When the text of each source file was written: the date of the last commit that changed it."""

from __future__ import annotations

from pathlib import Path

from apps.jobs.running import JobRun
from apps.repos.git.listing import last_changes
from apps.repos.models import Repository
from apps.repos.models_code import CodeFile


def date_files(run: JobRun, repository: Repository, *, mirror: Path) -> None:
    """Date the files that were read anew, by one walk over the history that ends when all are found.

    What the walk does not meet (a merge that changed it by itself, the edge of a shallow mirror) gets the date of the
    synced commit, as documents do.
    """
    files = {
        path.encode("utf-8", "surrogateescape"): pk
        for pk, path in CodeFile.objects.filter(repository=repository, committed_at=None).values_list("pk", "path")
    }
    if not files:
        return
    found = last_changes(mirror, repository.synced_commit, files, check=run.check)
    rows = [
        CodeFile(pk=pk, committed_at=found[path].committed_at if path in found else repository.committed_at)
        for path, pk in files.items()
    ]
    with run.batch():
        CodeFile.objects.bulk_update(rows, ["committed_at"], batch_size=1000)
