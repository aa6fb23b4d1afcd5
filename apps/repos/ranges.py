"""Lines of a file by path: a row is looked up, no file is opened (``repository-documents.md`` 9.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.access.errors import BadRequest, Conflict, NotFound
from apps.repos.models import Repository, RepositoryDocument, RepositoryFile

MOST_LINES = 1000
LONGEST_PATH = 4096


class NotIndexed(Conflict):
    """A tracked path whose text is not stored; the message says why."""

    default_code = "not_indexed"


@dataclass(frozen=True, slots=True)
class StoredText:
    """The (redacted) text of one file at one commit. ``document`` is None for source files that are no documents."""

    path: str
    text: str
    commit: str
    kind: str
    document: RepositoryDocument | None

    @property
    def lines(self) -> Sequence[str]:
        """Lines without their ends; a final line end makes no line of its own."""
        lines = self.text.split("\n")
        if lines[-1] == "":
            lines.pop()
        return lines


@dataclass(frozen=True, slots=True)
class FileRange:
    path: str
    start_line: int
    end_line: int
    lines: Sequence[str]
    total_lines: int
    commit: str
    kind: str


def stored_text(repository: Repository, path: str) -> StoredText:
    """The text behind a path. Raises NotFound for a path that is not tracked, NotIndexed for one without stored text.

    SECURITY: the path is compared with rows and used for nothing else; ``..``, an absolute path or an escape names no
    row. A document that is gone upstream and waits is still there.
    """
    if not path or len(path) > LONGEST_PATH or "\0" in path:
        raise NotFound
    document: RepositoryDocument | None = repository.documents.filter(path=path).first()
    if document is not None:
        return StoredText(path, document.text, repository.synced_commit, document.kind, document)
    file: Any = RepositoryFile.objects.filter(repository=repository, path=path).first()
    if file is None:
        raise NotFound
    if file.text is not None:
        return StoredText(path, file.text, repository.synced_commit, file.kind, None)
    raise NotIndexed(f"{path} is tracked, its text is not stored: {file.message or file.reason or 'not taken'}.")


def read_range(repository: Repository, path: str, start_line: int, end_line: int) -> FileRange:
    """Lines ``start_line`` to ``end_line`` (from 1, end included, at most 1,000), verbatim.

    Raises NotFound, NotIndexed, or BadRequest ``out_of_range`` with the bounds. An end behind the file is its end.
    """
    if start_line < 1 or end_line < start_line:
        raise BadRequest(
            "Lines count from 1, and the end is not before the start.", code="out_of_range", field="start_line"
        )
    if end_line - start_line + 1 > MOST_LINES:
        raise BadRequest(f"At most {MOST_LINES} lines at once.", code="out_of_range", field="end_line")
    found = stored_text(repository, path)
    lines = found.lines
    if start_line > max(len(lines), 1):
        raise BadRequest(f"{path} has {len(lines)} lines.", code="out_of_range", field="start_line")
    return FileRange(
        path=path,
        start_line=start_line,
        end_line=min(end_line, len(lines)),
        lines=tuple(lines[start_line - 1 : end_line]),
        total_lines=len(lines),
        commit=found.commit,
        kind=found.kind,
    )
