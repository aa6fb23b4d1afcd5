"""Ranking quality on the given sets: nDCG@10 of words, vectors and both, against the gates of ``retrieval.md`` 16.1.

    nice pytest -s tests/bench/quality.py            (raydocs, scifact, cosqa; minutes of CPU for vectors at first)
    BENCH_SETS=raydocs BENCH_WORDS_ONLY=1 nice pytest ...    one set, words alone

Sets are looked for in $BENCH_FOLDER, else in ../shared/bench. Vectors are kept in a folder below the temporary one,
because they cost minutes. Each set becomes a source of its own in real tables.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
import uuid
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from apps.indexing import chunks, dense, lexical, names, vectors
from apps.indexing.embedding import local
from apps.indexing.models import IndexedSource
from apps.indexing.questions import ask
from apps.indexing.serving import configured_profile
from apps.retrieval.ordering import COMPLETE_WEIGHT, rarity_of_all
from apps.retrieval.standings import Places, Standings, backing_of
from tests.bench.sets import folder, lines
from tests.indexing import shelf
from tests.indexing.conftest import _shelf_tables, shelves  # noqa: F401 - the fixtures
from tests.indexing.shelf import CODE, STORE, Paper, as_text, cut

GATES = {
    "raydocs": {"lexical page": 0.40, "lexical section": 0.22, "hybrid page": 0.53, "hybrid section": 0.32},
    "scifact": {"lexical chunk": 0.69, "hybrid chunk": 0.70},
    "cosqa": {"lexical chunk": 0.40, "hybrid chunk": 0.53},
}


def judgements(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        query, target, *_, grade = line.split("\t")
        if grade.strip().isdigit() and int(grade) > 0:
            found[query][target] = int(grade)
    return found


def ndcg(ranked: list[str], judged: dict[str, int], k: int = 10) -> float:
    gained = sum(judged.get(target, 0) / math.log2(rank + 2) for rank, target in enumerate(ranked[:k]))
    ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(judged.values(), reverse=True)[:k]))
    return gained / ideal


def collapse(ranked: list[str]) -> list[str]:
    return list(dict.fromkeys(ranked))


class Loaded:
    """One set in tables."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.store = CODE if name == "cosqa" else STORE
        self.rows = lines(folder() / name / "corpus.jsonl.gz")
        self.queries = {row["_id"]: row["text"] for row in lines(folder() / name / "queries.jsonl")}
        self.shelf = shelf.a_shelf(name)
        documents: dict[str, list] = defaultdict(list)
        self.order: dict[tuple[str, int], dict] = {}
        for row in self.rows:
            path = row.get("path") or row["_id"]
            self.order[path, len(documents[path])] = row
            documents[path].append(cut(row["text"], *(part for part in row["title"].split(" > ") if part)))
        papers = {path: Paper(id=uuid.uuid4(), shelf=self.shelf, path=path) for path in documents}
        Paper.objects.bulk_create(papers.values())
        started = time.process_time()
        chunks.store_documents(
            self.store,
            source_id=self.shelf.id,
            documents=[
                as_text(papers[path], cuts, title=cuts[0].heading_path[0] if name == "raydocs" else "")
                for path, cuts in documents.items()
            ],
        )
        self.seconds = time.process_time() - started
        self.rarity: dict[str, dict[int, float]] = {}
        """Of each query, by ref: how much of what is rare in it a chunk holds."""
        self.by_ref = {
            ref: self.order[path, index]
            for ref, path, index in self.store.model.objects.values_list("ref", "document__path", "chunk_index")
        }

    def measure(self, mode: str, ranked: dict[str, list[int]]) -> dict[str, float]:
        """nDCG@10 by level; refs best first for each query."""
        levels = {"chunk": lambda row: row["_id"]}
        judged = {"chunk": judgements(folder() / self.name / "qrels.tsv")}
        if self.name == "raydocs":
            levels = {"section": lambda row: row["parent"], "page": lambda row: row["path"]}
            judged = {
                "section": judgements(folder() / self.name / "qrels.tsv"),
                "page": judgements(folder() / self.name / "qrels_page.tsv"),
            }
        found = {}
        for level, target in levels.items():
            scores = [
                ndcg(collapse([target(self.by_ref[ref]) for ref in ranked[query]]), judged[level][query])
                for query in self.queries
                if judged[level].get(query)
            ]
            found[f"{mode} {level}"] = sum(scores) / len(scores)
        return found

    def ranked(self, mode: str, streams: dict[str, dict[str, list[tuple[int, float]]]]) -> dict[str, float]:
        """Streams of (ref, weight), best first, fused and boosted as in the product, then measured."""
        found = {}
        for query in self.queries:
            rows = list(dict.fromkeys(ref for stream in streams.values() for ref, _ in stream[query]))
            index = {ref: row for row, ref in enumerate(rows)}
            places = Places(index)
            for name, stream in streams.items():
                ranked_rows = np.array([index[ref] for ref, _ in stream[query]], np.int64)
                weights = np.array([weight for _, weight in stream[query]], np.float64)
                ranks = np.arange(1, len(weights) + 1)
                held = np.array([self.rarity[query].get(ref, 0.0) for ref, _ in stream[query]])
                backing = backing_of(held) if name == "lexical" else 1.0
                agreed = {"lexical": 1.0, "dense": weights.max(initial=0.0)}.get(name, 0.0)
                places.add(name, ranked_rows, ranks, weights, weights, backing, agreed)  # type: ignore[arg-type]
            documents: dict[str, int] = {}
            owners = [
                documents.setdefault(self.by_ref[ref].get("path") or self.by_ref[ref]["_id"], len(documents))
                for ref in rows
            ]
            pages, factors = np.array(owners, np.int64), np.ones(len(rows))
            helps = places.votes, places.first_in_both(), places.agreed
            standings = Standings.of(index, places.sums, pages, factors, *helps)
            found[query] = sorted(rows, key=lambda ref: (-standings[ref].final, -standings[ref].fused, ref))
        return self.measure(mode, found)

    def embed(self, profile, embedder) -> float:
        """Gives the set its vectors, from the cache where they are there. CPU seconds spent on making them."""
        entry = IndexedSource.objects.get(store=self.store.name, source_id=self.shelf.id)
        cache = Path(tempfile.gettempdir()) / f"cograph-bench-{self.name}-{profile.fingerprint[:12]}.npz"
        kept = dict(np.load(cache)) if cache.exists() else {}
        started = time.process_time()
        after = 0
        while True:
            texts, after = vectors.missing(self.store, entry, profile, 0, after=after, limit=1024)
            wanted = [text for text in texts if text.hash.hex() not in kept]
            for text, made in zip(wanted, embedder.documents([text.piece for text in wanted]), strict=True):
                kept[text.hash.hex()] = made.vector
            vectors.write(
                profile, entry.number, 0, [vectors.NewVector(t.hash, kept[t.hash.hex()], 0, False) for t in texts]
            )
            if not after:
                break
        spent = time.process_time() - started
        np.savez(cache, **kept)
        return spent


