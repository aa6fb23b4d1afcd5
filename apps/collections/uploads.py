"""Uploads: one document at once, a batch or an archive by a job."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Sum

from apps.access.errors import Invalid, Problem, Throttled, TooLarge, UnsupportedType
from apps.access.rules import Right
from apps.collections.archives import ArchiveLimits, BadArchive, Entry, read_archive
from apps.collections.document_rows import StagedRow, copy_staged
from apps.collections.documents import Incoming, Outcome, ProfileChanged, profile_of, retitle, standing_of, store
from apps.collections.keys import DOCUMENT_ENDINGS, BadKey, is_document, normalise_key
from apps.collections.models import Collection, Document, Upload
from apps.collections.reading import read_one
from apps.jobs.kinds import find_kind
from apps.jobs.models import Cause, Job
from apps.jobs.queue import enqueue
from apps.markup.links import is_reference
from apps.markup.values import Skipped

if TYPE_CHECKING:
    from apps.access.models import User

MAX_TITLE_CHARS = 1000
STAGING_ENTRIES = 200
STAGING_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Uploaded:
    outcome: Outcome
    jobs: tuple[Job, ...]
    """Follow-up jobs, only when something was created or replaced."""


@dataclass(frozen=True, slots=True)
class Staged:
    upload: Upload
    job: Job


def upload_document(
    *, collection: Collection, by: User, source_key: str, raw: bytes, title: str | None = None
) -> Uploaded:
    """Store one document in this call.

    Raises NotFound or Forbidden without the right to write; Invalid for a bad key or binary content, TooLarge,
    UnsupportedType.
    """
    collection = Collection.objects.get_for(by, Right.WRITE, pk=collection.pk)
    incoming = checked(source_key, raw, title)
    known = standing_of(collection, [incoming.source_key]).get(incoming.source_key)
    if known is not None and known.is_current(incoming.content_hash, profile_of(collection)):
        updated = False
        if incoming.title is not None and incoming.title != known.title_override:
            with transaction.atomic():
                updated = bool(retitle(collection, {known.id: incoming.title}))
                jobs = _queued(("embed",), collection, by=by)
            return Uploaded(Outcome(incoming.source_key, "unchanged", known.id, title_updated=updated), jobs)
        return Uploaded(Outcome(incoming.source_key, "unchanged", known.id), ())
    while True:
        reading = read_one(incoming, collection)
        if isinstance(reading, Skipped) and reading.reason == "binary":
            raise Invalid(f"`{incoming.source_key}` is binary. Upload text.", code="binary", field="content")
        try:
            with transaction.atomic():
                (outcome,) = store(collection, [(incoming, reading)], by=by)
                return Uploaded(outcome, follow_up(collection, by=by))
        except ProfileChanged:
            collection = Collection.objects.get_for(by, Right.WRITE, pk=collection.pk)


def follow_up(collection: Collection, *, by: User | None) -> tuple[Job, ...]:
    """One ``embed`` and one ``resolve_links`` job; those that wait already are used again."""
    return _queued(("embed", "resolve_links"), collection, by=by)


def _queued(kinds: Sequence[str], collection: Collection, *, by: User | None) -> tuple[Job, ...]:
    return tuple(
        enqueue(kind, source=collection, by=by, cause=Cause.FOLLOW_UP).job
        for kind in kinds
        if find_kind(kind, Collection.kind) is not None
    )


def checked(source_key: str, raw: bytes, title: str | None, field: str = "source_key") -> Incoming:
    """An upload that may be read. Raises the refusals of :func:`upload_document`."""
    try:
        key = normalise_key(source_key)
    except BadKey as error:
        raise Invalid(str(error), field=field) from None
    if not (is_document(key) or is_reference(key)):
        what = f"`{key}` has an ending that is not taken. Allowed are {', '.join(DOCUMENT_ENDINGS)} and zip archives"
        raise UnsupportedType(f"{what}, these in the field `archive` of a batch.", field=field)
    limit = settings.COGRAPH.markup.max_file_bytes
    if len(raw) > limit:
        raise TooLarge(f"`{key}` has {len(raw)} bytes; at most {limit} are allowed. Split it.", field="content")
    return Incoming(key, raw, _checked_title(title) if title is not None else None)


def _checked_title(title: str) -> str:
    title = " ".join(title.split())
    if len(title) > MAX_TITLE_CHARS or any(unicodedata.category(character) in {"Cc", "Cs"} for character in title):
        raise Invalid(f"A title has at most {MAX_TITLE_CHARS} characters of plain text.", field="title")
    return title


def stage_batch(*, collection: Collection, by: User, entries: Sequence[tuple[str, bytes, str | None]]) -> Staged:
    """Put (source key, bytes, title override) entries aside and queue the job that works on them.

    A bad entry is kept with its error and the others go on. Raises Invalid for a key that stands twice or an empty
    batch, TooLarge over the limits of a batch, Throttled ``staging_full``.
    """
    collection = Collection.objects.get_for(by, Right.WRITE, pk=collection.pk)
    limits = settings.COGRAPH.upload
    if not entries:
        raise Invalid("The batch is empty. Send at least one document.", field="documents")
    if len(entries) > limits.batch_files:
        raise TooLarge(f"The batch has {len(entries)} files; at most {limits.batch_files} are allowed. Split it.")
    size = sum(len(raw) for _, raw, _ in entries)
    if size > limits.batch_bytes:
        raise TooLarge(f"The batch has {size} bytes; at most {limits.batch_bytes} are allowed. Split it.")
    keys = _keys_of(entries)
    _refuse_twice(keys)

    def staged() -> Iterator[StagedRow]:
        for key, (_, raw, title) in zip(keys, entries, strict=True):
            try:
                incoming = checked(key, raw, title)
            except (TooLarge, UnsupportedType) as refusal:
                yield StagedRow(source_key=key, size=len(raw), error_code=refusal.code, error_message=refusal.message)
                continue
            yield StagedRow(
                source_key=incoming.source_key,
                title=incoming.title or "",
                raw=raw,
                content_hash=incoming.content_hash,
                size=len(raw),
            )

    return _stage(collection, staged(), by=by, announced=size)


def stage_archive(*, collection: Collection, by: User, file: IO[bytes], size: int) -> Staged:
    """Put the entries of a zip archive of ``size`` bytes aside and queue the job that works on them.

    Raises TooLarge over the packed or unpacked size, Invalid for what is no usable archive, Throttled.
    """
    collection = Collection.objects.get_for(by, Right.WRITE, pk=collection.pk)
    upload = settings.COGRAPH.upload
    limits = ArchiveLimits(
        packed=upload.zip_bytes,
        unpacked=upload.zip_unpacked_bytes,
        ratio=upload.zip_ratio,
        entries=upload.zip_entries,
        file=settings.COGRAPH.markup.max_file_bytes,
    )
    seen: set[str] = set()
    counts = {"ignored": 0, "usable": 0}

    def staged() -> Iterator[StagedRow]:
        for entry in read_archive(file, size, limits):
            if entry is None:
                counts["ignored"] += 1
                continue
            if not entry.error:
                if entry.name in seen:
                    _refuse_twice([entry.name, entry.name])
                seen.add(entry.name)
                counts["usable"] += 1
            yield _from_archive(entry)

    try:
        with transaction.atomic():
            result = _stage(collection, staged(), by=by, announced=size)
            if not counts["usable"]:
                raise Invalid(
                    "The archive holds no document or image that can be taken.", code="empty_archive", field="file"
                )
            if counts["ignored"]:
                result.upload.ignored = counts["ignored"]
                result.upload.save(update_fields=["ignored"])
            return result
    except BadArchive as error:
        if error.too_large:
            raise TooLarge(str(error), field="file") from None
        raise Invalid(str(error), code="bad_archive", field="file") from None


def stage_rechunk(collection: Collection, *, by: User | None) -> Staged:
    """Queue the cutting anew of every document by the collection's present profile."""
    entries = (
        StagedRow(source_key=key, content_hash=digest, size=size)
        for key, digest, size in Document.objects.live()
        .filter(collection=collection)
        .order_by("source_key")
        .values_list("source_key", "content_hash", "size")
        .iterator(chunk_size=2000)
    )
    return _stage(collection, entries, by=by, announced=0, purpose="rechunk")


