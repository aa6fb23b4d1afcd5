"""The tree against markdown-it-py: headings, fences, code, tables and links of real and generated texts agree."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

from apps.markup.parsing import parse
from apps.markup.tree import line_starts
from apps.markup.values import Decoded, Limits, ParsedDocument

Read = Callable[..., ParsedDocument]

# Structure: kind, first line, last line; links: href in order of appearance.
Structure = tuple[list[tuple[str, int, int]], list[str]]


def reference() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 1000}).enable(["table", "strikethrough"])
    return parser.use(footnote_plugin, inline=False).use(tasklists_plugin)


def reference_structure(text: str) -> Structure:
    blocks: list[tuple[str, int, int]] = []
    hrefs: list[str] = []
    parser = reference()
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    tokens = parser.parse(text)
    for token in tokens:
        if token.map:
            first, last = token.map[0] + 1, token.map[1]
            kind = {"heading_open": "heading", "fence": "fence", "table_open": "table"}.get(token.type)
            if kind == "heading":
                blocks.append((f"h{token.tag[1]}", first, last))
            elif kind:
                blocks.append((kind, first, last))
        hrefs += [str(child.attrs["href"]) for child in token.children or [] if child.type == "link_open"]
    return sorted(blocks), sorted(hrefs)


def own_structure(document: ParsedDocument) -> Structure:
    blocks = [(f"h{each.level}", each.start_line, each.end_line) for each in document.heading_tree]
    blocks += [("fence", each.start_line, each.end_line) for each in document.code_blocks]
    blocks += [("table", each.start_line, each.end_line) for each in document.tables]
    # Bare addresses, wiki links and raw HTML are rules of ours.
    raw = document.text.encode()
    written = [
        each
        for each in document.links
        if each.origin == "body"
        and each.link_type != "wiki"
        and (raw[each.start_byte : each.start_byte + 1] in (b"[", b"<"))
    ]
    return sorted(blocks), sorted(each.href for each in written)


def body_with_blank_front_matter(document: ParsedDocument) -> str:
    raw = document.text.encode()
    front = raw[: document.body_start_byte]
    return "\n" * front.count(b"\n") + raw[document.body_start_byte :].decode()


def corpus(shared: Path) -> list[Path]:
    return sorted(path for path in (shared / "corpora").rglob("*.md") if path.is_file())


def test_real_documents_have_the_structure_of_the_reference(shared: Path, read: Read) -> None:
    paths = corpus(shared)
    assert len(paths) > 80
    different: list[str] = []
    size = 0
    for path in paths:
        # The reference takes some 0.4 s a megabyte: the change logs of the corpus are cut.
        source = path.read_bytes()[:60_000].decode(errors="ignore")
        size += len(source)
        document = read(source)
        if document.links and any(each.link_type == "wiki" for each in document.links):
            continue
        expected, found = reference_structure(body_with_blank_front_matter(document)), own_structure(document)
        if expected != found:
            different.append(f"{path.name}: {_difference(expected, found)}")
    assert size > 500_000
    assert different == []


def _difference(expected: Structure, found: Structure) -> Any:
    return [
        (sorted(set(map(str, one)) - set(map(str, other)))[:3], sorted(set(map(str, other)) - set(map(str, one)))[:3])
        for one, other in zip(expected, found, strict=True)
    ]


# Lines that build blocks of every kind; no tabs, no raw HTML and no footnotes, where the two differ in details:
# - a closing sequence of "#" after a tab is text for the parser used here, and closes the heading in the reference;
# - GFM lets a table begin below paragraph lines, the reference ends the paragraph only at its own delimiter rule.
LINES = st.sampled_from(
    [
        "",
        "text",
        "# h",
        "## h ##",
        "###",
        "===",
        "---",
        "***",
        "- a",
        "  - b",
        "1. x",
        "> q",
        "> > r",
        "> - s",
        "```",
        "```py x",
        "~~~",
        "    code",
        "[a](b.md)",
        "[r][g] [g]",
        "[g]: x.md",
        "<http://a.b>",
        "`[a](no.md)`",
        "\\[a](b)",
        "*em [l](m.md)*",
        "![i](p.png)",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=14))
def test_generated_documents_have_the_structure_of_the_reference(lines: list[str]) -> None:
    # A first line of its own keeps "---" at the top from being read as front matter.
    text = "\n".join(["start", "", *lines]) + "\n"
    # Below a definition an indented line goes on with its paragraph; the reference begins a code block there.
    assume("[g]: x.md\n    code" not in text)
    document = parse(Decoded(text, "utf-8"), "x.md", Limits())
    assert isinstance(document, ParsedDocument)
    expected, found = reference_structure(text), own_structure(document)
    assert found[0] == expected[0], text
    assert found[1] == expected[1], text


FRAGMENTS = st.sampled_from(
    [
        *(
            "# ",
            "## é ",
            "\n",
            "\n\n",
            "- ",
            "  ",
            "    ",
            "\t",
            "> ",
            "```",
            "~~~\n",
            "|",
            "a|b\n-|-\n",
            "1. ",
            "---\n",
        ),
        *(
            "***\n",
            "[[",
            "]]",
            "[a](b)",
            "![",
            "](",
            "<b>",
            "</b>",
            "<!--",
            "-->",
            "<div>\n",
            "{#x}",
            "[^1]",
            "[^1]: n\n",
        ),
        *("https://a.b/c_(d)", "`", "*", "_", "\\", "&amp;", "é", "🚀", "word", "[g]: u\n", "title: x\n", "{", "}"),
        *(
            "import a from 'b'\n",
            "export const a = `\n",
            "[^1]: n\n",
            ".. note:: x\n",
            "::\n",
            "\x0b",
            "\u2028",
            "<A\n",
        ),
    ]
)


@pytest.mark.parametrize("path", ["x.md", "x.mdx", "x.rst", "x.txt"])
def test_blocks_cover_the_body(path: str) -> None:
    @settings(max_examples=150, deadline=None)
    @given(st.lists(FRAGMENTS, max_size=30).map("".join))
    def check(text: str) -> None:
        document = parse(Decoded(text, "utf-8"), path, Limits())
        assert isinstance(document, ParsedDocument)
        _check_document(document)

    check()


def _check_document(document: ParsedDocument) -> None:
    raw = document.text.encode()
    starts = line_starts(raw)
    covered: set[int] = set()
    last = 0
    for block in document.blocks:
        assert last < block.start_line <= block.end_line
        last = block.end_line
        covered.update(range(block.start_line, block.end_line + 1))
        piece = raw[block.start_byte : block.end_byte]
        assert block.start_byte == starts[block.start_line - 1]
        assert piece.count(b"\n") == block.end_line - block.start_line
        assert piece.strip(b" \t\n") and piece.decode()
        for child in block.children:
            assert block.start_line <= child.start_line <= child.end_line <= block.end_line
    body = document.frontmatter_span[1] if document.frontmatter_span else 0
    for number, line in enumerate(document.text.split("\n"), start=1):
        # What CommonMark calls blank: spaces and tabs. A line of other white characters may be either.
        if number > body and re.search(r"\S", line):
            assert number in covered, (number, line)
    assert document.word_count == len(raw[document.body_start_byte :].decode().split())
    assert document.line_count == document.text.count("\n") + (bool(document.text) and document.text[-1] != "\n")
    place = document.body_start_byte
    for section in document.sections:
        assert section.start_byte >= place
        assert not raw[place : section.start_byte].strip()
        place = section.end_byte
    assert not raw[place:].strip() or not document.sections
    assert len({each.anchor for each in document.heading_tree}) == len(document.heading_tree)
    for link in document.links:
        assert 1 <= link.line <= link.end_line <= max(document.line_count, 1)
        assert raw[link.start_byte : link.end_byte].decode() is not None


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["a.md", "a.mdx", "a.rst", "a.txt"]))
def test_parsing_never_raises(text: str, path: str) -> None:
    text = text.encode(errors="replace").decode().replace("\r", "\n")
    document = parse(Decoded(text, "utf-8"), path, Limits())
    assert isinstance(document, ParsedDocument)
    _check_document(document)
