"""What makes a page, and what its header says (facts 16 and 30 to 56)."""

from __future__ import annotations

import pytest

from apps.knowledge_graph.reading.pages import PageReading
from apps.knowledge_graph.values import Page
from tests.knowledge_graph.pages_of_texts import edges_of, graph_of, page_text, pages_of, reading_of


def page_of(text: str | bytes, path: str = "a.md", *older: str) -> Page:
    page = reading_of(text, path, *older).page
    assert page is not None
    return page


def with_lines(*lines: str, body: str = "") -> str:
    """A page with further front matter lines, from line 5 on."""
    return "\n".join(["---", "slug: a", "type: module", "status: accepted", *lines, "---", body]) + "\n"


def rules(reading: PageReading | Page) -> list[str]:
    if isinstance(reading, PageReading):
        return [problem.rule for problem in (reading.page.all_problems if reading.page else reading.problems)]
    return [problem.rule for problem in reading.all_problems]


def targets(*lines: str) -> list[tuple[str | None, str]]:
    return [(each.stated, each.target) for each in page_of(with_lines(*lines)).occurrences]


def test_graph_fact_16_long_slugs() -> None:
    long, other = "a" * 128, "b" * 128
    graph = graph_of({"a.md": page_text(long, f"[[{other}]]"), "b.md": page_text(other)})
    assert list(graph.edges) == [f"{long}>depends_on>{other}"]
    reading = reading_of(page_text("a" * 129))
    assert reading.page is None
    assert [(p.rule, p.severity, p.line, p.column) for p in reading.problems] == [("KG101", "warning", 2, 7)]


def test_graph_fact_30_owners_are_names_unless_they_are_pages() -> None:
    graph = graph_of({"a.md": page_text("a", owners="[Direzione, Customer Care]")})
    assert (list(graph.nodes), graph.edges) == (["a"], {})
    assert [row.outcome for rows in graph.evidence.values() for row in rows] == ["metadata", "metadata"]
    assert page_of(page_text("a", owners="[Direzione, Customer Care]")).header.owners == ("Direzione", "Customer Care")
    graph = graph_of({"a.md": page_text("a", owners='["[[team-x]]"]')})
    assert edges_of(graph) == {("a", "owned_by", "team-x"): (0.7, "frontmatter_typed")}
    assert graph.nodes["team-x"].dangling
    named = graph_of({"a.md": page_text("a", owners="[team-x, The X]"), "x.md": page_text("team-x", aliases="[the x]")})
    assert list(named.edges) == ["a>owned_by>team-x"]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff---\nslug: a\ntype: module\n---\n# T\n",
        "--- \t\nslug: a\ntype: module\n---\n# T\n",
        "---\nslug: a\ntype: module\n...\n# T\n",
        "---\r\nslug: a\r\ntype: module\r\n---\r\n# T\r\n",
    ],
)
def test_graph_fact_31_spellings_of_the_block(text: str) -> None:
    clean = page_of("---\nslug: a\ntype: module\n---\n# T\n")
    page = page_of(text)
    assert (page.header, page.body, page.label) == (clean.header, clean.body, "T")


@pytest.mark.parametrize(
    "text",
    [
        "\n---\nslug: a\ntype: module\n---\n# T\n",
        '+++\nslug = "a"\ntype = "module"\n+++\n# T\n',
        "---\nslug: a\ntype: module\n\n# T\n",
        "---\nslug: a\ntype: module\n----\n# T\n",
    ],
)
def test_graph_fact_32_almost_front_matter(text: str) -> None:
    never = reading_of(text)
    assert never.page is None
    assert rules(never) == ["KG114"]
    was = page_of(text, "a.md", with_lines())
    assert was.header_state == "stale_header"
    assert [(p.rule, p.severity) for p in was.all_problems] == [("KG101", "error")]


def test_graph_fact_32_lone_carriage_returns() -> None:
    reading = reading_of(b"---\rslug: a\rtype: module\r---\r# T\r")
    assert reading.page is None or reading.page.uid == "a"


@pytest.mark.parametrize("text", ["---\n\nWelcome\n\n---\nmore", "---\n- a\n---\n", "---\n# c\n---\n", "---\n---\n"])
def test_graph_fact_33_blocks_without_keys(text: str) -> None:
    reading = reading_of(text)
    assert (reading.page, reading.problems) == (None, ())
    assert reading_of(text, "a.md", with_lines()).page is None


