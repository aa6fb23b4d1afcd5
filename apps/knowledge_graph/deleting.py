"""Pages deleted and taken back by an operator (``knowledge-graph.md`` 11)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.db import transaction

from apps.access.errors import Invalid, NotFound
from apps.collections.models import Collection, Document
from apps.collections.trash import purge_document, restore_document, trash_document
from apps.repos.known import known_documents
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.registration import change_repository, request_sync
from apps.repos.removal import remove

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.access.sources import Source


def normal_path(text: str) -> str:
    """``a//b.md`` is ``a/b.md``. Raises Invalid for an empty path and for one with ``..``."""
    steps = [step for step in text.strip().split("/") if step not in ("", ".")]
    if not steps or ".." in steps:
        raise Invalid("The path is empty or leaves the source.", field="path")
    return "/".join(steps)


def delete_page(*, source: Source, path: str, by: User, force: bool = False) -> bool:
    """Delete the document at ``path``, with all its versions; False when it is deleted already.

    In a collection softly: into the trash; with ``force`` for good. A repository has no trash: its path is left out of
    every sync until it is restored, and goes with the next one; with ``force`` at once. Raises NotFound.
    """
    path = normal_path(path)
    if isinstance(source, Collection):
        document = Document.objects.filter(collection=source, source_key=path).first()
        if document is None:
            raise NotFound
        if force:
            purge_document(collection=source, document_id=document.pk, by=by)
            return True
        if document.trashed_at is not None:
            return False
        trash_document(document=document, by=by)
        return True
    return _exclude(source, path, by=by, force=force)


def _exclude(source: Any, path: str, *, by: User, force: bool) -> bool:
    with transaction.atomic():
        repository: Repository = Repository.objects.get(pk=source.pk)
        known = next((each for each in known_documents(repository).values() if each.path == path), None)
        pattern = _pattern(path)
        excluded = pattern in repository.exclude
        if known is None and not excluded:
            raise NotFound
        if not excluded:
            change_repository(repository=repository, by=by, exclude=[*repository.exclude, pattern])
        if force and known is not None:
            remove(repository, [known], {})
            return True
        return not excluded


def restore_page(*, source: Source, path: str, by: User) -> bool:
    """Take back a soft delete, and the exclusion from sync; False when there was none. Raises NotFound."""
    path = normal_path(path)
    if isinstance(source, Collection):
        document = Document.objects.filter(collection=source, source_key=path).first()
        if document is None:
            raise NotFound
        if document.trashed_at is None:
            return False
        restore_document(collection=source, document_id=document.pk, by=by)
        return True
    repository: Repository = Repository.objects.get(pk=source.pk)
    pattern = _pattern(path)
    if pattern not in repository.exclude:
        if not RepositoryDocument.objects.filter(repository=repository, path=path).exists():
            raise NotFound
        return False
    change_repository(repository=repository, by=by, exclude=[each for each in repository.exclude if each != pattern])
    request_sync(repository=repository, by=by, force=True)
    return True


def _pattern(path: str) -> str:
    """A glob that matches the path; a character that globs give a meaning to is matched by any."""
    return re.sub(r"[*?\[\]\\!{}]", "?", path)