def _keys_of(entries: Sequence[tuple[str, bytes, str | None]]) -> list[str]:
    keys: list[str] = []
    problems: list[Problem] = []
    for position, (source_key, _, _) in enumerate(entries):
        try:
            keys.append(normalise_key(source_key))
        except BadKey as error:
            problems.append(Problem("invalid", str(error), f"documents[{position}].source_key"))
    if problems:
        raise Invalid(problems[0].message, field=problems[0].field, errors=problems)
    return keys


def _refuse_twice(keys: Iterable[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise Invalid(
                f"`{key}` stands in the upload twice. Nothing was stored; send each key once.",
                code="duplicate_key",
                field="source_key",
            )
        seen.add(key)


def _from_archive(entry: Entry) -> StagedRow:
    if entry.error:
        return StagedRow(
            source_key=entry.name.replace("\0", "\ufffd"),
            size=entry.size,
            error_code=entry.error,
            error_message=entry.message,
        )
    return StagedRow(
        source_key=entry.name,
        raw=entry.raw,
        content_hash=Incoming(entry.name, entry.raw).content_hash,
        size=entry.size,
        asset_type=entry.asset_type,
    )


@transaction.atomic
def _stage(
    collection: Collection, entries: Iterable[StagedRow], *, by: User | None, announced: int, purpose: str = "upload"
) -> Staged:
    _check_staging(announced)
    upload = Upload.objects.create(collection=collection, requested_by=by, purpose=purpose)
    waiting: list[StagedRow] = []
    waiting_bytes = total = written = 0
    for entry in entries:
        waiting.append(entry)
        held = len(entry.raw or b"")
        waiting_bytes += held
        total += held
        if len(waiting) >= STAGING_ENTRIES or waiting_bytes >= STAGING_BYTES:
            copy_staged(upload.pk, written, waiting)
            written += len(waiting)
            waiting, waiting_bytes = [], 0
    copy_staged(upload.pk, written, waiting)
    _check_staging(total)
    upload.size = total
    upload.save(update_fields=["size"])
    asked = enqueue("upload", source=collection, key=str(upload.pk), params={"upload": str(upload.pk)}, by=by)
    return Staged(upload, asked.job)


def _check_staging(more: int) -> None:
    """Raise Throttled when staged entries would take more room than the deployment gives them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('collections.staging', 0))")
    held = Upload.objects.filter(expired=False).aggregate(total=Sum("size"))["total"] or 0
    if held + more > settings.COGRAPH.upload.staged_bytes:
        raise Throttled(
            "Uploads that wait for a worker take all the room there is. Try again when some have been worked off.",
            code="staging_full",
            retry_after=60,
        )
