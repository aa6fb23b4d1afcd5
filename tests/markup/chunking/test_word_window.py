"""Windows of words over sections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.markup.chunking import chunk_words
from apps.markup.chunking.words import count_words, word_spans
from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import Chunk, Limits, ParsedDocument, Skipped, WordWindow

FENCE = "```"


def read(text: str, path: str = "a.md") -> ParsedDocument:
    decoded = decode(text.encode(), Limits())
    assert not isinstance(decoded, Skipped)
    parsed = parse(decoded, path, Limits())
    assert not isinstance(parsed, Skipped)
    return parsed


def cut(text: str, path: str = "a.md", **profile: int) -> list[Chunk]:
    return list(chunk_words(read(text, path), WordWindow(**profile)).chunks)


def words(count: int) -> str:
    return " ".join(f"w{number}" for number in range(count))


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(512, [512]), (513, [512, 65]), (960, [512, 512]), (961, [512, 512, 65])],
)
def test_repository_documents_fact_13_windows(count: int, sizes: list[int]) -> None:
    chunks = cut("# A\n" + words(count - 2))
    assert [len(chunk.source.split()) for chunk in chunks] == sizes
    assert all(chunk.heading_path == ("A",) for chunk in chunks)


def test_repository_documents_fact_14_a_sentence_across_the_edge_stands_whole() -> None:
    sentence = " ".join(f"s{number}" for number in range(30))
    chunks = cut(f"{words(500)} {sentence} {words(300)}")
    assert sentence not in chunks[0].text
    assert sentence in chunks[1].text


def test_repository_documents_fact_15_empty_headings_join_the_next_section() -> None:
    first, second = cut("# T\n\n## A\ntext\n\n## B\nmore")
    assert (first.heading_path, first.start_line, first.source) == (("T", "A"), 1, "# T\n\n## A\ntext")
    assert (second.heading_path, second.heading_level, second.section_anchor) == (("T", "B"), 2, "b")


def test_repository_documents_fact_16_a_comment_in_a_fence_opens_no_chunk() -> None:
    deploy, verify = cut(f"# Deploy\n\n{FENCE}sh\n# stop\nsystemctl stop x\n{FENCE}\n\n# Verify\nok")
    assert deploy.heading_path == ("Deploy",)
    assert f"{FENCE}sh\n# stop\nsystemctl stop x\n{FENCE}" in deploy.text
    assert verify.heading_path == ("Verify",)


def test_case_B001_comments_in_a_fence() -> None:
    chunks = cut(f"# Deploy\n\n{FENCE}sh\n# stop the node\nsystemctl stop x\n{FENCE}\n\n# Verify\nok")
    assert [chunk.heading_path for chunk in chunks] == [("Deploy",), ("Verify",)]
    assert f"{FENCE}sh\n# stop the node\nsystemctl stop x\n{FENCE}" in chunks[0].source


def test_case_B002_tilde_fence() -> None:
    [chunk] = cut("# A\n~~~\n# not a title\n~~~\ntail")
    assert chunk.heading_path == ("A",)


def test_markup_fact_16_an_unclosed_fence_stays_within_the_budget() -> None:
    code = "".join(f"line {number} of what is code to the end\n" for number in range(400))
    chunks = cut(f"# A\n```\n{code}\n# B\nsee [x](gone.md)", max_words=100, overlap_words=10)
    assert {chunk.heading_path for chunk in chunks} == {("A",)}
    assert len(chunks) > 20 and all(len(chunk.source.split()) <= 100 for chunk in chunks)
    assert all(chunk.text.rstrip().endswith("```") for chunk in chunks[1:-1])


def test_repository_documents_fact_17_indentation_and_blank_lines_stay() -> None:
    text = "\n\n".join(f"  {'    ' * (number % 3)}word{number} and more" for number in range(200))
    parsed = read(text, "notes.txt")
    chunks = chunk_words(parsed, WordWindow()).chunks
    assert len(chunks) == 2
    raw = parsed.text.encode()
    for chunk in chunks:
        assert raw[chunk.start_byte : chunk.end_byte].decode() == chunk.source
    assert "\n\n          word2 and more\n\n" in chunks[0].source


def test_repository_documents_fact_18_tables_are_cut_between_rows() -> None:
    rows = [f"| r{number} | some words of row {number} |" for number in range(300)]
    chunks = cut("# T\n\n| name | text |\n|---|---|\n" + "\n".join(rows))
    assert len(chunks) > 1
    known = {"# T", "", "| name | text |", "|---|---|", *rows}
    for chunk in chunks:
        assert set(chunk.text.split("\n")) <= known
        assert "| name | text |\n|---|---|\n| r" in chunk.text


def test_repository_documents_fact_18_fences_are_cut_between_lines() -> None:
    lines = [f"x_{number} = {number}" for number in range(2000)]
    chunks = cut(f"# T\n\n{FENCE}py\n" + "\n".join(lines) + f"\n{FENCE}\n")
    assert len(chunks) > 1
    known = {"# T", "", f"{FENCE}py", FENCE, *lines}
    for chunk in chunks:
        assert set(chunk.text.split("\n")) <= known
        assert chunk.text.count(FENCE) == 2
        assert f"{FENCE}py\nx_" in chunk.text
        assert chunk.text.endswith(f"\n{FENCE}")


def test_repository_documents_fact_19_long_words_and_scripts_without_spaces() -> None:
    pieces = cut("QUJD" * 10_000)
    assert [len(chunk.source) for chunk in pieces] == [8000] * 5
    assert "".join(chunk.source for chunk in pieces) == "QUJD" * 10_000
    assert [len(chunk.source) for chunk in cut("部" * 1000, overlap_words=0)] == [512, 488]
    # With the overlap of 64 the second window begins at letter 448 and the third at 896.
    assert [len(chunk.source) for chunk in cut("部" * 1000)] == [512, 512, 104]


def test_a_window_ends_at_a_word_when_it_would_be_too_long() -> None:
    chunks = cut(" ".join(["long" * 10] * 400), max_chars=1000)
    assert all(len(chunk.source) <= 1000 for chunk in chunks)
    assert all(not chunk.source.replace("long" * 10, "").strip() for chunk in chunks)


def test_long_words_are_cut_between_graphemes() -> None:
    family = "👨‍👩‍👧"
    chunks = cut(family * 400, max_chars=503)
    assert all(set(chunk.source.split(family)) == {""} for chunk in chunks)
    assert "".join(chunk.source for chunk in chunks) == family * 400


def test_no_overlap_across_sections() -> None:
    first, second = cut("# A\none two\n\n# B\nthree", overlap_words=64)
    assert "one" not in second.source
    assert "three" not in first.source


def test_lines_are_those_of_the_file() -> None:
    chunks = cut("---\ntitle: X\n---\n\n# A\n\nfirst\n\n# B\n" + "\n".join(words(6) for _ in range(200)))
    assert (chunks[0].start_line, chunks[0].end_line) == (5, 7)
    assert chunks[1].start_line == 9
    for chunk in chunks:
        assert chunk.end_line - chunk.start_line == chunk.source.count("\n")
    assert chunks[-1].end_line == 209


def test_front_matter_is_in_no_chunk() -> None:
    [chunk] = cut("---\ntitle: secretive\n---\n# T\nbody")
    assert "secretive" not in chunk.text


def test_a_kind_label_begins_the_path() -> None:
    [chunk] = chunk_words(read("# A\ntext"), WordWindow(), "Example").chunks
    assert chunk.heading_path == ("Example", "A")


@given(st.text(st.sampled_from("a部กำ \né\u0301xー。한か\u3099\x1c\u00a0😀\u2003"), max_size=30))
def test_counting_and_finding_words_agree(text: str) -> None:
    assert count_words(text) == len(word_spans(text, longest=1000))
