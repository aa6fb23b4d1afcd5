"""Wiki links, bare addresses, raw HTML, and the keys that an address may mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.markup.links import KeyGroup, candidates
from apps.markup.values import ParsedDocument

Read = Callable[..., ParsedDocument]


def wiki(document: ParsedDocument) -> list[str]:
    return [each.href for each in document.links if each.link_type == "wiki"]


@pytest.mark.parametrize(
    ("source", "hrefs"),
    [
        ("[[a]] and [[b]]", ["a", "b"]),
        ("[[ a b ]]", ["a b"]),
        ("[[a\nb]]", ["a b"]),
        ("> [[a\n> b]]", ["a b"]),
        ("[[a\n\nb]]", []),
        ("- [[a\n- b]]", []),
        ("[[#only heading]]", ["#only heading"]),
        ("[[a#^block]]", ["a#^block"]),
        ("[[a [[b]] c]]", ["b"]),
        ("[[[a]]]", ["a"]),
        ("\\[[a]]", []),
        ("\\\\[[a]]", ["a"]),
        ("x[[a]]", []),
        ("é[[a]] _[[b]]", []),
        ("([[a]])", ["a"]),
        ("[[a]](b.md)", []),
        ("[[]] [[ ]] [[|x]]", []),
        ("[[-f x]] [[a=b]] [[{x}]] [[<x>]]", []),
        ("`[[a]]` [[b]]", ["b"]),
        ("[[a `]]` b]]", []),
        ("[[a|`b`]]", ["a"]),
        ("x <!-- [[a]] --> [[b]]", ["b"]),
        ("<div>\n[[a]]\n</div>", []),
        ("    [[a]]", []),
        ("*[[a_b]]* **[[c]]**", ["a_b", "c"]),
        ("[[" + "x" * 200 + "]]", ["x" * 200]),
        ("[[" + "x" * 201 + "]]", []),
        ("# Heading [[a|b]]", ["a"]),
        ("| x |\n|--|\n| [[P\\|L]] |", ["P"]),
        ("[[Runbook: Restart]]", ["Runbook: Restart"]),
        ("<https://x.y/[[a]]>", []),
    ],
)
def test_wiki_links(read: Read, source: str, hrefs: list[str]) -> None:
    assert wiki(read(source)) == hrefs


def test_wiki_links_are_stronger_than_links(read: Read) -> None:
    document = read("[see [[x]] now](u.md) [[y]][r] [[z]]\n\n[z]: q.md\n[r]: s.md")
    assert [each.href for each in document.links] == ["x", "y", "z"]


def test_wiki_link_places(read: Read) -> None:
    text = "é **[[uses::b#H|c]]** ![[d]] ![[p.png|200]] ![[q.jpg|alt]]"
    document = read(f"# A\n\n{text}\n")
    raw = document.text.encode()
    link, embed = document.links
    assert (link.text, link.rel_type, link.path, link.fragment, link.alias) == ("c", "uses", "b", "H", "c")
    assert raw[link.start_byte : link.end_byte].decode() == "[[uses::b#H|c]]"
    assert raw[embed.start_byte : embed.end_byte].decode() == "![[d]]"
    assert (link.line, link.column, link.section) == (3, 5, 0)
    assert [(each.href, each.alt, each.width) for each in document.assets] == [
        ("p.png", "", "200"),
        ("q.jpg", "alt", ""),
    ]
    assert read("## See [[P|L]] {#x}").heading_tree[0].text == "See L"


@pytest.mark.parametrize(
    ("source", "hrefs"),
    [
        ("go to https://a.b/c_d.", ["https://a.b/c_d"]),
        ("(https://a.b/c_(d))", ["https://a.b/c_(d)"]),
        ("http://localhost:8000/x?y=1&z=2#f, then", ["http://localhost:8000/x?y=1&z=2#f"]),
        ("*https://a.b*", ["https://a.b"]),
        ("xhttps://a.b", []),
        ("https:// alone", []),
        ("`https://a.b`", []),
        ("[https://a.b](c.md)", ["c.md"]),
        ("<https://a.b>", ["https://a.b"]),
        ("<x@y.z> and x@y.z and ftp://a.b", ["mailto:x@y.z"]),
        ("| https://a.b | c |\n|--|--|", ["https://a.b"]),
        ("# Heading https://a.b/x", ["https://a.b/x"]),
        ("见 https://a.b/x。后", ["https://a.b/x"]),
        ("https://a.b/x[y](z.md)", ["https://a.b/x", "z.md"]),
        ("    https://a.b", []),
        ("[x]: https://a.b", []),
    ],
)
def test_bare_addresses(read: Read, source: str, hrefs: list[str]) -> None:
    assert [each.href for each in read(source).links] == hrefs


def test_raw_html(read: Read) -> None:
    document = read(
        "A <a id=\"one\"></a><a name=two href='x.md?a&amp;b'>the <b>x</b></a>.\n\n"
        '> <div id="three">\n> <img\n> src="p.png" alt="P">\n> </div>\n\n'
        '<!-- <a href="no.md">no</a> -->\n\n`<a href="no.md">`\n'
    )
    assert [(each.href, each.text) for each in document.links] == [("x.md?a&b", "the x")]
    assert [(each.href, each.alt) for each in document.assets] == [("p.png", "P")]
    assert document.anchors == ("one", "two", "three")
    raw = document.text.encode()
    assert [raw[start:end][:4] for start, end in document.hidden_spans] == [b"<!--"]
    assert [raw[start:end].split()[0] for start, end in document.tag_spans][:2] == [b"<a", b"</a>"]


def test_link_inside_a_picture_and_a_picture_inside_a_link(read: Read) -> None:
    document = read("[![alt *x*](p.png) more `c`](a.md)")
    assert [(each.text, each.href) for each in document.links] == [("alt x more c", "a.md")]
    assert [(each.alt, each.href) for each in document.assets] == [("alt x", "p.png")]


def test_sections_of_links(read: Read) -> None:
    document = read("[a](1)\n\n# H [b](2)\n\n#\n\n[c](3)\n\n## I\n\n> # Q [d](4)\n")
    assert [each.section for each in document.links] == [0, 1, 1, 2]
    document = read("[g]: x.md\n\n# H\n\n[g]")
    assert [each.heading_path for each in document.sections] == [(), ("H",)]
    assert document.links[0].section == 1


def groups(href: str, source: str, *roots: str) -> list[KeyGroup]:
    return list(candidates(href, source, roots).groups())


def test_candidate_rules_in_order() -> None:
    found = groups("guide", "docs/a.md")
    assert [(each.rule, each.match, each.keys[0]) for each in found] == [
        (0, "exact", "guide"),
        (1, "exact", "docs/guide"),
        (2, "exact", "docs/guide.md"),
        (4, "exact", "docs/guide/index.md"),
        (5, "exact", "guide"),
        (5, "exact", "guide.md"),
        (5, "exact", "guide/index.md"),
        (6, "fold", "docs/guide"),
        (7, "name", "guide"),
        (7, "name_fold", "guide"),
    ]
    assert found[2].keys == (
        "docs/guide.md",
        "docs/guide.mdx",
        "docs/guide.markdown",
        "docs/guide.rst",
        "docs/guide.txt",
    )


def test_candidates_of_rooted_addresses() -> None:
    assert [each.keys[0] for each in groups("/x", "d/a.md", "docs") if each.match == "exact"] == [
        "/x", "x", "x.md", "x/index.md", "docs/x", "docs/x.md", "docs/x/index.md",
    ]  # fmt: skip
    assert not [each for each in groups("/x", "d/a.md") if each.rule in (1, 2, 3, 4)]


def test_candidates_of_html_folders_and_swapped_endings() -> None:
    assert "d/x.md" in next(each.keys for each in groups("x.html", "d/a.md") if each.rule == 3)
    assert "d/x/index.md" in next(each.keys for each in groups("x/", "d/a.md") if each.rule == 4)
    assert "d/README.md" in next(each.keys for each in groups("index.html", "d/a.md") if each.rule == 4)
    assert next(each.keys for each in groups("x.md", "d/a.md") if each.rule == 3) == ("d/x.mdx",)


def test_candidates_without_keys() -> None:
    assert groups("https://a.b/x.md", "a.md") == groups("mailto:x@y.z", "a.md") == []
    assert groups("#top", "d/a.md") == groups("", "d/a.md") == [KeyGroup(1, "exact", ("d/a.md",))]


def test_only_a_bare_name_is_looked_up_by_name() -> None:
    assert [each.keys for each in groups("B.md", "d/a.md") if each.rule == 7] == [("B.md", "B"), ("b.md", "b")]
    assert not [each for each in groups("./b.md", "d/a.md") if each.rule == 7]
    assert groups("x%zz.md", "a.md")[1].keys == ("x%zz.md",)
