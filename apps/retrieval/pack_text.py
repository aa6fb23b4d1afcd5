"""A pack as one Markdown text, equal bytes on every face (``retrieval.md`` 12.9). Pure."""

from __future__ import annotations

import datetime
import functools
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.retrieval.packing import Pack, Part

MAX_TASK_SHOWN = 600
TASK_SHARE = 0.2
"""Of the budget may be taken by the task as it is repeated at the top."""
NOTE_SHARE = 0.1
"""Of the budget may be taken by each of: words that are nowhere, streams that took no part, places that changed."""
ELLIPSIS = " …"
HEADING_BYTES = 240
"""Of headings; their end tells most."""
MOST_ALIASES = 5
TITLE_CHARS = 100


def tokens_of(text: str) -> int:
    """Estimated as UTF-8 bytes / 3, rounded up."""
    return math.ceil(len(text.encode()) / 3)


def render(pack: Pack) -> str:
    """The Markdown text. SECURITY: bodies stand in fences longer than any fence inside, so that text of a source is
    never read as part of the pack."""
    task = " ".join(pack.task.split())
    shown = _share(task[:MAX_TASK_SHOWN], pack, TASK_SHARE)
    shown += "" if shown.endswith(ELLIPSIS) or shown == task else ELLIPSIS
    lines = ["# Context", "", f"Task: {shown}", ""]
    if pack.empty:
        lines += [_share(pack.empty, pack, TASK_SHARE), ""]
    if pack.absent and not pack.empty:
        lines += [f"Not found anywhere: {_share(', '.join(pack.absent[:8]), pack, NOTE_SHARE)}.", ""]
    if pack.degraded:
        lines += [f"Part of the search took no part: {_share('; '.join(pack.degraded), pack, NOTE_SHARE)}.", ""]
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
            lines.append(f"- {pointer.tier}: `{pointer.location}` {_brief(pointer.title)}{size}, {pointer.why}{where}")
        lines.append("")
    if pack.cut:
        lines += ["## Left out for want of room", ""]
        lines += [f"- `{one.location}` needs {one.tokens} tokens more" for one in pack.cut]
        lines.append("")
    if pack.stale:
        lines += ["## Changed since it was indexed", ""]
        lines += [_share("\n".join(f"- `{path}`" for path in pack.stale), pack, NOTE_SHARE)]
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
    lines = [
        f"## {_brief(' › '.join(part.heading_path) or part.title)}",
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


def _share(text: str, pack: Pack, share: float) -> str:
    """``text`` in at most this share of the budget."""
    most = int(pack.max_tokens * share * 3)
    if len(text.encode()) <= most:
        return text
    return text.encode()[:most].decode("utf-8", "ignore") + ELLIPSIS


@functools.lru_cache(maxsize=5_000)
def _brief(heading: str) -> str:
    heading = _plain(heading)
    if len(heading.encode()) <= HEADING_BYTES:
        return heading
    return f"… {heading.encode()[-HEADING_BYTES:].decode('utf-8', 'ignore')}"


@functools.lru_cache(maxsize=5_000)
def _plain(text: str) -> str:
    return " ".join(text.split()).replace("`", "")
