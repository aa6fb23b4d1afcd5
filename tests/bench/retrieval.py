"""The search as a whole: all streams at once against the sum of each, how time grows, our Python over its statements,
and the answers a second over HTTP (`performance.md` 10, 12, 14; `retrieval.md` 16.3).

    nice python -m tests.bench.retrieval [chunks ...] [folder]  (10,000 and 100,000 unless said; minutes for the second)

With a folder, the data stays there and the next run only measures.

CPU milliseconds (`performance.md` 1): of the database backend by schedstat and of this process by getrusage. Vectors
lie around those of real texts (`meanings.py`), and no model is asked, so that what is measured is the search.
"""

from __future__ import annotations

import dataclasses
import gc
import itertools
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tests.bench import corpus, place

if TYPE_CHECKING:
    from apps.indexing.scope import Scope

ROUNDS = 5
WARM = 3
LIMIT = 20
QUERIES_A_SET = 3
BATCH_DOCUMENTS = 200
HTTP_SECONDS = 3
COLLECTIONS = 5


def main(*sizes: int, keep: str = "") -> None:
    for size in sizes or (10_000, 100_000):
        with place.database(f"{keep}/{size}" if keep else ""):
            _measure(size)


def settle() -> None:
    """Keeps all that is loaded by now out of the collector's sight, as the served application does."""
    gc.collect()
    gc.freeze()


def prepare(number: int) -> object:
    """The corpus, made unless a kept folder has it; gives who reads all of it."""
    from django.conf import settings

    from apps.access.models import User
    from tests.bench import meanings

    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend=meanings.PATH),
    )
    return User.objects.filter(username="bench").first() or fill(number)


def _measure(number: int) -> None:
    viewer = prepare(number)
    sets = corpus.queries()
    queries = [query for texts in sets.values() for query in texts[:QUERIES_A_SET]]
    clock = place.Clock()
    print(f"{number} chunks")
    ask(viewer, queries[0])
    settle()
    whole = _median(clock, lambda query: ask(viewer, query), queries)
    parts = {name: _median(clock, run, queries) for name, run in streams(viewer).items()}
    alone = sum(parts.values())
    print("  " + "  ".join(f"{name} {value:.1f} ms" for name, value in parts.items()))
    server = _median(clock, lambda query: ask(viewer, query), queries, read=clock.server)
    print(f"  search {whole:.1f} ms of CPU ({server:.1f} database), {whole / alone:.2f} of words and meaning alone")
    narrowed = _median(clock, lambda query: ask(viewer, query, path="1"), queries)
    print(f"  narrowed to a fifth {narrowed / whole:.2f} of it")
    mixed = _median(clock, lambda query: ask(viewer, query, mode="mixed"), queries)
    for line in under_access(viewer, queries, clock):
        print(f"  {line}")
    pack = _median(clock, lambda query: packed(viewer, query), queries)
    print(f"  a pack {pack / mixed:.2f} of its search")
    print(f"  router over {COLLECTIONS} sources: {_median(clock, lambda query: routed(viewer, query), queries):.1f} ms")
    print(f"  over its own statements: {python_over_sql(viewer, queries):.2f} ms for {LIMIT} hits")
    print(f"  statements: {max(len(statements_of(viewer, query)) for query in queries)}")
    print(f"  HTTP, two clients: {http(viewer, queries):.2f} of the queries a second of the bare statements")


