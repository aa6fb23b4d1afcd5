"""Files as they come: good ones, and those made to hang or break a reader."""

from __future__ import annotations

import time

import pytest

from apps.markup.ingest import READ_DOCUMENT, Ingested, chunk, read_document
from apps.markup.pool import ParserPool
from apps.markup.rendering import render
from apps.markup.values import CharacterBudget, Limits, Skipped, WordWindow

HOSTILE = {
    "images": "![a](" * 400_000,
    "emphasis": "*a_b " * 400_000,
    "table": "| a | b |\n|---|---|\n" + "| c | d |\n" * 50_000,
    "brackets": "[" * 100_000,
    "wiki": "[[a" * 100_000,
    "quotes in tags": '<a b="' * 100_000,
    "open elements": "<div>\n" * 50_000,
    "open scripts": "<div><script>" * 25_000,
    "comments": "<!-- " * 100_000,
    "footnotes": "".join(f"[^{number}]: n\n\n" for number in range(5000)) + "[^1] " * 20_000,
    "diagram": "```mermaid\ngraph TD\n" + 'A["x"]-->B\n' * 30_000 + "```",
    "long info string": "```" + "i" * 300_000 + "\n" + "x\n" * 300_000 + "```",
    "headings": "# a\n" * 30_000,
    "one word": "x" * 2_000_000,
    "letters": "部" * 200_000,
    "marks": "a" + "\u0301" * 500_000,
    "blanks": ("a" + " " * 1000) * 2000,
    "paragraphs of blanks": "# H\n\n" + "\u00a0\n\n" * 60_000 + "word " * 2000 + "\n\n\u00a0\n",
    "many tables": "| a |\n|---|\n| b |\n\n" * 10_000,
}
NESTED = {
    "list": "".join("  " * level + "- x\n" for level in range(2000)),
    "quote": ">" * 5000 + " x",
}


def test_markup_fact_42_and_case_B026_hostile_files_cost_only_themselves() -> None:
    limits = Limits()
    payloads = [(text.encode(), "a.md", limits, CharacterBudget()) for text in [*HOSTILE.values(), *NESTED.values()]]
    payloads.insert(3, (b"# Good", "good.md", limits, CharacterBudget()))
    payloads.append((b"# Good", "good.md", limits, CharacterBudget()))
    with ParserPool(limits) as pool:
        results = list(pool.run(READ_DOCUMENT, payloads))
    good = [results[3], results[-1]]
    assert all(isinstance(each, Ingested) and each.parsed.title == "Good" for each in good)
    assert [each.reason for each in results[-3:-1]] == ["nesting", "nesting"]
    for each in results[:-3]:
        assert isinstance(each, Ingested) or each.reason == "time_limit"


@pytest.mark.parametrize("name", HOSTILE)
def test_case_B026_reading_and_rendering_stay_linear(name: str) -> None:
    # Not a measurement: what grows with the square of these sizes takes minutes, what is linear well under a second.
    started = time.process_time()
    for profile in (WordWindow(), CharacterBudget(max_chunks=10_000)):
        read = read_document(HOSTILE[name].encode(), "a.md", Limits(), profile)
        assert isinstance(read, Ingested)
        assert sum(len(each.text) for each in read.chunked.chunks) <= 3 * len(HOSTILE[name]) + 10_000
    render(read.parsed)
    assert time.process_time() - started < 20


def test_markup_fact_42_nothing_is_shortened_silently() -> None:
    for text in NESTED.values():
        read = read_document(text.encode(), "a.md", Limits(), WordWindow())
        assert isinstance(read, Skipped)
        assert read.reason == "nesting"


def test_markup_fact_04_binary_and_too_large_files() -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\x00" * 100
    assert read_document(png, "fake.md", Limits(), WordWindow()).reason == "binary"  # type: ignore[union-attr]
    large = read_document(b"x" * 101, "a.md", Limits(max_file_bytes=100), WordWindow())
    assert isinstance(large, Skipped)
    assert large.reason == "too_large"
    read = read_document(b"# A\nx\x00y", "a.md", Limits(), WordWindow())
    assert isinstance(read, Ingested)
    assert read.chunked.chunks[0].text == "# A\nx\ufffdy"


@pytest.mark.parametrize("raw", [b"", b" \n\n ", b"---\ntitle: T\n---\n"])
def test_markup_fact_05_empty_documents_have_no_chunks(raw: bytes) -> None:
    for profile in (WordWindow(), CharacterBudget()):
        read = read_document(raw, "a.md", Limits(), profile)
        assert isinstance(read, Ingested)
        assert read.chunked.chunks == ()
        assert read.parsed.empty
        assert render(read.parsed).strip() == ""


def test_markup_fact_02_and_25_the_same_chunks_whatever_the_line_ends() -> None:
    text = "---\ntitle: Win\n---\n## Use\none\n\n## Use\ntwo\n"
    plain = read_document(text.encode(), "a.md", Limits(), WordWindow())
    windows = read_document(text.replace("\n", "\r\n").encode(), "a.md", Limits(), WordWindow())
    assert isinstance(plain, Ingested)
    assert isinstance(windows, Ingested)
    assert plain.chunked == windows.chunked
    assert [(each.section_anchor, "one" in each.text) for each in plain.chunked.chunks] == [
        ("use", True),
        ("use-1", False),
    ]


def test_markup_fact_01_and_08_nothing_is_lost_at_the_start() -> None:
    read = read_document(b"\xef\xbb\xbf---\ntitle: Vault\n---\n# Vault", "a.md", Limits(), CharacterBudget())
    assert isinstance(read, Ingested)
    assert [each.text for each in read.chunked.chunks] == ["# Vault"]
    read = read_document(b"---\n\nWelcome text\n\n---\nmore", "a.md", Limits(), CharacterBudget())
    assert isinstance(read, Ingested)
    assert "Welcome text" in read.chunked.chunks[0].text


def test_markup_fact_09_a_broken_header_is_searched() -> None:
    for profile in (WordWindow(), CharacterBudget()):
        read = read_document(b"---\npath: C:\\x: y\n---\n# Bad\nbody", "a.md", Limits(), profile)
        assert isinstance(read, Ingested)
        assert "path: C:\\x: y" in "".join(each.text for each in read.chunked.chunks)


def test_a_label_cuts_by_structure_and_a_profile_can_change() -> None:
    read = read_document(b"a: 1\nb: 2\n", "x.yaml", Limits(), WordWindow(), "Config")
    assert isinstance(read, Ingested)
    assert read.chunked.chunks[0].heading_path == ("Config",)
    again = chunk(read.parsed, CharacterBudget())
    assert again.chunks[0].heading_path == ()
