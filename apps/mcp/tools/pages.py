"""Documents in full: a checked-in page, an uploaded document, the README of a repository."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from apps.collections import catalogue as collections
from apps.mcp.bounds import Room, beside, fitting_lines, one_line, tokens_of
from apps.mcp.freshness import line_of
from apps.mcp.replies import Call, Reply
from apps.mcp.sections import Section, listing, pick, sections_of, text_of
from apps.mcp.tools.texts import TextPage, text_page
from apps.repos import catalogue as repos
from apps.repos.code.related import code_on_page
from apps.repos.pills import pills_of
from apps.repos.surroundings import around, tree_of

SHOWN_LINKS = 20
SHOWN_FILES = 10
FRONT_MATTER_KEYS = 20
LIST_CHARS = 6_000


def doc_page(call: Call) -> Reply:
    repository = call.repository()
    place = repos.document_at(call.viewer, repository, call["page"])
    document = place.document

    def extras(sections: Sequence[Section], section: Section | None) -> list[str]:
        told = [] if call["cursor"] else _around_page(call, repository, document, sections, section)
        return [*told, f"note: {document.get_absence_display()}."] if document.absence else told

    return _document(
        call,
        repository,
        place,
        path=document.path,
        headings=document.structure.get("headings", ()),
        digest=document.content_hash,
        extras=extras,
        meta={"path": document.path, "slug": document.slug, "commit": repository.synced_commit},
    )


def _around_page(
    call: Call, repository: Any, document: Any, sections: Sequence[Section], section: Section | None
) -> list[str]:
    """Sections, neighbours, links and code of a page."""
    found = _some(listing(sections, document.path)) if section is None else []
    near = around(call.viewer, tree_of(call.viewer, repository), document)
    for word, entry in (("previous", near.previous), ("next", near.following)):
        if entry is not None:
            found.append(f"{word}: {one_line(entry.path)} · {one_line(entry.title)}")
    found += _links([(link.href, link.target_path or link.path, link.state) for link in repos.links_of(document)])
    pills = pills_of(repository, document)[:SHOWN_FILES]
    if pills:
        found.append("code named here: " + ", ".join(one_line(pill.path) for pill in pills))
    symbols, more = code_on_page(document.pk, SHOWN_FILES)
    if symbols:
        named = ", ".join(f"{one_line(one.qualified_name, 80)} ({one_line(one.path, 100)})" for one in symbols)
        found.append(f"symbols discussed here: {named}" + (f" (+{more} more)" if more else ""))
    if near.backlinks:
        linked = ", ".join(one_line(link.document.path) for link in near.backlinks[:SHOWN_FILES])
        found.append(f"linked from: {linked}")
    return found


def collection_document(call: Call) -> Reply:
    collection = call.collection()
    place = collections.document_at(call.viewer, collection, call["document"])
    document = place.document
    headings = document.parsed.get("heading_tree", ())

    def extras(sections: Sequence[Section], section: Section | None) -> list[str]:
        return [] if call["cursor"] else _around_document(document, sections, section)

    return _document(
        call,
        collection,
        place,
        path=document.source_key,
        headings=headings if isinstance(headings, list) else (),
        digest=bytes(document.content_hash).hex(),
        extras=extras,
        meta={"source_key": document.source_key, "version": document.version},
    )


def _document(
    call: Call,
    source: Any,
    place: Any,
    *,
    path: str,
    headings: Sequence[Any],
    digest: str,
    extras: Callable[[Sequence[Section], Section | None], list[str]],
    meta: dict[str, Any],
) -> Reply:
    """A document of either room, whole or one section of it, with what ``extras`` tells beside the text."""
    document = place.document
    sections = sections_of(headings, document.text)
    section, text = _section(sections, call["section"] or place.anchor, document.text, path)
    beside_it = extras(sections, section)
    page = text_page(
        call,
        text,
        bound_to={"document": str(document.pk), "hash": digest},
        label="markdown",
        room=beside(call.room, beside_it),
        advice=_advice(sections, section),
        first_line=section.start_line if section else 1,
    )
    return _reply(
        call,
        source,
        head=_head(document.title, path, section, text, document.line_count),
        page=page,
        closing=[*page.notes, *beside_it],
        meta={
            "document": str(document.pk),
            **meta,
            "section": section.anchor if section else None,
            "sections": [_section_meta(one) for one in sections[:100]],
        },
    )


def _around_document(document: Any, sections: Sequence[Section], section: Section | None) -> list[str]:
    """Sections, front matter, links and counts of an uploaded document."""
    found = _some(listing(sections, document.source_key)) if section is None else []
    keys = list(document.frontmatter.items())[:FRONT_MATTER_KEYS]
    if keys:
        found.append("front matter: " + "; ".join(f"{one_line(k, 40)}: {one_line(str(v), 120)}" for k, v in keys))
    found += _links(
        [
            (link.href, link.target_document.source_key if link.target_document else "", link.state)
            for link in collections.links_of(document)
        ]
    )
    found.append(
        f"{document.word_count} words, {document.line_count} lines, {document.chunk_count} chunks,"
        f" version {document.version}, id {document.pk}"
    )
    return found


def _some(lines: Sequence[str]) -> list[str]:
    """A list beside a text takes a part of the answer, not the whole."""
    shown = fitting_lines(lines, Room(LIST_CHARS, 3 * LIST_CHARS))
    return shown if len(shown) == len(lines) else [*shown, f"+{len(lines) - len(shown)} more lines"]


def repository_readme(call: Call) -> Reply:
    repository = call.repository()
    document = repos.readme_of(call.viewer, repository)
    sections = sections_of(document.structure.get("headings", ()), document.text)
    most = call["max_chars"]
    page = text_page(
        call,
        document.text,
        bound_to={"document": str(document.pk), "hash": document.content_hash},
        label="markdown",
        room=Room(most, call.room.bytes),
        advice="Ask for more with max_chars, or read one section with cograph_doc_page.",
    )
    closing = list(page.notes)
    if page.first and page.next_cursor:
        closing += _some(listing(sections, document.path))
    return _reply(
        call,
        repository,
        head=_head(document.title, document.path, None, document.text, document.line_count),
        page=page,
        closing=closing,
        meta={"document": str(document.pk), "path": document.path, "commit": repository.synced_commit},
    )


def _section(sections: Sequence[Section], wanted: str, text: str, path: str) -> tuple[Section | None, str]:
    if not wanted:
        return None, text
    section = pick(sections, wanted, path)
    return section, text_of(section, text)


def _advice(sections: Sequence[Section], section: Section | None) -> str:
    if section is None and sections:
        return "Read less: give section=… with one of the anchors below or of the first page."
    return ""


def _head(title: str, path: str, section: Section | None, text: str, lines: int) -> str:
    where = one_line(path, 300)
    if section is not None:
        where += f"#{section.anchor}:{section.start_line}-{section.end_line}"
        title = one_line(title) if section.title == title else f"{one_line(title)} › {one_line(section.title)}"
    else:
        where += f":1-{max(1, lines)}"
    return f"{one_line(title, 320)}\n{where} · {tokens_of(text)} tokens"


def _links(links: Sequence[tuple[str, str, str]]) -> list[str]:
    if not links:
        return []
    shown = [
        f"- {one_line(href, 120)}" + (f" → {one_line(target, 120)}" if target else "") + f" ({state})"
        for href, target, state in links[:SHOWN_LINKS]
    ]
    more = [f"+{len(links) - SHOWN_LINKS} more links"] if len(links) > SHOWN_LINKS else []
    return _some([f"links ({len(links)}):", *shown, *more])


def _section_meta(section: Section) -> dict[str, Any]:
    return {
        "anchor": section.anchor,
        "start_line": section.start_line,
        "end_line": section.end_line,
        "tokens": section.tokens,
    }


def _reply(
    call: Call, source: Any, *, head: str, page: TextPage, closing: Sequence[str], meta: dict[str, Any]
) -> Reply:
    return Reply(
        freshness=[line_of(source, call.now)],
        blocks=[f"{head}\n{page.block}"],
        closing=closing,
        next_cursor=page.next_cursor,
        meta={**meta, **page.meta},
    )
