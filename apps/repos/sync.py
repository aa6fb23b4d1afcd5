"""One sync of one repository: fetch, list, decide, read, parse, chunk, store, link, report.

Every stage takes values and gives values; rows change batch by batch, a document always whole. A second run at the
same commit reads nothing and changes nothing (``repository-documents.md`` 6).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from typing import cast

from django.conf import settings
from django.utils import timezone

from apps.jobs.models import Cause, ItemState
from apps.jobs.running import JobRun
from apps.markup.pool import Failure, ParserPool
from apps.markup.values import Limits, Skipped, WordWindow
from apps.repos import links, remotes, removal
from apps.repos.discovery import Kind
from apps.repos.fetching import Fetched, fetch
from apps.repos.files import FileRow, replace_files
from apps.repos.git.blobs import BlobReader, LazyBlobs, blob_reader
from apps.repos.git.errors import GitFailure
from apps.repos.git.listing import commit_info, is_ancestor, last_changes, list_tree
from apps.repos.git.values import CommitInfo, Entry
from apps.repos.known import filters_of, known_documents, known_files, versions_of
from apps.repos.models import Absence, FileState, Repository, RepositoryDocument, State
from apps.repos.moves import MoveFinder
from apps.repos.plan import Deletions, KnownDocument, KnownFile, Move, Plan, Taken, decide_deletions, make_plan
from apps.repos.reading import READ_FILE, FileRead, is_lfs_pointer
from apps.repos.reports import Tally, repeat_report, write_report
from apps.repos.standing import HELD_WORDS, Standing, report_all, report_unchanged, standing_of
from apps.repos.storing import Outcome, Stored, Writer

BATCH_FILES = 64
BATCH_BYTES = 4 * 1024 * 1024
LFS_MESSAGE = "A pointer of Git LFS; the content itself is not fetched."

LateSkip = tuple[Taken, str, str]


def limits_of_settings() -> Limits:
    markup = settings.COGRAPH.markup
    return Limits(
        max_file_bytes=markup.max_file_bytes,
        parse_seconds=markup.parse_seconds,
        parse_memory_mb=markup.parse_memory_mb,
        max_nesting=markup.max_nesting,
        max_front_matter_bytes=markup.max_front_matter_bytes,
    )


def digest_of(repository: Repository) -> str:
    """What the stored rows depend on besides the commit: when it differs, an unchanged commit is no reason to rest."""
    parts = [
        versions_of(repository).label,
        repository.git_url,
        repository.branch,
        repository.only,
        repository.include,
        repository.exclude,
        repository.docs_roots,
        repository.language,
        settings.COGRAPH.markup.max_file_bytes,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def run_sync(run: JobRun) -> None:
    """The function of the job kind ``sync``.

    Parameters: ``force`` (list again although the commit is unchanged, and try again what was skipped for time or
    memory), ``chunk_anew`` (read every document again), ``approve`` (delete what was approved), ``sync`` (false with
    ``approve``: do only that).
    """
    repository = cast("Repository", run.source)
    if run.params.get("approve"):
        _delete_approved(run, repository)
        if not run.params.get("sync"):
            return
    _Sync(run, repository).run()


def _delete_approved(run: JobRun, repository: Repository) -> None:
    approved = [known for known in known_documents(repository).values() if known.absence == Absence.APPROVED]
    commits = dict(
        RepositoryDocument.objects.filter(repository=repository, absence=Absence.APPROVED).values_list(
            "pk", "absent_commit"
        )
    )
    for at in range(0, len(approved), removal.BATCH):
        portion = approved[at : at + removal.BATCH]
        with run.batch():
            removal.remove(repository, portion, commits)
            for known in portion:
                run.item(known.path, ItemState.REMOVED, message="Deleted as approved.")
            run.counters["deleted_documents"] = run.counters.get("deleted_documents", 0) + len(portion)
    if approved:
        links.resolve_links(run, repository)


class _Sync:
    """The state of one run; each method is one stage."""

    def __init__(self, run: JobRun, repository: Repository) -> None:
        self.run_ = run
        self.repository = repository
        self.versions = versions_of(repository)
        self.limits = limits_of_settings()
        self.tally = Tally.begin(run)
        self.rows: list[FileRow] = []
        self.gone_late: list[KnownDocument] = []
        self.kept_absent = False

    @property
    def forced(self) -> bool:
        return bool(self.run_.params.get("force") or self.run_.params.get("chunk_anew"))

    def run(self) -> None:
        run, repository = self.run_, self.repository
        digest = digest_of(repository)
        rests = run.job.cause in (Cause.SCHEDULE, Cause.WEBHOOK) and not self.forced
        known_good = repository.synced_commit if repository.synced_with == digest else ""
        fetched = fetch(run, repository, unless=known_good if rests else "")
        if rests and fetched.commit and fetched.commit == known_good and repository.state == State.READY:
            self._unchanged(fetched)
            return
        if fetched.commit and fetched.commit == known_good and not self.forced:
            standing = standing_of(repository)
            if standing.discovered and not standing.open:
                self._same_again(fetched, standing)
                return
        fetched, entries = self._list(fetched)
        documents, files = known_documents(repository), known_files(repository)
        plan = self._plan(fetched, entries, documents, files)
        self.tally.discovered = plan.discovered
        commit = self._commit(fetched)
        rewritten = self._is_rewritten(fetched)
        if commit is not None:
            changed_in = self._changes(fetched, plan, rewritten=rewritten)
            writer = Writer(
                repository, versions=self.versions, commit=commit, changed_in=changed_in, documents=documents.values()
            )
            self._report_known(plan)
            self._move(plan, writer)
            self._read(fetched, plan, writer, documents)
        else:
            changed_in, writer = {}, None
        deletions = decide_deletions(
            [*plan.vanished, *self.gone_late],
            plan.dropped,
            live=sum(known.absence in ("", Absence.HELD) for known in documents.values()),
            listing_is_empty=not entries,
        )
        self._delete(deletions, changed_in, fetched.commit, writer)
        self._finish(fetched, commit, plan, files, digest, writer, rewritten=rewritten)

    # -- stages

    def _unchanged(self, fetched: Fetched) -> None:
        with self.run_.batch():
            Repository.objects.filter(pk=self.repository.pk).update(last_checked_at=timezone.now())
            self.run_.note(f"Unchanged at {fetched.commit[:7]}.")

    def _same_again(self, fetched: Fetched, standing: Standing) -> None:
        """The commit that is stored already, asked for by hand: nothing is listed or read, all of it is reported."""
        run, repository = self.run_, self.repository
        self.tally.discovered, self.tally.skipped = standing.discovered, standing.skipped
        self.tally.held = standing.held
        with run.batch():
            report_all(run, repository)
            Repository.objects.filter(pk=repository.pk).update(
                synced_branch=fetched.branch, last_checked_at=timezone.now(), state=State.READY
            )
            repeat_report(run, repository, self.tally, listed=standing.listed)

    def _list(self, fetched: Fetched) -> tuple[Fetched, list[Entry]]:
        """The paths of the commit. A mirror that cannot be read is fetched anew, once."""
        run = self.run_
        run.progress("list")
        if not fetched.commit:
            return fetched, []
        try:
            return fetched, list_tree(fetched.mirror, fetched.commit, check=run.check)
        except GitFailure:
            remotes.mirror(self.repository).remove()
        fetched = fetch(run, self.repository)
        return fetched, list_tree(fetched.mirror, fetched.commit, check=run.check)

    def _plan(
        self,
        fetched: Fetched,
        entries: Sequence[Entry],
        documents: dict[bytes, KnownDocument],
        files: dict[bytes, KnownFile],
    ) -> Plan:
        with LazyBlobs(fetched.mirror) as blobs:
            return make_plan(
                entries,
                filters=filters_of(self.repository),
                documents=documents,
                files=files,
                versions=self.versions,
                max_bytes=self.limits.max_file_bytes,
                link_target=blobs.read,
                chunk_anew=bool(self.run_.params.get("chunk_anew")),
                retry_skipped=self.forced,
            )

    def _commit(self, fetched: Fetched) -> CommitInfo | None:
        repository = self.repository
        if not fetched.commit:
            return None
        if fetched.commit == repository.synced_commit and repository.committed_at is not None:
            return CommitInfo(fetched.commit, repository.committed_at)
        return commit_info(fetched.mirror, fetched.commit)

    def _is_rewritten(self, fetched: Fetched) -> bool:
        before = self.repository.synced_commit
        if not before or not fetched.commit or before == fetched.commit:
            return False
        return not is_ancestor(fetched.mirror, before, fetched.commit)

    def _changes(self, fetched: Fetched, plan: Plan, *, rewritten: bool) -> dict[bytes, CommitInfo]:
        """When the content of each file that is new here last changed, and when vanished ones went."""
        paths = [taken.entry.raw_path for taken in plan.read]
        paths += [move.taken.entry.raw_path for move in plan.moved]
        paths += [known.raw_path for known in plan.vanished]
        since = "" if rewritten else self.repository.synced_commit
        if since == fetched.commit:
            since = ""
        return last_changes(fetched.mirror, fetched.commit, paths, since=since, check=self.run_.check)

    def _report_known(self, plan: Plan) -> None:
        """Items of what needs no reading: unchanged documents, and paths that stay out."""
        returned: list[uuid.UUID] = []
        unchanged: list[uuid.UUID] = []
        for taken in plan.unchanged:
            known = taken.known
            if known is None:
                continue
            if known.absence:
                returned.append(known.id)
            unchanged.append(known.id)
            self._row(taken.entry, taken.kind, FileState.INDEXED)
        for skip in plan.skipped:
            self._skip(skip.entry, skip.kind, skip.reason, skip.message, warns=skip.warns)
        with self.run_.batch():
            if returned:
                RepositoryDocument.objects.filter(pk__in=returned).update(
                    absence="", absent_commit="", absent_since=None
                )
            report_unchanged(self.run_, self.repository, unchanged)

    def _move(self, plan: Plan, writer: Writer) -> None:
        plain = [move for move in plan.moved if not move.reread]
        for at in range(0, len(plain), BATCH_FILES):
            portion = plain[at : at + BATCH_FILES]
            with self.run_.batch():
                writer.move([(move.known, move.taken.entry) for move in portion])
                for move in portion:
                    self._row(move.taken.entry, move.taken.kind, FileState.INDEXED)
                    self._moved_item(move)

    def _moved_item(self, move: Move) -> None:
        code, message, line, column = move.known.warning or ("", "", None, None)
        self.run_.item(
            move.taken.entry.path,
            ItemState.MOVED,
            reason=code,
            message=message or f"Moved from {move.known.path}.",
            line=line,
            column=column,
            size=move.taken.entry.size,
            warning=bool(code),
            details={"from": move.known.path},
        )
        self.tally.moved += 1

    def _read(self, fetched: Fetched, plan: Plan, writer: Writer, documents: dict[bytes, KnownDocument]) -> None:
        """Read, parse, chunk and store what is new, in path order, a batch at a time."""
        work = [*plan.read, *(move.taken for move in plan.moved if move.reread)]
        if not work:
            return
        work.sort(key=lambda taken: taken.entry.raw_path)
        before = {move.taken.entry.raw_path: move.known for move in plan.moved if move.reread}
        finder = MoveFinder(plan.vanished)
        profile = WordWindow(self.repository.max_words, self.repository.overlap_words, self.repository.max_chars)
        done = 0
        seen: set[bytes] = set()
        self.run_.progress("read", 0, len(work))
        with blob_reader(fetched.mirror) as blobs, ParserPool(self.limits) as pool, self.run_.on_stop(pool.close):
            for group in _groups(work):
                for portion in self.run_.portions(group, size=len(group), key=_content_key):
                    seen.update(taken.entry.raw_path for taken in portion)
                    outcomes = self._outcomes(portion, blobs, pool, profile, before, finder)
                    with self.run_.batch():
                        for stored in writer.store(outcomes) if outcomes else ():
                            self._stored_item(stored)
                        self.tally.save(self.run_)
                    done += len(portion)
                    self.run_.progress("read", done, len(work))
        plan.vanished = finder.left
        for taken in work:
            if taken.entry.raw_path not in seen:
                self.tally.quarantined += 1
                self._row(taken.entry, taken.kind, FileState.QUARANTINED, "worker_lost")

    def _outcomes(
        self,
        portion: Sequence[Taken],
        blobs: BlobReader,
        pool: ParserPool,
        profile: WordWindow,
        before: dict[bytes, KnownDocument],
        finder: MoveFinder,
    ) -> list[Outcome]:
        """What reading the files of one portion gave; files that give nothing get their item here."""
        readable: list[tuple[Taken, bytes]] = []
        for taken, raw in zip(portion, blobs.read_many([taken.entry.blob for taken in portion]), strict=True):
            if raw is None:
                self._late_skip(taken, "unreadable", "The object is missing in the local copy.")
            elif is_lfs_pointer(raw):
                self._late_skip(taken, "LFS pointer, content not fetched", LFS_MESSAGE)
            else:
                readable.append((taken, raw))
        payloads = ((raw, taken.entry.path, taken.kind.value, self.limits, profile) for taken, raw in readable)
        outcomes: list[Outcome] = []
        for (taken, _), result in zip(readable, pool.run(READ_FILE, payloads), strict=True):
            if isinstance(result, Skipped):
                self._late_skip(taken, result.reason, result.message)
            elif isinstance(result, Failure):
                self._error(taken, result.message)
            else:
                known = taken.known or before.get(taken.entry.raw_path)
                moved = taken.known is None and known is not None
                outcomes.append(Outcome(taken, cast("FileRead", result), known, moved))
        return finder.resolve(outcomes)

    def _stored_item(self, stored: Stored) -> None:
        outcome, changes = stored.outcome, stored.changes
        read, taken = outcome.read, outcome.taken
        state = {"created": ItemState.CREATED, "moved": ItemState.MOVED}.get(outcome.act, ItemState.REPLACED)
        if outcome.known and not outcome.moved and outcome.known.blob == taken.entry.blob:
            reason, message = "re-chunked", "Read again under another profile or version."
        else:
            reason, message = "", ""
            self.tally.replaced += state == ItemState.REPLACED
        first = read.warnings[0] if read.warnings else None
        self.run_.item(
            taken.entry.path,
            state,
            reason=first.code if first else reason,
            message=first.message if first else message,
            line=first.line if first else None,
            column=first.column if first else None,
            size=taken.entry.size,
            milliseconds=read.milliseconds,
            chunks=len(read.chunks),
            warning=first is not None,
            details={
                "kept": len(changes.kept),
                "new": len(changes.added),
                "gone": len(changes.removed),
                "warnings": len(read.warnings),
                "redacted": read.redacted,
            }
            | ({"from": outcome.known.path} if outcome.moved and outcome.known else {}),
        )
        self._row(taken.entry, taken.kind, FileState.INDEXED)
        self.tally.indexed += 1
        self.tally.chunks += len(read.chunks)
        self.tally.moved += outcome.moved
        self.tally.redacted += read.redacted
        self.tally.kept_chunks += len(changes.kept)
        self.tally.new_chunks += len(changes.added)

    def _late_skip(self, taken: Taken, reason: str, message: str) -> None:
        self._skip(taken.entry, taken.kind, reason, message, warns=True)
        if taken.known is not None:
            self.gone_late.append(taken.known)

    def _skip(self, entry: Entry, kind: Kind | None, reason: str, message: str, *, warns: bool) -> None:
        self.tally.skipped += 1
        self._row(entry, kind, FileState.SKIPPED, reason, message)
        self.run_.item(entry.path, ItemState.SKIPPED, reason=reason, message=message, size=entry.size, warning=warns)

    def _error(self, taken: Taken, message: str) -> None:
        self.tally.errors += 1
        self._row(taken.entry, taken.kind, FileState.ERROR, "internal", message)
        self.run_.item(taken.entry.path, ItemState.ERROR, reason="internal", message=message, size=taken.entry.size)

    def _row(self, entry: Entry, kind: Kind | None, state: FileState, reason: str = "", message: str = "") -> None:
        versions = self.versions.label if state == FileState.SKIPPED and kind else ""
        self.rows.append(FileRow(entry, kind.value if kind else "", state.value, reason, message, versions))

    def _delete(
        self, deletions: Deletions, changed_in: dict[bytes, CommitInfo], commit: str, writer: Writer | None
    ) -> None:
        run = self.run_
        commits = {
            known.id: changed_in[known.raw_path].commit if known.raw_path in changed_in else commit
            for known in (*deletions.prune, *deletions.hold)
        }
        for at in range(0, len(deletions.prune), removal.BATCH):
            portion = deletions.prune[at : at + removal.BATCH]
            with run.batch():
                removal.remove(self.repository, portion, commits)
                for known in portion:
                    run.item(known.path, ItemState.REMOVED)
                self.tally.deleted += len(portion)
                self.tally.save(run)
        if writer is not None:
            writer.forget(deletions.prune)
        waiting = (*deletions.hold, *deletions.waiting)
        if deletions.hold:
            with run.batch():
                RepositoryDocument.objects.filter(pk__in=[known.id for known in deletions.hold]).update(
                    absence=Absence.HELD, absent_commit=commit, absent_since=timezone.now()
                )
        for known in waiting:
            run.item(known.path, ItemState.HELD, message=HELD_WORDS)
        self.tally.held = len(waiting)

    def _finish(
        self,
        fetched: Fetched,
        commit: CommitInfo | None,
        plan: Plan,
        files: dict[bytes, KnownFile],
        digest: str,
        writer: Writer | None,
        *,
        rewritten: bool,
    ) -> None:
        run, repository = self.run_, self.repository
        for entry, reason in plan.left_out.values():
            self.rows.append(FileRow(entry, "", FileState.NOT_TAKEN.value, reason))
        previous = repository.synced_commit
        now = timezone.now()
        with run.batch():
            if writer is not None:
                writer.settle_slugs()
            replace_files(repository, self.rows, files)
            changes = {
                "state": State.READY if fetched.commit else State.EMPTY,
                "synced_branch": fetched.branch,
                "synced_commit": fetched.commit,
                "committed_at": commit.committed_at if commit else None,
                "synced_at": now,
                "last_checked_at": now,
                "synced_with": digest,
            }
            Repository.objects.filter(pk=repository.pk).update(**changes)
            for name, value in changes.items():
                setattr(repository, name, value)
            write_report(run, repository, plan, self.tally, previous=previous, rewritten=rewritten)
        links.resolve_links(run, repository, only_if_needed=not self.forced)


def _content_key(taken: Taken) -> tuple[str, str]:
    return taken.entry.path, taken.entry.blob


def _groups(work: Sequence[Taken]) -> Iterator[list[Taken]]:
    """Portions that are small in number and in bytes, so that memory stays bounded whatever the files are like."""
    group: list[Taken] = []
    size = 0
    for taken in work:
        if group and (len(group) >= BATCH_FILES or size + (taken.entry.size or 0) > BATCH_BYTES):
            yield group
            group, size = [], 0
        group.append(taken)
        size += taken.entry.size or 0
    if group:
        yield group
