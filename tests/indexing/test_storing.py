"""Chunks, postings and statistics agree, whatever the history."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import connection
from django.db.models import Value
from django.db.models.functions import Concat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.indexing import chunks, fields, lexical, postings
from apps.indexing.analyzer import lexicon
from apps.indexing.fields import ENTRY
from apps.indexing.models import IndexedDocument, IndexedSource, Posting
from apps.indexing.questions import ask
from tests.indexing.shelf import STORE, Paper, PaperChunk, a_shelf, as_text, cut, found, paths, put, scope_of, write

pytestmark = pytest.mark.usefixtures("shelves")


def entry_of(shelf) -> IndexedSource:
    return IndexedSource.objects.get(store=STORE.name, source_id=shelf.id)


def content(shelf) -> dict[tuple[str, str, int], tuple[int, ...]]:
    """Live entries by (term, path, chunk index): what an index holds, told without slots and segments."""
    entry = entry_of(shelf)
    places = {
        ref & 0xFFFFFFFF: (path, index)
        for ref, path, index in PaperChunk.objects.filter(shelf=shelf).values_list(
            "ref", "document__path", "chunk_index"
        )
    }
    dead = set(postings.dead_slots(entry).tolist())
    held = {}
    for row in Posting.objects.filter(number=entry.number):
        for item in np.frombuffer(bytes(row.entries), ENTRY):
            slot = (row.block << 16) + int(item["slot"])
            if slot in dead:
                continue
            key = (row.term, *places[slot])
            assert key not in held
            held[key] = tuple(int(item[name]) for name in ENTRY.names[1:])
    return held


def counted(shelf) -> dict[str, tuple[int, int, int]]:
    """Stored statistics by term."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT term, sum(chunks), sum(in_heading), sum(in_path) FROM indexing_posting "
            "WHERE number = %s GROUP BY term",
            [entry_of(shelf).number],
        )
        return {term: tuple(map(int, sums)) for term, *sums in cursor.fetchall() if any(sums)}


def recounted(held) -> dict[str, tuple[int, int, int]]:
    totals: dict[str, list[int]] = {}
    for (term, _, _), (_, _, heading, _, path) in held.items():
        sums = totals.setdefault(term, [0, 0, 0])
        sums[0] += 1
        sums[1] += heading > 0
        sums[2] += path > 0
    return {term: tuple(sums) for term, sums in totals.items()}


def expected(shelf) -> dict[tuple[str, str, int], tuple[int, ...]]:
    """The same, worked out from the chunk rows as if nothing had been indexed before."""
    number = entry_of(shelf).number
    documents = {row.document_id: row for row in IndexedDocument.objects.filter(number=number)}
    rows = list(PaperChunk.objects.filter(shelf=shelf).order_by("ref"))
    pieces = [
        fields.Piece(n, documents[row.document_id].title, documents[row.document_id].path,
                     documents[row.document_id].side, row.heading_path, row.searched)
        for n, row in enumerate(rows)
    ]  # fmt: skip
    if not pieces:
        return {}
    words = lexicon(shelf.language)
    made = fields.count(words, "docs", pieces)
    entries = fields.entries(made, np.arange(len(pieces)))
    return {
        (words.names[term], documents[rows[piece].document_id].path, rows[piece].chunk_index): tuple(
            int(item[name]) for name in ENTRY.names[1:]
        )
        for term, piece, item in zip(made.term.tolist(), made.piece.tolist(), entries, strict=True)
    }


def check(shelf) -> None:
    held = content(shelf)
    assert held == expected(shelf)
    assert counted(shelf) == recounted(held)
    entry = entry_of(shelf)
    assert entry.chunks == PaperChunk.objects.filter(shelf=shelf).count()
    lengths = {(path, index): row for (_, path, index), row in held.items()}
    assert entry.body_length >= sum(row[0] for row in lengths.values())


SECTION = st.builds(
    lambda head, words: (head, " ".join(words)),
    st.sampled_from(["", "Alpha", "Beta gamma"]),
    st.lists(st.sampled_from(["alpha", "beta", "gammaDelta", "the", "é", "x-1", "数据库"]), min_size=1, max_size=6),
)
EDIT = st.tuples(
    st.sampled_from(["one.md", "two.md", "alpha/three.md"]),
    st.one_of(st.none(), st.lists(SECTION, max_size=4)),
    st.sampled_from(["", "Beta title"]),
)


@given(st.lists(EDIT, min_size=1, max_size=8), st.integers(0, 7))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_retrieval_fact_20_edits_and_one_rebuild_give_the_same_index(edits, merged_after):
    shelf = a_shelf()
    for number, (path, sections, title) in enumerate(edits):
        if sections is None:
            paper = Paper.objects.filter(shelf=shelf, path=path).first()
            if paper is not None:
                chunks.remove_documents(STORE, source_id=shelf.id, document_ids=[paper.id])
            else:
                chunks.remove_documents(STORE, source_id=shelf.id, document_ids=[])
                continue
        else:
            put(shelf, path, *(cut(text, *([head] if head else [])) for head, text in sections), title=title)
        if number == merged_after:
            postings.merge(entry_of(shelf))
        check(shelf)
    if not IndexedSource.objects.filter(source_id=shelf.id).exists():
        return
    queries = ("alpha", "beta gamma", "gammaDelta", "x-1", "数据", "é title")
    before = [found(query, sources=[("shelf", shelf.id)]) for query in queries]
    postings.merge(entry_of(shelf))
    check(shelf)
    assert [found(query, sources=[("shelf", shelf.id)]) for query in queries] == before
    postings.rebuild(STORE, entry_of(shelf), language="english")
    check(shelf)
    assert [found(query, sources=[("shelf", shelf.id)]) for query in queries] == before


