"""Making, changing and deleting collections."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.access import audit
from apps.access.errors import Conflict, Invalid
from apps.access.rules import Right, Visibility
from apps.access.visibility import set_visibility
from apps.collections.models import Collection
from apps.collections.uploads import stage_rechunk
from apps.indexing.analyzer import languages
from apps.indexing.embedding import jobs as embedding
from apps.jobs.control import source_deleted
from apps.jobs.models import Job
from apps.jobs.queue import enqueue

if TYPE_CHECKING:
    from apps.access.models import User

MAX_NAME_CHARS = 255
MAX_SLUG_CHARS = 80


def slug_of(name: str) -> str:
    """Letters and digits of any script, in lower case, joined by hyphens; ``collection`` when none are left."""
    folded = unicodedata.normalize("NFKC", name).lower()
    return re.sub(r"[\W_]+", "-", folded).strip("-")[:MAX_SLUG_CHARS].rstrip("-") or "collection"


def create_collection(
    *,
    by: User,
    name: str,
    description: str = "",
    visibility: Visibility | str = Visibility.PRIVATE,
    language: str = "english",
) -> Collection:
    """A new collection that belongs to ``by``.

    Raises Invalid for a bad name, visibility or language, Conflict when ``by`` has one of that name.
    """
    name = _checked_name(name)
    _check_language(language)
    if visibility not in Visibility.values:
        raise Invalid(f"A visibility is one of {', '.join(Visibility.values)}.", field="visibility")
    with transaction.atomic():
        collection = Collection(
            owner=by, name=name, slug=_free_slug(by, name), description=description.strip(), language=language
        )
        _save(collection, force_insert=True)
        audit.record(audit.Act.SOURCE_CREATED, by=by, target=collection, after={"visibility": collection.visibility})
        if visibility != collection.visibility:
            collection = _as_collection(set_visibility(source=collection, visibility=visibility, by=by))
    return collection


def update_collection(
    *,
    collection: Collection,
    by: User,
    name: str | None = None,
    description: str | None = None,
    language: str | None = None,
    visibility: Visibility | str | None = None,
    profile: tuple[int, int, int] | None = None,
    query_log_opt_out: bool | None = None,
) -> Collection:
    """Change what is given; a description takes the right to write, all else the right to manage.

    ``profile`` is (max_chars, min_chars, max_chunks); another one queues the cutting anew of all documents. Raises
    NotFound, Forbidden, Invalid, Conflict.
    """
    only_description = all(value is None for value in (name, language, visibility, profile, query_log_opt_out))
    right = Right.WRITE if only_description else Right.MANAGE
    with transaction.atomic():
        # Not the strong lock: who stages an upload holds the lock of the staging room, refers to this row, and would
        # wait for it while this waits for the staging room.
        rows = Collection.objects.select_for_update(of=("self",), no_key=True)
        held: Collection = rows.get_for(by, right, pk=collection.pk)
        before: dict[str, Any] = {}
        changes: dict[str, Any] = {}
        if name is not None:
            changes["name"] = _checked_name(name)
        if description is not None:
            changes["description"] = description.strip()
        if language is not None:
            _check_language(language)
            changes["language"] = language
        if query_log_opt_out is not None:
            changes["query_log_opt_out"] = query_log_opt_out
        if profile is not None:
            _check_profile(*profile)
            changes |= dict(zip(("max_chars", "min_chars", "max_chunks"), profile, strict=True))
        changes = {field: value for field, value in changes.items() if getattr(held, field) != value}
        for field, value in changes.items():
            before[field] = getattr(held, field)
            setattr(held, field, value)
        if changes:
            held.changed_at = timezone.now()
            _save(held, update_fields=[*changes, "changed_at"])
            audit.record(audit.Act.SOURCE_CHANGED, by=by, target=held, before=before, after=changes)
        if visibility is not None and visibility != held.visibility:
            held = _as_collection(set_visibility(source=held, visibility=visibility, by=by))
        if changes.keys() & {"max_chars", "min_chars", "max_chunks", "language"}:
            stage_rechunk(held, by=by)
    return held


def delete_collection(*, collection: Collection, by: User) -> Job:
    """Hide a collection from everyone at once, free its name, and queue the removal of its rows."""
    with transaction.atomic():
        held: Collection = Collection.objects.select_for_update(of=("self",)).get_for(
            by, Right.MANAGE, pk=collection.pk
        )
        held.deleted_at = timezone.now()
        held.save(update_fields=["deleted_at"])
        audit.record(audit.Act.SOURCE_DELETED, by=by, target=held)
        return source_deleted(held, by=by)


def request_reembed(*, collection: Collection, by: User) -> Job:
    """Queue vectors for every chunk, also for those that look current; the old ones answer until then."""
    held: Collection = Collection.objects.get_for(by, Right.WRITE, pk=collection.pk)
    return embedding.request(held, again=True, by=by).job


def request_rechunk(*, collection: Collection, by: User) -> Job:
    """Queue the cutting anew of every document; old chunks answer until the new ones are stored."""
    held: Collection = Collection.objects.get_for(by, Right.WRITE, pk=collection.pk)
    return stage_rechunk(held, by=by).job


def request_links(*, collection: Collection, by: User) -> Job:
    """Queue a new look at every link."""
    held: Collection = Collection.objects.get_for(by, Right.WRITE, pk=collection.pk)
    return enqueue("resolve_links", source=held, by=by).job


def _as_collection(source: Any) -> Collection:
    if not isinstance(source, Collection):
        raise TypeError("not a collection")
    return source


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name:
        raise Invalid("Give the collection a name.", code="required", field="name")
    if len(name) > MAX_NAME_CHARS or any(unicodedata.category(character) == "Cc" for character in name):
        raise Invalid(f"A name has 1 to {MAX_NAME_CHARS} characters of plain text.", field="name")
    return name


def _check_language(language: str) -> None:
    if language not in languages():
        raise Invalid(f"The language is one of {', '.join(languages())}.", field="language")


def _check_profile(max_chars: int, min_chars: int, max_chunks: int) -> None:
    if not 500 <= max_chars <= 32_000:
        raise Invalid("max_chars is 500 to 32,000.", code="out_of_range", field="max_chars")
    if not 0 <= min_chars <= max_chars // 4:
        raise Invalid(
            f"min_chars is 0 to a quarter of max_chars ({max_chars // 4}).", code="out_of_range", field="min_chars"
        )
    if not 1 <= max_chunks <= 10_000:
        raise Invalid("max_chunks is 1 to 10,000.", code="out_of_range", field="max_chunks")


def _free_slug(owner: User, name: str) -> str:
    base = slug_of(name)
    taken = set(
        Collection.objects.filter(owner=owner, deleted_at=None, slug__startswith=base[:70]).values_list(
            "slug", flat=True
        )
    )
    if base not in taken:
        return base
    number = 2
    while f"{base[:70]}-{number}" in taken:
        number += 1
    return f"{base[:70]}-{number}"


def _save(collection: Collection, **options: Any) -> None:
    try:
        with transaction.atomic():
            collection.save(**options)
    except IntegrityError:
        raise Conflict(
            f"You have a collection named “{collection.name}” already. Choose another name.", field="name"
        ) from None
