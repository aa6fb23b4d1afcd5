"""One sync of one repository: fetch, list, decide, read, parse, chunk, store, link, report.

Every stage takes values and gives values; rows change batch by batch, a document always whole. A second run at the
same commit reads nothing and changes nothing (``repository-documents.md`` 6).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import cast

from django.conf import settings
from django.db import connection
from django.utils import timezone

from apps.access.redact import redact
from apps.indexing.chunks import change_language
from apps.indexing.models import IndexedSource
from apps.indexing.stores import stores_of
from apps.jobs.errors import TransientFailure
from apps.jobs.models import Cause, ItemState
from apps.jobs.running import JobRun
from apps.repos import links, remotes, removal
from apps.repos.code.sync import sync_code
from apps.repos.fetching import Fetched, fetch
from apps.repos.files import FileRow, replace_files
from apps.repos.git.blobs import LazyBlobs
from apps.repos.git.errors import GitFailure, GitTimeout, cause_of
from apps.repos.git.listing import commit_info, is_ancestor, last_changes, list_tree
from apps.repos.git.values import CommitInfo, Entry, shown_path
from apps.repos.known import (
    digest_of,
    filters_of,
    known_documents,
    known_files,
    versions_of,
)
from apps.repos.models import Absence, FileState, Repository, RepositoryDocument, State
from apps.repos.plan import Deletions, KnownDocument, KnownFile, Plan, decide_deletions, make_plan
from apps.repos.read_stage import BATCH_FILES, ReadStage
from apps.repos.recording import Recorder
from apps.repos.reports import repeat_report, write_report
from apps.repos.standing import Standing, is_whole, report_all, report_unchanged, standing_of
from apps.repos.storing import Writer

CHECKED = "UPDATE repositories SET last_checked_at = %s, synced_branch = %s, state = 'ready' WHERE id = %s"


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
    try:
        _Sync(run, repository).work()
    except GitTimeout as error:
        raise TransientFailure("timeout", f"git was not done within {error.seconds:g} seconds.") from None
    except (GitFailure, EOFError) as error:
        if isinstance(error, EOFError) or cause_of(error.text).local:
            remotes.mirror(repository).remove()  # the next attempt fetches it anew
        text = error.text if isinstance(error, GitFailure) else str(error)
        detail = redact(text.strip().splitlines()[0][:200]) if text.strip() else "no reason given"
        raise TransientFailure("git_failed", f"git could not read the local copy ({detail}).") from None


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
        self.run = run
        self.repository = repository
        self.versions = versions_of(repository)
        self.limits = settings.COGRAPH.markup
        self.recorder = Recorder(run, self.versions)

    @property
    def forced(self) -> bool:
        return bool(self.run.params.get("force") or self.run.params.get("chunk_anew"))

    def work(self) -> None:
        run, repository = self.run, self.repository
        digest = digest_of(repository)
        rests = run.job.cause in (Cause.SCHEDULE, Cause.WEBHOOK) and not self.forced
        is_good = repository.synced_with == digest and is_whole(repository)
        known_good = repository.synced_commit if is_good else ""
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
        self.recorder.tally.discovered = plan.discovered
        commit = self._commit(fetched)
        rewritten = self._is_rewritten(fetched)
        if commit is not None:
            changed_in = self._changes(fetched, plan, rewritten=rewritten)
            writer = Writer(
                repository, versions=self.versions, commit=commit, changed_in=changed_in, documents=documents.values()
            )
            self._report_known(plan)
            self._move(plan, writer)
            self._read(fetched, plan, writer)
            self._speak()
        else:
            changed_in, writer = {}, None
        deletions = decide_deletions(
            [*plan.vanished, *self.recorder.gone_late],
            plan.dropped,
            live=sum(known.absence in ("", Absence.HELD) for known in documents.values()),
            listing_is_empty=not entries,
        )
        self._delete(deletions, changed_in, fetched.commit, writer)
        self._finish(fetched, commit, plan, files, digest, writer, rewritten=rewritten)

    # -- stages

    def _unchanged(self, fetched: Fetched) -> None:
        self.run.note(f"Unchanged at {fetched.commit[:7]}.")
        self.run.in_the_end(partial(self._checked, fetched.branch))
        self.run.changed_nothing = True

    def _checked(self, branch: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(CHECKED, [timezone.now(), branch, self.repository.pk])

    def _same_again(self, fetched: Fetched, standing: Standing) -> None:
        """The commit that is stored already, asked for by hand: nothing is listed or read, all of it is reported."""
        run, repository = self.run, self.repository
        self.recorder.tally.discovered, self.recorder.tally.skipped = standing.discovered, standing.skipped
        self.recorder.tally.held = standing.held
        with run.batch():
            warned = report_all(run, repository, standing)
            self._checked(fetched.branch)
            repeat_report(run, repository, self.recorder.tally, listed=standing.listed, warned=warned)
        run.changed_nothing = True

    def _list(self, fetched: Fetched) -> tuple[Fetched, list[Entry]]:
        """The paths of the commit. When the mirror lacks it, it is fetched; when that does not help, all anew, as it is
        when one of its objects is gone."""
        run = self.run
        run.progress("list")
        if not fetched.commit:
            return fetched, []
        for heal in (False, True):
            try:
                entries = list_tree(fetched.mirror, fetched.commit, check=run.check)
                if not any(entry.is_missing for entry in entries):
                    return fetched, entries
                heal = True
            except GitFailure:
                pass
            if heal:
                remotes.mirror(self.repository).remove()
            fetched = fetch(run, self.repository, verify=True)
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
                chunk_anew=bool(self.run.params.get("chunk_anew")),
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
        return last_changes(fetched.mirror, fetched.commit, paths, since=since, check=self.run.check)

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
            self.recorder.row(taken.entry, taken.kind, FileState.INDEXED)
        for skip in plan.skipped:
            self.recorder.skip(skip.entry, skip.kind, skip.reason, skip.message, warns=skip.warns)
        with self.run.batch():
            if returned:
                RepositoryDocument.objects.filter(pk__in=returned).update(
                    absence="", absent_commit="", absent_since=None
                )
            report_unchanged(self.run, self.repository, unchanged)

    def _move(self, plan: Plan, writer: Writer) -> None:
        plain = [move for move in plan.moved if not move.reread]
        for at in range(0, len(plain), BATCH_FILES):
            portion = plain[at : at + BATCH_FILES]
            with self.run.batch():
                writer.move([(move.known, move.taken.entry) for move in portion])
                for move in portion:
                    self.recorder.moved(move)

    def _read(self, fetched: Fetched, plan: Plan, writer: Writer) -> None:
        stage = ReadStage(
            self.run,
            writer,
            self.recorder,
            mirror=fetched.mirror,
            limits=self.limits,
            profile=self.repository.word_window,
        )
        stage.work_off(plan)

    def _speak(self) -> None:
        """Index the source anew when its language was changed and no stored document has done so by the way."""
        language = self.repository.language
        others = IndexedSource.objects.filter(source_id=self.repository.pk, chunks__gt=0).exclude(language=language)
        names = set(others.values_list("store", flat=True))
        for store in [store for store in stores_of(Repository.kind) if store.name in names]:
            with self.run.batch():
                change_language(store, source_id=self.repository.pk, language=language)

    def _delete(
        self, deletions: Deletions, changed_in: dict[bytes, CommitInfo], commit: str, writer: Writer | None
    ) -> None:
        run = self.run
        commits = {
            known.id: changed_in[known.raw_path].commit if known.raw_path in changed_in else commit
            for known in (*deletions.prune, *deletions.hold)
        }
        for at in range(0, len(deletions.prune), removal.BATCH):
            portion = deletions.prune[at : at + removal.BATCH]
            with run.batch():
                removal.remove(self.repository, portion, commits)
                for known in portion:
                    self.recorder.removed(known)
                self.recorder.tally.save(run)
        if writer is not None:
            writer.forget(deletions.prune)
        if deletions.hold:
            with run.batch():
                RepositoryDocument.objects.filter(pk__in=[known.id for known in deletions.hold]).update(
                    absence=Absence.HELD, absent_commit=commit, absent_since=timezone.now()
                )
        for known in (*deletions.hold, *deletions.waiting):
            self.recorder.held(known)

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
        run, repository = self.run, self.repository
        for entry, reason in plan.left_out.values():
            self.recorder.rows.append(FileRow(entry, "", FileState.NOT_TAKEN.value, reason))
        previous = repository.synced_commit
        now = timezone.now()
        with run.batch():
            if writer is not None:
                writer.settle_slugs()
            replace_files(repository, self.recorder.rows, files)
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
            write_report(run, repository, plan, self.recorder.tally, previous=previous, rewritten=rewritten)
        links.resolve_links(run, repository, only_if_needed=not self.forced)
        present = {row.entry.raw_path for row in self.recorder.rows}
        sync_code(
            run,
            repository,
            mirror=fetched.mirror,
            limits=self.limits,
            forced=self.forced,
            previous=previous,
            gone_paths={shown_path(path): file.blob for path, file in files.items() if path not in present},
        )
