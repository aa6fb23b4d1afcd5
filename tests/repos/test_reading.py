"""One file from bytes to chunks, as the children of the parser pool do it."""

from __future__ import annotations

import pytest

from apps.markup.values import Limits, Skipped, WordWindow
from apps.repos.discovery import Kind
from apps.repos.reading import FileRead, is_lfs_pointer, read_file


def read(
    text: str | bytes, path: str = "README.md", kind: Kind = Kind.REPO_DOC, profile: WordWindow | None = None
) -> FileRead:
    raw = text.encode() if isinstance(text, str) else text
    found = read_file(raw, path, kind.value, Limits(), profile or WordWindow())
    assert isinstance(found, FileRead), found
    for chunk in found.chunks:
        assert found.text.encode()[chunk.start_byte : chunk.end_byte].decode() == chunk.source
    return found


def words(count: int, start: int = 0) -> str:
    return " ".join(f"w{number}" for number in range(start, start + count))


def sizes(found: FileRead) -> list[int]:
    return [len(chunk.source.split()) for chunk in found.chunks]


def test_repos_fact_12_title_of_a_page_without_heading() -> None:
    assert read("Just text.", "docs/setup.md").title == "setup.md"
    assert read("---\ntitle: Set up\n---\nJust text.", "docs/setup.md").title == "Set up"


def test_repos_fact_11_a_comment_is_no_title() -> None:
    found = read("# build\non: push\n", ".github/workflows/ci.yml", Kind.WORKFLOW)
    assert found.title == "Workflow: ci.yml"
    assert [chunk.heading_path for chunk in found.chunks] == [("Workflow",)]


@pytest.mark.parametrize(
    ("count", "expected"), [(512, [512]), (513, [512, 65]), (960, [512, 512]), (961, [512, 512, 65])]
)
def test_repos_fact_13_windows(count: int, expected: list[int]) -> None:
    assert sizes(read(words(count))) == expected


def test_repos_fact_14_a_sentence_across_the_edge_stands_whole_in_the_second() -> None:
    sentence = " ".join(f"s{n}" for n in range(30))
    found = read(f"{words(500)} {sentence} {words(200, 500)}")
    assert sentence in found.chunks[1].source


def test_repos_fact_15_heading_without_text_joins_the_next() -> None:
    found = read("# T\n\n## A\ntext\n\n## B\nmore")
    assert [(chunk.heading_path, chunk.start_line) for chunk in found.chunks] == [(("T", "A"), 1), (("T", "B"), 6)]


def test_repos_fact_16_comments_in_a_fence_are_no_headings() -> None:
    found = read("# Deploy\n\n```sh\n# stop\nsystemctl stop x\n```\n\n# Verify\nok")
    assert [chunk.heading_path for chunk in found.chunks] == [("Deploy",), ("Verify",)]
    assert "```sh\n# stop\nsystemctl stop x\n```" in found.chunks[0].source


def test_repos_fact_17_indentation_and_blank_lines_are_kept() -> None:
    found = read("- x\n\n" + "\n\n".join(f"    {words(10, n * 10)}" for n in range(60)))
    assert len(found.chunks) == 2
    assert "\n\n    w" in found.chunks[0].source


def test_repos_fact_18_tables_and_fences_are_cut_between_lines() -> None:
    table = "| code | meaning |\n| --- | --- |\n" + "".join(f"| c{n} | meaning number {n} |\n" for n in range(300))
    rows = {line for line in table.split("\n") if line}
    for chunk in read("# T\n\n" + table).chunks:
        assert all(line in rows or line in ("# T", "") for line in chunk.source.split("\n"))
        assert "| code | meaning |" in chunk.text
    fence = "```py\n" + "x_1 = 1\n" * 2000 + "```\n"
    for chunk in read(fence).chunks:
        assert chunk.text.startswith("```py")
        assert chunk.text.rstrip().endswith("```")


