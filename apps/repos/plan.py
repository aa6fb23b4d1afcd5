"""What a sync has to do, from a listing and what is stored: pure values in, pure values out.

Rules: ``repository-documents.md`` 2.2 (states of a path), 6.2 (what is unchanged), 6.5 (moves), 6.7 (held deletions).
"""

from __future__ import annotations

import posixpath
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from apps.repos.discovery import Decision, Filters, Kind, decide, split
from apps.repos.git.values import SUBMODULE, SYMLINK, Entry

HELD_ABOVE_DOCUMENTS = 10
HELD_ABOVE_SHARE = 0.1
LONGEST_PATH_BYTES = 2000
"""Longer paths do not fit into the index of a unique constraint; they are counted and left out."""
LONGEST_LINK_BYTES = 4096
"""SECURITY: nobody's file system has longer links; what claims to be one is not loaded."""
SAMPLES = 20


@dataclass(frozen=True, slots=True)
class Versions:
    """What the rows of a document depend on besides its content."""

    parser: str
    profile: str

    @property
    def label(self) -> str:
        return f"{self.parser} {self.profile}"


@dataclass(frozen=True, slots=True)
class KnownDocument:
    id: uuid.UUID
    raw_path: bytes
    path: str
    kind: Kind
    title: str
    slug: str
    blob: str
    parser_version: str
    chunk_profile: str
    absence: str
    warning: tuple[str, str, int, int] | None = None
    """Code, message, line and column of the first warning: told again while the file stays as it is."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    id: int
    mode: int
    blob: str
    size: int | None
    kind: str
    state: str
    reason: str
    message: str
    versions: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A path that is (or should become) a document. ``known`` is the document that stands there already."""

    entry: Entry
    kind: Kind
    known: KnownDocument | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """A path that stays out, with the reason. ``warns``: its author should know."""

    entry: Entry
    kind: Kind | None
    reason: str
    message: str
    warns: bool


@dataclass(slots=True)
class Move:
    """A document that goes on under another path. ``reread``: the new name changes how its text is read."""

    known: KnownDocument
    taken: Taken
    reread: bool


@dataclass(slots=True)
class NotTaken:
    count: int = 0
    samples: list[str] = field(default_factory=list)

    def add(self, path: str) -> None:
        self.count += 1
        if len(self.samples) < SAMPLES:
            self.samples.append(path)


@dataclass(slots=True)
class Plan:
    listed: int = 0
    read: list[Taken] = field(default_factory=list)
    unchanged: list[Taken] = field(default_factory=list)
    moved: list[Move] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    not_taken: dict[str, NotTaken] = field(default_factory=dict)
    left_out: dict[bytes, tuple[Entry, str]] = field(default_factory=dict)
    """Every path that is not taken, with the reason."""
    vanished: list[KnownDocument] = field(default_factory=list)
    """Gone from the commit, or no longer readable in it, and not found under another path."""
    dropped: list[KnownDocument] = field(default_factory=list)
    """Still in the commit, and no longer taken by rules or filters."""

    @property
    def discovered(self) -> int:
        return len(self.read) + len(self.unchanged) + len(self.moved) + len(self.skipped)


def link_reason(path: str, target: bytes) -> str:
    """``symlink``, or ``symlink outside root`` when its target leaves the repository. Only the text is looked at."""
    text = target.decode("utf-8", "surrogateescape")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
    outside = text.startswith("/") or place == ".." or place.startswith("../") or "\0" in text
    return "symlink outside root" if outside else "symlink"