@pytest.mark.parametrize("name", os.environ.get("BENCH_SETS", "raydocs,scifact,cosqa").split(","))
def test_quality(name, shelves):  # noqa: F811
    if not (folder() / name).is_dir():
        pytest.skip(f"no set {name} in {folder()}")
    loaded = Loaded(name)
    print(f"\n{name}: {len(loaded.rows)} chunks stored, {len(loaded.rows) / loaded.seconds:.0f} per second of our CPU")
    scope = shelf.scope_of(block=loaded.store.block)
    started = time.process_time()
    by_words = {}
    by_name = {}
    for query, text in loaded.queries.items():
        question = ask(text, scope.languages)
        result = lexical.search(scope, question)
        ranked = sorted(result.hits, key=lambda hit: (-hit.score, hit.ref))[:300]
        refs = [hit.ref for hit in ranked]
        loaded.rarity[query] = dict(zip(refs, result.rarity(refs).tolist(), strict=True))
        every = rarity_of_all(question, result) if loaded.store.block == "docs" else float("inf")
        by_words[query] = [(ref, COMPLETE_WEIGHT if loaded.rarity[query][ref] >= every else 1.0) for ref in refs]
        rows = names.search(scope, question).rows if loaded.store.block == "docs" else ()
        by_name[query] = [(row.ref, row.weight) for row in rows if row.ref is not None]
    print(f"{1000 * (time.process_time() - started) / len(loaded.queries):.1f} ms of our CPU a query")
    plain = {query: [ref for ref, _ in rows] for query, rows in by_words.items()}
    numbers = {
        **{f"stream {key}": value for key, value in loaded.measure("lexical", plain).items()},
        **{f"no names {key}": value for key, value in loaded.ranked("lexical", {"lexical": by_words}).items()},
        **loaded.ranked("lexical", {"lexical": by_words, "name": by_name}),
    }
    if "BENCH_WORDS_ONLY" not in os.environ:
        embedder = local.MiniLm()
        profile = configured_profile(embedder)
        print(f"vectors: {loaded.embed(profile, embedder):.0f} s of CPU")
        by_meaning = {
            query: [(hit.ref, profile.weight) for hit in dense.search(scope, profile, embedder.query(text))]
            for query, text in loaded.queries.items()
        }
        both = {"lexical": by_words, "dense": by_meaning}
        plain = {query: [ref for ref, _ in rows] for query, rows in by_meaning.items()}
        numbers |= {f"stream {key}": value for key, value in loaded.measure("dense", plain).items()}
        numbers |= {f"no names {key}": value for key, value in loaded.ranked("hybrid", both).items()}
        numbers |= loaded.ranked("hybrid", {**both, "name": by_name})
    failed = []
    for measure, value in numbers.items():
        gate = GATES[name].get(measure)
        print(f"  {measure:24} {value:.4f}" + (f"   gate {gate}" if gate else ""))
        if gate and value < gate:
            failed.append(measure)
    assert not failed
