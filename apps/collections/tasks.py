"""What workers do for collections: uploads, links, the removal of what is gone."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import F, Q

from apps.collections import links, trash
from apps.collections.documents import (
    STORE,
    Incoming,
    Outcome,
    ProfileChanged,
    profile_of,
    retitle,
    standing_of,
    store,
)
from apps.collections.models import Asset, Collection, DocumentVersion, StagedEntry, Upload
from apps.collections.parse_warnings import sentence
from apps.collections.reading import read
from apps.collections.uploads import follow_up
from apps.indexing.bulk import collector_paused
from apps.indexing.chunks import change_language
from apps.indexing.stores import get_store
from apps.jobs.models import ItemState, Job, Status
from apps.markup.pool import ParserPool

if TYPE_CHECKING:
    from apps.access.models import User
    from apps.jobs.kinds import SourceKey
    from apps.jobs.running import JobRun

PORTION_FILES = 500
PORTION_BYTES = 8 << 20
PRUNED_AT_ONCE = 50


def run_upload(run: JobRun) -> None:
    """Work on the entries of one upload; resumable, because what is stored reads as unchanged the next time."""
    collection = _collection_of(run)
    upload = Upload.objects.get(pk=run.params["upload"], collection=collection)
    rechunk = upload.purpose == "rechunk"
    entries = list(StagedEntry.objects.filter(upload=upload).defer("raw").order_by("position"))
    run.progress("reading", 0, len(entries))
    done = _report_refused(run, entries)
    _store_assets(run, collection, [entry for entry in entries if entry.asset_type and not entry.error_code])
    texts = [entry for entry in entries if not entry.asset_type and not entry.error_code]
    current = _unchanged(run, collection, texts, rechunk=rechunk)
    waiting = [entry for entry in texts if entry.source_key not in current]
    done = len(entries) - len(waiting)
    run.progress("indexing", done, len(entries))
    with ParserPool(settings.COGRAPH.markup) as pool, run.on_stop(pool.close):
        for portion in run.portions(waiting, size=PORTION_FILES, key=_content_id):
            for piece in _by_size(portion):
                _store_piece(run, pool, upload, piece, rechunk=rechunk)
                done += len(piece)
                run.progress("indexing", done, len(entries))
    if rechunk:
        with run.batch():
            change_language(get_store(STORE), source_id=collection.pk, language=collection.language)
    _finish(run, collection, upload, len(entries))


def _collection_of(run: JobRun) -> Collection:
    """The collection of the job as it stands now."""
    collection = run.source
    if not isinstance(collection, Collection):
        raise TypeError("the job belongs to no collection")
    return collection


def _asked_by(upload: Upload) -> User | None:
    """Who asked for the upload; nobody when the account was deleted since."""
    found: User | None = Upload.objects.select_related("requested_by").get(pk=upload.pk).requested_by
    return found


def _content_id(entry: StagedEntry) -> tuple[str, str]:
    return entry.source_key, bytes(entry.content_hash or b"").hex()


def _by_size(portion: Sequence[StagedEntry]) -> list[list[StagedEntry]]:
    pieces: list[list[StagedEntry]] = []
    held = 0
    for entry in portion:
        if not pieces or held + entry.size > PORTION_BYTES:
            pieces.append([])
            held = 0
        pieces[-1].append(entry)
        held += entry.size
    return pieces


def _report_refused(run: JobRun, entries: Sequence[StagedEntry]) -> int:
    refused = [entry for entry in entries if entry.error_code]
    for entry in refused:
        skipped = entry.error_code == "type"
        run.item(
            entry.source_key,
            ItemState.SKIPPED if skipped else ItemState.ERROR,
            reason=entry.error_code,
            message=entry.error_message,
            size=entry.size,
        )
    return len(refused)


def _store_assets(run: JobRun, collection: Collection, entries: Sequence[StagedEntry]) -> None:
    known = dict(
        Asset.objects.filter(collection=collection, source_key__in=[entry.source_key for entry in entries]).values_list(
            "source_key", "content_hash"
        )
    )
    changed = [
        entry for entry in entries if bytes(known.get(entry.source_key) or b"") != bytes(entry.content_hash or b"")
    ]
    for piece in _by_size(changed):
        data = dict(StagedEntry.objects.filter(pk__in=[entry.pk for entry in piece]).values_list("pk", "raw"))
        with run.batch():
            Asset.objects.bulk_create(
                [
                    Asset(
                        collection=collection,
                        source_key=entry.source_key,
                        content_type=entry.asset_type,
                        content_hash=entry.content_hash or b"",
                        size=entry.size,
                        data=data[entry.pk] or b"",
                    )
                    for entry in piece
                ],
                update_conflicts=True,
                unique_fields=["collection", "source_key"],
                update_fields=["content_type", "content_hash", "size", "data", "changed_at"],
            )
            for entry in piece:
                state = ItemState.REPLACED if entry.source_key in known else ItemState.CREATED
                run.item(entry.source_key, state, size=entry.size)
    same = {entry.source_key for entry in entries} - {entry.source_key for entry in changed}
    for entry in entries:
        if entry.source_key in same:
            run.item(entry.source_key, ItemState.UNCHANGED, size=entry.size)


def _unchanged(run: JobRun, collection: Collection, entries: Sequence[StagedEntry], *, rechunk: bool) -> set[str]:
    """Keys whose content is there already; a changed title alone is put right here."""
    profile = profile_of(collection)
    known = standing_of(collection, [entry.source_key for entry in entries])
    current: set[str] = set()
    titles = {}
    for entry in entries:
        standing = known.get(entry.source_key)
        if standing is None or not standing.is_current(bytes(entry.content_hash or b""), profile):
            continue
        current.add(entry.source_key)
        if entry.title and entry.title != standing.title_override and not rechunk:
            titles[standing.id] = entry.title
        run.item(entry.source_key, ItemState.UNCHANGED, size=entry.size)
    if titles:
        with run.batch():
            retitle(collection, titles)
    return current


def _store_piece(run: JobRun, pool: ParserPool, upload: Upload, piece: Sequence[StagedEntry], *, rechunk: bool) -> None:
    collection = _collection_of(run)
    raw = _bytes_of(collection, piece, rechunk=rechunk)
    incoming = [
        Incoming(entry.source_key, bytes(raw[entry.source_key]), entry.title or None)
        for entry in piece
        if entry.source_key in raw
    ]
    while True:
        begun = time.monotonic()
        with collector_paused(), suppress(ProfileChanged):
            readings = list(read(pool, incoming, collection.profile))
            each = round((time.monotonic() - begun) * 1000 / max(len(readings), 1))
            with run.batch():
                for outcome in store(collection, readings, by=_asked_by(upload), rechunk=rechunk):
                    _report(run, outcome, each)
            return
        collection = _collection_of(run)


def _bytes_of(collection: Collection, piece: Sequence[StagedEntry], *, rechunk: bool) -> dict[str, Any]:
    if not rechunk:
        rows = StagedEntry.objects.filter(pk__in=[entry.pk for entry in piece]).values_list("source_key", "raw")
        return {key: raw or b"" for key, raw in rows}
    keys = [entry.source_key for entry in piece]
    versions = DocumentVersion.objects.filter(
        document__collection=collection, document__source_key__in=keys, number=F("document__version")
    )
    return dict(versions.values_list("document__source_key", "raw"))


def _report(run: JobRun, outcome: Outcome, milliseconds: int) -> None:
    first = outcome.warnings[0] if outcome.warnings else {}
    message = sentence(first) if first else ""
    if outcome.truncated_at_line is not None:
        message = f"Cut at its limit of chunks: line {outcome.truncated_at_line} and what follows is not searchable."
    run.item(
        outcome.source_key,
        ItemState.SKIPPED if outcome.document_state == "skipped" else ItemState(outcome.state),
        reason=outcome.reason or ("truncated" if outcome.truncated_at_line is not None else str(first.get("code", ""))),
        message=message,
        line=outcome.truncated_at_line or first.get("line"),  # type: ignore[arg-type]
        column=first.get("column"),  # type: ignore[arg-type]
        milliseconds=milliseconds,
        chunks=outcome.chunks,
        warning=bool(outcome.warnings) or outcome.truncated_at_line is not None,
        details={"warnings": list(outcome.warnings)} if len(outcome.warnings) > 1 else None,
    )


def _finish(run: JobRun, collection: Collection, upload: Upload, total: int) -> None:
    counts = run.item_counts()
    names = ("created", "replaced", "unchanged", "error", "skipped", "quarantined")
    run.counters.update({name: counts.get(name, 0) for name in names})
    run.counters["ignored"] = upload.ignored
    changed = counts.get("created", 0) + counts.get("replaced", 0)
    refused = sum(counts.get(name, 0) for name in ("error", "skipped", "quarantined"))
    run.note(
        f"{total} files: {counts.get('created', 0)} created, {counts.get('replaced', 0)} replaced, "
        f"{counts.get('unchanged', 0)} unchanged, {refused} left out."
    )
    if changed:
        with run.batch():
            follow_up(collection, by=_asked_by(upload))


def run_resolve_links(run: JobRun) -> None:
    """Bind every link of a collection anew."""
    with collector_paused():
        links.resolve_all(run, _collection_of(run))


def payload_ready(job: Job) -> bool:
    """Whether the staged entries of an upload job are still there."""
    return Upload.objects.filter(pk=job.params.get("upload"), expired=False).exists()


def prune_uploads(now: datetime.datetime) -> int:
    """Drop staged entries whose time is over, some uploads at a time. Returns how many uploads lost theirs.

    A job that still may be retried keeps what it works on; one that is gone itself (beyond the number of reports that
    are kept) does not.
    """
    keep = settings.COGRAPH.retention
    succeeded, failed = (now - datetime.timedelta(days=days) for days in (keep.payload_days, keep.payload_error_days))
    is_over = Q(status=Status.SUCCESS, finished_at__lt=succeeded) | Q(
        status__in=[Status.ERROR, Status.CANCELLED], finished_at__lt=failed
    )
    held = list(Upload.objects.filter(expired=False).values_list("pk", flat=True))
    # Asked for after the uploads: each of those came with its job.
    jobs = Job.objects.filter(kind="upload", source_kind=Collection.kind).exclude(is_over)
    wanted = set(jobs.values_list("key", flat=True))
    due = [pk for pk in held if str(pk) not in wanted][:PRUNED_AT_ONCE]
    StagedEntry.objects.filter(upload__in=due).delete()
    return Upload.objects.filter(pk__in=due).update(expired=True, size=0)


def prune_trash(now: datetime.datetime) -> int:
    """Remove documents that were in the trash for too long, some at a time."""
    return trash.purge_older_than(now - datetime.timedelta(days=settings.COGRAPH.collections.trash_days))


def purge(run: JobRun, source: SourceKey) -> None:
    """Remove every row of a deleted collection, batch by batch, and then itself."""
    trash.purge_collection(run, source[1])