def make_plan(
    entries: Iterable[Entry],
    *,
    filters: Filters,
    documents: Mapping[bytes, KnownDocument],
    files: Mapping[bytes, KnownFile],
    versions: Versions,
    max_bytes: int,
    link_target: Callable[[str], bytes | None],
    chunk_anew: bool = False,
    retry_skipped: bool = False,
) -> Plan:
    """Sort every path of the listing. ``link_target`` reads the blob of a symbolic link, and only that.

    ``chunk_anew`` reads every document again; ``retry_skipped`` tries again what was skipped for time or memory.
    """
    plan = Plan()
    present: set[bytes] = set()
    for entry in entries:
        plan.listed += 1
        if max(len(entry.raw_path), len(entry.path.encode())) > LONGEST_PATH_BYTES:
            plan.not_taken.setdefault("path too long", NotTaken()).add(entry.path[:200])
            continue
        decision = decide(entry.path, filters)
        reason = _stays_out(entry, decision, max_bytes=max_bytes, files=files, link_target=link_target)
        if reason is not None:
            plan.skipped.append(reason)
            continue
        if decision.kind is None:
            plan.not_taken.setdefault(decision.reason, NotTaken()).add(entry.path)
            plan.left_out[entry.raw_path] = (entry, decision.reason)
            continue
        present.add(entry.raw_path)
        taken = Taken(entry, decision.kind, documents.get(entry.raw_path))
        file = files.get(entry.raw_path)
        if taken.known is not None and not chunk_anew and _is_same(taken, versions):
            plan.unchanged.append(taken)
        elif file is not None and _still_skipped(file, taken, versions) and not (retry_skipped or chunk_anew):
            plan.skipped.append(Skip(entry, decision.kind, file.reason, file.message, warns=True))
            present.discard(entry.raw_path)
        else:
            plan.read.append(taken)
    _sort_absent(plan, documents, present)
    _find_moves(plan, versions, chunk_anew=chunk_anew)
    return plan


def _stays_out(
    entry: Entry,
    decision: Decision,
    *,
    max_bytes: int,
    files: Mapping[bytes, KnownFile],
    link_target: Callable[[str], bytes | None],
) -> Skip | None:
    unwanted = decision.excluded_folder or decision.reason == "filtered"
    if entry.mode == SYMLINK:
        if unwanted:
            return None
        file = files.get(entry.raw_path)
        if file is not None and file.blob == entry.blob and file.mode == SYMLINK:
            reason = file.reason
        else:
            target = link_target(entry.blob) if (entry.size or 0) <= LONGEST_LINK_BYTES else None
            reason = "symlink" if target is None else link_reason(entry.path, target)
        message = (
            "A link out of the repository; it is not followed."
            if reason == "symlink outside root"
            else "A link is not followed; its target is indexed under its own path."
        )
        return Skip(entry, decision.kind, reason, message, warns=reason == "symlink outside root")
    if entry.mode == SUBMODULE:
        if unwanted:
            return None
        message = f"A submodule at {entry.blob}; register it as a repository of its own."
        return Skip(entry, decision.kind, "submodule not fetched", message, warns=False)
    if decision.kind is not None and entry.size is not None and entry.size > max_bytes:
        message = f"{entry.size:,} bytes; files of up to {max_bytes:,} bytes are read."
        return Skip(entry, decision.kind, "too_large", message, warns=True)
    return None


def _is_same(taken: Taken, versions: Versions) -> bool:
    known = taken.known
    return (
        known is not None
        and known.blob == taken.entry.blob
        and known.kind == taken.kind
        and known.parser_version == versions.parser
        and known.chunk_profile == versions.profile
    )


def _still_skipped(file: KnownFile, taken: Taken, versions: Versions) -> bool:
    return (
        file.state == "skipped"
        and file.blob == taken.entry.blob
        and file.mode == taken.entry.mode
        and file.kind == taken.kind
        and file.versions == versions.label
    )


def _sort_absent(plan: Plan, documents: Mapping[bytes, KnownDocument], present: set[bytes]) -> None:
    for raw_path, known in documents.items():
        if raw_path in present:
            continue
        left_out = plan.left_out.get(raw_path)
        regular = left_out is not None and left_out[0].mode not in (SYMLINK, SUBMODULE)
        (plan.dropped if regular else plan.vanished).append(known)


