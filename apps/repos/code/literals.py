"""String literals that name documents, resolved among the documents of the repository (``retrieval.md`` 13)."""

from __future__ import annotations

import posixpath
import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from apps.jobs.running import JobRun
from apps.markup.anchors import match_fragment
from apps.repos.discovery import is_side
from apps.repos.hosts import own_path
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.models_code import CodeDocumentLink, CodeLinkState

CANDIDATES = 20
WRITE_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class _Page:
    id: uuid.UUID
    path: str


Resolved = tuple[str, uuid.UUID | None, str, list[str]]
"""State, document, anchor, candidates."""


class DocumentPaths:
    """The documents of a repository by path and by base name."""

    def __init__(self, pages: Mapping[str, uuid.UUID], git_url: str) -> None:
        self.pages = pages
        self.git_url = git_url
        self._named: dict[str, list[str]] = defaultdict(list)
        for path in sorted(pages):
            if not is_side(path):
                self._named[path.rsplit("/", 1)[-1]].append(path)

    def find(self, code_path: str, path: str, url: str) -> tuple[str | None, list[str]]:
        """(path of the document, candidates). A path that leaves the repository and a foreign address name nothing."""
        if url:
            own = own_path(self.git_url, url.split("#", 1)[0].split("?", 1)[0])
            return (own, []) if own in self.pages else (None, [])
        if path.startswith("/"):
            rooted = posixpath.normpath(path.lstrip("/"))
            return (rooted, []) if rooted in self.pages else (None, [])
        folder = posixpath.dirname(code_path)
        beside = posixpath.normpath(posixpath.join(folder, path))
        if beside in self.pages:
            return beside, []
        if path.startswith(("./", "../")) or beside.startswith(".."):
            return None, []
        if "/" in path:
            rooted = posixpath.normpath(path)
            return (rooted, []) if rooted in self.pages else (None, [])
        named = self._named.get(path, [])
        return (named[0], []) if len(named) == 1 else (None, named[:CANDIDATES])


def resolve_literals(run: JobRun, repository: Repository) -> int:
    """Look at every literal of the repository again and write the rows that changed. Gives how many did."""
    if not CodeDocumentLink.objects.filter(repository=repository).exists():
        return 0
    pages = dict(RepositoryDocument.objects.filter(repository=repository).values_list("path", "pk"))
    paths = DocumentPaths(pages, repository.git_url)
    rows: Any = (
        CodeDocumentLink.objects.filter(repository=repository)
        .order_by("pk")
        .values_list(
            "pk", "file__path", "path", "fragment", "url", "state", "target_document_id", "anchor", "candidates"
        )
    )
    found: list[tuple[int, str | None, str, list[str], Resolved]] = []
    for pk, code_path, path, fragment, url, *stored in rows.iterator(chunk_size=5000):
        target, candidates = paths.find(code_path, path, url)
        found.append((pk, target, fragment, candidates, (stored[0], stored[1], stored[2], stored[3])))
    wanted = {target for _, target, fragment, *_ in found if target and fragment}
    anchors = dict(
        RepositoryDocument.objects.filter(repository=repository, path__in=wanted).values_list("path", "anchors")
    )
    changed: list[tuple[Any, ...]] = []
    for pk, target, fragment, candidates, before in found:
        now = _resolved(target, fragment, candidates, pages, anchors)
        if now != before:
            changed.append((pk, *now))
    for at in range(0, len(changed), WRITE_AT_ONCE):
        with run.batch():
            _update(changed[at : at + WRITE_AT_ONCE])
    return len(changed)


def _resolved(
    target: str | None,
    fragment: str,
    candidates: list[str],
    pages: Mapping[str, uuid.UUID],
    anchors: Mapping[str, list[str]],
) -> Resolved:
    if target is None:
        return CodeLinkState.UNRESOLVED.value, None, "", candidates
    if not fragment:
        return CodeLinkState.RESOLVED.value, pages[target], "", []
    anchor = match_fragment(fragment, anchors.get(target, ()))
    state = CodeLinkState.RESOLVED if anchor is not None else CodeLinkState.ANCHOR_MISSING
    return state.value, pages[target], anchor or "", []


def _update(rows: list[tuple[Any, ...]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE literal_changes (id bigint, state text, target uuid, anchor text, candidates text[])"
            " ON COMMIT DROP"
        )
        with cursor.copy("COPY literal_changes FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(
            "UPDATE code_document_links AS old SET state = new.state, target_document_id = new.target,"
            " anchor = new.anchor, candidates = new.candidates FROM literal_changes AS new WHERE old.id = new.id"
        )
        cursor.execute("DROP TABLE literal_changes")
