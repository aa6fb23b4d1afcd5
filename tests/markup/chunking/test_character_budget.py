"""Sections packed up to a budget of characters."""

from __future__ import annotations

from itertools import pairwise

from apps.markup.chunking import chunk_budget
from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import CharacterBudget, Chunk, ChunkedDocument, Limits, ParsedDocument, Skipped

FENCE = "```"


def read(text: str, path: str = "a.md") -> ParsedDocument:
    decoded = decode(text.encode(), Limits())
    assert not isinstance(decoded, Skipped)
    parsed = parse(decoded, path, Limits())
    assert not isinstance(parsed, Skipped)
    return parsed


def divide(text: str, most: int = 4000, least: int = 400, chunks: int = 512) -> ChunkedDocument:
    return chunk_budget(read(text), CharacterBudget(most, least, chunks))


def cut(text: str, most: int = 4000, least: int = 400) -> list[Chunk]:
    return list(divide(text, most, least).chunks)


def prose(characters: int, word: str = "abcd") -> str:
    return (f"{word} " * characters)[: characters - 1] + "."


def test_collections_fact_01_short_sections_make_one_chunk() -> None:
    [chunk] = cut("# Root\n\n## Child A\nx\n\n## Child B\ny")
    assert (chunk.heading_path, chunk.heading_level, chunk.section_anchor) == (("Root",), 1, "root")


def test_collections_fact_02_the_path_of_the_first_when_nothing_is_shared() -> None:
    [chunk] = cut("# Alpha\na\n# Beta\nb")
    assert chunk.heading_path == ("Alpha",)


def test_collections_fact_03_tiny_blank_and_header_only() -> None:
    [chunk] = cut("just this")
    assert chunk.source == chunk.text == "just this"
    assert cut(" \n\n") == []
    assert cut("---\ntitle: T\n---\n") == []
    assert read("---\ntitle: T\n---\n").title == "T"


def test_collections_fact_04_a_section_and_a_short_one() -> None:
    [chunk] = cut("# A\n" + prose(806) + "\n\n# B\nshort", 800, 200)
    assert chunk.source.endswith("short")


def test_collections_fact_05_two_long_paragraphs() -> None:
    chunks = cut(f"# S\n\n{prose(1000)}\n\n{prose(1000)}", 500, 50)
    assert len(chunks) > 1
    assert {chunk.heading_path for chunk in chunks} == {("S",)}


def test_a_paragraph_of_no_break_blanks_in_a_section_that_is_cut() -> None:
    before, after = prose(900), prose(700, "efgh")
    [first, second] = cut(f"# S\n\n{before}\n\n\u00a0\n\n{after}\n\n\u3000\n", 1000)
    assert (first.source, second.source) == (f"# S\n\n{before}", after)


def test_collections_fact_06_the_floor_takes_a_short_tail() -> None:
    text = "# A\n" + "\n\n".join(prose(745) for _ in range(8)) + "\n\n## B\n" + "x" * 15
    first, second = cut(text)
    assert first.heading_path == second.heading_path == ("A",)
    assert second.source.endswith("## B\n" + "x" * 15)


def test_collections_fact_07_a_heading_is_never_alone() -> None:
    table = "| a | b |\n|---|---|\n" + "\n".join("| row | value of it |" for _ in range(225))
    [chunk] = cut(f"# T\n\n{table}")
    assert len(chunk.source) > 4000
    assert chunk.source == f"# T\n\n{table}"


def _long_table(rows: int) -> tuple[str, list[str]]:
    lines = [f"| c{number:04} | meaning number {number:05} |" for number in range(rows)]
    return "| code | meaning |\n|---|---|\n" + "\n".join(lines), lines


def test_collections_fact_08_a_large_table_in_parts() -> None:
    table, rows = _long_table(300)
    chunks = cut(f"# T\n\n{table}")
    assert [(chunk.part, chunk.parts) for chunk in chunks] == [(1, 3), (2, 3), (3, 3)]
    for chunk in chunks:
        assert "| code | meaning |\n|---|---|\n| c" in chunk.text
        assert len(chunk.text) <= 4000
    for before, after in pairwise(chunks):
        assert before.end_byte == after.start_byte
    assert "".join(chunk.source for chunk in chunks).split("\n")[4:] == rows


def test_case_B022_a_table_of_300_rows() -> None:
    table, rows = _long_table(300)
    chunks = cut(table)
    assert len(chunks) > 1
    for chunk in chunks:
        lines = chunk.text.rstrip("\n").split("\n")
        assert lines[:2] == ["| code | meaning |", "|---|---|"]
        assert set(lines[2:]) <= set(rows)


def test_collections_fact_09_no_row_is_cut() -> None:
    for most, least, count in ((500, 50, 60), (120, 20, 20)):
        table, rows = _long_table(count)
        chunks = cut(table, most, least)
        found = [line for chunk in chunks for line in chunk.source.split("\n") if line.startswith("| c0")]
        assert found == rows
    row = "| a | " + "x" * 1590 + " |"
    [chunk] = cut(f"| h | i |\n|---|---|\n{row}", 200, 50)
    assert row in chunk.source


def test_collections_fact_10_fences_in_parts() -> None:
    for count in (80, 400):
        code = "\n".join(f"value_{number} = {number}" if count == 80 else "x_1 = 1" for number in range(count))
        chunks = cut(f"{FENCE}py\n{code}\n{FENCE}", 400, 50)
        assert len(chunks) > 1
        for number, chunk in enumerate(chunks, 1):
            assert chunk.text.startswith(f"{FENCE}py\n")
            assert chunk.text.endswith(f"\n{FENCE}")
            assert chunk.text.count(FENCE) == 2
            assert (chunk.part, chunk.parts) == (number, len(chunks))
            assert len(chunk.text) <= 400