def test_graph_fact_34_last_line_is_no_heading() -> None:
    page = page_of("---\nslug: a\ntype: module\n---\ntext\n")
    assert page.label == "a"


@pytest.mark.parametrize(
    "line", ['title: "open', "\ttitle: x", "summary: a: b", "owner: @team", "title: *x*", "path: C:\\a: b"]
)
def test_graph_fact_35_yaml_errors(line: str) -> None:
    reading = reading_of(with_lines(line, body="# T\n\n[[b]]"))
    assert reading.page is None
    [problem] = reading.problems
    assert (problem.rule, problem.severity) == ("KG101", "warning")
    assert problem.line >= 5
    assert problem.column >= 1


def test_graph_fact_36_a_broken_header_keeps_the_last_readable_one() -> None:
    good = with_lines("supersedes: [b]", "title: T", body="[[c]]")
    bad = "---\nslug: a\ntype: module\nstatus: x: y\n---\n[[d]]\n"
    graph = graph_of({"a.md": good})
    assert set(graph.edges) == {"a>supersedes>b", "a>related_to>c"}
    page = page_of(bad, "a.md", bad + " ", good)
    assert page.header_state == "stale_header"
    assert (page.label, page.uid) == ("T", "a")
    assert [each.target for each in page.occurrences] == ["b", "d"]
    assert [(p.rule, p.severity, p.line) for p in page.all_problems] == [("KG101", "error", 4)]
    assert reading_of(bad, "a.md", "# plain\n", good).page is None  # given up in between


@pytest.mark.parametrize("keys", ["type: [module]\nslug: {a: b}", "type: 5\nslug: A b", "type: modul\nslug: 7"])
def test_graph_values_of_wrong_types_keep_the_last_readable_header(keys: str) -> None:
    bad = f"---\n{keys}\n---\n[[d]]\n"
    page = page_of(bad, "a.md", with_lines("uses: [b]"))
    assert (page.uid, page.header_state) == ("a", "stale_header")
    assert [each.target for each in page.occurrences] == ["b", "d"]
    assert [(p.rule, p.line) for p in page.all_problems] == [("KG101", 2)]
    # In a document that never was a page they are nobody's business.
    assert (reading_of(bad).page, reading_of(bad).problems) == (None, ())


def test_graph_foreign_keys_give_the_slug_up() -> None:
    foreign = reading_of("---\ntype: post\nslug: /intro\n---\n", "a.md", with_lines())
    assert (foreign.page, foreign.problems) == (None, ())


def test_graph_fact_37_removed_front_matter() -> None:
    reading = reading_of("# A\n", "a.md", with_lines())
    assert (reading.page, reading.problems) == (None, ())
    reading = reading_of("---\ntitle: A\n---\n", "a.md", with_lines())
    assert (reading.page, reading.problems) == (None, ())


def test_graph_fact_38_a_key_twice() -> None:
    reading = reading_of("---\nslug: a\ntype: module\nslug: b\n---\n")
    assert [(p.rule, p.line) for p in reading.problems] == [("KG101", 4)]


@pytest.mark.parametrize("slug", ["yes", "off", "'123'", "2026-01-10", "a--b", "0"[:0] + "no"])
def test_graph_facts_39_to_41_slugs_that_are_strings(slug: str) -> None:
    assert page_of(page_text(slug)).uid == slug.strip("'")


@pytest.mark.parametrize("slug", ["123", "1e3", "true", "null"])
def test_graph_fact_40_slugs_that_are_no_strings(slug: str) -> None:
    [problem] = reading_of(page_text(slug)).problems
    assert problem.rule == "KG101"
    assert "not a string, quote it" in problem.message


@pytest.mark.parametrize("slug", ['"a\\n"', "-a", "a-", "_a", "Bad Slug", "A"])
def test_graph_fact_41_slugs_that_do_not_match(slug: str) -> None:
    reading = reading_of(page_text(slug))
    assert (reading.page, rules(reading)) == (None, ["KG101"])


def test_graph_fact_42_spellings_of_types_and_status() -> None:
    for written, node_type, told in [
        ("Decision", "decision", ["KG120"]),
        ("' decision '", "decision", ["KG120"]),
        ("project-index", "project", []),
        ("module-kb", "module", []),
        ("domain_concept", "domain-concept", ["KG120"]),
    ]:
        page = page_of(page_text("a", type=written))
        assert (page.header.node_type, rules(page)) == (node_type, told)
    page = page_of(page_text("a", status="Accepted"))
    assert (page.header.status, rules(page)) == ("accepted", ["KG120"])


