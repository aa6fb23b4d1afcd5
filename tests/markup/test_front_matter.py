"""What YAML front matter means: types, places, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.markup.values import Limits, ParsedDocument
from apps.markup.yaml_core import resolve

Read = Callable[..., ParsedDocument]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("on", "on"),
        ("~", None),
        ("null", None),
        ("0755", 755),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-10", "2026-01-10"),
        ("1.10", 1.1),
        ("-.5e3", -500.0),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9" * 200, "9" * 200),
        ("1.2.3", "1.2.3"),
        (".", "."),
    ],
)
def test_core_schema(text: str, value: object) -> None:
    found, _ = resolve(text)
    assert found == value and type(found) is type(value)


def test_fields_that_keep_their_characters(read: Read) -> None:
    document = read(
        "---\ntitle: 1.10\nslug: 007\nid: 0x10\ntags: [1.0, yes, ~]\naliases:\n  - 2020\n"
        "version: 1.10\non: yes\n7: x\n---\n"
    )
    assert document.title == "1.10"
    assert dict(document.frontmatter) == {
        "title": "1.10",
        "slug": "007",
        "id": "0x10",
        "tags": ["1.0", "yes", "~"],
        "aliases": ["2020"],
        "version": 1.1,
        "on": "yes",
        "7": "x",
    }


def test_every_value_knows_its_place(read: Read) -> None:
    document = read("---\n# comment\na:\n  - b: 'x'\n    c: 3\nd: &r [1]\ne: *r\n---\n")
    found = [(each.path, each.line, each.column, each.resolved, each.source) for each in document.frontmatter_values]
    assert found == [
        (("a",), 4, 3, "list", ""),
        (("a", 0), 4, 5, "map", ""),
        (("a", 0, "b"), 4, 8, "str", "x"),
        (("a", 0, "c"), 5, 8, "int", "3"),
        (("d",), 6, 4, "list", ""),
        (("d", 0), 6, 8, "int", "1"),
        (("e",), 7, 4, "list", ""),
    ]
    assert document.frontmatter["e"] == [1]


@pytest.mark.parametrize(
    ("title", "expected", "codes"),
    [
        ("[a, b]", "H", ["front_matter_value"]),
        ("{a: b}", "H", ["front_matter_value"]),
        ('""', "H", []),
        ("", "H", []),
        ("null", "null", []),
        ("'  two\n  lines '", "two lines", []),
    ],
)
def test_titles(read: Read, title: str, expected: str, codes: list[str]) -> None:
    document = read(f"---\ntitle: {title}\n---\n# H")
    assert document.title == expected
    assert [each.code for each in document.warnings] == codes


@pytest.mark.parametrize("source", ["---\n---\n# H", "---\n# only a comment\n---\n# H", "---  \n\n...\n# H"])
def test_empty_blocks(read: Read, source: str) -> None:
    document = read(source)
    assert dict(document.frontmatter) == {} and document.frontmatter_span is not None
    assert [each.kind for each in document.blocks] == ["heading"]


@pytest.mark.parametrize(
    "source", ["---\njust text\n---\nmore", "---\n- a\n- b\n---\nmore", "---\nsome : [text\n---\n"]
)
def test_what_is_no_mapping_is_body(read: Read, source: str) -> None:
    document = read(source)
    assert document.frontmatter_span is None and document.blocks[0].kind == ("header" if "[" in source else "rule")


def test_limit_of_bytes(read: Read) -> None:
    source = f"---\na: {'é' * 60}\n---\n# H"
    assert read(source, limits=Limits(max_front_matter_bytes=123)).warnings[0].code == "front_matter_error"
    assert read(source, limits=Limits(max_front_matter_bytes=124)).warnings == ()


def test_links_in_metadata(read: Read) -> None:
    document = read(
        '---\nrelated:\n  - {slug: "[[a]]", type: uses}\n  - [[b]]\nnote: see [[c|d]] and [[e#f]]\n---\n[g](h.md)'
    )
    found = [(each.path, each.fragment, each.alias, each.field, each.line) for each in document.links]
    assert found == [
        ("a", "", "", "related", 3),
        ("c", "", "d", "note", 5),
        ("e", "f", "", "note", 5),
        ("h.md", "", "", "", 7),
    ]
    assert document.frontmatter["related"] == [{"slug": "[[a]]", "type": "uses"}, [["b"]]]
