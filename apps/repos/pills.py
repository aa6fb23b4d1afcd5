"""Paths that a document names in inline code, linked to the file at the commit (``repository-documents.md`` 9.3)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from django.db.models import Q

from apps.repos.discovery import SIDE_FOLDERS, TEST_FOLDERS
from apps.repos.hosts import host_of
from apps.repos.models import Repository, RepositoryDocument, RepositoryFile

TEST_NAME = re.compile(r"test_.*|.*_test\.[a-z]+|.*\.(?:test|spec)\.[a-z]+", re.IGNORECASE)
MOST = 200


@dataclass(frozen=True, slots=True)
class Pill:
    """A named file. ``url`` leads to the git host at the commit, or to our own page of the file (``is_local``)."""

    text: str
    path: str
    line: int
    start: int | None
    end: int | None
    url: str
    is_local: bool


def is_test_or_side(path: str) -> bool:
    folders = path.lower().split("/")
    return (
        not TEST_FOLDERS.isdisjoint(folders[:-1])
        or "__tests__" in folders[:-1]
        or not SIDE_FOLDERS.isdisjoint(folders[:-1])
        or TEST_NAME.fullmatch(folders[-1]) is not None
    )


def pills_of(repository: Repository, document: RepositoryDocument) -> list[Pill]:
    """The pills of one document, once each, in source order. One query."""
    references = document.structure.get("code_refs", ())[:MOST]
    if not references:
        return []
    folder = posixpath.dirname(document.path)
    wanted: set[str] = set()
    names: set[str] = set()
    for reference in references:
        wanted.update(_places(reference["path"], folder))
        if "/" not in reference["path"]:
            names.add(reference["path"])
    condition = Q(path__in=wanted)
    if names:
        condition |= Q(path__regex="(^|/)(" + "|".join(map(re.escape, sorted(names))) + ")$")
    found = RepositoryFile.objects.filter(condition, repository=repository).values_list("path", flat=True)
    return _pills(repository, references, folder, list(found))


def _pills(
    repository: Repository, references: Iterable[Mapping[str, object]], folder: str, tracked: Sequence[str]
) -> list[Pill]:
    known = set(tracked)
    host = host_of(repository.git_url, repository.link_style, repository.link_template)
    pills: dict[tuple[str, object, object], Pill] = {}
    for reference in references:
        path = _target(str(reference["path"]), folder, known)
        if path is None:
            continue
        start, end = _number(reference.get("start")), _number(reference.get("end"))
        remote = host.file(repository.synced_commit, path, start, end)
        local = f"/repos/{repository.slug}/files/{quote(path)}{_fragment(start, end)}"
        key = (path, start, end)
        if key not in pills:
            pills[key] = Pill(
                text=str(reference["text"]),
                path=path,
                line=_number(reference.get("line")) or 1,
                start=start,
                end=end,
                url=remote or local,
                is_local=remote is None,
            )
    return list(pills.values())


def _places(path: str, folder: str) -> list[str]:
    """The paths that ``path`` may mean, the page's own folder first."""
    clean = path.removeprefix("./").lstrip("/")
    beside = posixpath.normpath(posixpath.join(folder, path)) if not path.startswith("/") else clean
    return [place for place in dict.fromkeys((beside, posixpath.normpath(clean))) if not place.startswith("..")]


def _target(path: str, folder: str, tracked: set[str]) -> str | None:
    for place in _places(path, folder):
        if place in tracked:
            return place
    if "/" in path:
        return None
    alike = [one for one in tracked if one.rsplit("/", 1)[-1] == path and not is_test_or_side(one)]
    return alike[0] if len(alike) == 1 else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _fragment(start: int | None, end: int | None) -> str:
    if start is None:
        return ""
    return f"#L{start}" if end is None or end <= start else f"#L{start}-L{end}"