def fill(number: int) -> object:
    """Five collections with documents of 20 chunks, indexed and embedded; gives their owner."""
    import uuid

    from django.db import connection

    from apps.access.models import User
    from apps.collections.models import Collection, Document, DocumentState
    from apps.indexing import postings
    from apps.indexing.chunks import DocumentText, store_documents
    from apps.indexing.embedding import jobs as embedding
    from apps.indexing.models import IndexedSource
    from apps.indexing.serving import active_profile
    from apps.indexing.stores import get_store
    from apps.jobs.worker import drain
    from tests.indexing import shelf

    owner = User.objects.create_superuser("bench")
    shelves = [Collection.objects.create(owner=owner, name=f"bench {n}", slug=f"bench-{n}") for n in range(COLLECTIONS)]
    waiting: dict[int, list[tuple[Document, DocumentText]]] = {place: [] for place in range(COLLECTIONS)}

    def store(place: int) -> None:
        Document.objects.bulk_create([row for row, _ in waiting[place]])
        texts = [text for _, text in waiting[place]]
        store_documents(get_store("md_collections"), source_id=shelves[place].pk, documents=texts)
        waiting[place] = []

    made = itertools.groupby(corpus.chunks(number), key=lambda one: (one.source, one.document))
    for (source, document), group in made:
        place = source % COLLECTIONS
        cuts = [shelf.cut(one.text, one.heading, index=index) for index, one in enumerate(group)]
        key = f"{source}/{document}.md"
        row = Document(
            collection=shelves[place], source_key=key, title=cuts[0].heading_path[0], state=DocumentState.INDEXED,
            content_hash=uuid.uuid4().bytes * 2, size=1, format="markdown", encoding="utf-8",
        )  # fmt: skip
        waiting[place].append((row, DocumentText(document_id=row.pk, title=row.title, path=key, chunks=cuts)))
        if len(waiting[place]) == BATCH_DOCUMENTS:
            store(place)
    for place, collection in enumerate(shelves):
        store(place)
        embedding.request(collection)
    embedding.INDEX_FROM, usual = number + 1, embedding.INDEX_FROM  # the graph is built once, when all is there
    drain()
    embedding.INDEX_FROM = usual
    embedding.ensure_index(active_profile())
    for entry in IndexedSource.objects.all():
        postings.merge(entry)  # what a job does after an upload
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")  # what autovacuum does in a deployment
    return owner


def ask(viewer: object, query: str, *, mode: str = "docs", path: str = "") -> object:
    from apps.retrieval.search import search
    from apps.retrieval.values import Filters, Question

    question = Question(query, limit=LIMIT, mode=mode, filters=Filters(path=path))  # type: ignore[arg-type]
    return search(viewer=viewer, question=question)  # type: ignore[arg-type]


def packed(viewer: object, query: str) -> object:
    from apps.retrieval.context import context

    return context(viewer=viewer, task=query)  # type: ignore[arg-type]


def routed(viewer: object, query: str) -> object:
    from apps.retrieval.routing import route

    return route(viewer=viewer, query=query)  # type: ignore[arg-type]


def streams(viewer: object) -> dict[str, Callable[[str], object]]:
    from apps.indexing import dense, lexical
    from apps.indexing.questions import ask as terms
    from apps.indexing.scope import visible
    from apps.indexing.serving import active_profile

    def words(query: str) -> object:
        scope = visible(viewer)  # type: ignore[arg-type]
        return lexical.search(scope, terms(query, scope.languages))

    def meaning(query: str) -> object:
        scope, profile = visible(viewer), active_profile()  # type: ignore[arg-type]
        assert profile is not None
        return dense.search(scope, profile, dense.embed_query(profile, query))

    return {"words": words, "meaning": meaning}


