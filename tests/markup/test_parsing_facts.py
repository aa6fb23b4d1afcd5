"""The numbered facts of the markup page that parsing answers for; B3 is a fence of three backticks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.markup.anchors import match_fragment
from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import Decoded, Limits, ParsedDocument, Skipped

B3, T3 = "```", "~~~"
Read = Callable[..., ParsedDocument]


def codes(document: ParsedDocument) -> list[tuple[str, int]]:
    return [(each.code, each.line) for each in document.warnings]


def headings(document: ParsedDocument) -> list[tuple[int, str, int]]:
    return [(each.level, each.text, each.line) for each in document.heading_tree]


def hrefs(document: ParsedDocument) -> list[str]:
    return [each.href for each in document.links]


def slices(document: ParsedDocument) -> list[str]:
    raw = document.text.encode()
    return [raw[each.start_byte : each.end_byte].decode() for each in document.blocks]


def test_markup_fact_01_byte_order_mark(read: Read) -> None:
    document = read(b"\xef\xbb\xbf---\ntitle: Vault\n---\n# Vault")
    assert document.title == "Vault"
    assert headings(document) == [(1, "Vault", 4)]
    assert "\ufeff" not in document.text + repr(document)


def test_markup_fact_02_carriage_returns(read: Read) -> None:
    windows, plain = read("---\r\ntitle: Win\r\n---\r\n# Win\r\n"), read("---\ntitle: Win\n---\n# Win\n")
    assert windows == plain
    assert (windows.title, windows.heading_tree[0].anchor, windows.line_count) == ("Win", "win", 4)
    assert read("a\rb\r\nc").text == "a\nb\nc"


def test_markup_fact_03_other_encodings(read: Read) -> None:
    latin = read(b"# Caf\xe9")
    assert headings(latin) == [(1, "Café", 1)]
    assert codes(latin) == [("encoding_guessed", 1)]
    assert latin.encoding_guessed
    words = "слово дело\n".encode() * 2500
    cyrillic = read(words[: len(words) // 2 - 1] + b"\xff" + words[len(words) // 2 - 1 :])
    assert (cyrillic.encoding, cyrillic.replaced_characters, cyrillic.text.count("\ufffd")) == ("utf-8", 1, 1)
    assert [each.code for each in cyrillic.warnings] == ["replacement_characters"]


def test_markup_fact_04_nul_binary_size(read: Read) -> None:
    document = read(b"# A\nx\x00y")
    assert document.text == "# A\nx\ufffdy"
    assert headings(document) == [(1, "A", 1)]
    assert codes(document) == [("nul_replaced", 2)]
    picture = decode(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", Limits())
    assert isinstance(picture, Skipped) and picture.reason == "binary"
    large = decode(b"a" * 10_485_761, Limits())
    assert isinstance(large, Skipped) and large.reason == "too_large"


@pytest.mark.parametrize("source", ["", " \n\n\t \n", "---\ntitle: T\na: b\n---\n"])
def test_markup_fact_05_nothing_to_see(read: Read, source: str) -> None:
    document = read(source)
    assert document.empty and document.blocks == () and document.word_count == 0
    assert document.title == ("T" if "title" in source else None)
    assert dict(document.frontmatter) == ({"title": "T", "a": "b"} if "title" in source else {})


def test_markup_fact_05_counts(read: Read) -> None:
    document = read("one two\nthree four\nfive six\n")
    assert (document.line_count, document.word_count) == (3, 6)


def test_markup_fact_06_front_matter(read: Read) -> None:
    document = read("---\ntitle: X\nowner: ops\n---\nbody")
    assert dict(document.frontmatter) == {"title": "X", "owner": "ops"}
    assert document.heading_tree == ()
    document = read("---\ntitle: Only\ntags: one\n---\n\n# Main Title")
    assert document.title == "Only" and document.frontmatter["tags"] == "one"
    assert headings(document) == [(1, "Main Title", 6)]


def test_markup_fact_07_no_last_newline(read: Read) -> None:
    document = read("---\ntags:\n  - a\n  - b\nm:\n    k: v\n---")
    assert dict(document.frontmatter) == {"tags": ["a", "b"], "m": {"k": "v"}}
    assert document.empty and document.frontmatter_span == (1, 7)


def test_markup_fact_08_page_opens_with_a_rule(read: Read) -> None:
    document = read("---\n\nWelcome text\n\n---\nmore")
    assert dict(document.frontmatter) == {} and document.warnings == ()
    assert [each.kind for each in document.blocks] == ["rule", "paragraph", "rule", "paragraph"]
    assert slices(document) == ["---", "Welcome text", "---", "more"]


def test_markup_fact_09_broken_front_matter(read: Read) -> None:
    document = read("---\npath: C:\\x: y\n---\n# Bad", path="bad.md")
    assert dict(document.frontmatter) == {}
    warning = document.warnings[0]
    assert (warning.code, warning.line, warning.column) == ("front_matter_error", 2, 11)
    assert "bad.md, line 2, column 11" in warning.message and "C:" not in warning.message
    assert document.title == "Bad" and headings(document) == [(1, "Bad", 4)]
    assert [each.kind for each in document.blocks] == ["header", "heading"]
    assert slices(document)[0] == "---\npath: C:\\x: y\n---"


def test_markup_fact_10_tab_and_asterisk(read: Read) -> None:
    tab = read("---\na:\n\t- b\n---\n# T")
    assert [(each.code, each.line, each.column) for each in tab.warnings] == [("front_matter_error", 3, 1)]
    star = read("---\ntitle: *Draft*\n---\n# T")
    assert codes(star) == [("front_matter_error", 2)]
    assert tab.title == star.title == "T"


def test_markup_fact_11_duplicate_key(read: Read) -> None:
    document = read("---\na: 1\nb: 2\na: 3\n---\n# D")
    warning = document.warnings[0]
    assert (warning.code, warning.line, warning.column) == ("front_matter_error", 4, 1)
    assert "'a'" in warning.message and "line 2" in warning.message
    assert document.title == "D"


def test_markup_fact_12_unclosed(read: Read) -> None:
    document = read("---\ntitle: X\n\n# H")
    assert dict(document.frontmatter) == {}
    assert codes(document) == [("front_matter_unclosed", 1)]
    assert headings(document) == [(1, "H", 4)]


@pytest.mark.parametrize(
    "source",
    [
        "\n---\ntitle: X\n---\n",
        '+++\ntitle = "x"\n+++',
        "----\ntitle: X\n----\n",
        "—\ntitle: X\n—\n",
        " ---\ntitle: X\n---\n",
        "---\ntitle: X\n ---\n# H",
    ],
)
def test_markup_fact_13_near_miss(read: Read, source: str) -> None:
    document = read(source)
    assert dict(document.frontmatter) == {}
    assert [each.code for each in document.warnings] == ["front_matter_near_miss"]
    assert "".join(slices(document)).replace("\n", "") == source.replace("\n", "")


@pytest.mark.parametrize("source", ["---\n", "-----\n\ntext", "– a dash\n", "+++\n\nx", "\n\n---\n\ntext"])
def test_markup_fact_13_no_near_miss(read: Read, source: str) -> None:
    assert read(source).warnings == ()


def test_markup_fact_14_wiki_links_in_front_matter(read: Read) -> None:
    document = read('---\nrelated:\n  - "[[Alpha]]"\n  - "[[Beta|b]]"\n---')
    found = [(each.href, each.path, each.alias, each.line, each.field, each.origin) for each in document.links]
    assert found == [
        ("Alpha", "Alpha", "", 3, "related", "frontmatter"),
        ("Beta", "Beta", "b", 4, "related", "frontmatter"),
    ]


def test_markup_fact_15_comments_in_a_fence(read: Read) -> None:
    document = read(f"# Deploy\n\n{B3}sh\n# stop the node\nsystemctl stop x\n{B3}\n\n# Verify\nok")
    assert headings(document) == [(1, "Deploy", 1), (1, "Verify", 8)]
    code = document.code_blocks[0]
    assert (code.language, code.start_line, code.end_line) == ("sh", 3, 6)
    assert code.content == "# stop the node\nsystemctl stop x\n"
    assert document.sections[0].end_line == 7


def test_markup_fact_16_tildes_and_unclosed_fences(read: Read) -> None:
    document = read(f"# A\n{T3}\n# not a title\n{T3}\ntail")
    assert len(document.sections) == 1
    assert (document.code_blocks[0].start_line, document.code_blocks[0].end_line) == (2, 4)
    document = read(f"# A\n{B3}\nno closer\n\n# B\nsee [x](gone.md)")
    assert headings(document) == [(1, "A", 1)] and document.links == ()
    assert codes(document) == [("unclosed_fence", 2)]
    assert not document.code_blocks[0].closed and document.code_blocks[0].end_line == 6


@pytest.mark.parametrize("source", ["- last point\n---\ntext", "> quoted\n---\ntext"])
def test_markup_fact_17_thematic_break(read: Read, source: str) -> None:
    document = read(source)
    assert document.heading_tree == ()
    assert [each.kind for each in document.blocks][1:] == ["rule", "paragraph"]


def test_markup_fact_18_setext(read: Read) -> None:
    document = read("Runbook\n=======\n\nRollback\n--------\nsteps")
    found = [(each.level, each.start_line, each.end_line) for each in document.heading_tree]
    assert found == [(1, 1, 2), (2, 4, 5)]
    assert document.sections[1].heading_path == ("Runbook", "Rollback")
    document = read("two\nlines\n=====")
    assert [(each.text, each.start_line, each.end_line) for each in document.heading_tree] == [("two lines", 1, 3)]


def test_markup_fact_19_levels_and_paths(read: Read) -> None:
    document = read("# H\n## I\n### J\n## K")
    assert [each.level for each in document.heading_tree] == [1, 2, 3, 2]
    assert [each.section_end_line for each in document.heading_tree] == [4, 3, 3, 4]
    assert [each.heading_path for each in document.sections][2:] == [("H", "I", "J"), ("H", "K")]
    assert [each.path_headings for each in document.sections][2:] == [(0, 1, 2), (0, 3)]
    assert [each.heading_path for each in read("# Top\n### Skip").sections] == [("Top",), ("Top", "Skip")]
    assert [each.heading_path for each in read("### Deep").sections] == [("Deep",)]


def test_markup_fact_20_atx(read: Read) -> None:
    assert headings(read("## Title ##")) == [(2, "Title", 1)]
    empty = read("#\nnext")
    assert headings(empty) == [(1, "", 1)] and empty.heading_tree[0].anchor == "section"
    assert [each.heading for each in empty.sections] == [None]
    assert [each.kind for each in empty.blocks] == ["heading", "paragraph"]
    assert read("#NoSpace").heading_tree == read("####### seven").heading_tree == ()


def test_markup_fact_21_plain_text_of_a_heading(read: Read) -> None:
    heading = read("## See [x](y.md) and `code` &amp; *em*").heading_tree[0]
    assert (heading.text, heading.anchor) == ("See x and code & em", "see-x-and-code--em")


def test_markup_fact_22_no_title_from_a_fence(read: Read) -> None:
    assert read(f"{B3}\n# x\n{B3}\n").title is None
    assert not read("generated by hand").empty


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Sync ↔ Export — v2", "sync--export--v2"),
        ("C++ & Rust", "c--rust"),
        ("foo_bar.baz()", "foo_barbaz"),
        ("What's new?", "whats-new"),
        ("!!!", "section"),
    ],
)
def test_markup_fact_23_anchors(read: Read, heading: str, anchor: str) -> None:
    document = read(f"## {heading}")
    assert document.heading_tree[0].anchor == anchor
    assert match_fragment(anchor, document.anchors) == anchor
    assert match_fragment("sync-export-v2", document.anchors) is None


def test_markup_fact_24_repeated_headings_in_any_script(read: Read) -> None:
    assert read("## 部署手順\n## 部署手順").anchors == ("部署手順", "部署手順-1")
    document = read("## 🚀 Go\n## 🚀 Go")
    assert document.anchors == ("-go", "-go-1")
    assert match_fragment("%F0%9F%9A%80 Go", document.anchors) == "-go"
    assert match_fragment("-go-1", document.anchors) == "-go-1"


def test_markup_fact_25_unique_and_explicit_anchors(read: Read) -> None:
    document = read("## Use\na\n## Use\nb")
    assert [each.anchor for each in document.sections] == ["use", "use-1"]
    heading = read("## Setup {#install}").heading_tree[0]
    assert (heading.text, heading.anchor) == ("Setup", "install")
    assert read("## GET /users/{id}").heading_tree[0].text == "GET /users/{id}"
    taken = read("# a\n# a-1\n# a\n# b {#a-2}\n# a")
    assert taken.anchors == ("a", "a-1", "a-2", "a-2-1", "a-3")


def test_markup_fact_26_languages(read: Read) -> None:
    document = read(f"{B3}python\nx\n{B3}\n\n{B3}bash\ny\n{B3}")
    found = [(each.language, each.content, each.start_line, each.end_line) for each in document.code_blocks]
    assert found == [("python", "x\n", 1, 3), ("bash", "y\n", 5, 7)]
    document = read(f'{B3}c++\n{B3}\n\n{B3}ts title="a"\n{B3}')
    assert [each.language for each in document.code_blocks] == ["c++", "ts"]
    assert document.code_blocks[1].info == 'ts title="a"'
    document = read(f"- item\n\n  {B3}js\n  x\n  {B3}\n")
    assert document.code_blocks[0].content == "x\n"
    assert [each.kind for each in document.blocks[0].children[0].children] == ["paragraph", "fence"]


def test_markup_fact_27_table(read: Read) -> None:
    table = read("a | b\n--|--\n1 | 2\n3 | 4").tables[0]
    assert (table.header, table.rows) == (("a", "b"), (("1", "2"), ("3", "4")))
    assert (table.start_line, table.end_line) == (1, 4)


def test_markup_fact_28_uneven_rows(read: Read) -> None:
    document = read("a | b\n--|--\n1\n1|2|3\n`x \\| y` | z\n| | w |\nafter")
    assert document.tables[0].rows == (("1", ""), ("1", "2"), ("`x | y`", "z"), ("", "w"), ("after", ""))
    assert codes(document) == [("table_cells_dropped", 4)]


def test_markup_fact_29_links_and_code(read: Read) -> None:
    document = read('`[a](no.md)` [b](yes.md "T") ![i](p.png) [w](x_(y).md)')
    assert hrefs(document) == ["yes.md", "x_(y).md"]
    assert [(each.alt, each.href) for each in document.assets] == [("i", "p.png")]


@pytest.mark.parametrize(
    "source",
    [
        "![foo [bar](/url)](/url2)",
        "![foo ![bar](/url)](/url2)",
        "![foo <https://a.b>](/url2)",
        "*![[[foo](u1)](u2)](/url2)*",
    ],
)
def test_what_is_written_in_the_text_of_a_picture_is_no_link_and_no_picture(read: Read, source: str) -> None:
    document = read(f"# {source}\n\n{source} [after](x.md)\n\n[in ![foo ![bar](/url)](/url2)](y.md)")
    assert hrefs(document) == ["x.md", "y.md"]
    assert [each.href for each in document.assets] == ["/url2"] * 3


def test_markup_fact_30_references(read: Read) -> None:
    document = read("See [guide][g].\n\n[g]: ./guide.md")
    assert [(each.href, each.line, each.link_type) for each in document.links] == [("./guide.md", 1, "markdown")]
    assert document.blocks[-1].kind == "definitions"
    assert read("[nope][zz]").links == ()
    assert hrefs(read("[g]: a.md\n[g]: b.md\n\n[g]")) == ["a.md"]


def test_markup_fact_31_no_wiki_link_in_code(read: Read) -> None:
    assert read(f'{B3}bash\nif [[ -f "$A" ]]; then\n{B3}\n\n``[[ x ]]``').links == ()
    document = read("[l](path/to/file.md) [[Wiki Link]]")
    assert [(each.href, each.link_type) for each in document.links] == [
        ("path/to/file.md", "markdown"),
        ("Wiki Link", "wiki"),
    ]


@pytest.mark.parametrize(
    ("href", "kind"),
    [
        ("https://a.b", "absolute"),
        ("mailto:x@y.z", "absolute"),
        ("#top", "anchor"),
        ("x.md#s", "markdown"),
        ("x.md?y=1", "markdown"),
        ("X.MDX", "markdown"),
        ("guide", "relative"),
        ("img.zip", "relative"),
        ("", "relative"),
        ("//host/x.md", "absolute"),
    ],
)
def test_markup_fact_32_link_types(read: Read, href: str, kind: str) -> None:
    assert [(each.href, each.link_type) for each in read(f"[x]({href})").links] == [(href, kind)]


def test_markup_fact_33_wiki_links(read: Read) -> None:
    document = read("[[P|L]] [[P#S]] [[depends_on::redis-pool|the pool]] ![[note]]")
    aliased, heading, typed, embed = document.links
    assert (aliased.href, aliased.path, aliased.text, aliased.alias) == ("P", "P", "L", "L")
    assert (heading.path, heading.fragment, heading.text) == ("P", "S", "P#S")
    assert (typed.rel_type, typed.path, typed.text) == ("depends_on", "redis-pool", "the pool")
    assert embed.embed and embed.path == "note"


def test_markup_fact_34_lines_are_those_of_the_file(read: Read) -> None:
    document = read("---\na: 1\nb: 2\n---\nfirst line\nsee [x](y.md)")
    assert [(each.line, each.column) for each in document.links] == [(6, 5)]


def test_markup_fact_35_bare_addresses_and_html(read: Read) -> None:
    document = read("see readme.md, https://x.y/z. End")
    assert hrefs(document) == ["https://x.y/z"]
    document = read('<a href="x.md">x</a> <img src="p.png">')
    assert [(each.href, each.text, each.origin) for each in document.links] == [("x.md", "x", "html")]
    assert [each.href for each in document.assets] == ["p.png"]


def test_markup_fact_36_code_references_and_items(read: Read) -> None:
    path, symbol = read("`src/app.py:12` `app.py::main`").code_refs
    assert (path.path, path.start, path.end) == ("src/app.py", 12, 12)
    assert (symbol.path, symbol.symbol) == ("app.py", "main")
    document = read("| id | what |\n|--|--|\n| API-AUTH | all calls |\n| API-AUTH | again |")
    assert [(each.id, each.anchor, each.line) for each in document.items] == [("API-AUTH", "api-auth", 3)]
    assert document.links == () and "api-auth" in document.anchors


def test_markup_fact_37_mdx(read: Read) -> None:
    source = f"import A from './a'\n\n# T\n{B3}js\nimport B from 'b'\n{B3}"
    document = read(source, path="p.mdx")
    assert [source[start:end] for start, end in document.removed_spans] == ["import A from './a'"]
    assert headings(document) == [(1, "T", 3)]
    assert document.code_blocks[0].content == "import B from 'b'\n"
    assert read(source, path="p.md").removed_spans == ()
    document = read("<Note>\n**bold** text\n</Note>", path="p.mdx")
    assert [each.kind for each in document.blocks] == ["jsx", "paragraph", "jsx"]
    assert slices(document)[1] == "**bold** text"


def test_markup_fact_38_restructured_text(read: Read) -> None:
    document = read("=====\nDoc\n=====\n\nPart\n----\n\n.. code-block:: sh\n\n   # not heading", path="d.rst")
    assert headings(document) == [(1, "Doc", 2), (2, "Part", 5)]
    assert document.heading_tree[0].start_line == 1
    code = document.code_blocks[0]
    assert (code.language, code.content, code.start_line) == ("sh", "# not heading\n", 8)


@pytest.mark.parametrize(
    "source",
    [
        "![a](" * 400_000,
        "*a_b " * 400_000,
        "a|b\n-|-\n" + "1|2\n" * 50_000,
        "[[a " * 100_000,
        "<a " * 100_000,
        "https://" * 100_000,
        "`" * 100_000 + "a",
        "[" * 100_000,
        "# a" + " " * 200_000 + "b}",
        "é [a](b) https://a.b " * 20_000,
        "# " + "\\[[" * 100_000,
        "- " * 40 + "a" + "\n" * 400_000,
    ],
    ids=lambda source: source[:6],
)
def test_markup_fact_42_hostile_input_is_linear(source: str) -> None:
    document = parse(Decoded(source, "utf-8"), "x.md", Limits())
    assert not isinstance(document, Skipped) or document.reason == "nesting"


@pytest.mark.parametrize(
    "source",
    [
        "".join("  " * depth + "- a\n" for depth in range(2000)),
        ">" * 5000 + " a",
        "".join(">" * depth + " a\n" for depth in range(1, 3000)),
        "*a " * 3000 + "b" + "*" * 3000,
    ],
    ids=["list", "quote", "quotes", "emphasis"],
)
def test_markup_fact_42_deep_nesting_is_skipped(source: str) -> None:
    outcome = parse(Decoded(source, "utf-8"), "x.md", Limits())
    assert isinstance(outcome, Skipped) and outcome.reason == "nesting"
