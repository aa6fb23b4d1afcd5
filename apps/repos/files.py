"""The rows of ``repo_files``: every path of the synced commit, brought up to date by difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from apps.repos.git.values import Entry, raw_or_none
from apps.repos.models import Repository, RepositoryFile
from apps.repos.plan import KnownFile

DELETE_BATCH = 5000


@dataclass(frozen=True, slots=True)
class FileRow:
    """How a path stands after the sync."""

    entry: Entry
    kind: str
    state: str
    reason: str = ""
    message: str = ""
    versions: str = ""

    def matches(self, known: KnownFile) -> bool:
        return (
            known.blob == self.entry.blob
            and known.mode == self.entry.mode
            and known.size == self.entry.size
            and known.kind == self.kind
            and known.state == self.state
            and known.reason == self.reason
            and known.message == self.message
            and known.versions == self.versions
        )


def replace_files(repository: Repository, rows: Sequence[FileRow], known: Mapping[bytes, KnownFile]) -> int:
    """Make the stored paths those of ``rows``; rows that are right are not touched. Gives how many changed.

    Runs in the caller's transaction.
    """
    wanted = {row.entry.raw_path: row for row in rows}
    changed = [row for path, row in wanted.items() if path not in known or not row.matches(known[path])]
    gone = [file.id for path, file in known.items() if path not in wanted or not wanted[path].matches(file)]
    for at in range(0, len(gone), DELETE_BATCH):
        RepositoryFile.objects.filter(pk__in=gone[at : at + DELETE_BATCH]).delete()
    if changed:
        _copy(repository, changed)
    return len(changed) + len(gone)


def _copy(repository: Repository, rows: Sequence[FileRow]) -> None:
    columns = "repository_id, path, raw_path, mode, blob, size, kind, state, reason, message, versions"
    with connection.cursor() as cursor, cursor.copy(f"COPY repo_files ({columns}) FROM STDIN") as copy:
        for row in rows:
            entry = row.entry
            copy.write_row(
                (
                    repository.pk,
                    entry.path,
                    raw_or_none(entry.path, entry.raw_path),
                    entry.mode,
                    entry.blob,
                    entry.size,
                    row.kind,
                    row.state,
                    row.reason[:60],
                    row.message,
                    row.versions,
                )
            )