def _find_moves(plan: Plan, versions: Versions, *, chunk_anew: bool) -> None:
    """Pairs vanished documents with new paths of the same blob: longest common path ending first, then path order."""
    by_blob: dict[str, list[KnownDocument]] = defaultdict(list)
    for known in plan.vanished:
        by_blob[known.blob].append(known)
    newcomers = [taken for taken in plan.read if taken.known is None and taken.entry.blob in by_blob]
    if not newcomers:
        return
    pairs = (
        sorted(
            (-_common_ending(known.raw_path, taken.entry.raw_path), known.raw_path, taken.entry.raw_path, known, taken)
            for taken in newcomers
            for known in by_blob[taken.entry.blob]
            if known.blob == taken.entry.blob
        )
        if len(newcomers) * max(map(len, by_blob.values())) < 250_000
        else _in_order(newcomers, by_blob)
    )
    gone: set[uuid.UUID] = set()
    placed: set[bytes] = set()
    for _, _, raw_path, known, taken in pairs:
        if known.id in gone or raw_path in placed:
            continue
        gone.add(known.id)
        placed.add(raw_path)
        same = (
            not chunk_anew
            and known.parser_version == versions.parser
            and known.chunk_profile == versions.profile
            and not reads_differently(known, taken)
        )
        plan.moved.append(Move(known, taken, reread=not same))
    plan.vanished = [known for known in plan.vanished if known.id not in gone]
    plan.read = [taken for taken in plan.read if taken.known is not None or taken.entry.raw_path not in placed]


Pair = tuple[int, bytes, bytes, KnownDocument, Taken]


def _in_order(newcomers: Sequence[Taken], by_blob: Mapping[str, list[KnownDocument]]) -> list[Pair]:
    """For thousands of equal files: by path order alone, which is linear."""
    waiting = {blob: sorted(known, key=lambda one: one.raw_path, reverse=True) for blob, known in by_blob.items()}
    pairs: list[Pair] = []
    for taken in sorted(newcomers, key=lambda one: one.entry.raw_path):
        if waiting[taken.entry.blob]:
            known = waiting[taken.entry.blob].pop()
            pairs.append((0, known.raw_path, taken.entry.raw_path, known, taken))
    return pairs


def reads_differently(known: KnownDocument, taken: Taken) -> bool:
    """Whether the same bytes give another document under the new path: its name decides format, kind and redaction."""
    if known.kind != taken.kind:
        return True
    _, old_name, old_extension = split(known.path)
    _, new_name, new_extension = split(taken.entry.path)
    if old_extension != new_extension:
        return True
    return old_name.lower() != new_name.lower() and (
        taken.kind is not Kind.REPO_DOC or old_name.startswith(".env") or new_name.startswith(".env")
    )


def _common_ending(left: bytes, right: bytes) -> int:
    """Number of whole path segments that both paths share at their ends."""
    count = 0
    for one, other in zip(reversed(left.split(b"/")), reversed(right.split(b"/")), strict=False):
        if one != other:
            break
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Deletions:
    """``prune`` goes in this run, ``hold`` waits for a writer; ``waiting`` was held before and still is."""

    prune: tuple[KnownDocument, ...]
    hold: tuple[KnownDocument, ...]
    waiting: tuple[KnownDocument, ...]


def decide_deletions(
    vanished: Sequence[KnownDocument], dropped: Sequence[KnownDocument], *, live: int, listing_is_empty: bool
) -> Deletions:
    """Many deletions at once, or an empty listing, wait for a writer; what a filter drops goes at once, and what a
    writer has approved (the job that was to delete it did not get so far).

    ``live`` is the number of documents before the run, without those that a writer chose to keep.
    """
    dropped = [*dropped, *(known for known in vanished if known.absence == "approved")]
    gone = [known for known in vanished if known.absence == ""]
    waiting = [known for known in vanished if known.absence == "held"]
    many = len(gone) + len(waiting)
    too_many = many > HELD_ABOVE_DOCUMENTS and many > live * HELD_ABOVE_SHARE
    if gone and (too_many or listing_is_empty):
        return Deletions(prune=tuple(dropped), hold=tuple(gone), waiting=tuple(waiting))
    return Deletions(prune=(*dropped, *gone), hold=(), waiting=tuple(waiting))
