"""What stands beside the hits: neighbours, rejected approaches, superseded pages (`retrieval.md` 8.1, facts 65, 106;
`knowledge-graph.md` 9 and facts 108 to 111, 115)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.access.models import User
from apps.access.visibility import set_visibility
from apps.collections.curation import create_collection
from apps.collections.models import Collection
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.retrieval.explaining import explain
from apps.retrieval.search import retrieve
from apps.retrieval.values import Answer, Filters, Question
from tests.retrieval.conftest import keys

pytestmark = pytest.mark.django_db
Ask = Callable[..., Answer]
Fill = Callable[..., None]


def page(slug: str, kind: str, body: str, *lines: str, status: str = "accepted") -> str:
    header = "\n".join([f"slug: {slug}", f"type: {kind}", f"status: {status}", *lines])
    return f"---\n{header}\n---\n\n# {slug.replace('-', ' ').capitalize()}\n\n{body}\n"


PAGES = {
    "decisions/walrus-herd.md": page(
        "walrus-herd", "decision", "Walrus sessions stay in the memory of one process.", status="superseded"
    ),
    "decisions/beetroot.md": page(
        "beetroot", "decision", "Soup needs vinegar. Serve it with [[dill]].", "supersedes: [walrus-herd]"
    ),
    "modules/dill.md": page("dill", "module", "A herb with thin leaves.", 'related: ["[[garlic]]"]'),
    "modules/garlic.md": page("garlic", "module", "Peel it, then crush it."),
    "modules/trumpet.md": page("trumpet", "module", "Brass, with three valves.", "related: [walrus-herd]"),
    "rejected/walrus-cookies.md": page(
        "walrus-cookies", "rejected-approach", "Walrus sessions inside signed cookies grew beyond all limits."
    ),
    **{f"notes/{n}.md": f"# Note {n}\n\nWalrus sessions, seen by number {n}.\n" for n in range(9)},
}
"""Plain notes and two pages about the question; the other pages have nothing to do with it but by their links."""
QUERY = "walrus herd"


@pytest.fixture
def pages(fill: Fill) -> None:
    fill(PAGES)


def uids(found: Sequence[Any]) -> list[str]:
    return [one.place.uid for one in found]


def test_neighbours_and_rejected_approaches_stand_beside_the_hits(pages: None, asking: Ask) -> None:
    answer = asking(QUERY, limit=50)
    assert "decisions/walrus-herd.md" in keys(answer)[:10]
    assert "rejected/walrus-cookies.md" not in keys(answer)
    assert answer.total == len(answer.hits)
    assert sum(value.count for facet in answer.facets if facet.name == "kind" for value in facet.values) == answer.total
    (rejected,) = answer.already_rejected
    assert (rejected.place.uid, rejected.place.node_type) == ("walrus-cookies", "rejected-approach")
    assert rejected.place.location.startswith("rejected/walrus-cookies.md#")
    assert [(one.place.uid, one.label, one.why) for one in answer.neighbours] == [
        ("beetroot", "replaces walrus-herd", ""),
        ("trumpet", "", "trumpet related_to walrus-herd"),
    ]


def test_retrieval_fact_106_a_superseded_hit_leads_to_the_newest(pages: None, asking: Ask) -> None:
    answer = asking("walrus-herd.md", limit=1)
    (hit,) = answer.hits
    assert (hit.path, hit.status, hit.factor) == ("decisions/walrus-herd.md", "superseded", 1.0)
    first = answer.neighbours[0]
    assert (first.place.uid, first.label, first.hops) == ("beetroot", "replaces walrus-herd", 0)


def test_a_hit_says_what_replaced_it_whatever_its_own_header_says(fill: Fill, asking: Ask) -> None:
    """The old page was never touched: only the new one says that it takes its place."""
    fill(
        {
            "old.md": page("walrus-old", "decision", "A walrus weighs a ton, as decided."),
            "new.md": page(
                "walrus-new", "decision", "A walrus weighs two tons, as decided.", "supersedes: [walrus-old]"
            ),
            "draft.md": page("walrus-draft", "decision", "Perhaps three.", "supersedes: [walrus-new]", status="draft"),
        }
    )
    replaced = {hit.path: [one.uid for one in hit.replaced_by] for hit in asking("walrus weighs").hits}
    assert (replaced["old.md"], replaced["new.md"]) == (["walrus-new"], [])
    (old,) = [hit for hit in asking("walrus-old.md").hits if hit.path == "old.md"]
    assert old.replaced_by[0].title == "Walrus new"
    assert old.replaced_by[0].url.startswith("/docs/")


def test_the_passage_of_a_neighbour_is_the_one_that_fits_best(fill: Fill, asking: Ask, shelf: Collection) -> None:
    parts = "".join(f"## Part {n}\n\n{f'Brass valve {n}. ' * 90}\n\n" for n in range(3))
    # Superseded, so that it stands behind the first ten rows although it is found.
    near = page("handbook", "runbook", "Trumpets.", status="superseded") + parts + "## Feeding\n\nWhat a walrus eats.\n"
    herd = {f"{n}.md": page(f"walrus-{n}", "decision", f"Walrus clams {n}: [[handbook]]") for n in range(12)}
    fill({"h.md": near} | herd, embed=False)
    rebuild("collection", shelf.pk)
    answer = asking("walrus clams")
    assert "h.md" not in keys(answer)[:10]
    found = next(one for one in answer.neighbours if one.place.uid == "handbook")
    assert found.place.start_line <= near[: near.index("## Feeding")].count("\n") + 1 <= found.place.end_line
    assert found.place.start_line > 10
    assert len(found.other_ways) == 5


def test_filters_narrow_what_stands_beside_too(pages: None, asking: Ask) -> None:
    answer = asking(QUERY, filters=Filters(path="[dn]*/**"))
    assert (uids(answer.neighbours), answer.already_rejected) == (["beetroot"], ())


def test_rejected_approaches_are_ordinary_hits_where_they_are_asked_for(pages: None, asking: Ask) -> None:
    answer = asking(QUERY, filters=Filters(type="rejected-approach"))
    assert keys(answer) == ["rejected/walrus-cookies.md"]
    assert (answer.already_rejected, answer.neighbours) == ((), ())


def test_only_rejected_hits_are_no_empty_answer(fill: Fill, asking: Ask) -> None:
    fill({"r.md": PAGES["rejected/walrus-cookies.md"]})
    answer = asking("signed cookies")
    assert (answer.hits, answer.total, answer.empty) == ((), 0, None)
    assert uids(answer.already_rejected) == ["walrus-cookies"]


def test_three_rejected_hits_move_and_a_fourth_stays(fill: Fill, asking: Ask) -> None:
    fill({f"r{n}.md": page(f"walrus-{n}", "rejected-approach", f"Walrus number {n} was too slow.") for n in range(5)})
    answer = asking("walrus too slow")
    assert len(answer.already_rejected) == 3
    assert len(answer.hits) == answer.total == 2
    assert not set(keys(answer)) & {one.place.path for one in answer.already_rejected}


def test_pages_of_an_answer_neither_repeat_nor_skip(pages: None, asking: Ask) -> None:
    whole = asking(QUERY, limit=50)
    seen: list[str] = []
    cursor, first = None, True
    while True:
        part = asking(QUERY, limit=5, cursor=cursor)
        seen += keys(part)
        assert part.total == whole.total
        assert bool(part.already_rejected) is first
        cursor, first = part.next_cursor, False
        if cursor is None:
            break
    assert seen == keys(whole)
    again = asking(QUERY, limit=1)
    assert (again.neighbours, again.already_rejected) == (whole.neighbours, whole.already_rejected)


def test_each_way_of_asking_gives_the_same_blocks(pages: None, asking: Ask, olga: User) -> None:
    merged = asking(QUERY)
    blocked = retrieve(viewer=olga, question=Question(QUERY, limit=3))
    assert (merged.neighbours, merged.already_rejected) == (blocked.neighbours, blocked.already_rejected)


def test_graph_fact_109_without_pages_nothing_differs(fill: Fill, asking: Ask, settings: Any) -> None:
    fill({f"{n}.md": f"# Plain {n}\n\nwalrus sessions, number {n}" for n in range(6)})
    asking(QUERY)
    with CaptureQueriesContext(connection) as on:
        first = asking(QUERY)
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, graph=dataclasses.replace(settings.COGRAPH.graph, expansion_enabled=False)
    )
    with CaptureQueriesContext(connection) as off:
        second = asking(QUERY)
    assert dataclasses.replace(first, milliseconds=0) == dataclasses.replace(second, milliseconds=0)
    assert len(on) == len(off)


def test_graph_fact_110_four_statements_more(pages: None, asking: Ask, settings: Any) -> None:
    counts = []
    for is_on in (True, False):
        settings.COGRAPH = dataclasses.replace(
            settings.COGRAPH, graph=dataclasses.replace(settings.COGRAPH.graph, expansion_enabled=is_on)
        )
        asking(QUERY)
        with CaptureQueriesContext(connection) as queries:
            answer = asking(QUERY)
        counts.append(len(queries))
        assert bool(answer.neighbours) is is_on
    assert 0 < counts[0] - counts[1] <= 4


def test_graph_fact_111_hidden_pages_leave_no_trace(
    pages: None, fill: Fill, asking: Ask, shelf: Collection, olga: User, otto: User
) -> None:
    set_visibility(source=shelf, visibility="public", by=olga)
    before = asking(QUERY, viewer=otto, limit=50)
    assert before.neighbours and before.already_rejected
    hidden = create_collection(by=olga, name="Hidden")
    fill(
        {
            "r.md": page("walrus-sessions-hidden", "rejected-approach", "Walrus sessions, walrus sessions, on paper."),
            "d.md": page("walrus-decision", "decision", "Walrus sessions. [[walrus-herd]] [[Shelf:dill]]"),
        },
        collection=hidden,
    )
    after = asking(QUERY, viewer=otto, limit=50)
    assert dataclasses.replace(after, milliseconds=0) == dataclasses.replace(before, milliseconds=0)
    mine = asking(QUERY)
    assert "walrus-sessions-hidden" in uids(mine.already_rejected)


def test_why_a_rejected_approach_is_no_hit(pages: None, olga: User, asking: Ask) -> None:
    answer = asking(QUERY)
    document = answer.already_rejected[0].place.document_id
    found = explain(viewer=olga, question=Question(QUERY), document=document)
    assert found.why_not is not None and found.why_not.reason == "already_rejected"
    assert found.total == answer.total


def test_graph_fact_108_without_vectors_only_hits_move(fill: Fill, asking: Ask, shelf: Collection) -> None:
    fill(PAGES, embed=False)
    rebuild("collection", shelf.pk)
    (rejected,) = asking(QUERY).already_rejected
    assert (rejected.place.uid, rejected.cosine) == ("walrus-cookies", None)
    assert asking("brass valves").already_rejected == ()
