"""Sources as they are named in addresses and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from apps.access.errors import NotFound
from apps.collections.models import Collection
from apps.repos.models import Repository

if TYPE_CHECKING:
    from apps.access.rules import Right
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

WORDS = {"repo": "repository", "collection": "collection"}


class SourceUnclear(Exception):
    """No source, or several, bear the name; the text says which."""


def source_word(source: Source) -> str:
    """The name that every door takes: ``repo/<slug>`` or ``collection/<id>``."""
    return f"repo/{source.label}" if source.kind == "repository" else f"collection/{source.pk}"


def find_by_address(kind: str, name: str, viewer: Viewer, right: Right | str = "read") -> Source:
    """The source of ``/graph/{kind}/{name}``: a repository by its slug, a collection by its id.

    Raises NotFound for absent and hidden alike, Forbidden when ``right`` is missing on a readable one.
    """
    found: Source
    if kind == "repo":
        found = Repository.objects.live().get_for(viewer, right, slug__iexact=name)
    elif kind == "collection":
        found = Collection.objects.filter(deleted_at=None).get_for(viewer, right, pk=_uuid(name))
    else:
        raise NotFound
    return found


def find_by_name(name: str) -> Source:
    """The source that an operator means: ``repo/<slug>``, ``collection/<id or slug>``, or a bare collection slug or
    repository name that only one source bears. Raises SourceUnclear."""
    kind, slash, rest = name.partition("/")
    repositories = Repository.objects.live()
    collections = Collection.objects.filter(deleted_at=None)
    found: list[Source]
    if slash and kind == "repo":
        found = list(repositories.filter(slug__iexact=rest))
    elif slash and kind == "collection":
        identifier = _uuid_or_none(rest)
        found = list(collections.filter(pk=identifier) if identifier else collections.filter(slug__iexact=rest))
    elif slash:
        found = list(repositories.filter(slug__iexact=name))
    else:
        found = [*repositories.filter(slug__iendswith=f"/{name}"), *collections.filter(slug__iexact=name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise SourceUnclear(f"There is no source {name}.")
    raise SourceUnclear(f"{name} may mean {', '.join(sorted(map(source_word, found)))}.")


def _uuid(text: str) -> UUID:
    found = _uuid_or_none(text)
    if found is None:
        raise NotFound
    return found


def _uuid_or_none(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
