"""The lie of the land: folders, documents and headings of a source, with what each costs to read."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.access.rest.cursors import page_of_list
from apps.collections import catalogue as collections
from apps.indexing.outlines import Outlined
from apps.mcp.bounds import one_line
from apps.mcp.errors import not_found
from apps.mcp.freshness import line_of
from apps.mcp.replies import Call, Reply, list_within
from apps.mcp.sections import sections_of
from apps.repos import catalogue as repos
from apps.repos.discovery import Kind
from apps.repos.tree import Entry, Folder, build

TITLE = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the outline. ``document`` and ``anchor`` say whose tokens a heading's line shows."""

    depth: int
    words: str
    document: uuid.UUID | None = None
    anchor: str = ""
    tokens: int | None = None


def outline(call: Call) -> Reply:
    path = call["path"].strip("/")
    source: Any
    if call["repository"]:
        source = call.repository()
        found = repos.outlined(call.viewer, source, path)
        texts: Callable[..., Mapping[uuid.UUID, str]] = repos.texts
        state: Any = source.synced_commit
        if path and not found and not repos.tracked(source, path):
            raise not_found()
    else:
        source = call.collection()
        found = collections.outlined(call.viewer, source, path)
        texts = collections.texts
        state = source.changed_at
        if path and not found:
            raise not_found()
    rows = outline_rows(found, path, call["depth"])
    question = call.question(cursor=call["cursor"], state=str(state))
    by_id = {one.id: one for one in found}
    counted: dict[tuple[uuid.UUID, str], int] = {}

    def fetch(limit: int) -> tuple[list[Row], int, str | None]:
        page = page_of_list(rows, viewer=call.viewer, question={**question, "limit": limit})
        wanted = {row.document for row in page.items if row.anchor and row.document is not None}
        for id_, text in texts(call.viewer, wanted).items():
            for section in sections_of(by_id[id_].headings, text):
                counted[id_, section.anchor] = section.tokens
        return page.items, page.total, page.next_cursor

    def present(row: Row) -> str:
        tokens = row.tokens
        if row.anchor and row.document is not None:
            tokens = counted.get((row.document, row.anchor))
        return "  " * row.depth + row.words + (f" · {tokens} tokens" if tokens is not None else "")

    listed = list_within(call.room, call["limit"], fetch, present)
    where = f" below {one_line(path, 200)}" if path else ""
    closing = [f"{len(listed.items)} of {listed.total} lines{where}, {len(found)} documents in all."]
    if not rows:
        closing.append("reason: not_indexed: no document is indexed here.")
    return Reply(
        freshness=[line_of(source, call.now)],
        blocks=["\n".join(listed.blocks)],
        closing=closing,
        next_cursor=listed.next_cursor,
        meta={
            "returned": len(listed.items),
            "total": listed.total,
            "documents": len(found),
            "items": [{"document": str(row.document), "anchor": row.anchor} for row in listed.items if row.document],
        },
    )


def outline_rows(found: Sequence[Outlined], path: str, depth: int) -> list[Row]:
    """Every line down to ``depth``, folders and pages in the order of the reader."""
    by_id = {one.id: one for one in found}
    if path and len(found) == 1 and found[0].path == path:
        one = found[0]
        return [_document_row(one, 0), *_heading_rows(one, 1, depth)]
    entries = [Entry(one.id, one.path, one.title, "", Kind.REPO_DOC) for one in found]
    folder = _folder_at(build(entries).docs, path)
    rows: list[Row] = []
    _walk(folder, by_id, 0, depth, rows, f"{path}/" if path else "")
    return rows


def _folder_at(folder: Folder, path: str) -> Folder:
    """The folder at ``path``; folders that stand alone have joined names, so one may begin above it."""
    while path and folder.path != path:
        below = next((one for one in folder.folders if path == one.path or path.startswith(f"{one.path}/")), None)
        if below is None:
            joined = next((one for one in folder.folders if one.path.startswith(f"{path}/")), None)
            return joined or folder
        folder = below
    return folder


def _walk(folder: Folder, by_id: Mapping[uuid.UUID, Any], at: int, depth: int, rows: list[Row], prefix: str) -> None:
    for page in folder.pages:
        rows.append(_document_row(by_id[page.id], at))
        rows += _heading_rows(by_id[page.id], at + 1, depth)
    for inner in folder.folders:
        size = sum(by_id[page.id].size for page in _pages(inner))
        rows.append(
            Row(
                at,
                f"{one_line(inner.path, 200)}/ ({inner.total} document{'s' if inner.total != 1 else ''})",
                tokens=-(-size // 3),
            )
        )
        if at + 1 < depth:
            _walk(inner, by_id, at + 1, depth, rows, prefix)


def _pages(folder: Folder) -> list[Entry]:
    return [*folder.pages, *(page for inner in folder.folders for page in _pages(inner))]


def _document_row(one: Any, at: int) -> Row:
    return Row(at, f"{one_line(one.path, 200)} · {one_line(one.title, TITLE)}", one.id, tokens=-(-one.size // 3))


def _heading_rows(one: Any, at: int, depth: int) -> list[Row]:
    """Headings as deep as there is depth left; the one that only repeats the title is passed over."""
    if at >= depth:
        return []
    headings = [heading for heading in one.headings if not heading.get("nested") and heading.get("anchor")]
    if headings and headings[0]["text"] == one.title and int(headings[0]["level"]) == 1:
        headings = headings[1:]
    if not headings:
        return []
    top = min(int(heading["level"]) for heading in headings)
    return [
        Row(
            at + place,
            f"#{one_line(heading['anchor'], 80)} · {one_line(heading['text'], TITLE)}",
            one.id,
            heading["anchor"],
        )
        for heading in headings
        if at + (place := int(heading["level"]) - top) < depth
    ]