def test_repos_fact_19_long_words_and_scripts_without_blanks() -> None:
    found = read("QUJD" * 10_000)
    assert all(len(chunk.source) <= 8000 for chunk in found.chunks)
    chinese = read("备" * 1000)
    assert [len(chunk.source) for chunk in chinese.chunks] == [512, 512, 104]


def test_repos_fact_20_structure() -> None:
    body = "\n".join(f"  k{n}: {words(4, n)}" for n in range(100))
    found = read(f"web:\n{body}\ndb:\n{body}\n", "helm/values.yaml", Kind.CONFIG)
    assert found.chunks[0].heading_path[:2] == ("Config", "web")
    assert found.chunks[-1].heading_path[:2] == ("Config", "db")
    method = "\n".join(f"    def m{n}(self):\n        return {n}, {n}, {n}, 'some words here'" for n in range(90))
    code = read(f"class One:\n{method}\n\n\nclass Two:\n{method}\n", "examples/demo.py", Kind.EXAMPLE)
    assert {chunk.heading_path[:2] for chunk in code.chunks} == {("Example", "One"), ("Example", "Two")}
    assert any(chunk.source.startswith("class Two:") for chunk in code.chunks)
    assert any("\n        return" in chunk.source for chunk in code.chunks)


def test_repos_fact_21_the_flag_and_the_value() -> None:
    found = read("API_KEY=abc123def\nPORT=8000\n", ".env", Kind.CONFIG)
    assert found.redacted == 1
    assert found.chunks[0].flags == ("redacted",)
    assert "abc123def" not in repr(found)


def test_repos_case_B010_byte_order_mark() -> None:
    found = read(b"\xef\xbb\xbf---\ntitle: Vault\n---\n# Vault")
    assert found.title == "Vault"
    assert "﻿" not in repr(found)


def test_repos_case_B011_carriage_returns() -> None:
    windows = read(b"---\r\ntitle: Win\r\n---\r\n# Win\r\n")
    unix = read(b"---\ntitle: Win\n---\n# Win\n")
    assert (windows.title, windows.anchors, windows.chunks) == (unix.title, unix.anchors, unix.chunks)


def test_repos_case_B030_fallback_encoding() -> None:
    found = read(b"# Caf\xe9\n\ntext")
    assert found.title == "Café"
    assert [warning.code for warning in found.warnings] == ["encoding_guessed"]


def test_repos_case_B032_nul_is_replaced() -> None:
    found = read(b"# A\nx\x00y")
    assert "x�y" in found.text
    assert [warning.code for warning in found.warnings] == ["nul_replaced"]


def test_repos_case_B032_nul_and_surrogates_by_escapes_in_a_header() -> None:
    found = read('---\ntitle: "a\\0b"\nother: "\\ud800"\nlist: ["\\0"]\n---\nbody')
    assert "\0" not in repr(found.frontmatter).replace("\\x00", "\0")
    found.title.encode("utf-8")


def test_repos_case_B034_binary_bytes_under_a_doc_name() -> None:
    found = read_file(b"\x89PNG\r\n\x1a\n" + b"\x00" * 50, "fake.md", "repo_doc", Limits(), WordWindow())
    assert isinstance(found, Skipped)
    assert found.reason == "binary"


def test_repos_case_B035_pointer() -> None:
    assert is_lfs_pointer(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n")
    assert not is_lfs_pointer(b"# version https://git-lfs.github.com/spec/v1\n")


@pytest.mark.parametrize("raw", [b"", b"  \n\n \n", b"---\ntitle: Only\n---\n"])
def test_repos_case_B027_empty(raw: bytes) -> None:
    found = read(raw, "docs/e.md")
    assert found.empty
    assert found.chunks == ()


def test_repos_links_of_one_address_are_one_use() -> None:
    found = read("# A\n[x](b.md)\n\n[y](b.md) ![i](p.png)")
    assert [(use.href, use.text, use.lines, use.image) for use in found.links] == [
        ("b.md", "x", (2, 4), False),
        ("p.png", "i", (4,), True),
    ]
