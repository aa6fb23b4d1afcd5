"""The registry of kinds of jobs, filled by each room's ``AppConfig.ready``."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from apps.jobs.models import Job
    from apps.jobs.running import JobRun

SourceKey: TypeAlias = tuple[str, uuid.UUID]

HOUR = timedelta(hours=1)
LONGEST_DEADLINE = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Slot:
    """A share in something scarce: at most ``limit`` jobs of one slot ``name`` run at once.

    ``waiting`` is what a waiting job shows, with ``{running}`` for the number that runs: ``"{running} syncs running"``.
    """

    name: str
    limit: int
    waiting: str = "{running} running"


@dataclass(frozen=True, slots=True)
class Due:
    """One job that a schedule wants now."""

    source: SourceKey | None = None
    key: str = ""
    params: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class JobKind:
    """What is known of a kind of job.

    name       stable word, also shown (underscores as blanks)
    run        the work; idempotent and resumable: a second run redoes at most one batch
    sources    kinds of source it is about; empty: about the deployment
    attempts   claims before a lost worker or a transient failure is final (429 and lone bad files use none)
    deadline   for one attempt
    waits      seconds before retry n (1, 2, ...); None: 15 s times 4 to the (n-1), at most 10 min, 20 % jitter
    after      kinds whose success queues this one for the same source
    slot       what the job needs a share of, or None
    every      a period (deployment kinds), or a function that yields what is due now; it must look at its last attempt,
               not only at its last success, or a failing source is due every minute
    prune      this room's part of ``retention``; called in batches until it returns 0
    payload_ready   whether what the job needs to run again is still there; False: retry answers 409 payload_expired
    folded     one of the many small parts of another job: lists leave it out unless it failed or is asked for
    """

    name: str
    run: Callable[[JobRun], None]
    sources: frozenset[str] = frozenset()
    attempts: int = 3
    deadline: timedelta = HOUR
    waits: Callable[[int], float] | None = None
    after: tuple[str, ...] = ()
    slot: Callable[[Job], Slot | None] | None = None
    every: timedelta | Callable[[datetime], Iterable[Due]] | None = None
    prune: Callable[[datetime], int] | None = None
    payload_ready: Callable[[Job], bool] | None = None
    folded: bool = False


_KINDS: dict[tuple[str, str], JobKind] = {}
_PURGERS: list[tuple[frozenset[str], Callable[[JobRun, SourceKey], None]]] = []
_PRUNERS: list[Callable[[datetime], int]] = []


def register_kind(kind: JobKind) -> None:
    """Make ``kind`` known, once for each of its kinds of source (two rooms may share a name for different sources).

    Raises ValueError when the name is taken for one of them or the deadline is longer than the queue's patience.
    """
    if kind.deadline > LONGEST_DEADLINE:
        raise ValueError(f"{kind.name}: deadline above {LONGEST_DEADLINE}")
    for source in kind.sources or {""}:
        if (kind.name, source) in _KINDS:
            raise ValueError(f"job kind {kind.name!r} is registered twice for source {source!r}")
        _KINDS[kind.name, source] = kind
    if kind.prune is not None:
        register_prune(kind.prune)


def register_prune(prune: Callable[[datetime], int]) -> None:
    """Add a part of the ``retention`` job: ``prune(now)`` deletes one batch and returns how many rows went."""
    _PRUNERS.append(prune)


def register_purge(remove: Callable[[JobRun, SourceKey], None], *, sources: Iterable[str]) -> None:
    """Add a room's part of purging a deleted source: ``remove(run, (kind, id))`` deletes its rows, batch by batch, each
    in ``run.batch()``. Rooms are called from the top down (last registered first); the source's own room, which is
    registered before the rooms above it, deletes the source row too."""
    _PURGERS.append((frozenset(sources), remove))


def pruners() -> tuple[Callable[[datetime], int], ...]:
    return tuple(_PRUNERS)


def purgers(source_kind: str) -> tuple[Callable[[JobRun, SourceKey], None], ...]:
    return tuple(remove for kinds, remove in reversed(_PURGERS) if source_kind in kinds)


def get_kind(name: str, source_kind: str = "") -> JobKind:
    """The kind ``name`` for a kind of source. Raises LookupError."""
    try:
        return _KINDS[name, source_kind]
    except KeyError:
        raise LookupError(f"no job kind {name!r} for source {source_kind!r}") from None


def find_kind(name: str, source_kind: str = "") -> JobKind | None:
    return _KINDS.get((name, source_kind))


def followers(name: str, source_kind: str) -> list[JobKind]:
    """Kinds that the success of ``name`` queues for the same source."""
    return [kind for (_, source), kind in _KINDS.items() if source == source_kind and name in kind.after]


def all_kinds() -> list[JobKind]:
    """Each registered kind once."""
    return list(dict.fromkeys(_KINDS.values()))


def folded_kinds() -> list[str]:
    return sorted({kind.name for kind in _KINDS.values() if kind.folded})


def kind_names() -> list[str]:
    return sorted({name for name, _ in _KINDS})
