"""What parsing gives: frozen values with lines, byte ranges and anchors.

Every offset, line and slice refers to the *text*: the decoded string in which each line ends with LF. Lines count from
1 and are those of the whole file, ends included. Byte offsets are offsets into the UTF-8 form of the text, ends
excluded (``markup.md`` 1.1 and 4).

What a file has many of is a named tuple: it is made in half of the time of a frozen dataclass, which shows, since a
megabyte of prose gives 15,000 of them. In the loops over syntax events ``tuple.__new__(Link, (...))`` with all fields
halves that once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Format = Literal["markdown", "mdx", "rst", "text"]
LinkType = Literal["wiki", "absolute", "anchor", "markdown", "relative"]
BlockKind = Literal[
    "heading",
    "paragraph",
    "list",
    "item",
    "quote",
    "fence",
    "code",
    "table",
    "html",
    "rule",
    "footnote",
    "definitions",
    "header",
    "esm",
    "jsx",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may cost. Sizes in bytes, memory in MiB, time in seconds of wall clock (``markup.md`` 1.7)."""

    max_file_bytes: int = 10_485_760
    parse_seconds: float = 20
    parse_memory_mb: int = 1024
    max_nesting: int = 100
    max_front_matter_bytes: int = 65_536


class Warning_(NamedTuple):
    """Something to tell about one place of a file; the file is still indexed."""

    code: str
    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that gives no text. ``reason`` is one of binary, too_large, nesting, time_limit, memory_limit."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a file: no BOM, no NUL, every line ended by LF."""

    text: str
    encoding: str
    guessed: bool = False
    replaced: int = 0
    warnings: tuple[Warning_, ...] = ()


class MetadataValue(NamedTuple):
    """Where a front matter value stands and what YAML made of it. ``path`` is the key chain, list places as numbers."""

    path: tuple[str | int, ...]
    line: int
    column: int
    resolved: Literal["null", "bool", "int", "float", "str", "list", "map"]
    source: str


class Heading(NamedTuple):
    level: int
    text: str
    anchor: str
    line: int
    start_line: int
    end_line: int
    section_end_line: int
    nested: bool = False
    start_byte: int = 0
    end_byte: int = 0


class Section(NamedTuple):
    """A stretch of the body under one heading (or before the first: heading None, empty path).

    Lines end before the next section's heading; bytes end where the next section begins, blank lines included.
    """

    heading: int | None
    """Index into ``heading_tree``."""
    heading_path: tuple[str, ...]
    level: int
    anchor: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    path_headings: tuple[int, ...] = ()
    """Indices into ``heading_tree`` of the open ancestors and itself: headings compare by place, not by text."""


class CodeBlock(NamedTuple):
    language: str
    content: str
    start_line: int
    end_line: int
    info: str = ""
    closed: bool = True


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    start_line: int
    end_line: int


class Link(NamedTuple):
    text: str
    href: str
    line: int
    link_type: LinkType
    path: str = ""
    query: str = ""
    fragment: str = ""
    alias: str = ""
    rel_type: str = ""
    embed: bool = False
    origin: Literal["body", "html", "frontmatter", "directive"] = "body"
    field: str = ""
    section: int | None = None
    """Index into ``sections``."""
    end_line: int = 0
    column: int = 1
    """In characters, from 1."""
    start_byte: int = 0
    end_byte: int = 0
    """Where it is written; both 0 in front matter and in reStructuredText."""


class Asset(NamedTuple):
    alt: str
    href: str
    line: int
    start_byte: int = 0
    end_byte: int = 0
    width: str = ""
    """From ``![[picture.png|200]]``."""
    origin: Literal["body", "html", "wiki"] = "body"


class Block(NamedTuple):
    """A top-level block; blank lines at its ends excluded. Blocks are disjoint, ordered, and cover the visible body.

    Bytes run from the start of the first line to the end of the last one, its LF excluded, also for children: the first
    block of a list item begins at the marker's line start, so children tile their parent line by line.
    """

    kind: BlockKind
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    children: tuple[Block, ...] = ()
    """Items of a list (kind ``item``) and the blocks of an item, quote or footnote. An item of one line of text has
    none: its text is not a block of its own."""


class Item(NamedTuple):
    id: str
    anchor: str
    line: int
    text: str


class CodeRef(NamedTuple):
    text: str
    path: str
    symbol: str
    start: int | None
    end: int | None
    line: int


class Footnote(NamedTuple):
    """A note. Bytes are those of the whole definition; ``text`` is its source after ``[^label]:``, blanks trimmed."""

    label: str
    start_byte: int
    end_byte: int
    text: str


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    path: str
    format: Format
    text: str
    encoding: str
    encoding_guessed: bool
    replaced_characters: int
    frontmatter: Mapping[str, object]
    frontmatter_values: tuple[MetadataValue, ...]
    frontmatter_span: tuple[int, int] | None
    """First and last line of the block, fences of the block included; None without one."""
    body_start_byte: int
    title: str | None
    heading_tree: tuple[Heading, ...]
    sections: tuple[Section, ...]
    code_blocks: tuple[CodeBlock, ...]
    tables: tuple[Table, ...]
    links: tuple[Link, ...]
    assets: tuple[Asset, ...]
    anchors: tuple[str, ...]
    blocks: tuple[Block, ...]
    items: tuple[Item, ...]
    code_refs: tuple[CodeRef, ...]
    footnotes: tuple[Footnote, ...]
    word_count: int
    line_count: int
    empty: bool
    warnings: tuple[Warning_, ...] = ()
    removed_spans: tuple[tuple[int, int], ...] = ()
    """Byte ranges of the body that no search text holds: ESM and JSX lines of MDX (``markup.md`` 3.10)."""
    hidden_spans: tuple[tuple[int, int], ...] = ()
    """Byte ranges of HTML comments."""
    tag_spans: tuple[tuple[int, int], ...] = ()
    """Byte ranges of single raw HTML tags: each is one space in search text (``markup.md`` 8.1)."""
    footnote_references: tuple[tuple[int, str], ...] = ()
    """Byte offset and label of every ``[^label]`` in running text, in source order."""


class Chunk(NamedTuple):
    """One searchable piece. ``source`` is the exact slice of the text; ``text`` is what is searched and embedded."""

    chunk_index: int
    heading_path: tuple[str, ...]
    heading_level: int
    section_anchor: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    source: str
    text: str
    part: int = 1
    parts: int = 1
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WordWindow:
    """Chunking profile of repositories (``repository-documents.md`` 5.2)."""

    max_words: int = 512
    overlap_words: int = 64
    max_chars: int = 8000


@dataclass(frozen=True, slots=True)
class CharacterBudget:
    """Chunking profile of collections (``collections.md`` 1.2)."""

    max_chars: int = 4000
    min_chars: int = 400
    max_chunks: int = 512


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    chunks: tuple[Chunk, ...]
    truncated_at_line: int | None = None
    """First line that no chunk covers, when the cap of the profile was reached."""
    warnings: tuple[Warning_, ...] = field(default=())