def under_access(viewer: object, queries: list[str], clock: place.Clock) -> Iterator[str]:
    """What meaning finds for who may read some of the collections: rows, how many of the ten nearest, CPU."""
    from apps.collections.models import Collection
    from apps.indexing import dense
    from apps.indexing.scope import visible
    from apps.indexing.serving import active_profile

    profile = active_profile()
    assert profile is not None
    ids = list(Collection.objects.order_by("slug").values_list("id", flat=True))
    for count in (1, 3, COLLECTIONS):
        scope = visible(viewer, sources=[("collection", id_) for id_ in ids[:count]])  # type: ignore[arg-type]
        rows, shares = [], []
        for query in queries:
            vector = dense.embed_query(profile, query)
            found = [hit.ref for hit in dense.search(scope, profile, vector)]
            every = dense.fetch(dense.statement(scope, profile, vector, 300, dense.Look(exact=True)))
            nearest = {hit.ref for hit in dense.rank(profile, every, 300)[:10]}
            rows.append(len(found))
            shares.append(len(nearest & set(found[:10])) / max(len(nearest), 1))

        def one(query: str, scope: Scope = scope) -> object:
            return dense.search(scope, profile, dense.embed_query(profile, query))

        yield (
            f"{count} of {COLLECTIONS} collections: {min(rows)} rows or more, {statistics.mean(shares):.3f} of the ten "
            f"nearest, {_median(clock, one, queries):.1f} ms"
        )


def _median(
    clock: place.Clock,
    run: Callable[[str], object],
    queries: list[str],
    read: Callable[[], float] | None = None,
) -> float:
    """CPU of this process and of its database backend, of each query the median of some rounds; their mean."""
    read = read or clock.read
    found = []
    for query in queries:
        for _ in range(WARM):
            run(query)
        times = []
        for _ in range(ROUNDS):
            before = read()
            run(query)
            times.append(read() - before)
        found.append(statistics.median(times))
    return statistics.mean(found)


def statements_of(viewer: object, query: str) -> list[tuple[str, object]]:
    """What one search asks the database."""
    from django.db import connection

    said: list[tuple[str, object]] = []

    def note(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        said.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        ask(viewer, query)
    return said


def replay(said: list[tuple[str, object]]) -> None:
    from django.db import connection

    for sql, params in said:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)  # type: ignore[arg-type]
            if cursor.description:
                cursor.fetchall()


def python_over_sql(viewer: object, queries: list[str]) -> float:
    """CPU of this process for the function, less that for the same statements with the same values by hand."""
    found = []
    for query in queries:
        said = statements_of(viewer, query)
        times: dict[str, list[float]] = {"whole": [], "bare": []}
        for _ in range(ROUNDS):
            before = time.process_time()
            ask(viewer, query)
            middle = time.process_time()
            replay(said)
            times["whole"].append(middle - before)
            times["bare"].append(time.process_time() - middle)
        found.append(1000 * (statistics.median(times["whole"]) - statistics.median(times["bare"])))
    return statistics.mean(found)


def http(viewer: object, queries: list[str]) -> float:
    """Answers a second of two clients over the WSGI handler, as a share of those of the bare statements."""
    from django.conf import settings
    from django.db import connection
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]

    def rate(make: Callable[[], Callable[[str], object]]) -> float:
        counts = [0, 0]
        ready = threading.Barrier(2)

        def work(place_: int) -> None:
            run = make()
            run(queries[0])
            ready.wait()
            stop = time.perf_counter() + HTTP_SECONDS
            for query in itertools.cycle(queries):
                if time.perf_counter() > stop:
                    break
                run(query)
                counts[place_] += 1
            connection.close()

        threads = [threading.Thread(target=work, args=(one,)) for one in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / HTTP_SECONDS

    def client() -> Callable[[str], object]:
        from apps.access.rest import throttles

        browser = Client()
        browser.force_login(viewer)  # type: ignore[arg-type]

        def post(query: str) -> object:
            throttles.reset()
            body = {"query": query, "limit": LIMIT}
            answer = browser.post("/api/search", body, content_type="application/json")
            assert answer.status_code == 200, answer.content
            return answer

        return post

    bare = {query: statements_of(viewer, query) for query in queries}
    client()(queries[0])
    settle()
    return rate(client) / rate(lambda: lambda query: replay(bare[query]))


if __name__ == "__main__":
    sizes = [one for one in sys.argv[1:] if one.isdigit()]
    main(*(int(one) for one in sizes), keep="".join(one for one in sys.argv[1:] if not one.isdigit()))