def test_case_B024_a_long_fence() -> None:
    chunks = cut(f"{FENCE}py\n" + "x_1 = 1\n" * 400 + FENCE, 500, 50)
    assert sum(chunk.text.count("x_1 = 1") for chunk in chunks) == 400
    assert all(chunk.text.startswith(f"{FENCE}py\n") and chunk.text.endswith(f"\n{FENCE}") for chunk in chunks)
    assert [chunk.part for chunk in chunks] == list(range(1, len(chunks) + 1))


def test_collections_fact_11_a_fence_that_is_never_closed() -> None:
    text = f"{FENCE}\n" + "\n".join(f"line {number}" for number in range(1000))
    chunks = cut(text)
    assert len(chunks) > 1
    for chunk in chunks:
        assert len(chunk.text) <= 4000
        assert chunk.text.startswith(f"{FENCE}\n")
        assert chunk.text.endswith(f"\n{FENCE}")
    assert "unclosed_fence" in {warning.code for warning in read(text).warnings}


def test_case_B005_an_unclosed_fence_stays_within_the_budget() -> None:
    text = f"# A\n{FENCE}\nno closer\n\n# B\nsee [x](gone.md)" + "\nmore of it" * 2000
    assert all(len(chunk.text) <= 4000 for chunk in cut(text))


def test_collections_fact_12_comments_in_a_shell_fence() -> None:
    [chunk] = cut(f"## Setup\n\n{FENCE}sh\nrun\n# step 2\nrun\n{FENCE}")
    assert chunk.heading_path == ("Setup",)
    assert f"{FENCE}sh\nrun\n# step 2\nrun\n{FENCE}" in chunk.source


def test_collections_fact_13_long_paragraphs_and_lists() -> None:
    chunks = cut("This sentence is of some length. " * 460)
    assert all(len(chunk.source) <= 4000 for chunk in chunks)
    assert all(chunk.source.rstrip().endswith("length.") for chunk in chunks)
    chunks = cut("\n".join(f"- item {number} of a long list of things" for number in range(390)))
    assert len(chunks) > 1
    assert all(chunk.source.startswith("- item") and len(chunk.source) <= 4000 for chunk in chunks)


def test_collections_fact_14_and_case_B025_one_long_line() -> None:
    chunks = cut("QUJD" * 10_000)
    assert [len(chunk.source) for chunk in chunks] == [4000] * 10


def test_collections_fact_15_the_cap() -> None:
    text = "\n".join(f"# S{number}\n\n{prose(3900)}\n" for number in range(5))
    result = divide(text, chunks=3)
    assert len(result.chunks) == 3
    assert result.truncated_at_line == 13
    assert text.split("\n")[12] == "# S3"
    assert divide(text).truncated_at_line is None


def test_collections_fact_16_packing_below_a_full_section() -> None:
    text = f"# A\n{prose(3896)}\n\n## A1\n{prose(494)}\n\n## A2\n{prose(494)}"
    first, second = cut(text)
    assert first.heading_path == second.heading_path == ("A",)
    assert second.source.startswith("## A1")
    assert "## A2" in second.source


def test_collections_fact_17_equal_headings() -> None:
    first, second = cut(f"# T\n\n## Use\n{prose(2990, 'ab')}\n\n## Use\n{prose(2990, 'cd')}")
    assert first.heading_path == second.heading_path == ("T", "Use")
    assert (first.section_anchor, second.section_anchor) == ("use", "use-1")
    assert "cd" not in first.source
    assert "ab" not in second.source


def test_collections_fact_18_and_case_B021_an_html_table_stands_once() -> None:
    chunks = cut("Intro\n\n<table><tr><td>k1-only</td></tr></table>\n\nEnd")
    assert sum("k1-only" in chunk.text for chunk in chunks) == 1
    assert "<td>" not in chunks[0].text


def test_blocks_inside_lists_and_quotes_keep_their_rules() -> None:
    code = "\n".join(f"  x_{number} = {number}" for number in range(900))
    chunks = cut(f"- first\n\n  {FENCE}sh\n{code}\n  {FENCE}\n- second", 1000, 100)
    assert len(chunks) > 2
    assert all(chunk.text.count(FENCE) == 2 for chunk in chunks)
    quoted = "\n".join(f"> | r{number} | of the table |" for number in range(200))
    chunks = cut(f"> | a | b |\n> |---|---|\n{quoted}", 1000, 100)
    assert len(chunks) > 2
    assert all("> | a | b |\n> |---|---|\n> | r" in chunk.text for chunk in chunks)


def test_a_code_line_over_16000_characters_is_cut_with_a_flag() -> None:
    chunks = cut(f"{FENCE}\n{'y' * 20_000}\nz\n{FENCE}", 1000, 100)
    assert all(chunk.flags == ("cut_inside_line",) for chunk in chunks)
    assert sum(chunk.source.count("y") for chunk in chunks) == 20_000
    [whole] = [chunk for chunk in cut(f"{FENCE}\n{'y' * 15_000}\nz\n{FENCE}", 1000, 10) if "y" in chunk.source]
    assert whole.source.count("y") == 15_000
    assert whole.flags == ()


def test_a_run_of_pipe_lines_is_cut_between_lines_only() -> None:
    lines = [f"| cell {number} | more" for number in range(100)]
    chunks = cut("\n".join(lines), 300, 0)
    assert len(chunks) > 5
    assert "".join(chunk.source for chunk in chunks).split("\n") == lines
