"""Where links lead (facts 57 to 75 and 92, 93)."""

from __future__ import annotations

from apps.knowledge_graph.values import EvidenceValue
from tests.knowledge_graph.pages_of_texts import edges_of, graph_of, page_text, pages_of, reading_of

OTHERS = {"b.md": page_text("b"), "c.md": page_text("c"), "x.md": page_text("x")}


def rows_of(body: str, others: dict[str, str] | None = None, path: str = "me.md") -> list[EvidenceValue]:
    """Evidence of a page ``me`` with this body, beside pages a, b, c and x, or beside ``others``."""
    beside = {"a.md": page_text("a"), **OTHERS} if others is None else others
    graph = graph_of({**beside, path: page_text("me", body)})
    return [row for rows in graph.evidence.values() for row in rows if row.document == documents(path)]


def documents(path: str) -> object:
    return reading_of(page_text("me"), path).page.document  # type: ignore[union-attr]


def led(rows: list[EvidenceValue]) -> list[str | None]:
    return [row.edge_uid.rpartition(">")[2] if row.edge_uid else None for row in rows]


def outcomes(rows: list[EvidenceValue]) -> list[str]:
    return [row.outcome for row in rows]


def test_graph_fact_57_each_occurrence_is_evidence() -> None:
    rows = rows_of("[[a]][[b]][[a]]")
    assert led(rows) == ["a", "b", "a"]


def test_graph_fact_58_brackets() -> None:
    assert led(rows_of("[[[x]]] and [[a [[b]] c]] and [[ a ]] and [[a\n]] and [[\u00a0a\u00a0]]")) == [
        "x", "b", "a", "a", "a",
    ]  # fmt: skip


def test_graph_fact_59_parts_are_kept() -> None:
    rows = rows_of("[[a|L]] [[a#h]] [[a#^k]] ![[a]]\n\n| t |\n|---|\n| [[a\\|L]] |\n")
    assert led(rows) == ["a"] * 5
    assert [(r.occurrence.label, r.occurrence.anchor, r.occurrence.embed) for r in rows] == [
        ("L", "", False), ("", "h", False), ("", "^k", False), ("", "", True), ("L", "", False),
    ]  # fmt: skip


def test_graph_fact_60_words_before_the_target() -> None:
    others = {**OTHERS, "r.md": page_text("r", "# Runbook: Restart\n", type="runbook")}
    rows = rows_of("[[depends_on::b|the pool]] [[dependz_on::b]] [[std::vector]] [[Runbook: Restart]]", others)
    assert led(rows) == ["b", None, None, "r"]
    assert (rows[0].occurrence.stated, rows[0].occurrence.provenance) == ("depends_on", "wikilink")
    assert outcomes(rows)[1:3] == ["unresolved", "unresolved"]
    page = reading_of(page_text("me", "[[dependz_on::b]] [[std::vector]]")).page
    assert page is not None
    assert [problem.rule for problem in page.all_problems] == ["KG114", "KG106"]
    assert "vector" not in graph_of({"me.md": page_text("me", "[[std::vector]]")}).nodes


def test_graph_fact_61_and_62_names() -> None:
    others = {"a.md": page_text("a"), "x/y.md": page_text("a-b")}
    assert led(rows_of("[[A]] [[a_b]] [[decisions/a]] [[a.md]]", others)) == ["a", "a-b", "a", "a"]
    rows = rows_of("[[café]] [[node.js]]")
    assert outcomes(rows) == ["unresolved", "unresolved"]
    assert led(rows_of("[[café]] [[Cafe\u0301]]", {"b.md": page_text("b", aliases="[café]")})) == ["b", "b"]


def test_graph_fact_63_whole_names_only() -> None:
    others = {"plan.md": page_text("plan"), "team-plan.md": page_text("team-plan")}
    assert led(rows_of("[[plan]]", others)) == ["plan"]


def test_graph_fact_64_two_ways_to_one_page() -> None:
    rows = rows_of("[[Inbox]] and [x](./inbox.md)", {"inbox.md": page_text("inbox")})
    assert [row.edge_uid for row in rows] == ["me>depends_on>inbox"] * 2


def test_graph_fact_65_relative_links() -> None:
    others = {
        "p/set up.md": page_text("set-up"),
        "c/d.md": page_text("d"),
        "p/g.md": page_text("g"),
        "p/x_(y).md": page_text("xy"),
        "p/y.md": page_text("y"),
        "p/plain.md": "# Plain\n",
    }
    body = (
        '[s](./set%20up.md) [c](../c/d.md#top) [g][r] [w](x_(y).md) [t](y.md "T") ![i](p.png) [p](plain.md)'
        " [w](https://x.org/y.md)\n\n[r]: g.md\n"
    )
    rows = rows_of(body, others, "p/me.md")
    assert led(rows) == ["set-up", "d", "g", "xy", "y", None]
    assert outcomes(rows)[-1] == "document"
    assert rows[1].occurrence.anchor == "top"


