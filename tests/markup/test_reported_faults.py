"""Faults that users of such tools reported, as far as reading a file answers for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.markup.anchors import match_fragment
from apps.markup.decoding import decode
from apps.markup.links import candidates
from apps.markup.parsing import parse
from apps.markup.values import Decoded, Limits, ParsedDocument, Skipped

B3, T3 = "```", "~~~"
Read = Callable[..., ParsedDocument]


def paths(document: ParsedDocument) -> list[tuple[str, ...]]:
    return [each.heading_path for each in document.sections]


def exact(href: str, source: str, *roots: str) -> list[str]:
    return [key for group in candidates(href, source, roots).groups() if group.match == "exact" for key in group.keys]


def test_case_B001_comment_lines_in_a_fence_are_no_headings(read: Read) -> None:
    document = read(f"# Deploy\n\n{B3}sh\n# stop the node\nsystemctl stop x\n{B3}\n\n# Verify\nok")
    assert paths(document) == [("Deploy",), ("Verify",)]


def test_case_B002_tilde_fence(read: Read) -> None:
    assert paths(read(f"# A\n{T3}\n# not a title\n{T3}\ntail")) == [("A",)]


def test_case_B005_unclosed_fence_is_reported(read: Read) -> None:
    document = read(f"# A\n{B3}\nno closer\n\n# B\nsee [x](gone.md)")
    assert paths(document) == [("A",)]
    assert [(each.code, each.line) for each in document.warnings] == [("unclosed_fence", 2)]


@pytest.mark.parametrize("source", ["- last point\n---\ntext", "> quoted\n---\ntext", f"{B3}\nx\n{B3}\n---\ntext"])
def test_case_B006_no_phantom_heading(read: Read, source: str) -> None:
    assert read(source).heading_tree == ()


def test_case_B007_underlined_headings(read: Read) -> None:
    assert paths(read("Runbook\n=======\n\nRollback\n--------\nsteps")) == [("Runbook",), ("Runbook", "Rollback")]


def test_case_B009_last_metadata_line_is_no_heading(read: Read) -> None:
    document = read("---\ntitle: X\nowner: ops\n---\nbody")
    assert document.frontmatter["owner"] == "ops" and document.heading_tree == ()


def test_case_B010_byte_order_mark(read: Read) -> None:
    document = read(b"\xef\xbb\xbf---\ntitle: Vault\n---\n# Vault")
    assert document.title == "Vault" and document.anchors == ("vault",) and "\ufeff" not in document.text
    assert read("# A\n\ufeffx\ufeff").text == "# A\nx"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_case_B010_wide_encodings(read: Read, encoding: str) -> None:
    assert read("# Title\n\nsome text".encode(encoding)).title == "Title"


def test_case_B011_carriage_returns(read: Read) -> None:
    assert read("---\r\ntitle: Win\r\n---\r\n# Win\r\n").title == "Win"


@pytest.mark.parametrize(
    "header",
    [
        "path: C:\\x: y",
        "a:\n\t- b",
        "title: *Draft*",
        "a: !x y",
        "a: !!python/object:os.system {}",
        "a: *gone",
        "a: [1, 2",
        "a: 1\nb:\n  c: 1\n  c: 2",
        "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]",
        "a: " + "[" * 5000 + "]" * 5000,
        "a: b\x07c",
        "? [x]\n: y\nk: v",
        "a: &a [*a]",
        "k: " + "x" * 70_000,
    ],
    ids=range(14),
)
def test_case_B012_broken_header_costs_only_itself(read: Read, header: str) -> None:
    document = read(f"---\n{header}\n---\n# Bad\nbody", path="docs/bad.md")
    if header.startswith("?"):
        # The first line does not look like a key, so this was never meant as front matter.
        assert document.warnings == ()
        return
    assert dict(document.frontmatter) == {}
    assert [each.code for each in document.warnings] == ["front_matter_error"]
    assert document.warnings[0].message.startswith("docs/bad.md, line ")
    assert document.title == "Bad" and document.blocks[0].kind == "header"
    assert document.links == ()


def test_case_B015_page_opens_with_a_rule(read: Read) -> None:
    document = read("---\n\nWelcome text\n\n---\nmore")
    assert dict(document.frontmatter) == {} and [each.kind for each in document.blocks][1] == "paragraph"


def test_case_B016_wiki_links_in_metadata(read: Read) -> None:
    document = read('---\nrelated:\n  - "[[Alpha]]"\n  - "[[Beta|b]]"\n---')
    assert [each.path for each in document.links] == ["Alpha", "Beta"]


def test_case_B018_import_inside_a_fence_stays(read: Read) -> None:
    document = read(f"import A from './a'\n\n# T\n{B3}js\nimport B from 'b'\n{B3}", path="x.mdx")
    assert document.code_blocks[0].content == "import B from 'b'\n" and len(document.removed_spans) == 1


def test_case_B026_pathological_input_ends() -> None:
    deep = "".join("  " * depth + "- a\n" for depth in range(5000))[: Limits().max_file_bytes]
    outcome = parse(Decoded(deep, "utf-8"), "x.md", Limits())
    assert isinstance(outcome, Skipped) and outcome.reason == "nesting"


@pytest.mark.parametrize("source", ["", "  \n\n ", "---\ntitle: x\n---\n"])
@pytest.mark.parametrize("path", ["a.md", "a.mdx", "a.rst", "a.txt"])
def test_case_B027_empty_file(read: Read, source: str, path: str) -> None:
    document = read(source, path=path)
    assert document.empty or (path in ("a.rst", "a.txt") and "title" in source)


def test_case_B028_restructured_text(read: Read) -> None:
    document = read("=====\nDoc\n=====\n\nPart\n----\n\n.. code-block:: sh\n\n   # not heading", path="d.rst")
    assert paths(document) == [("Doc",), ("Doc", "Part")]
    assert document.code_blocks[0].content == "# not heading\n"


def test_case_B030_not_utf_8(read: Read) -> None:
    document = read(b"# Caf\xe9 \x96 x")
    assert document.title == "Café – x" and document.warnings[0].code == "encoding_guessed"


def test_case_B032_nul(read: Read) -> None:
    document = read(b"# A\nx\x00y")
    assert "\x00" not in document.text and document.warnings[0].code == "nul_replaced"


@pytest.mark.parametrize(
    "raw",
    [
        b"\x89PNG\r\n\x1a\n",
        b"PK\x03\x04rest",
        b"\x7fELF\x02",
        b"RIFF\x00\x00\x00\x00WEBPVP8 ",
        b"\x1f\x8b\x08",
        bytes(range(1, 9)) * 40,
        b"MZ" + b"\x00" * 70,
    ],
)
def test_case_B034_binary_by_content(raw: bytes) -> None:
    outcome = decode(raw, Limits())
    assert isinstance(outcome, Skipped) and outcome.reason == "binary"


def test_case_B043_encoded_blanks(read: Read) -> None:
    link = read("[s](./set%20up.md)").links[0]
    assert link.href == "./set%20up.md"
    assert exact(link.href, "x.md")[1] == "set up.md"


def test_case_B045_parent_steps(read: Read) -> None:
    link = read("[c](../c/d.md#top)").links[0]
    assert (link.path, link.fragment) == ("../c/d.md", "top")
    assert exact(link.href, "docs/a/b.md")[1] == "docs/c/d.md"


@pytest.mark.parametrize(
    "href", ["../../x.md", "%2e%2e/%2e%2e/x", "..\\..\\x", "/../x", "a/../../../x", "/%2e%2e/etc/passwd"]
)
def test_case_B045_nothing_above_the_root(href: str) -> None:
    found = candidates(href, "docs/a.md", ("docs",))
    assert found.outside and list(found.groups()) == []


def test_case_B046_reference_style(read: Read) -> None:
    assert [each.href for each in read("See [guide][g].\n\n[g]: ./guide.md").links] == ["./guide.md"]


def test_case_B047_code_titles_parentheses(read: Read) -> None:
    document = read('`[a](no.md)` [b](yes.md "T") ![i](p.png) [w](x_(y).md)')
    assert [each.href for each in document.links] == ["yes.md", "x_(y).md"]
    assert [each.href for each in document.assets] == ["p.png"]


def test_case_B048_shell_brackets(read: Read) -> None:
    document = read(f'{B3}bash\nif [[ -f "$A" ]]; then\n{B3}\nuse ``[[ x ]]`` inline, if [[ -f "$A" ]] or [[ $a = b ]]')
    assert document.links == ()


def test_case_B053_slug_rule(read: Read) -> None:
    anchors = read("## Sync ↔ Export — v2").anchors
    assert match_fragment("sync--export--v2", anchors) == "sync--export--v2"
    assert match_fragment("sync-export-v2", anchors) is None


def test_case_B054_other_scripts(read: Read) -> None:
    document = read("## 部署手順\n## 部署手順")
    assert document.anchors == ("部署手順", "部署手順-1")
    assert match_fragment("%E9%83%A8%E7%BD%B2%E6%89%8B%E9%A0%86", document.anchors) == "部署手順"


def test_case_B056_emoji(read: Read) -> None:
    document = read("## 🚀 Go\n## 🚀 Go\n## ⚙️ Set\n## ⚙ Set")
    assert document.anchors == ("-go", "-go-1", "-set", "-set-1")
