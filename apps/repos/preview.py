"""What other filters would take, before they are saved: "would take 118 of 126" (``repository-documents.md`` 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.access.errors import Invalid
from apps.repos.discovery import Filters, decide
from apps.repos.git.values import SUBMODULE, SYMLINK
from apps.repos.globs import BadPattern, check_pattern
from apps.repos.known import filters_of
from apps.repos.models import Repository, RepositoryFile

SHOWN = 100


@dataclass(frozen=True, slots=True)
class FilterPreview:
    """``adds`` and ``removes`` are paths against the filters in force, at most ``SHOWN`` each, with their numbers."""

    taken: int
    listed: int
    adds: Sequence[str]
    added: int
    removes: Sequence[str]
    removed: int


def preview_filters(
    repository: Repository,
    *,
    only: Sequence[str] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> FilterPreview:
    """Try filters on the paths of the synced commit; nothing is changed. Raises Invalid naming the list.

    The caller has scoped the repository. One query, no file is read.
    """
    for name, patterns in (("only", only), ("include", include), ("exclude", exclude)):
        for pattern in patterns:
            try:
                check_pattern(pattern)
            except BadPattern as error:
                raise Invalid(f"{pattern[:60]}: {error}.", field=name) from None
    wanted = Filters(tuple(only), tuple(include), tuple(exclude))
    present = filters_of(repository)
    rows = RepositoryFile.objects.filter(repository=repository).order_by("path").values_list("path", "mode")
    taken = listed = 0
    adds: list[str] = []
    removes: list[str] = []
    for path, mode in rows.iterator(chunk_size=5000):
        listed += 1
        if mode in (SYMLINK, SUBMODULE):
            continue
        now, then = decide(path, present).kind, decide(path, wanted).kind
        taken += then is not None
        if then is not None and now is None:
            adds.append(path)
        elif then is None and now is not None:
            removes.append(path)
    return FilterPreview(taken, listed, tuple(adds[:SHOWN]), len(adds), tuple(removes[:SHOWN]), len(removes))
