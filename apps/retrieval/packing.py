"""From chosen sections to one text within a budget: what fits, what is cut, what is only named. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from apps.retrieval.beside_values import RejectedApproach
from apps.retrieval.pack_text import render, tokens_of
from apps.retrieval.sections import cut_to_fit
from apps.retrieval.values import SourceRef

POINTER_SHARE = 0.12
"""Of the budget is kept for pointers while bodies are chosen, so that a reader sees where else to look."""
MAX_KEPT = 600
HEAD_SHARE = 0.5
"""Of the budget may be taken by all that is no section, so that the first one finds its place."""
BESIDE_SHARE = 0.2
"""Of the budget may be taken by bodies of neighbours."""


@dataclass(frozen=True, slots=True)
class Part:
    """One section with its body."""

    tier: str
    document_id: UUID
    title: str
    path: str
    anchor: str
    heading_path: tuple[str, ...]
    start_line: int
    end_line: int
    version: str
    source: SourceRef
    url: str
    why: str
    body: str
    aliases: tuple[str, ...] = ()
    """Other places of the same text."""
    next_handle: str = ""
    """Where to read on, when the body was cut."""
    checked_time: datetime.datetime | None = None
    """When the source was last found to be current."""
    stale_since: datetime.datetime | None = None

    @property
    def location(self) -> str:
        anchor = f"#{self.anchor}" if self.anchor else ""
        return f"{self.path}{anchor}:{self.start_line}-{self.end_line}"

    @property
    def tokens(self) -> int:
        return tokens_of(self.body)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A section that is only named. Without location: a count of further ones."""

    tier: str
    title: str
    location: str
    url: str
    tokens: int
    why: str
    document_id: UUID | None = None
    source: SourceRef | None = None


@dataclass(frozen=True, slots=True)
class Uncut:
    """A section that did not fit, and what it would need."""

    location: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Pack:
    task: str
    max_tokens: int
    parts: tuple[Part, ...]
    pointers: tuple[Pointer, ...]
    cut: tuple[Uncut, ...]
    stale: tuple[str, ...]
    text: str
    tokens: int
    empty: str = ""
    reason: str = ""
    degraded: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    rejected: tuple[RejectedApproach, ...] = ()

    @property
    def sources(self) -> tuple[tuple[str, UUID], ...]:
        """(kind, id) of all that the text names, those of the parts first."""
        named = [part.source for part in self.parts] + [one.source for one in self.pointers if one.source is not None]
        return tuple(dict.fromkeys((source.kind, source.id) for source in named))

    @property
    def more_tokens(self) -> int:
        """What would have to be added to the budget for everything that was cut."""
        return sum(one.tokens for one in self.cut)


def compose(
    *,
    task: str,
    max_tokens: int,
    parts: Sequence[Part],
    pointers: Sequence[Pointer],
    stale: Sequence[str] = (),
    degraded: Sequence[str] = (),
    absent: Sequence[str] = (),
    empty: str = "",
    reason: str = "",
    beside: Sequence[Part] = (),
    rejected: Sequence[RejectedApproach] = (),
) -> Pack:
    """The pack of at most ``max_tokens``. The first part is always there, cut if it must be; others enter whole.

    ``beside`` are neighbours that enter after all of ``parts``, while they fit and take no more than their share.
    """
    pack = Pack(
        task,
        max_tokens,
        parts=(),
        pointers=(),
        cut=(),
        stale=tuple(stale),
        text="",
        tokens=0,
        empty=empty,
        reason=reason,
        degraded=tuple(degraded),
        absent=tuple(absent),
        rejected=tuple(rejected),
    )
    while pack.rejected and tokens_of(render(pack)) > max_tokens * HEAD_SHARE:
        pack = replace(pack, rejected=pack.rejected[:-1])
    room = max_tokens - min(MAX_KEPT, int(max_tokens * POINTER_SHARE))
    for part in _without_copies(parts):
        grown = replace(pack, parts=(*pack.parts, part))
        if tokens_of(render(grown)) <= room:
            pack = grown
        elif not pack.parts:
            pack = _with_cut(pack, part, room)
        else:
            pack = replace(pack, cut=(*pack.cut, Uncut(part.location, part.tokens)))
    spent = 0
    for part in _without_copies(beside):
        grown = replace(pack, parts=(*pack.parts, part))
        if spent + part.tokens <= BESIDE_SHARE * max_tokens and tokens_of(render(grown)) <= room:
            pack, spent = grown, spent + part.tokens
    shown = {part.location for part in pack.parts}
    while pack.cut and tokens_of(render(pack)) > max_tokens:
        pack = replace(pack, cut=pack.cut[:-1])
    pack = _with_pointers(pack, [pointer for pointer in pointers if pointer.location not in shown])
    text = render(pack)
    return replace(pack, text=text, tokens=tokens_of(text))


def _with_pointers(pack: Pack, pointers: Sequence[Pointer]) -> Pack:
    """As many of the first ``pointers`` as fit. Each makes the text longer, so that half of them tell of the others."""
    fitting, least = pack, 0
    most = len(pointers)
    while least < most:
        count = (least + most + 1) // 2
        grown = replace(pack, pointers=tuple(pointers[:count]))
        if tokens_of(render(grown)) <= pack.max_tokens:
            fitting, least = grown, count
        else:
            most = count - 1
    return fitting


def _with_cut(pack: Pack, part: Part, room: int) -> Pack:
    """The first part, cut after the last block that fits, with a handle to read on."""
    low, high = 0, len(part.body.encode())
    best = pack
    while low <= high:
        size = (low + high) // 2
        cut = cut_to_fit(part.body, size)
        handle = f"{part.path}{'#' + part.anchor if part.anchor else ''}:{part.start_line + cut.whole}"
        held = replace(part, body=cut.text, end_line=part.start_line + cut.shown - 1, next_handle=handle)
        grown = replace(pack, parts=(held,))
        if cut.text and tokens_of(render(grown)) <= room:
            best = grown
            low = size + 1
        else:
            high = size - 1
    missing = part.tokens - (best.parts[0].tokens if best.parts else 0)
    return replace(best, cut=(Uncut(part.location, missing),))


def _without_copies(parts: Sequence[Part]) -> list[Part]:
    """Equal texts once, the other places as aliases."""
    first: dict[str, int] = {}
    kept: list[Part] = []
    for part in parts:
        same = re.sub(r"\s+", " ", part.body).strip()
        place = first.get(same)
        if place is not None and len(same) >= 1:
            kept[place] = replace(kept[place], aliases=(*kept[place].aliases, part.location))
            continue
        first[same] = len(kept)
        kept.append(part)
    return kept
