"""MDX, reStructuredText and plain text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.markup.parsing import format_of, parse
from apps.markup.values import Decoded, Limits, ParsedDocument, Skipped

Read = Callable[..., ParsedDocument]
B3 = "```"


def removed(document: ParsedDocument) -> list[str]:
    raw = document.text.encode()
    return [raw[start:end].decode() for start, end in document.removed_spans]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import 'a.css'\n\ntext", ["import 'a.css'"]),
        ("import {\n  a,\n\n  b\n} from 'c'\ntext", ["import {\n  a,\n\n  b\n} from 'c'"]),
        ("import A from 'a'\nimport B from 'b'\n# H", ["import A from 'a'", "import B from 'b'"]),
        ("export const x = `\n~~~\n${a('}')}\n`\n# H", ["export const x = `\n~~~\n${a('}')}\n`"]),
        (
            "export default () => {\n  // }\n  return '}'\n}\n\ntext",
            ["export default () => {\n  // }\n  return '}'\n}"],
        ),
        ("text before\nexport default nothing", []),
        ("import is a word, and\nso is export", []),
        ("import the module from the shelf", []),
        ("  import A from 'a'", []),
        ("<A\n  b={{c: '>'}}\n  d=\"x > y\"\n/>\ntext", ["<A\n  b={{c: '>'}}\n  d=\"x > y\"\n/>"]),
        ("<>\n\ntext\n\n</>", ["<>", "</>"]),
        ("<A><B /></A>", ["<A><B /></A>"]),
        ("{/* a comment */}\n\n{props.x}", ["{/* a comment */}", "{props.x}"]),
        ("text <A/> more", []),
        ("<A>text</A>", []),
        ("<https://a.b>", []),
        ("- a\n- b\n</Note>\n", ["</Note>"]),
        (f"<Note>\n{B3}js\n<X/>\nimport A from 'a'\n{B3}\n</Note>", ["<Note>", "</Note>"]),
        ("    <A/>", []),
        ("<A", []),
    ],
)
def test_mdx_lines(read: Read, source: str, expected: list[str]) -> None:
    assert removed(read(source, path="a.mdx")) == expected
    assert removed(read(source, path="a.md")) == []


def test_mdx_has_no_html_blocks(read: Read) -> None:
    document = read("<div>some **bold** <a href='x.md'>x</a></div>\n\n<Card href=\"no.md\"/>\n", path="a.mdx")
    assert [each.kind for each in document.blocks] == ["paragraph", "jsx"]
    assert [each.href for each in document.links] == ["x.md"]
    document = read(f"{B3}html\n<div>\n{B3}\n\n<div>\n\n# H\n\n</div>", path="a.mdx")
    assert document.code_blocks[0].content == "<div>\n"
    assert [each.text for each in document.heading_tree] == ["H"]


def test_mdx_incomplete_statement(read: Read) -> None:
    document = read("export const a = {\n  b\n\n# H\n", path="a.mdx")
    assert removed(document) == ["export const a = {\n  b"]
    assert [(each.code, each.line) for each in document.warnings] == [("mdx_incomplete", 1)]
    assert document.title == "H"


def test_mdx_statements_that_never_end_stay_linear() -> None:
    source = "export const a = {\n\n" * 10_000
    assert isinstance(parse(Decoded(source, "utf-8"), "a.mdx", Limits()), ParsedDocument)
    source = "export const a = /*\n\n" * 10_000
    assert isinstance(parse(Decoded(source, "utf-8"), "a.mdx", Limits()), ParsedDocument)
    source = "<A {\n\n" * 10_000
    assert isinstance(parse(Decoded(source, "utf-8"), "a.mdx", Limits()), ParsedDocument)


RST = """Title
=====

.. _my label:

Part
----

See :doc:`Guide <guide/start>`, :ref:`my label`, `web <https://x.y>`_ and :func:`~a.b.c`.

.. note:: Mind

   the gap

.. include:: ../secret.txt

.. csv-table:: T
   :file: /etc/passwd

.. raw:: html
   :file: x.html

.. unknown-thing:: argument
   :option: 1

   inner **text**

.. toctree::

   other/page
   Named <third>

=== ===
a   b
=== ===
1   2
=== ===

Code::

   # no heading

.. image:: p.png
   :alt: picture