def test_graph_fact_66_code_is_no_prose() -> None:
    body = (
        "```\n[[a]]\n```\n\n~~~\n[[a]]\n~~~\n\n````\n```\n[[a]]\n```\n````\n\n``[[a]]`` and `[[b]]`\n\n"
        "    [[a]]\n\n<!-- [[a]] -->\n\n<pre>\n[[a]]\n</pre>\n"
    )
    assert rows_of(body) == []


def test_graph_fact_67_and_68_stray_marks() -> None:
    assert led(rows_of("one ` tick\n\n[[a]]\n\nanother ` tick\n")) == ["a"]
    page = reading_of("---\nslug: me\ntype: module\nstatus: draft\n---\n# A\n```\n[[x]]\n\n# B\n[[y]]\n").page
    assert page is not None
    assert page.occurrences == ()
    assert [(problem.rule, problem.line) for problem in page.all_problems] == [("KG118", 7)]


def test_graph_fact_69_and_70_every_kind_of_prose() -> None:
    body = "## See [[a]]\n\n> [[a]]\n\n> [!NOTE]\n> [[a]]\n\n- [[a]]\n\n| t |\n|---|\n| [[a]] |\n"
    assert led(rows_of(body)) == ["a"] * 5
    fence = "```\n" + "code [[b]]\n\n" * 2000 + "```\n\n[[a]]\n"
    assert led(rows_of(fence)) == ["a"]


def test_graph_fact_71_and_72_no_links() -> None:
    assert rows_of('data[[0]] and [[1]](#fn) and M[[i]] and [[ -f "$A" ]]') == []
    assert outcomes(rows_of("[[404]]")) == ["unresolved"]
    assert led(rows_of("[[404]]", {"n.md": page_text("'404'")})) == ["404"]
    assert rows_of("\\[[a]] and \\[\\[a\\]\\]") == []


def test_graph_fact_73_own_headings() -> None:
    page = reading_of(page_text("me", "[[#part]] [[#Here]]\n\n## Here\n")).page
    assert page is not None
    assert page.occurrences == ()
    assert [problem.rule for problem in page.all_problems] == ["KG116"]


def test_graph_fact_75_itself() -> None:
    rows = rows_of("[[me]]", {})
    assert outcomes(rows) == ["self"]


def test_graph_ambiguous_names_make_no_edge() -> None:
    others = {"x/one.md": page_text("p1", title="Plan"), "y/one.md": page_text("p2", title="Plan")}
    rows = rows_of("[[One]] [[Plan]] [[y/one]] [[p1]]", others)
    assert outcomes(rows) == ["ambiguous", "ambiguous", "edge", "edge"]
    assert rows[0].rivals == ("p1", "p2")


def test_graph_other_sources_are_references() -> None:
    body = "[[other:dec-x]] [[repo/a/b/c:dec-x|L]] [[uses::other:dec-x]] [[collection/c:dec-x]] [[Note: x]]"
    [page] = pages_of({"me.md": page_text("me", body, related='["[[other:dec-x]]"]')})
    assert [(r.source_kind, r.source, r.slug, r.stated) for r in page.references] == [
        (None, "other", "dec-x", None),
        (None, "other", "dec-x", None),
        ("repo", "a/b/c", "dec-x", None),
        (None, "other", "dec-x", "uses"),
        ("collection", "c", "dec-x", None),
    ]
    assert [each.target for each in page.occurrences] == ["Note: x"]


def test_graph_fact_84_and_85_two_files_one_slug() -> None:
    files = {
        "x/a.md": page_text("a", "[[b]]", type="decision"),
        "decisions/z.md": page_text("a", "[[c]]", type="decision"),
        "y.md": page_text("y", "[[a]] [[x/a]]"),
    }
    graph = graph_of(files)
    assert graph == graph_of(dict(reversed(files.items())))
    assert graph.winners["a"] == reading_of(files["decisions/z.md"], "decisions/z.md").page.document  # type: ignore[union-attr]
    assert set(graph.edges) == {"a>related_to>c", "y>related_to>a"}
    withheld = [row for rows in graph.evidence.values() for row in rows if row.outcome == "withheld"]
    assert [row.occurrence.target for row in withheld] == ["b"]
    del files["decisions/z.md"]
    assert set(graph_of(files).edges) == {"a>related_to>b", "y>related_to>a"}


def test_graph_fact_92_mdx() -> None:
    body = "```js\nimport x from '[[a]]'\n```\n\nProse [[b]].\n"
    assert led(rows_of(body, path="me.mdx")) == ["b"]


def test_graph_fact_93_equal_sections() -> None:
    rows = rows_of("## S\n\n[[a]]\n\n## S\n\n[[a]]\n")
    assert [row.occurrence.line for row in rows] == [9, 13]
    assert edges_of(graph_of({"me.md": page_text("me", "[[a]]"), "a.md": page_text("a")}))


def test_graph_the_first_weight_in_order_of_strength_counts() -> None:
    text = page_text(
        "me", "[[uses::b]]", related="[{slug: b, type: uses, weight: 0.3}]", uses="[{slug: b, weight: 0.4}]"
    )
    assert edges_of(graph_of({"me.md": text}))["me", "uses", "b"][0] == 0.3