def test_graph_fact_43_unknown_types() -> None:
    near = reading_of(page_text("a", type="decison"))
    assert (near.page, rules(near)) == (None, ["KG114"])
    assert "'decision'?" in near.problems[0].message
    foreign = reading_of(page_text("a", type="post"))
    assert (foreign.page, foreign.problems) == (None, ())
    was = page_of(page_text("a", type="post"), "a.md", page_text("a", type="decision"))
    assert (was.header_state, rules(was)) == ("stale_header", ["KG101"])
    assert reading_of("---\nslug: /intro\n---\n").problems == ()


def test_graph_a_known_type_without_slug() -> None:
    reading = reading_of("---\ntype: decision\n---\n")
    assert (reading.page, rules(reading)) == (None, ["KG114"])
    assert page_of("---\ntype: decision\n---\n", "a.md", page_text("a")).header_state == "stale_header"


def test_graph_fact_44_status() -> None:
    page = page_of(page_text("a", status="acepted"))
    [problem] = page.all_problems
    assert (page.header.status, problem.rule, problem.line) == ("draft", "KG115", 4)
    assert "accepted" in problem.hint
    absent = page_of("---\nslug: a\ntype: module\n---\n")
    assert (absent.header.status, rules(absent)) == ("draft", ["KG120"])


@pytest.mark.parametrize(
    ("written", "priority", "told"),
    [
        (None, 50, []),
        ("0", 0, []),
        ("100", 100, []),
        ("'80'", 80, ["KG120"]),
        ("1e2", 100, ["KG120"]),
        ("high", 50, ["KG115"]),
        ("80.9", 50, ["KG115"]),
        ("-1", 50, ["KG115"]),
        ("101", 50, ["KG115"]),
        ("true", 50, ["KG115"]),
    ],
)
def test_graph_fact_45_priority(written: str | None, priority: int, told: list[str]) -> None:
    page = page_of(with_lines(*([f"retrieval_priority: {written}"] if written else [])))
    assert (page.header.priority, rules(page)) == (priority, told)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["related: b"], ["b"]),
        (['related: "[[b]]"'], ["b"]),
        (["related: [[b]]"], ["b"]),
        (["related:", "- [[b]]"], ["b"]),
        (["related: [[[b]], [[c]]]"], ["b", "c"]),
        (["related: [[b],[c]]"], ["b", "c"]),
        (["related:", "- [[b, c]]"], ["b", "c"]),
        (['related: "[[b]], [[c]]"'], ["b", "c"]),
        (["related: b, c"], ["b", "c"]),
    ],
)
def test_graph_facts_46_and_47_items(lines: list[str], wanted: list[str]) -> None:
    assert targets(*lines) == [(None, each) for each in wanted]


def test_graph_fact_47_nothing_half_read() -> None:
    assert rules(reading_of(with_lines("related: [[b]], [[c]]"))) == ["KG101"]
    page = page_of(with_lines('related: ["[[b]] and [[c]]", d, "e, "]'))
    assert [each.target for each in page.occurrences] == ["d"]
    assert rules(page) == ["KG115", "KG115"]


def test_graph_fact_48_spellings_of_targets() -> None:
    items = ["[[b|B]]", "[[c#h]]", "[[B]]", "b_c", "[[decisions/b]]", "[[b.md]]"]
    listed = ", ".join(f'"{item}"' for item in items)
    files = {
        "a.md": page_text("a", related=f"[{listed}]"),
        "b.md": page_text("b"),
        "c.md": page_text("c"),
        "b-c.md": page_text("b-c"),
    }
    graph = graph_of(files)
    rows = [row for rows in graph.evidence.values() for row in rows]
    assert [(row.edge_uid or "").rpartition(">")[2] for row in rows] == ["b", "c", "b", "b-c", "b", "b"]
    assert (rows[0].occurrence.label, rows[1].occurrence.anchor) == ("B", "h")
    unquoted = page_of(with_lines("related:", "- [[b|B]]", "- [[c]]"))
    assert [(each.target, each.label) for each in unquoted.occurrences] == [("b", "B"), ("c", "")]


