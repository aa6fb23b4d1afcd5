"""From chosen sections to one text within a budget: what fits, what is cut, what is only named. Pure."""

from __future__ import annotations

import datetime
import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from apps.retrieval.beside_values import RejectedApproach
from apps.retrieval.sections import cut_to_fit
from apps.retrieval.values import SourceRef

POINTER_SHARE = 0.12
"""Of the budget is kept for pointers while bodies are chosen, so that a reader sees where else to look."""
MAX_KEPT = 600
MAX_TASK_SHOWN = 600
TASK_SHARE = 0.2
"""Of the budget may be taken by the task as it is repeated at the top."""
HEAD_SHARE = 0.5
"""Of the budget may be taken by all that is no section, so that the first one finds its place."""
BESIDE_SHARE = 0.2
"""Of the budget may be taken by bodies of neighbours."""
MOST_ALIASES = 5
TITLE_CHARS = 100


def tokens_of(text: str) -> int:
    """Estimated as UTF-8 bytes / 3, rounded up."""
    return math.ceil(len(text.encode()) / 3)


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
        body, kept = cut_to_fit(part.body, size)
        handle = f"{part.path}{'#' + part.anchor if part.anchor else ''}:{part.start_line + kept}"
        held = replace(part, body=body, end_line=part.start_line + max(kept, 1) - 1, next_handle=handle)
        grown = replace(pack, parts=(held,))
        if body and tokens_of(render(grown)) <= room:
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


def render(pack: Pack) -> str:
    """The Markdown text. SECURITY: bodies stand in fences longer than any fence inside, so that text of a source is
    never read as part of the pack."""
    task = " ".join(pack.task.split())
    shown = task[:MAX_TASK_SHOWN].encode()[: int(pack.max_tokens * TASK_SHARE * 3)].decode("utf-8", "ignore")
    shown += "" if shown == task else " …"
    lines = ["# Context", "", f"Task: {shown}", ""]
    if pack.empty:
        lines += [pack.empty, ""]
    if pack.absent and not pack.empty:
        lines += [f"Not found anywhere: {', '.join(pack.absent[:8])}.", ""]
    lines += [f"Part of the search took no part: {one}." for one in pack.degraded]
    for part in pack.parts:
        lines += _lines_of(part)
    if pack.pointers:
        lines += ["## Where else to look", ""]
        # A path alone can be read only where there is no choice of source.
        several = len(pack.sources) > 1
        for pointer in pack.pointers:
            if not pointer.location:
                lines.append(
                    f"- {pointer.tier}: {_plain(pointer.title)}" + (f" ({pointer.why})" if pointer.why else "")
                )
                continue
            where = f" · {_plain(pointer.source.label)}" if several and pointer.source is not None else ""
            size = f", {pointer.tokens} tokens" if pointer.tokens else ""
            lines.append(f"- {pointer.tier}: `{pointer.location}` {_plain(pointer.title)}{size}, {pointer.why}{where}")
        lines.append("")
    if pack.cut:
        lines += ["## Left out for want of room", ""]
        lines += [f"- `{one.location}` needs {one.tokens} tokens more" for one in pack.cut]
        lines.append("")
    if pack.stale:
        lines += ["## Changed since it was indexed", ""]
        lines += [f"- `{path}`" for path in pack.stale]
        lines.append("")
    if pack.rejected:
        lines += ["## Already rejected", ""]
        for one in pack.rejected:
            instead = ", ".join(page.uid for page in one.successors)
            title = _plain(one.place.title)[:TITLE_CHARS]
            lines.append(f"- `{one.place.location}` {title}" + (f"; instead: {instead}" if instead else ""))
        lines.append("")
    body = "\n".join(lines)
    total = tokens_of(body)
    for _ in range(3):
        closing = f"Total: {total} of {pack.max_tokens} tokens.\n"
        counted = tokens_of(body + closing)
        if counted == total:
            break
        total = counted
    return body + f"Total: {total} of {pack.max_tokens} tokens.\n"


@functools.lru_cache(maxsize=256)
def _lines_of(part: Part) -> tuple[str, ...]:
    """A section with its head. A pack is drawn once for each section that may enter, with all that are in it."""
    heading = " › ".join(part.heading_path) or part.title
    lines = [
        f"## {_plain(heading)}",
        "",
        (
            f"`{part.location}` · lines {part.start_line}–{part.end_line} · {_plain(part.source.label)} "
            f"{part.version[:12]} · {part.tier} · {part.why} · {part.tokens} tokens{_staleness(part)}"
        ),
        "",
    ]
    if part.aliases:
        more = len(part.aliases) - MOST_ALIASES
        named = ", ".join(f"`{one}`" for one in part.aliases[:MOST_ALIASES])
        lines += [f"The same text: {named}" + (f" and {more} more" if more > 0 else ""), ""]
    fence = "`" * (max((len(run) for run in re.findall(r"`+", part.body)), default=0) + 1)
    fence = fence if len(fence) >= 3 else "```"
    lines += [f"{fence}markdown", part.body, fence, ""]
    if part.next_handle:
        lines += [f"Cut here; read on at `{part.next_handle}`.", ""]
    return tuple(lines)


def _staleness(part: Part) -> str:
    """Of a source whose syncs fail. When a healthy one was checked is left to the faces: it changes with each sync, and
    the same content gives the same text."""
    return f" · stale since {part.stale_since.astimezone(datetime.UTC):%Y-%m-%d %H:%M}Z" if part.stale_since else ""


@functools.lru_cache(maxsize=5_000)
def _plain(text: str) -> str:
    return " ".join(text.split()).replace("`", "")
