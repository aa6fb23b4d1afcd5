"""What holds for every chunk of every document (``markup.md`` 8.2), on the corpora and on made-up text."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.markup.ingest import Ingested, read_document
from apps.markup.values import CharacterBudget, Chunk, Limits, ParsedDocument, Skipped, WordWindow

PROFILES = [
    WordWindow(),
    WordWindow(16, 8, 500),
    WordWindow(40, 0, 500),
    CharacterBudget(),
    CharacterBudget(500, 50),
    CharacterBudget(500, 125, 10_000),
]


def check(parsed: ParsedDocument, chunks: tuple[Chunk, ...], profile: WordWindow | CharacterBudget) -> None:
    """Assert every invariant for one document."""
    raw = parsed.text.encode()
    covered = bytearray(len(raw))
    starts = [0, *(match.end() for match in re.finditer(b"\n", raw))]
    for index, chunk in enumerate(chunks):
        assert chunk.chunk_index == index
        assert raw[chunk.start_byte : chunk.end_byte].decode() == chunk.source
        assert chunk.source.strip()
        assert starts[chunk.start_line - 1] <= chunk.start_byte < chunk.end_byte
        assert raw.count(b"\n", 0, chunk.start_byte) + 1 == chunk.start_line
        assert raw.count(b"\n", 0, chunk.end_byte - 1) + 1 == chunk.end_line or chunk.source.endswith("\n")
        assert 1 <= chunk.part <= chunk.parts
        covered[chunk.start_byte : chunk.end_byte] = b"x" * (chunk.end_byte - chunk.start_byte)
        if isinstance(profile, WordWindow):
            assert len(chunk.source) <= profile.max_chars
    for before, after in pairwise(chunks):
        assert before.start_byte < after.start_byte
        if isinstance(profile, CharacterBudget):
            assert before.end_byte <= after.start_byte
    for start, end in parsed.removed_spans:
        covered[start:end] = b"x" * (end - start)
    for block in parsed.blocks:
        if not chunks or not isinstance(profile, CharacterBudget) or len(chunks) < profile.max_chunks:
            left = raw[block.start_byte : block.end_byte].decode(errors="ignore")
            uncovered = bytes(
                byte
                for byte, mark in zip(
                    raw[block.start_byte : block.end_byte], covered[block.start_byte : block.end_byte], strict=True
                )
                if not mark
            )
            assert not uncovered.decode(errors="ignore").strip(), (left, uncovered)


@pytest.mark.parametrize("profile", PROFILES, ids=str)
def test_invariants_on_every_corpus(shared: Path, profile: WordWindow | CharacterBudget) -> None:
    files = [file for file in sorted(shared.glob("corpora/**/*")) if file.suffix in (".md", ".mdx", ".rst", ".txt")]
    assert len(files) > 100
    for file in files:
        read = read_document(file.read_bytes(), file.name, Limits(), profile)
        assert isinstance(read, Ingested)
        check(read.parsed, read.chunked.chunks, profile)


LINES = st.sampled_from(
    [
        "",
        "",
        "plain words of a line",
        "  indented words",
        "    deeper words",
        "# Top",
        "## Sub",
        "## Sub",
        "Title",
        "=====",
        "-----",
        "- item one",
        "1. first",
        "  - inner",
        "> quote",
        "> > more",
        "| a | b |",
        "|---|---|",
        "| row | of it |",
        "> | a | b |",
        "> |---|---|",
        "```py",
        "```",
        "~~~",
        "  ```sh",
        "x = 1",
        "<div>",
        "</div>",
        "<!-- open",
        "close -->",
        "text <!-- note --> text",
        "[^1]: note",
        "see[^1] [l](a.md) ![p](data:image/png;base64,AAAA)",
        "```mermaid",
        'A["label"] --> B',
        "import A from './a'",
        "export const x = {",
        "}",
        "<Note>",
        "[r]: http://x.y",
        "部署手順はこちら。次の文。",
        "é" * 60,
        "\u00a0",
        "w" * 700,
        "😀 family 👨‍👩‍👧",
        "***",
        "---",
        "\\",
        "\t\ttabbed",
    ]
)


@given(
    lines=st.lists(LINES, max_size=60),
    path=st.sampled_from(["a.md", "a.mdx", "a.txt"]),
    profile=st.sampled_from(PROFILES),
)
@settings(max_examples=250, deadline=None)
def test_invariants_on_made_up_text(lines: list[str], path: str, profile: WordWindow | CharacterBudget) -> None:
    raw = "\n".join(lines).encode()
    read = read_document(raw, path, Limits(), profile)
    assert not isinstance(read, Skipped)
    check(read.parsed, read.chunked.chunks, profile)
    again = read_document(raw, path, Limits(), profile)
    assert again == read


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    path=st.sampled_from(["a.md", "a.mdx", "a.txt", "a.yaml", "a.json", "Makefile"]),
    profile=st.sampled_from(PROFILES),
)
@settings(max_examples=250, deadline=None)
def test_invariants_on_any_text(text: str, path: str, profile: WordWindow | CharacterBudget) -> None:
    label = "Config" if path[0] == "M" or path.endswith(("yaml", "json")) else None
    read = read_document(text.encode(), path, Limits(), profile, label if isinstance(profile, WordWindow) else None)
    if isinstance(read, Skipped):
        assert read.reason == "binary"
        return
    check(read.parsed, read.chunked.chunks, profile)