"""


def test_rst_links_tables_and_refused_files(read: Read) -> None:
    document = read(RST, path="d.rst")
    links = [(each.href, each.link_type, each.line) for each in document.links]
    assert ("guide/start", "relative", 9) in links
    assert ("#my label", "anchor", 9) in links
    assert ("https://x.y", "absolute", 9) in links
    assert {"../secret.txt", "/etc/passwd", "x.html", "other/page", "third"} <= {each[0] for each in links}
    refused = [each.line for each in document.warnings if each.code == "rst_file_refused"]
    assert refused == [15, 17, 20]
    assert [(each.header, each.rows) for each in document.tables] == [(("a", "b"), (("1", "2"),))]
    assert [each.content for each in document.code_blocks] == ["# no heading\n"]
    assert [(each.href, each.alt) for each in document.assets] == [("p.png", "picture")]
    assert {"title", "part", "my-label"} <= set(document.anchors)
    assert [(each.level, each.line, each.end_line) for each in document.heading_tree] == [(1, 1, 2), (2, 6, 7)]


def test_rst_reads_nothing_and_says_nothing(read: Read, capfd: pytest.CaptureFixture[str]) -> None:
    document = read(".. include:: /etc/passwd\n\n.. nonsense\n\n*unclosed\n\n`x`_\n\n===\n", path="a.rst")
    assert "root:" not in repr(document)
    assert {each.code for each in document.warnings} == {"rst_file_refused", "rst_message"}
    assert capfd.readouterr() == ("", "")


def test_rst_nesting() -> None:
    source = "".join("  " * depth + "- a\n\n" for depth in range(300))
    outcome = parse(Decoded(source, "utf-8"), "a.rst", Limits())
    assert isinstance(outcome, Skipped) and outcome.reason == "nesting"


def test_plain_text_has_blocks_only(read: Read) -> None:
    document = read("# no heading\n[no](link.md)\n\n\n second\n", path="notes.txt")
    assert [(each.kind, each.start_line, each.end_line) for each in document.blocks] == [
        ("paragraph", 1, 2),
        ("paragraph", 5, 5),
    ]
    assert document.heading_tree == document.links == () and document.title is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.md", "markdown"),
        ("A.MARKDOWN", "markdown"),
        ("x/y.mdx", "mdx"),
        ("a.rst", "rst"),
        ("a.txt", "text"),
        ("Makefile", "text"),
        ("a.md/b", "text"),
        (".md", "markdown"),
    ],
)
def test_formats(path: str, expected: str) -> None:
    assert format_of(path) == expected


def test_notes_and_references(read: Read) -> None:
    document = read("text[^a] and [^a]\n\n# B[^b]\n\n[^a]: first\n    more\n\n[^b]: second\n")
    assert [(each.label, each.text) for each in document.footnotes] == [("a", "first\n    more"), ("b", "second")]
    assert [label for _, label in document.footnote_references] == ["a", "a", "b"]
    assert [each.kind for each in document.blocks] == ["paragraph", "heading", "footnote", "footnote"]


def test_items_in_lists_and_tables(read: Read) -> None:
    document = read(
        "- **ADR-0042**: keep it\n- [ ] API-AUTH\n- no-id\n- 2024-01-02 date\n\n1. `X-1` y\n\n## API-AUTH\n"
    )
    assert [(each.id, each.anchor) for each in document.items] == [
        ("ADR-0042", "adr-0042"),
        ("API-AUTH", "api-auth"),
        ("X-1", "x-1"),
    ]
    assert document.heading_tree[0].anchor == "api-auth-1"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("src/app.py:12-20", ("src/app.py", "", 12, 20)),
        ("src/app.py#L12", ("src/app.py", "", 12, 12)),
        ("src/app.py#L12-L14", ("src/app.py", "", 12, 14)),
        ("a/b.rb::C.d", ("a/b.rb", "C.d", None, None)),
        ("README.md", ("README.md", "", None, None)),
        ("src/lib/", ("src/lib/", "", None, None)),
        ("./x.ts", ("./x.ts", "", None, None)),
        ("os.path", None),
        ("foo()", None),
        ("a / b", None),
        ("/", None),
        ("../", None),
        (".py", None),
    ],
)
def test_code_references(read: Read, code: str, expected: tuple[object, ...] | None) -> None:
    found = [(each.path, each.symbol, each.start, each.end) for each in read(f"`{code}`").code_refs]
    assert found == ([expected] if expected else [])
