"""The search over a collection: `retrieval.md` facts 1, 3 to 10, 17, 18, 27, 62, 67 to 69, 75 to 80."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.access.errors import BadRequest, Invalid
from apps.access.models import User
from apps.access.visibility import set_visibility
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.jobs.worker import drain
from apps.retrieval.values import Answer, Filters

pytestmark = pytest.mark.django_db
Ask = Callable[..., Answer]
Fill = Callable[..., None]


def keys(answer: Answer) -> list[str]:
    return [hit.path for hit in answer.hits]


@pytest.mark.parametrize("query", ["createServer", "create server", "createserver", "CREATESERVER"])
def test_retrieval_fact_01_one_name_four_spellings(fill: Fill, asking: Ask, query: str) -> None:
    fill({"a.md": "# Call\n\nuse `createServer` to begin", "b.md": "# Other\n\nnothing of the kind"})
    assert keys(asking(query))[0] == "a.md"


@pytest.mark.parametrize("query", ["ADR-0042", '"--dry-run"', "--dry-run", "adr 0042"])
def test_retrieval_fact_03_identifiers_and_flags(fill: Fill, asking: Ask, query: str) -> None:
    fill({"a.md": "See ADR-0042 and run --dry-run", "b.md": "dry weather, a run in the park", "c.md": "ADR 7 and 42"})
    assert keys(asking(query))[0] == "a.md"


def test_retrieval_fact_04_a_flag_is_no_operator(fill: Fill, asking: Ask) -> None:
    fill({"a.md": "pass -v for more", **{f"n{n}.md": f"other text {n}" for n in range(8)}})
    assert keys(asking("-v"))[0] == "a.md"


def test_retrieval_fact_06_chinese(fill: Fill, asking: Ask) -> None:
    fill({"a.md": "数据库备份每天凌晨执行", "b.md": "完全不同的内容"})
    (hit, *_) = asking("备份").hits
    assert hit.path == "a.md"
    assert ("备份", True) in hit.snippet.parts()


@pytest.mark.parametrize(
    "query",
    [
        "what's up?",
        "((",
        "a & | !b",
        ":*",
        "foo:bar",
        "'",
        "<x@y.z>",
        '"open',
        "-v",
        "a\0b",
        "[" * 2000,
        "👍",
        "% _ \\",
    ],
)
def test_retrieval_fact_08_any_text_is_a_query(fill: Fill, asking: Ask, query: str) -> None:
    fill({"a.md": "# A\n\nfoo:bar and <x@y.z>"})
    answer = asking(query)
    assert answer.total == len(answer.hits) or answer.next_cursor


def test_retrieval_fact_09_only_common_words(fill: Fill, asking: Ask) -> None:
    fill({"a.md": "# A\n\nwhat is the matter"})
    answer = asking("what is the")
    assert answer.empty is not None and answer.empty.reason == "only_common_words"


def test_retrieval_fact_10_whole_words(fill: Fill, asking: Ask) -> None:
    fill({"a.md": "we start here", "b.md": "about art", "c.md": "many plans"}, embed=False)
    assert keys(asking("art")) == ["b.md"]
    assert keys(asking("plan")) == ["c.md"]


def test_retrieval_fact_17_hidden_text_changes_no_byte(
    fill: Fill, asking: Ask, shelf: Collection, olga: User, otto: User
) -> None:
    set_visibility(source=shelf, visibility="public", by=olga)
    fill({"a.md": "# Backup\n\nbackup the database nightly", "b.md": "# Restore\n\nrestore a backup"})
    before = asking("backup database", viewer=otto)
    other = create_collection(by=olga, name="Hidden")
    fill({f"h{n}.md": f"# Backup {n}\n\nbackup the database, number {n}" for n in range(30)}, collection=other)
    after = asking("backup database", viewer=otto)
    assert dataclasses.replace(after, milliseconds=0) == dataclasses.replace(before, milliseconds=0)
    assert asking("backup database", viewer=olga).total > before.total


def test_retrieval_fact_27_words_answer_before_vectors(fill: Fill, asking: Ask) -> None:
    fill({"a.md": "# A\n\nalpha text"})
    fill({"b.md": "# B\n\nalpha words"}, embed=False)
    states = {hit.path: hit.streams["dense"].state for hit in asking("alpha").hits}
    assert states == {"a.md": "found", "b.md": "no vector yet"}


def test_retrieval_fact_67_ties_keep_their_order_over_pages(fill: Fill, asking: Ask) -> None:
    fill({f"{n}.md": "the very same line" for n in range(6)})
    whole = keys(asking("same line", limit=10))
    assert sorted(whole) == [f"{n}.md" for n in range(6)]
    for _ in range(5):
        seen: list[str] = []
        cursor = None
        while True:
            page = asking("same line", limit=2, cursor=cursor)
            seen += keys(page)
            assert page.total == 6
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == whole


def test_retrieval_fact_68_and_69_copies(fill: Fill, asking: Ask, shelf: Collection, olga: User, otto: User) -> None:
    text = "# Install\n\n" + "unpack the archive and run the installer with care " * 12
    fill({f"v{n}/install.md": text for n in range(6)})
    second = create_collection(by=olga, name="Second")
    fill({"install.md": text}, collection=second)
    answer = asking("unpack the archive")
    assert answer.total == 1
    assert (len(answer.hits[0].also_in), answer.hits[0].also_in_more) == (5, 1)
    set_visibility(source=second, visibility="public", by=olga)
    visible = asking("unpack the archive", viewer=otto)
    assert (visible.total, visible.hits[0].also_in, visible.hits[0].also_in_more) == (1, (), 0)


def test_retrieval_fact_75_dates_are_those_of_the_text(fill: Fill, asking: Ask) -> None:
    fill({"a.md": "alpha"})
    day = datetime.datetime(2026, 1, 10, 12, tzinfo=datetime.UTC)
    Document.objects.update(changed_at=day)
    assert asking("alpha", filters=Filters(since=datetime.date(2026, 2, 1))).total == 0
    assert asking("alpha", filters=Filters(until=datetime.date(2026, 1, 10))).total == 1


def test_retrieval_fact_76_filters_narrow_before_the_cut(fill: Fill, asking: Ask, settings: Any) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, retrieval=dataclasses.replace(settings.COGRAPH.retrieval, candidates=5)
    )
    fill(
        {f"other/{n}.md": "alpha alpha alpha" for n in range(8)}
        | {f"docs/{n}.md": "alpha and more words" for n in range(4)}
    )
    assert keys(asking("alpha", filters=Filters(path="docs/"))) == [f"docs/{n}.md" for n in range(4)]
    assert keys(asking("alpha", filters=Filters(path="docs/[12].md"))) == ["docs/1.md", "docs/2.md"]


def test_retrieval_fact_78_what_is_gone_is_nowhere(fill: Fill, asking: Ask, olga: User) -> None:
    fill({"gone.md": "# Gone\n\nxylophone", "b.md": "# B\n\nother"})
    assert keys(asking("xylophone"))[0] == "gone.md"
    trash_document(document=Document.objects.get(source_key="gone.md"), by=olga)
    answer = asking("xylophone")
    assert answer.hits == () and answer.empty is not None
    assert answer.empty.reason == "words_absent"
    assert all("Gone" not in near.title for near in answer.nearest)


def test_retrieval_fact_79_reasons(fill: Fill, asking: Ask, otto: User) -> None:
    fill({"a.md": "# Alpha\n\nalpha text", "b.md": "# Beta\n\nbeta text"})
    absent = asking("zzyzx")
    assert absent.empty is not None and (absent.empty.reason, absent.empty.words) == ("words_absent", ("zzyzx",))
    filtered = asking("alpha", filters=Filters(path="nowhere/"))
    assert filtered.empty is not None and filtered.empty.reason == "filters_too_narrow"
    nothing = asking("alpha", viewer=otto)
    assert nothing.empty is not None and nothing.empty.reason == "nothing_readable"


def test_retrieval_fact_80_a_cursor_dies_with_the_index_it_saw(fill: Fill, asking: Ask, otto: User) -> None:
    fill({f"{n}.md": f"alpha {n}" for n in range(4)})
    cursor = asking("alpha", limit=2).next_cursor
    with pytest.raises(BadRequest) as caught:
        asking("alpha beta", limit=2, cursor=cursor)
    assert caught.value.code == "stale_cursor"
    with pytest.raises(BadRequest):
        asking("alpha", limit=2, cursor=cursor, viewer=otto)
    fill({"new.md": "alpha new"})
    with pytest.raises(BadRequest):
        asking("alpha", limit=2, cursor=cursor)


def test_retrieval_rule_10_4_a_cursor_dies_when_vectors_arrive(fill: Fill, asking: Ask) -> None:
    fill({f"{n}.md": f"alpha {n}" for n in range(4)}, embed=False)
    cursor = asking("alpha", limit=2).next_cursor
    assert asking("alpha", limit=2, cursor=cursor).hits
    drain()
    with pytest.raises(BadRequest):
        asking("alpha", limit=2, cursor=cursor)
    cursor = asking("alpha", limit=2).next_cursor
    drain()
    assert asking("alpha", limit=2, cursor=cursor).hits


def test_bounds_are_refused(asking: Ask) -> None:
    for options in (
        {"query": ""},
        {"query": " \0 "},
        {"query": "x" * 2001},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 101},
        {"query": "x", "snippet_chars": 79},
    ):
        with pytest.raises(Invalid):
            asking(**options)


def test_an_explained_hit_names_its_words_and_ranks(fill: Fill, asking: Ask) -> None:
    fill({"a.md": "# Backup\n\nhow the database is saved"})
    (hit,) = asking("backup database").hits
    assert {(term.word, term.fields) for term in hit.matched} == {("backup", ("heading",)), ("database", ("text",))}
    assert (hit.streams["lexical"].rank, hit.streams["lexical"].state) == (1, "found")
    assert hit.location == "a.md#backup:1-3"


def test_facets_count_the_rows_of_the_answer(fill: Fill, asking: Ask) -> None:
    fill({"docs/a.md": "alpha", "docs/b.md": "alpha", "c.md": "alpha"})
    facets = {facet.name: {value.value: value.count for value in facet.values} for facet in asking("alpha").facets}
    assert facets["kind"] == {"collection": 3}
    assert facets["path"] == {"docs/": 2}
    assert sum(facets["source"].values()) == 3


def test_portal_rule_15_each_facet_counts_what_its_filter_leaves(fill: Fill, asking: Ask) -> None:
    fill(
        {
            "a.md": "---\ntype: Guide\nstatus: draft\ntags: [ops, web]\n---\n# A\n\nalpha",
            "b.md": "---\ntype: guide\nslug: b\nstatus: Accepted\ntags: ops\n---\n# B\n\nalpha",
            "c.md": "---\ntype: 7\ntags: [1, web, web]\nstatus: [x]\n---\n# C\n\nalpha",
            "bare.md": "---\ntitle: Alpha\ntype: note\n---\n",
            "plain.md": "# P\n\nalpha",
        }
    )
    facets = {facet.name: {value.value: value.count for value in facet.values} for facet in asking("alpha").facets}
    assert facets["tag"] == {"ops": 2, "web": 2, "1": 1}
    assert facets["type"] == {"guide": 2, "7": 1, "note": 1}
    assert facets["status"] == {"accepted": 1, "draft": 1}
    for name, counts in facets.items():
        for value, count in counts.items():
            if name in ("tag", "type", "status"):
                narrowed = asking("alpha", filters=Filters(**{name: value}))
                assert narrowed.total == count
                active = [one for facet in narrowed.facets for one in facet.values if facet.name == name and one.active]
                assert [one.value for one in active] == [value]


def test_queries_do_not_grow_with_the_rows(fill: Fill, asking: Ask) -> None:
    fill({f"{n}.md": f"alpha {n}" for n in range(30)})
    counts = []
    for limit in (1, 30):
        with CaptureQueriesContext(
            connection,
        ) as captured:
            asking("alpha", limit=limit)
        counts.append(len([query for query in captured if "SAVEPOINT" not in query["sql"]]))
    assert counts[0] == counts[1] <= 6


def test_retrieval_fact_47_a_document_of_front_matter_only(fill: Fill, asking: Ask) -> None:
    fill({"plans/orchard.md": "---\ntitle: The orchard\nstatus: draft\n---\n", "b.md": "# B\n\nother words"})
    for query in ("orchard", "orchard.md", "plans/orchard.md", "the orchard"):
        hit = asking(query).hits[0]
        assert (hit.path, hit.title, hit.snippet.text, hit.chunk_id) == ("plans/orchard.md", "The orchard", "", 0)
        assert hit.url == hit.chunk_url
    assert asking("orchard", filters=Filters(path="b")).total == 0
    for filters in (
        Filters(path="plans/"),
        Filters(status="Draft"),
        Filters(path="*/orch*.md", since=datetime.date.min),
    ):
        assert asking("orchard", filters=filters).total == 1
    assert asking("orchard", filters=Filters(status="final", path="plans/")).total == 0


def test_retrieval_6_1_aliases_are_names(fill: Fill, asking: Ask) -> None:
    text = "---\naliases: [Quince, Cotogna]\n---\n# Fruit\n\nIt is sour.\n"
    fill({"fruit.md": text, "b.md": "# Soup\n\nWith quince."})
    first = asking("quince").hits[0]
    assert (first.path, first.name_class) == ("fruit.md", "exact_name")
    assert [hit.path for hit in asking("cotogna").hits] == ["fruit.md"]


@pytest.mark.parametrize("query", ["((", "...", "🚀"])
def test_retrieval_rule_4_9_a_query_without_words_has_no_hits(fill: Fill, asking: Ask, query: str) -> None:
    fill({"a.md": "# Alpha\n\nalpha text"})
    answer = asking(query)
    assert answer.hits == () and answer.empty is not None
    assert (answer.empty.reason, answer.empty.words) == ("words_absent", ())


def test_retrieval_rule_10_2_the_last_day_of_all(fill: Fill, asking: Ask) -> None:
    fill({"a.md": "alpha"})
    assert keys(asking("alpha", filters=Filters(since=datetime.date.min, until=datetime.date.max))) == ["a.md"]


def test_retrieval_rule_10_5_the_narrowest_filter_is_named(fill: Fill, asking: Ask) -> None:
    pages = {"docs/a.md": "---\ntype: guide\n---\n# A\n\nalpha", "docs/b.md": "---\ntype: note\n---\n# B\n\nbeta"}
    fill(pages, embed=False)
    for filters, name in (
        (Filters(path="docs/", tag="none"), "tag"),
        (Filters(path="nowhere/", type="guide"), "path"),
        (Filters(path="docs/", type="note", since=datetime.date(2001, 1, 1)), "type"),
    ):
        empty = asking("alpha", filters=filters).empty
        assert empty is not None and (empty.reason, empty.filter) == ("filters_too_narrow", name)


def test_retrieval_rule_10_5_headings_near_in_letters_without_vectors(
    fill: Fill, asking: Ask, olga: User, otto: User, shelf: Collection
) -> None:
    set_visibility(source=shelf, visibility="public", by=olga)
    text = "# Garden\n\nIntro.\n\n" + "x " * 1000 + "\n\n## Compatibility\n\n" + "y " * 1900
    fill({"a.md": text, "b.md": "# Other\n\nComparable things."}, embed=False)
    answer = asking("compatibilty", viewer=otto)
    assert answer.empty is not None and answer.empty.reason == "words_absent"
    assert [near.heading_path[-1] for near in answer.nearest] == ["Compatibility"]
    hidden = create_collection(by=olga, name="Hidden")
    fill({"h.md": "# Compatibilities\n\nz"}, collection=hidden, embed=False)
    assert asking("compatibilty", viewer=otto).nearest == answer.nearest
    assert len(asking("compatibilty").nearest) == 2
