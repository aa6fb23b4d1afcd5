"""Vectors: made once, kept by text, switched as a whole; the embedder may fail in any way."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from django.db import connection, transaction
from django.db.models import Q

from apps.indexing import chunks, dense, lexical, vectors
from apps.indexing.composition import Embedded
from apps.indexing.embedding import backends, jobs, switching
from apps.indexing.embedding.backends import EmbedderUnavailable
from apps.indexing.embedding.endpoint import Endpoint, retry_after
from apps.indexing.embedding.hashing import Hashing
from apps.indexing.models import EmbeddingFailure, EmbeddingProfile, IndexedSource, ProfileState, Vector
from apps.indexing.profiles import GateResult
from apps.indexing.questions import ask
from apps.indexing.serving import active_profile, configured_profile, embedder_of
from apps.jobs.models import Job
from apps.jobs.queue import enqueue
from apps.jobs.worker import drain, run_job
from tests.indexing.shelf import STORE, Paper, PaperChunk, a_shelf, a_user, as_text, cut, put, scope_of, write

pytestmark = pytest.mark.usefixtures("embed_kind", "embedding")


def embed(*shelves, **params) -> list[Job]:
    for shelf in shelves:
        enqueue("embed", source=shelf, params=params)
    return drain()


def near(query: str, **narrowing) -> list[str]:
    """Paths of the dense stream, best first."""
    scope = scope_of(**narrowing)
    profile = active_profile()
    hits = dense.search(scope, profile, dense.embed_query(profile, query))
    rows = dict(PaperChunk.objects.values_list("ref", "document__path"))
    return [rows[hit.ref] for hit in hits]


def test_vectors_are_made_and_found():
    shelf = a_shelf()
    write(shelf, one="apples and pears", two="ships at sea")
    assert vectors.embed_status(shelf).pending == 2
    [job] = embed(shelf)
    assert job.status == "success"
    status = vectors.embed_status(shelf)
    assert (status.total, status.embedded, status.pending, status.failed) == (2, 2, 0, 0)
    assert status.is_ready
    assert near("apples pears")[0] == "one.md"
    assert near("ships sea")[0] == "two.md"


def test_retrieval_fact_22_a_text_is_embedded_once(endpoint):
    one, two = a_shelf(), a_shelf()
    put(one, "a/x.md", cut("the same text", "Head"), cut("another text", "Head"))
    put(two, "b.md", cut("the same text", "Head"))
    embed(one)
    made = len(endpoint.texts)
    embed(two)
    assert [text for text in endpoint.texts[made:] if text != backends.CHECK_TEXT] == []
    assert vectors.embed_status(two).is_ready
    Paper.objects.filter(shelf=one).update(path="b/x.md")
    paper = Paper.objects.get(shelf=one)
    chunks.store_documents(
        STORE,
        source_id=one.id,
        documents=[as_text(paper, [cut("the same text", "Head"), cut("another text", "Head")])],
    )
    assert vectors.embed_status(one).is_ready
    embed(one)
    assert [text for text in endpoint.texts[made:] if text != backends.CHECK_TEXT] == []


def test_retrieval_fact_23_a_renamed_heading_embeds_its_chunks_only(endpoint):
    shelf = a_shelf()

    def sections(name):
        return [cut(f"text {n}", *(("Guide", name) if n < 3 else ("Guide", f"Part {n}"))) for n in range(40)]

    put(shelf, "a.md", *sections("Before"))
    embed(shelf)
    endpoint.requests.clear()
    put(shelf, "a.md", *sections("After"))
    assert vectors.embed_status(shelf).pending == 3
    embed(shelf)
    assert sum(text.startswith("Guide > After\n") for text in endpoint.texts) == 3
    assert sum("text" in text for text in endpoint.texts) == 3


def test_retrieval_fact_24_a_long_text_is_flagged_and_its_tail_is_found_by_words(embedding):
    embedding(backend="minilm", dimension=None)
    shelf = a_shelf()
    put(shelf, "a.md", cut("some words " * 200 + "needle"))
    embed(shelf)
    assert vectors.embed_status(shelf).truncated == 1
    assert Vector.objects.get().tokens == pytest.approx(403, abs=10)
    scope = scope_of()
    assert len(lexical.search(scope, ask("needle", scope.languages)).hits) == 1


def test_retrieval_fact_25_another_dimension_serves_when_it_is_complete(embedding):
    shelves = [a_shelf() for _ in range(2)]
    for shelf in shelves:
        write(shelf, **{f"d{n}": f"document {n} about apples" for n in range(5)})
    embed(*shelves)
    before = near("apples document")
    embedding(backend="hashing", dimension=96)
    put(shelves[0], "late.md", cut("late apples document"))
    assert near("apples document") == before
    old = active_profile()
    assert run_job(enqueue("embed", source=shelves[0]).job.pk).status == "success"
    assert active_profile() == old
    assert len(near("apples document")) == 11, "what is new meanwhile gets both vectors"
    drain()
    assert active_profile().dimension == 96
    assert EmbeddingProfile.objects.get(pk=old.pk).state == ProfileState.RETIRED
    assert len(near("apples document")) == 11
    assert not Vector.objects.filter(profile=old).exists()


def test_retrieval_fact_26_equal_dimensions_never_mix(endpoint, embedding):
    shelf = a_shelf()
    write(shelf, one="apples", two="ships")
    embed(shelf)
    first = active_profile()
    embedding(backend="hashing", dimension=64)
    run_job(enqueue("embed", source=shelf).job.pk)
    profile = active_profile()
    assert profile == first
    sql = dense.statement(scope_of(), profile, np.ones(64, np.float32), 10, dense.Look(exact=True))
    assert profile.pk in sql.params
    drain()
    assert active_profile() != first


def test_retrieval_fact_27_an_embedder_that_is_down_costs_nothing_but_vectors(endpoint):
    shelf = a_shelf()
    write(shelf, one="apples", two="ships")
    endpoint.status = 503
    [job] = embed(shelf)
    assert job.status == "queued"
    scope = scope_of()
    assert len(lexical.search(scope, ask("apples", scope.languages)).hits) == 1
    assert vectors.embed_status(shelf).pending == 2
    endpoint.status = 200
    Job.objects.update(not_before=None)
    drain()
    assert vectors.embed_status(shelf).is_ready
    endpoint.status = 503
    with pytest.raises(EmbedderUnavailable, match="answered 503"):
        dense.embed_query(active_profile(), "apples")


def test_a_429_is_waited_for_and_the_next_batch_is_smaller(endpoint):
    shelf = a_shelf()
    write(shelf, **{f"d{n}": f"text {n}" for n in range(8)})
    embed(shelf)
    write(shelf, **{f"e{n}": f"more {n}" for n in range(8)})
    endpoint.status, endpoint.headers = 429, {"Retry-After": "7"}
    [job] = embed(shelf)
    assert job.status == "queued"
    assert job.attempts == 0
    client = Endpoint(url=endpoint.url, model="tried", dimension=64, batch_size=8)
    with pytest.raises(EmbedderUnavailable) as raised:
        client.documents([Embedded(str(n), "") for n in range(8)])
    assert raised.value.retry_after == 7
    endpoint.status, endpoint.headers = 200, {}
    endpoint.requests.clear()
    assert len(client.documents([Embedded(str(n), "") for n in range(20)])) == 20
    assert [len(request) for request in endpoint.requests] == [4, 8, 8]


def test_a_key_is_sent_and_never_told(endpoint):
    shelf = a_shelf()
    write(shelf, one="apples")
    embed(shelf)
    assert set(endpoint.authorization) == {"Bearer sesame"}
    assert "sesame" not in repr(EmbeddingProfile.objects.values())
    endpoint.status = 401
    [job] = embed(shelf)
    assert job.status == "error"
    assert "sesame" not in job.error_message


def test_an_endpoint_on_a_private_address_is_refused_unless_listed(endpoint, settings):
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, allowed_private_hosts=())
    client = Endpoint(url=endpoint.url, model="tried", dimension=64)
    with pytest.raises(EmbedderUnavailable) as raised:
        client.query("text")
    assert raised.value.lasting
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (lambda vector: [math.nan, *vector[1:]], "no numbers"),
        (lambda vector: [0.0] * len(vector), "zero"),
        (lambda vector: vector[:-1], "63 dimensions, not 64"),
        (lambda vector: None, "dimensions|no list of numbers"),
    ],
)
def test_retrieval_fact_28_bad_vectors_fail_their_texts_only(endpoint, fault, reason):
    def spoil(texts, made):
        return [fault(vector) if "bad" in text else vector for text, vector in zip(texts, made, strict=True)]

    shelf = a_shelf()
    write(shelf, one="good apples", two="bad apples", three="good ships")
    endpoint.spoil = spoil
    [job] = embed(shelf)
    assert job.status == "success"
    assert job.warnings == 1
    status = vectors.embed_status(shelf)
    assert (status.embedded, status.failed, status.pending) == (2, 1, 0)
    assert EmbeddingFailure.objects.get().reason
    assert re.search(reason, EmbeddingFailure.objects.get().reason)
    endpoint.spoil = None
    embed(shelf)
    assert vectors.embed_status(shelf).failed == 1, "not tried again by itself"
    jobs.request(shelf)
    drain()
    assert vectors.embed_status(shelf).is_ready


def test_a_process_that_only_searches_asks_for_the_dimension(endpoint):
    assert len(Endpoint(url=endpoint.url, model="tried").query("apples")) == 64


@pytest.mark.parametrize(("status", "spoil"), [(400, None), (413, None), (200, lambda texts, made: [])])
@pytest.mark.parametrize("dimension", [64, None])
def test_retrieval_fact_28_a_refused_query_is_no_failure_of_the_search(endpoint, status, spoil, dimension):
    endpoint.status, endpoint.spoil = status, spoil
    with pytest.raises(EmbedderUnavailable):
        Endpoint(url=endpoint.url, model="tried", dimension=dimension).query("apples")


def test_retrieval_fact_26_a_query_of_another_dimension_is_not_compared(endpoint):
    shelf = a_shelf()
    write(shelf, one="apples")
    embed(shelf)
    profile = active_profile()
    profile.dimension = 65
    with pytest.raises(EmbedderUnavailable, match="64 dimensions, not 65"):
        dense.embed_query(profile, "apples")


def test_retrieval_fact_28_three_vectors_for_four_texts(endpoint):
    def spoil(texts, made):
        return made[:-1] if len(texts) == 4 or texts == ["text 2"] else made

    shelf = a_shelf()
    write(shelf, **{f"d{n}": f"text {n}" for n in range(4)})
    endpoint.spoil = spoil
    embed(shelf)
    status = vectors.embed_status(shelf)
    assert (status.embedded, status.failed) == (3, 1)
    assert "0 vectors for 1 texts" in EmbeddingFailure.objects.get().reason


def test_retrieval_fact_28_a_failed_text_keeps_the_old_profile(endpoint, embedding):
    embedding(backend="hashing", dimension=32)
    shelf = a_shelf()
    write(shelf, one="good", two="bad")
    embed(shelf)
    old = active_profile()
    embedding(backend="endpoint", url=endpoint.url, model="tried", dimension=64)
    endpoint.spoil = lambda texts, made: [
        [0.0] * 64 if "bad" in text else vector for text, vector in zip(texts, made, strict=True)
    ]
    enqueue("profile_switch")
    [job] = drain()
    assert (job.status, job.error_code) == ("error", "failed_texts")
    assert active_profile() == old
    enqueue("profile_switch", params={"accept_failures": True})
    drain()
    assert active_profile() != old


def test_a_gate_keeps_the_old_profile(embedding, monkeypatch):
    shelf = a_shelf()
    write(shelf, one="apples")
    embed(shelf)
    old = active_profile()
    embedding(backend="hashing", dimension=32)
    monkeypatch.setattr(switching, "run_gates", lambda profile: [GateResult("docs page", False, "0.40 < 0.99")])
    enqueue("profile_switch")
    [job] = drain()
    assert (job.status, job.error_code) == ("error", "gate_failed")
    assert "0.40 < 0.99" in job.error_message
    assert active_profile() == old


def test_an_endpoint_that_changed_raises_the_alarm(endpoint):
    shelf = a_shelf()
    write(shelf, one="apples")
    embed(shelf)
    enqueue("profile_switch")
    [job] = drain()
    assert job.warnings == 0
    endpoint.shift = 0.5
    enqueue("profile_switch")
    [job] = drain()
    assert job.warnings == 1
    assert active_profile().drifted_at is not None


def test_re_embed_answers_by_the_old_vectors_until_it_is_complete(endpoint):
    shelf, other = a_shelf(), a_shelf()
    write(shelf, one="apples", two="ships")
    write(other, three="apples")
    embed(shelf, other)
    made = len(endpoint.texts)
    jobs.request(shelf, again=True)
    drain()
    assert {"apples", "ships"} <= set(endpoint.texts[made:])
    assert set(IndexedSource.objects.values_list("generation", "building")) == {(0, None), (1, None)}
    assert len(near("apples")) == 3
    assert set(Vector.objects.values_list("number", "generation")) == {
        (IndexedSource.objects.get(store=STORE.name, source_id=shelf.id).number, 1),
        (IndexedSource.objects.get(store=STORE.name, source_id=other.id).number, 0),
    }


def test_retrieval_fact_120_nothing_is_copied_before_the_embedder_has_answered(endpoint):
    hidden, mine = a_shelf(visibility="private", owner=a_user()), a_shelf()
    write(hidden, one="a secret text")
    embed(hidden)
    endpoint.status = 503
    write(mine, two="a secret text")
    embed(mine)
    assert vectors.embed_status(mine).pending == 1


def test_without_an_embedder_nothing_is_missing(embedding):
    embedding(backend="none", dimension=None)
    shelf = a_shelf()
    write(shelf, one="apples")
    [job] = embed(shelf)
    assert (job.status, job.warnings) == ("success", 0)
    assert backends.embedder() is None


def test_an_unknown_backend_says_so(embedding):
    embedding(backend="no.such.Thing")
    with pytest.raises(EmbedderUnavailable, match=r"no\.such\.Thing"):
        backends.embedder()
    embedding(backend="static", dimension=None)
    with pytest.raises(EmbedderUnavailable, match="wordllama"):
        backends.embedder().traits()


def test_the_old_embedder_still_answers_queries(embedding):
    shelf = a_shelf()
    write(shelf, one="apples")
    embed(shelf)
    old = active_profile()
    embedding(backend="hashing", dimension=32)
    assert configured_profile(backends.embedder()).state == ProfileState.NEXT
    assert len(embedder_of(old).query("apples")) == 64


def fill_many(number_of_sources: int, each: int) -> tuple[list, EmbeddingProfile]:
    profile = configured_profile(Hashing(dimension=64))
    random = np.random.default_rng(0)
    shelves = [a_shelf(f"many{n:02}") for n in range(number_of_sources)]
    for shelf in shelves:
        put(shelf, "a.md", *(cut(f"text {n} of {shelf.slug}", str(n)) for n in range(each)))
        entry = IndexedSource.objects.get(store=STORE.name, source_id=shelf.id)
        found, _ = vectors.missing(STORE, entry, profile, 0, after=0, limit=each)
        made = random.normal(size=(each, 64)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        vectors.write(
            profile,
            entry.number,
            0,
            [vectors.NewVector(text.hash, vector, 1, False) for text, vector in zip(found, made, strict=True)],
        )
    return shelves, profile


def test_retrieval_fact_29_always_as_many_rows_as_there_are(monkeypatch):
    shelves, profile = fill_many(20, 60)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE INDEX tried ON indexing_vector USING hnsw ((embedding::halfvec(64)) halfvec_cosine_ops) "
            f"WHERE profile_id = {profile.pk}"
        )
    profile.indexed_rows = 1200
    profile.min_cosine = -1
    profile.save()
    asked = Hashing(dimension=64).query("text 7")
    one = {"sources": [("shelf", shelves[3].id)]}
    exact = [hit.ref for hit in dense.search(scope_of(**one), profile, asked, 50)]
    assert len(exact) == 50
    monkeypatch.setattr(dense, "EXACT_LIMIT", 10)
    scope = scope_of(**one)
    look = dense.choose(scope, profile, 300)
    assert (look.exact, look.ef_search) == (False, 300)
    monkeypatch.setattr(dense, "WIDE_FROM", 50)
    assert dense.choose(scope, profile, 300).ef_search == 600
    look = dense.choose(scope, profile, 50)
    assert (look.exact, look.ef_search) == (False, 200)
    plan = dense.statement(scope, profile, asked, 50, look)
    look.prepare()
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + plan.sql, list(plan.params))
        assert "Index Scan using tried" in str(cursor.fetchall())
    assert [hit.ref for hit in dense.search(scope, profile, asked, 50)] == exact
    few = {STORE.name: Q(chunk_index__lt=3)}
    assert len(dense.search(scope_of(**one, conditions=few), profile, asked, 10)) == 3
    assert len(dense.search(scope_of(conditions={STORE.name: Q(chunk_index=5)}), profile, asked, 50)) == 20
    single = {STORE.name: Q(chunk_index=5, document__path="a.md", shelf__slug="many04")}
    assert len(dense.search(scope_of(conditions=single), profile, asked, 50)) == 1
    everywhere = dense.search(scope_of(), profile, asked, 50)
    assert len(everywhere) == 50
    all_exact = dense.rank(
        profile,
        dense.fetch(dense.statement(scope_of(), profile, asked, 50, dense.Look(exact=True))),
        50,
    )
    shared = {hit.ref for hit in everywhere} & {hit.ref for hit in all_exact}
    assert len(shared) >= 45


def test_a_narrowed_look_counts_what_is_left_by_itself(monkeypatch, django_assert_num_queries):
    """Few chunks are all compared, many are looked for in the graph, by one statement either way."""
    _, profile = fill_many(20, 60)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE INDEX tried ON indexing_vector USING hnsw ((embedding::halfvec(64)) halfvec_cosine_ops) "
            f"WHERE profile_id = {profile.pk}"
        )
    profile.indexed_rows, profile.min_cosine = 1200, -1
    profile.save()
    monkeypatch.setattr(dense, "EXACT_LIMIT", 100)
    asked = Hashing(dimension=64).query("text 7")

    def found(condition, statements):
        scope = scope_of(conditions={STORE.name: condition})
        with django_assert_num_queries(statements + 1):  # the settings of the graph: once for a connection elsewhere
            return scope, dense.search(scope, profile, asked, 50)

    _, few = found(Q(chunk_index=5), 1)
    assert (len(few), few.exact) == (20, True)
    _, none = found(Q(chunk_index=500), 1)
    assert (len(none), none.exact) == (0, True)
    scope, many = found(Q(chunk_index__lt=30), 1)
    assert (len(many), many.exact) == (50, False)
    allowed = set(scope.chunks_of(STORE).values_list("ref", flat=True))
    assert len(allowed) == 600
    assert {hit.ref for hit in many} <= allowed
    every = dense.rank(profile, dense.fetch(dense.statement(scope, profile, asked, 50, dense.Look(exact=True))), 50)
    assert every.exact
    assert len({hit.ref for hit in many} & {hit.ref for hit in every}) >= 45


def test_rows_under_the_least_cosine_are_no_hits():
    shelf = a_shelf()
    write(shelf, one="apples and pears", two="ships at sea")
    embed(shelf)
    EmbeddingProfile.objects.update(min_cosine=0.5)
    assert near("apples and pears") == ["one.md"]


@pytest.mark.parametrize(("value", "seconds"), [("7", 7), ("0", 1), ("nonsense", 30), ("99999", 3600), ("", 30)])
def test_retry_after(value, seconds):
    assert retry_after(value) == seconds


@pytest.mark.django_db(transaction=True)
def test_the_settings_of_the_graph_are_made_once_for_a_connection(django_assert_num_queries):
    connection.close()
    look = dense.Look(exact=False, ef_search=321)

    def said():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('hnsw.ef_search'), current_setting('hnsw.iterative_scan')")
            return cursor.fetchone()

    with django_assert_num_queries(1):
        look.prepare()
        look.prepare()
    assert said() == ("321", "relaxed_order")
    with transaction.atomic():
        dense.Look(exact=False, ef_search=400).prepare()
        assert said()[0] == "400"
        transaction.set_rollback(True)
    with django_assert_num_queries(1):
        look.prepare()
        assert said()[0] == "321"
    connection.close()
    look.prepare()
    assert said() == ("321", "relaxed_order")
    connection.close()
