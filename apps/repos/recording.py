"""What a sync says about each path: its item in the report, its row among the files, its place in the counts."""

from __future__ import annotations

from apps.jobs.models import ItemState
from apps.jobs.running import JobRun
from apps.repos.discovery import Kind
from apps.repos.files import FileRow
from apps.repos.git.values import Entry
from apps.repos.models import FileState
from apps.repos.plan import KnownDocument, Move, Taken, Versions
from apps.repos.reports import Tally
from apps.repos.standing import HELD_WORDS
from apps.repos.storing import Stored


class Recorder:
    """Collects rows and counts of one run. Items are stored with the batch that is under way."""

    def __init__(self, run: JobRun, versions: Versions) -> None:
        self.run = run
        self.versions = versions
        self.tally = Tally.begin(run)
        self.rows: list[FileRow] = []
        self.gone_late: list[KnownDocument] = []
        """Documents whose new version cannot be read: found out while reading."""

    def row(self, entry: Entry, kind: Kind | None, state: FileState, reason: str = "", message: str = "") -> None:
        versions = self.versions.label if state == FileState.SKIPPED and kind else ""
        self.rows.append(FileRow(entry, kind.value if kind else "", state.value, reason, message, versions))

    def skip(self, entry: Entry, kind: Kind | None, reason: str, message: str, *, warns: bool) -> None:
        self.tally.skipped += 1
        self.row(entry, kind, FileState.SKIPPED, reason, message)
        self.run.item(entry.path, ItemState.SKIPPED, reason=reason, message=message, size=entry.size, warning=warns)

    def late_skip(self, taken: Taken, reason: str, message: str) -> None:
        """A file that turned out to give no text; what stood at its path before is gone from the commit."""
        self.skip(taken.entry, taken.kind, reason, message, warns=True)
        if taken.known is not None:
            self.gone_late.append(taken.known)

    def error(self, taken: Taken, message: str) -> None:
        """A fault of ours; the last good content stays."""
        self.tally.errors += 1
        self.row(taken.entry, taken.kind, FileState.ERROR, "internal", message)
        self.run.item(taken.entry.path, ItemState.ERROR, reason="internal", message=message, size=taken.entry.size)

    def quarantined(self, taken: Taken) -> None:
        """The job room has written the item."""
        self.tally.quarantined += 1
        self.row(taken.entry, taken.kind, FileState.QUARANTINED, "worker_lost")

    def moved(self, move: Move) -> None:
        """A document that goes on unread under another path."""
        code, message, line, column = move.known.warning or ("", "", None, None)
        self.row(move.taken.entry, move.taken.kind, FileState.INDEXED)
        self.run.item(
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

    def stored(self, stored: Stored) -> None:
        """A document whose chunks were built in this run."""
        outcome, changes, tally = stored.outcome, stored.changes, self.tally
        read, taken, known = outcome.read, outcome.taken, outcome.known
        state = {"created": ItemState.CREATED, "moved": ItemState.MOVED}.get(outcome.act, ItemState.REPLACED)
        reason, message = "", ""
        if state == ItemState.REPLACED and known is not None and known.blob == taken.entry.blob:
            reason, message = "re-chunked", "Read again under another profile or version."
        else:
            tally.replaced += state == ItemState.REPLACED
        first = read.warnings[0] if read.warnings else None
        details: dict[str, object] = {
            "kept": len(changes.kept),
            "new": len(changes.added),
            "gone": len(changes.removed),
            "warnings": len(read.warnings),
            "redacted": read.redacted,
        }
        if outcome.moved and known is not None:
            details["from"] = known.path
        self.run.item(
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
            details=details,
        )
        self.row(taken.entry, taken.kind, FileState.INDEXED)
        tally.indexed += 1
        tally.chunks += len(read.chunks)
        tally.moved += outcome.moved
        tally.redacted += read.redacted
        tally.kept_chunks += len(changes.kept)
        tally.new_chunks += len(changes.added)

    def removed(self, known: KnownDocument) -> None:
        self.tally.deleted += 1
        self.run.item(known.path, ItemState.REMOVED)

    def held(self, known: KnownDocument) -> None:
        self.tally.held += 1
        self.run.item(known.path, ItemState.HELD, message=HELD_WORDS)
