"""From the bytes of one file to all that is stored of it. Runs in the killable children of the parser pool.

No Django and no database here: a child loads this module, ``apps.markup`` and ``apps.symbols``, nothing else.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.markup.chunking.structure import chunk_structure
from apps.markup.chunking.units import Unit
from apps.markup.chunking.word_window import chunk_words
from apps.markup.decoding import decode
from apps.markup.links import split_href
from apps.markup.parsing import parse
from apps.markup.values import (
    Chunk,
    ChunkedDocument,
    Limits,
    ParsedDocument,
    Skipped,
    Warning_,
    WordWindow,
)
from apps.repos.discovery import Kind, title_of
from apps.repos.redaction import redact_file
from apps.symbols.parsing import parse_code, units
from apps.symbols.values import NotParsed
from apps.symbols.values import Unit as CodeUnit

READ_FILE = "apps.repos.reading:read_file"
PARSER_VERSION = "2"
"""Raised with every change of decoding, parsing, redaction or chunking: documents of another version are read anew."""

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
LFS_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class LinkUse:
    """One address of a document with all the lines that use it; ``text`` is that of the first use."""

    link_type: str
    href: str
    text: str
    lines: tuple[int, ...]
    path: str = ""
    query: str = ""
    fragment: str = ""
    alias: str = ""
    rel_type: str = ""
    field: str = ""
    embed: bool = False
    image: bool = False


@dataclass(frozen=True, slots=True)
class FileRead:
    """A document as it will be stored. ``milliseconds`` is the time that parsing and chunking took."""

    text: str
    encoding: str
    title: str
    frontmatter: Mapping[str, object]
    structure: Mapping[str, object]
    anchors: tuple[str, ...]
    warnings: tuple[Warning_, ...]
    word_count: int
    line_count: int
    empty: bool
    content_hash: str
    chunks: tuple[Chunk, ...]
    links: tuple[LinkUse, ...]
    redacted: int
    milliseconds: int


def is_lfs_pointer(raw: bytes) -> bool:
    return len(raw) <= LFS_LIMIT and raw.startswith(LFS_POINTER)


def read_file(raw: bytes, path: str, kind: str, limits: Limits, profile: WordWindow) -> FileRead | Skipped:
    """Decode, redact, parse and chunk one file. Never raises for content."""
    started = time.perf_counter()
    decoded = decode(raw, limits)
    if isinstance(decoded, Skipped):
        return decoded
    what = Kind(kind)
    # SECURITY: secrets go before parsing, so that no heading, link, chunk or vector ever holds one.
    redacted = redact_file(decoded.text, path, what)
    parsed = parse(dataclasses.replace(decoded, text=redacted.text), path, limits)
    if isinstance(parsed, Skipped):
        return parsed
    chunked = _chunk(parsed, path, what, profile)
    lines = frozenset(redacted.lines)
    return FileRead(
        text=parsed.text,
        encoding=parsed.encoding,
        title=clean_text(title_of(what, path, parsed.title)),
        frontmatter=_clean_mapping(parsed.frontmatter),
        structure=_structure(parsed),
        anchors=tuple(map(clean_text, parsed.anchors)),
        warnings=(*parsed.warnings, *chunked.warnings),
        word_count=parsed.word_count,
        line_count=parsed.line_count,
        empty=parsed.empty,
        content_hash=hashlib.sha256(parsed.text.encode("utf-8", "surrogatepass")).hexdigest(),
        chunks=tuple(_flagged(chunk, lines) for chunk in chunked.chunks),
        links=_links(parsed),
        redacted=redacted.count,
        milliseconds=round((time.perf_counter() - started) * 1000),
    )


def _chunk(parsed: ParsedDocument, path: str, kind: Kind, profile: WordWindow) -> ChunkedDocument:
    if parsed.empty:
        return ChunkedDocument(())
    if kind is Kind.REPO_DOC:
        return chunk_words(parsed, profile)
    return chunk_structure(parsed.text, path, profile, kind.label, _units(parsed.text, path))


def _units(text: str, path: str) -> Sequence[Unit] | None:
    """Top-level symbols of a source file with their members; None for what is no source code."""
    code = parse_code(text, path)
    return None if isinstance(code, NotParsed) else [_unit(unit) for unit in units(code)]


def _unit(unit: CodeUnit) -> Unit:
    return Unit(unit.name, unit.start_line, unit.end_line, tuple(_unit(child) for child in unit.children))


def _flagged(chunk: Chunk, redacted_lines: frozenset[int]) -> Chunk:
    if redacted_lines and not redacted_lines.isdisjoint(range(chunk.start_line, chunk.end_line + 1)):
        return chunk._replace(flags=(*chunk.flags, "redacted"))
    return chunk


def _structure(parsed: ParsedDocument) -> dict[str, object]:
    """What faces and the reader show besides the text; contents of code and tables stand in the text already."""
    return {
        "headings": [
            {
                "level": heading.level,
                "text": clean_text(heading.text),
                "anchor": clean_text(heading.anchor),
                "line": heading.line,
                "section_end_line": heading.section_end_line,
                "nested": heading.nested,
            }
            for heading in parsed.heading_tree
        ],
        "code_blocks": [
            {
                "language": clean_text(block.language),
                "start_line": block.start_line,
                "end_line": block.end_line,
                "closed": block.closed,
            }
            for block in parsed.code_blocks
        ],
        "tables": [
            {
                "header": [clean_text(cell) for cell in table.header],
                "rows": len(table.rows),
                "start_line": table.start_line,
                "end_line": table.end_line,
            }
            for table in parsed.tables
        ],
        "items": [
            {"id": item.id, "anchor": item.anchor, "line": item.line, "text": clean_text(item.text)}
            for item in parsed.items
        ],
        "code_refs": [
            {
                "text": clean_text(reference.text),
                "path": clean_text(reference.path),
                "symbol": clean_text(reference.symbol),
                "start": reference.start,
                "end": reference.end,
                "line": reference.line,
            }
            for reference in parsed.code_refs
        ],
        "frontmatter_lines": list(parsed.frontmatter_span) if parsed.frontmatter_span else None,
    }


def _links(parsed: ParsedDocument) -> tuple[LinkUse, ...]:
    found: dict[tuple[str, str, bool, str, bool], LinkUse] = {}
    for link in parsed.links:
        use = LinkUse(
            link_type=link.link_type,
            href=clean_text(link.href),
            text=clean_text(link.text),
            lines=(link.line,),
            path=clean_text(link.path),
            query=clean_text(link.query),
            fragment=clean_text(link.fragment),
            alias=clean_text(link.alias),
            rel_type=clean_text(link.rel_type),
            field=clean_text(link.field),
            embed=link.embed,
        )
        _add(found, use)
    for asset in parsed.assets:
        _add(
            found,
            LinkUse(
                link_type="absolute" if split_href(asset.href)[0] == "absolute" else "relative",
                href=clean_text(asset.href),
                text=clean_text(asset.alt),
                lines=(asset.line,),
                image=True,
            ),
        )
    return tuple(found.values())


def _add(found: dict[tuple[str, str, bool, str, bool], LinkUse], use: LinkUse) -> None:
    key = (use.link_type, use.href, use.image, use.rel_type, use.embed)
    known = found.get(key)
    found[key] = use if known is None else dataclasses.replace(known, lines=(*known.lines, *use.lines))


def clean_text(text: str) -> str:
    """Text that PostgreSQL takes: without NUL and lone surrogates, which escapes in a header can make."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def _clean_mapping(value: Mapping[str, object]) -> dict[str, object]:
    return {clean_text(str(key)): _clean(inner) for key, inner in value.items()}


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value