def test_an_unchanged_chunk_keeps_its_row_and_its_postings():
    shelf = a_shelf()
    put(shelf, "a.md", cut("first text", "One"), cut("second text", "Two"), cut("third text", "Three"))
    before = dict(PaperChunk.objects.values_list("chunk_index", "id"))
    refs = dict(PaperChunk.objects.values_list("id", "ref"))
    paper = Paper.objects.get()
    texts = [cut("new text", "Zero"), cut("first text", "One"), cut("third text", "Three")]
    [changes] = chunks.store_documents(STORE, source_id=shelf.id, documents=[as_text(paper, texts)])
    after = dict(PaperChunk.objects.values_list("chunk_index", "id"))
    assert (after[1], after[2]) == (before[0], before[2])
    assert changes.kept == (before[0], before[2])
    assert changes.removed == (before[1],)
    assert changes.added == (after[0],)
    assert {id_: ref for id_, ref in PaperChunk.objects.values_list("id", "ref") if id_ in changes.kept} == {
        id_: refs[id_] for id_ in changes.kept
    }
    check(shelf)


def test_storing_the_same_twice_writes_no_posting():
    shelf = a_shelf()
    put(shelf, "a.md", cut("first text", "One"), cut("same text", "One"), cut("same text", "One"))
    segments = entry_of(shelf).next_segment
    ids = set(PaperChunk.objects.values_list("id", flat=True))
    put(shelf, "a.md", cut("first text", "One"), cut("same text", "One"), cut("same text", "One"))
    assert entry_of(shelf).next_segment == segments
    assert set(PaperChunk.objects.values_list("id", flat=True)) == ids


def test_a_new_title_or_path_keeps_ids_and_moves_postings():
    shelf = a_shelf()
    paper = put(shelf, "old/name.md", cut("some text", "One"), title="Before")
    [id_] = PaperChunk.objects.values_list("id", flat=True)
    Paper.objects.filter(pk=paper.pk).update(path="fresh/place.md")
    paper.refresh_from_db()
    chunks.store_documents(
        STORE, source_id=shelf.id, documents=[as_text(paper, [cut("some text", "One")], title="After")]
    )
    assert [*PaperChunk.objects.values_list("id", flat=True)] == [id_]
    assert paths("before") == []
    assert paths("old") == []
    assert paths("after fresh") == ["fresh/place.md"]
    check(shelf)


def test_removed_documents_leave_every_statistic_in_the_same_transaction():
    shelf = a_shelf()
    papers = write(shelf, one="unique words", two="other words")
    assert chunks.remove_documents(STORE, source_id=shelf.id, document_ids=[papers["one"].id]) == 1
    assert paths("unique") == []
    scope = scope_of()
    result = lexical.search(scope, ask("unique words", scope.languages))
    assert (result.chunks, result.df) == (1, {0: 0, 1: 1})
    check(shelf)


def test_many_documents_cost_as_many_statements_as_one(django_assert_max_num_queries):
    shelf = a_shelf()

    def store(prefix, number):
        papers = [Paper(shelf=shelf, path=f"{prefix}{n}.md") for n in range(number)]
        Paper.objects.bulk_create(papers)
        documents = [as_text(paper, [cut(f"text {paper.path}", "One")]) for paper in papers]
        with django_assert_max_num_queries(24) as queries:
            chunks.store_documents(STORE, source_id=shelf.id, documents=documents)
        return len(queries)

    store("first", 1)
    assert store("a", 1) == store("b", 40)


def test_slots_beyond_one_block():
    shelf = a_shelf()
    put(shelf, "a.md", cut("needle one", "A"))
    IndexedSource.objects.update(next_slot=65_530)
    put(shelf, "b.md", *(cut(f"needle {n}", "B") for n in range(20)))
    assert {row.block for row in Posting.objects.filter(term="needl")} == {0, 1}
    check(shelf)
    put(shelf, "b.md", *(cut(f"needle {n}", "B") for n in range(15)))
    check(shelf)
    assert len(found("needle")) == 16
    postings.merge(entry_of(shelf))
    check(shelf)
    assert all(row.chunks == len(bytes(row.entries)) // 8 for row in Posting.objects.all())


def test_a_change_of_language_reindexes_the_source():
    shelf = a_shelf()
    put(shelf, "a.md", cut("running plans"))
    shelf.language = "none"
    shelf.save()
    put(shelf, "b.md", cut("running late"))
    assert paths("running") == ["a.md", "b.md"]
    assert paths("run") == []
    check(shelf)


def test_an_older_analyzer_is_followed_by_a_rebuild_before_the_next_change():
    shelf = a_shelf()
    put(shelf, "a.md", cut("some text"))
    IndexedSource.objects.update(analyzer_version=0)
    Posting.objects.update(term=Concat(Value("old"), "term"))
    put(shelf, "b.md", cut("other text"))
    check(shelf)


def test_a_source_leaves_nothing_behind():
    shelf = a_shelf()
    write(shelf, one="some text")
    number = entry_of(shelf).number
    chunks.remove_source(STORE, source_id=shelf.id)
    assert not Posting.objects.filter(number=number).exists()
    assert not IndexedDocument.objects.filter(number=number).exists()
    assert not IndexedSource.objects.filter(number=number).exists()
