"""Lines of files, and single chunks."""

from __future__ import annotations

from typing import Any

from apps.access.errors import BadRequest, NotFound
from apps.access.rest.cursors import read_cursor, write_cursor
from apps.mcp.bounds import Room, fenced, one_line, slice_from, tokens_of
from apps.mcp.errors import ToolError, not_found
from apps.mcp.freshness import line_of
from apps.mcp.replies import Call, Reply
from apps.mcp.tools.texts import CUT_LINE, numbered
from apps.repos import catalogue as repos
from apps.repos.ranges import MOST_LINES, FileRange, read_range
from apps.retrieval.chunk_reading import ChunkGone
from apps.retrieval.chunk_reading import read_chunk as chunk_view

DEFAULT_SPAN = 200


def read_file_range(call: Call) -> Reply:
    repository = call.repository()
    found, asked_end = _range(call, repository)
    text = "\n".join(found.lines) + ("\n" if found.lines else "")
    question = call.question(commit=found.commit, start=found.start_line, end=found.end_line)
    position = read_cursor(call["cursor"], viewer=call.viewer, question=question)
    start = int(position[0]) if position else 0
    part = slice_from(text, start, call.room)
    first = found.start_line + text.count("\n", 0, start)
    goes_on = start > 0 and text[start - 1] != "\n"
    last = first + max(0, part.text.rstrip("\n").count("\n"))
    body = numbered(part.text, first, goes_on=goes_on) if found.lines else ""
    notes = []
    if asked_end > found.total_lines:
        notes.append(f"The file ends at line {found.total_lines}.")
    if part.inside_line:
        notes.append(CUT_LINE)
    elif part.more:
        notes.append(f"Cut at line {last}; go on at next_cursor, or ask for fewer lines.")
    path = one_line(found.path, 300)
    return Reply(
        freshness=[line_of(repository, call.now)],
        blocks=[f"{path}:{first}-{last} of {found.total_lines} lines · {tokens_of(text)} tokens\n{fenced(body)}"],
        closing=notes,
        next_cursor=write_cursor([part.end], viewer=call.viewer, question=question) if part.more else None,
        meta={
            "path": found.path,
            "commit": found.commit,
            "kind": found.kind,
            "start_line": first,
            "end_line": last,
            "total_lines": found.total_lines,
            "range": {"start": part.start, "end": part.end, "total": part.total, "unit": "characters"},
            "returned": last - first + 1 if found.lines else 0,
            "total": found.total_lines,
        },
    )


def _range(call: Call, repository: Any) -> tuple[FileRange, int]:
    """The lines asked for; those of the location when the path is one. Raises ToolError, NotFound, NotIndexed."""
    start, end = call["start_line"], call["end_line"]
    last = end if end is not None else start + DEFAULT_SPAN - 1
    places = [(call["path"], start, last)]
    path, named = repos.path_of(call["path"])
    if path != call["path"]:
        whole = named is not None and start == 1 and end is None
        places.append((path, *named) if whole and named is not None else (path, start, last))
    for place, first, until in places:
        if until < first:
            raise ToolError("out_of_range", f'"end_line" is at least "start_line" ({first}); {until} was given')
        if until - first + 1 > MOST_LINES:
            raise ToolError(
                "out_of_range", f'"end_line" is at most start_line + {MOST_LINES - 1}; {until - first + 1} lines asked'
            )
        try:
            return read_range(repository, place, first, until), until
        except NotFound:
            continue
        except BadRequest as refusal:
            raise ToolError("out_of_range", f'"{refusal.field}": {refusal.message}') from None
    raise NotFound


def read_chunk(call: Call) -> Reply:
    value = call["chunk"].strip()
    if not (value.isascii() and value.isdigit() and len(value) <= 19):
        raise not_found()
    try:
        view = chunk_view(call.viewer, int(value), neighbours=call["neighbours"])
    except ChunkGone as gone:
        raise ToolError("gone", gone.message) from None
    chunk, total = view.chunk, int(view.document.chunk_count)
    around = sorted([chunk, *view.around], key=lambda one: one.chunk_index)
    vector = view.vectors[chunk.pk]
    source = _with_state(call, view.source)
    blocks = []
    each = Room(call.room.chars // (len(around) + 1), call.room.bytes // (len(around) + 1))
    for one in around:
        part = slice_from(one.source, 0, each)
        here = " (this chunk)" if one.pk == chunk.pk else ""
        trail = " › ".join(one_line(part, 80) for part in one.heading_path)
        place = f"{one_line(view.path, 300)}" + (f"#{one.section_anchor}" if one.section_anchor else "")
        blocks.append(
            f"chunk {one.pk}{here} · {one.chunk_index + 1} of {total}\n"
            f"{place}:{one.start_line}-{one.end_line} · bytes {one.start_byte}-{one.end_byte}"
            f" · {tokens_of(one.source)} tokens"
            + (f"\n{trail}" if trail else "")
            + f"\n{fenced(part.text)}"
            + (f"\ncut: {len(one.source) - part.end} characters more; read the lines by path." if part.more else "")
        )
    words = {
        "embedded": "embedded",
        "pending": "no vector yet",
        "failed": "could not be embedded",
        "none": "no embedder",
    }
    told = f"vector: {words[vector.state]}" + (f" ({vector.profile})" if vector.profile else "")
    if vector.truncated:
        told += "; truncated: the vector sees only the beginning of the text"
    closing = [told]
    if chunk.text is not None and chunk.text != chunk.source:
        searched = slice_from(chunk.text, 0, each).text
        closing.append("searched text, where it differs from the source:\n" + fenced(searched))
    if chunk.flags:
        closing.append("flags: " + ", ".join(chunk.flags))
    return Reply(
        freshness=[line_of(source, call.now)],
        blocks=blocks,
        closing=closing,
        meta={
            "chunk": str(chunk.pk),
            "document": str(view.document.pk),
            "path": view.path,
            "anchor": chunk.section_anchor,
            "lines": {"start": chunk.start_line, "end": chunk.end_line},
            "bytes": {"start": chunk.start_byte, "end": chunk.end_byte},
            "vector": {"state": vector.state, "profile": vector.profile, "truncated": vector.truncated},
            "items": [{"chunk": str(one.pk), "index": one.chunk_index} for one in around],
            "returned": len(around),
            "total": total,
        },
    )


def _with_state(call: Call, source: Any) -> Any:
    if source.kind == "repository":
        return repos.with_state(call.viewer, [source.pk]).get(source.pk, source)
    return source