def test_graph_fact_49_items_that_are_no_names() -> None:
    page = page_of(with_lines("related:", "- b", "-", "- 42", "- true", "- c"))
    assert [each.target for each in page.occurrences] == ["b", "c"]
    assert [(p.rule, p.line) for p in page.all_problems] == [("KG115", 7), ("KG115", 8), ("KG115", 9)]


def test_graph_fact_50_typed_items() -> None:
    page = page_of(with_lines("related: {depends_on: [b], uses: c}"))
    assert [(each.stated, each.target, each.provenance) for each in page.occurrences] == [
        ("depends_on", "b", "frontmatter_typed"),
        ("uses", "c", "frontmatter_typed"),
    ]
    graph = graph_of({"a.md": with_lines("related:", "- {slug: b, type: depends_on, weight: 0.9}", "- {uses: [d]}")})
    assert edges_of(graph) == {
        ("a", "depends_on", "b"): (0.9, "frontmatter_typed"),
        ("a", "uses", "d"): (0.8, "frontmatter_typed"),
    }
    elsewhere = page_of(with_lines("uses:", "- {slug: b, type: affects}"))
    assert ([each.stated for each in elsewhere.occurrences], rules(elsewhere)) == (["uses"], ["KG115"])


def test_graph_fact_51_a_key_for_each_type() -> None:
    types = {
        "implements": 1.0, "supersedes": 1.0, "decision_for": 1.0, "depends_on": 0.8, "uses": 0.8, "affects": 0.8,
        "invalidated_by": 0.7, "documented_by": 0.7, "owned_by": 0.7, "related_to": 0.5,
    }  # fmt: skip
    graph = graph_of({"a.md": with_lines(*(f"{kind}: b" for kind in types))})
    assert {key[1]: weight for key, (weight, _) in edges_of(graph).items()} == types


@pytest.mark.parametrize("weight", ["0", "1.5", "heavy", "-0.1", ".nan", "true", "0.00001"])
def test_graph_fact_52_bad_weights(weight: str) -> None:
    text = with_lines("related:", f"- {{slug: b, type: uses, weight: {weight}}}")
    assert rules(page_of(text)) == ["KG115"]
    assert edges_of(graph_of({"a.md": text})) == {("a", "uses", "b"): (0.8, "frontmatter_typed")}


def test_graph_fact_53_one_slug_in_three_fields() -> None:
    graph = graph_of({"a.md": with_lines("related: [b]", "supersedes: [b]", "superseded_by: b")})
    assert edges_of(graph) == {
        ("a", "related_to", "b"): (0.5, "frontmatter_related"),
        ("a", "supersedes", "b"): (1.0, "frontmatter_supersedes"),
        ("a", "invalidated_by", "b"): (0.7, "frontmatter_superseded_by"),
    }


def test_graph_fact_54_a_comment_that_was_not_meant() -> None:
    page = page_of(with_lines("summary: fix #12 now"))
    assert (page.header.summary, rules(page)) == ("fix", ["KG120"])
    assert rules(page_of(with_lines("summary: fix # really"))) == []


def test_graph_fact_55_hostile_yaml() -> None:
    assert page_of(with_lines("created_at: 2026-01-10")).header.others == {"created_at": "2026-01-10"}
    bomb = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    bomb += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]
    for lines in (["x: !!python/object:os.system"], bomb, [f"x: {'[' * 5000}{']' * 5000}"]):
        assert rules(reading_of(with_lines(*lines))) == ["KG101"]


def test_graph_fact_56_near_misses_of_keys() -> None:
    page = page_of(with_lines("relatd: [b]"))
    assert (page.occurrences, rules(page)) == ((), ["KG114"])
    page = page_of(with_lines("depends-on: [b]"))
    assert ([each.stated for each in page.occurrences], rules(page)) == (["depends_on"], ["KG120"])
    assert rules(page_of(with_lines("uid: x", "user: y", "author: z", "updated_at: 1"))) == ["KG114"]


def test_graph_limits_of_a_field() -> None:
    page = page_of(with_lines("related:", *(f"- p{n}" for n in range(1002))))
    assert len(page.occurrences) == 1000
    assert rules(page) == ["KG121"]


def test_graph_other_formats_are_no_pages() -> None:
    text = page_text("a")
    assert [page.path for page in pages_of(dict.fromkeys(("a.md", "b.txt", "c.rst", "d.mdx", "e.Markdown"), text))] == [
        "a.md",
        "d.mdx",
        "e.Markdown",
    ]
