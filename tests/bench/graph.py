"""What walks over a large graph cost the database, in CPU milliseconds of its backend (`performance.md` 7, goal 19).

    nice python -m tests.bench.graph [nodes edges [folder]]     (100,000 and 1,000,000 unless said; minutes to fill)

With a folder the data stay there and the next run only measures. Ten pages are hubs of 10,000 edges; the other edges
are drawn evenly. What is said of plain pages is of 100 of them, drawn by a fixed seed; most have a hub beside them.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.bench import place

HUBS, HUB_EDGES = 10, 10_000
SAMPLE, SEEDS, ROUNDS = 100, 10, 3
KINDS = (
    # share, edge type, weight, provenance, type_source
    (0.01, "supersedes", "1.0", "frontmatter_supersedes", "authored"),
    (0.10, "depends_on", "0.8", "wikilink", "matrix"),
    (0.05, "implements", "1.0", "frontmatter_typed", "authored"),
    (0.05, "uses", "0.8", "wikilink", "authored"),
    (0.05, "documented_by", "0.7", "frontmatter_typed", "authored"),
    (0.45, "related_to", "0.5", "frontmatter_related", "matrix"),
    (0.29, "related_to", "0.5", "wikilink", "matrix"),
)


def main(nodes: int = 100_000, edges: int = 1_000_000, keep: str = "") -> None:
    filled = bool(keep) and (Path(keep) / "postgres").exists()
    with place.database(str(Path(keep) / "postgres") if keep else ""):
        if not filled:
            fill(nodes, edges)
        measure()


def fill(nodes: int, edges: int) -> None:
    """One collection of ``nodes`` pages with exactly ``edges`` edges."""
    from django.db import connection

    from apps.access.models import User
    from apps.collections.models import Collection
    from apps.knowledge_graph.storing.sources import ensure_graph

    owner = User.objects.create_user("bench")
    collection = Collection.objects.create(owner=owner, name="Bench", slug="bench")
    graph = ensure_graph("collection", collection.pk)
    given = {"collection": collection.pk, "graph": graph.pk, "nodes": nodes, "edges": edges}
    bounds = [sum(kind[0] for kind in KINDS[: place + 1]) for place in range(len(KINDS))]
    given |= {"bounds": bounds, "hubs": HUBS, "hub_edges": min(HUB_EDGES, nodes // 2)}
    for place_, name in enumerate(("types", "weights", "provenances", "type_sources"), start=1):
        given[name] = [kind[place_] for kind in KINDS]
    with connection.cursor() as cursor:
        for statement in _FILL:
            cursor.execute(statement, given)
        for table in ("md_documents", "kb_pages", "kb_nodes", "kb_edges"):
            cursor.execute(f"VACUUM ANALYZE {table}")


_FILL = (
    """INSERT INTO md_documents (id, collection_id, source_key, title, title_override, state, state_reason,
    content_hash, size, version, format, encoding, encoding_guessed, replaced_characters, text, frontmatter, parsed,
    warnings, word_count, line_count, chunk_count, profile, created_at, changed_at, shelved_chunks)
    SELECT gen_random_uuid(), %(collection)s, 'p' || n || '.md', '', '', 'indexed', '', '', 1, 1, 'markdown', 'utf-8',
    false, 0, '', '{}', '{}', '[]', 0, 0, 0, '', now(), now(), '[]' FROM generate_series(1, %(nodes)s) n""",
    """INSERT INTO kb_pages (source_id, document_id, path, uid, node_type, label, status, header, header_state, bears,
    names, problems, version_hash, header_hash, projector)
    SELECT %(graph)s, id, source_key, replace(source_key, '.md', ''), 'module', source_key,
    (ARRAY['accepted', 'accepted', 'accepted', 'review', 'draft', 'superseded'])[1 + abs(hashtext(source_key)) %% 6],
    jsonb_build_object('priority', 50), 'current', true, ARRAY['slug:' || replace(source_key, '.md', '')], '[]', '', '',
    1 FROM md_documents WHERE collection_id = %(collection)s""",
    """INSERT INTO kb_nodes (source_id, page_id, node_uid, node_type, label, status, priority, payload, valid_from)
    SELECT source_id, id, uid, node_type, label, status, 50, '{"dangling": false}', 1 FROM kb_pages""",
    "SELECT setseed(0.5)",
    # Each hub is named by nineteen in twenty of its neighbours and names the rest; then even pairs up to the number.
    # Nothing supersedes a hub.
    """CREATE TEMPORARY TABLE drawn AS SELECT row_number() OVER () AS i, a, b, least + (1 - least) * random() AS kind
    FROM (
    SELECT CASE WHEN k %% 20 = 0 THEN hub ELSE other END AS a, CASE WHEN k %% 20 = 0 THEN other ELSE hub END AS b,
    (%(bounds)s::float8[])[1] AS least FROM (
      SELECT hub, k, 1 + %(hubs)s + (hub * 7919 + k * (%(nodes)s / %(hub_edges)s)) %% (%(nodes)s - %(hubs)s) AS other
      FROM generate_series(1, %(hubs)s) hub, generate_series(1, %(hub_edges)s) k) h
    UNION ALL SELECT 1 + %(hubs)s + floor(random() * (%(nodes)s - %(hubs)s))::int,
      1 + %(hubs)s + floor(random() * (%(nodes)s - %(hubs)s))::int, 0
    FROM generate_series(1, %(edges)s * 11 / 10)) t""",
    """INSERT INTO kb_edges (source_id, page_id, from_uid, to_uid, edge_type, weight, provenance, type_source, payload,
    valid_from) SELECT %(graph)s, p.id, 'p' || a, 'p' || b, (%(types)s::text[])[t.n],
    (%(weights)s::numeric[])[t.n], (%(provenances)s::text[])[t.n], (%(type_sources)s::text[])[t.n], '{}', 1
    FROM (SELECT min(i) AS first, a, b, min(n) AS n FROM (SELECT i, a, b, 1 + (SELECT count(*) FROM
    unnest(%(bounds)s::float8[]) c WHERE c < drawn.kind) AS n FROM drawn WHERE a <> b) w
    GROUP BY a, b, (%(types)s::text[])[n] ORDER BY 1 LIMIT %(edges)s) t
    JOIN kb_pages p ON p.source_id = %(graph)s AND p.uid = 'p' || a ON CONFLICT DO NOTHING""",
    "DROP TABLE drawn",
)


_STEP = (
    "(SELECT {other} AS uid, walk_weight AS weight FROM kb_edges e WHERE source_id = %(source)s AND {at} = {from_}"
    " ORDER BY walk_weight DESC, walk_rank LIMIT 20)"
)
_BOTH = " UNION ALL ".join(
    _STEP.format(at=at, other=other, from_="{from_}") for at, other in (("from_uid", "to_uid"), ("to_uid", "from_uid"))
)
_FLOOR = (
    f"SELECT b.uid, max(a.weight * b.weight) FROM ({_BOTH.format(from_='%(uid)s')}) a"
    f" CROSS JOIN LATERAL ({_BOTH.format(from_='a.uid')}) b GROUP BY b.uid ORDER BY 2 DESC LIMIT 200"
)
"""The walk of `performance.md` 7, without a reader, filters, ranks, ties, nodes or the edges between them."""


def measure() -> None:
    from django.db import connection

    from apps.access.models import User
    from apps.collections.models import Collection
    from apps.knowledge_graph.models import CanonicalPage
    from apps.knowledge_graph.reader import open_graph
    from apps.knowledge_graph.walks import Options, expand, neighbourhood, shortest_path

    with connection.cursor() as cursor:
        # As autovacuum leaves tables: where no page is known to be visible to all, every look into an index is followed
        # by one into the table. The vacuum at the end of filling came too early for the edges.
        for table in ("kb_nodes", "kb_edges"):
            cursor.execute(f"VACUUM {table}")
        cursor.execute("SELECT count(*), count(DISTINCT from_uid) FROM kb_edges")
        count, sources = cursor.fetchone()
        cursor.execute(
            "SELECT uid, count(*) FROM (SELECT from_uid AS uid FROM kb_edges UNION ALL SELECT to_uid FROM kb_edges) e"
            " GROUP BY uid ORDER BY 2 DESC"
        )
        degrees = dict(cursor.fetchall())
    ranked = list(degrees)
    hubs, plain = ranked[:HUBS], random.Random(1).sample(sorted(ranked[HUBS:]), SAMPLE)
    print(
        f"{len(degrees)} nodes, {count} edges from {sources}; hubs of {min(degrees[uid] for uid in hubs)} to"
        f" {degrees[ranked[0]]} edges; others have {statistics.median(degrees.values()):.0f} in the middle"
    )
    owner, collection = User.objects.get(username="bench"), Collection.objects.get(slug="bench")
    compare("open the reader's graph", lambda uid: open_graph(owner, collection), plain[:20], hubs[:1])
    reader, graph = open_graph(owner, collection)
    assert graph is not None
    centres = reader.nodes(graph.pk, [*hubs, *plain])

    def floor(uid: str) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(_FLOOR, {"source": graph.pk, "uid": uid})
            return cursor.fetchall()

    least = compare("floor: 20 best of each node, twice", floor, plain, hubs)
    for depth in (1, 2, 3):

        def around(uid: str, depth: int = depth) -> Any:
            return neighbourhood(reader, graph.pk, centres[uid], depth=depth)

        p95 = compare(f"neighbourhood of 50 nodes, {depth} hops", around, plain, hubs)
        if depth == 2:
            print(f"  {p95 / least:.1f} x the floor at p95")
    documents = dict(CanonicalPage.objects.filter(uid__in=[*hubs, *plain]).values_list("uid", "document"))
    for hops in (1, 2, 3):

        def near(uid: str, hops: int = hops) -> Any:
            return expand(owner, {documents[uid]: 1.0}, Options(hops=hops))

        compare(f"expand one page, {hops} hops", near, plain, hubs)
    for hops in (1, 2):

        def near_many(uid: str, hops: int = hops) -> Any:
            others = hubs if uid in hubs else plain
            start = others.index(uid)
            seeds = [others[(start + step) % len(others)] for step in range(SEEDS)]
            return expand(
                owner, {documents[each]: 1 - step / 20 for step, each in enumerate(seeds)}, Options(hops=hops)
            )

        compare(f"expand {SEEDS} pages, {hops} hops", near_many, plain[:50], hubs)

    def way(uid: str) -> Any:
        return shortest_path(reader, graph.pk, uid, plain[(plain.index(uid) if uid in plain else 0) - 1])

    compare("shortest way", way, plain[:50], hubs)


def compare(name: str, act: Callable[[str], Any], plain: Sequence[str], hubs: Sequence[str]) -> float:
    """CPU milliseconds of the database: over all centres, and the hubs against the middle of the plain ones; the p95 of
    all is returned."""
    pid = place.backend_pid()
    costs: dict[str, float] = {}
    ours: list[float] = []
    for uid in (*plain, *hubs):
        runs = []
        act(uid)
        for _ in range(ROUNDS):
            begun, before = time.process_time(), _backend(pid)
            act(uid)
            runs.append(_backend(pid) - before)
            ours.append(1000 * (time.process_time() - begun))
        costs[uid] = statistics.median(runs)
    middle = statistics.median(costs[uid] for uid in plain)
    hub = max(costs[uid] for uid in hubs)
    print(
        f"{name:<36} median {middle:7.2f}  p95 {_p95(costs.values()):7.2f}  worst hub {hub:7.2f}"
        f" ({hub / middle:4.1f} x median)  ours {statistics.median(ours):6.2f} ms"
    )
    return _p95(costs.values())


def _backend(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def _p95(values: Any) -> float:
    return float(statistics.quantiles(values, n=20)[-1])


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*(int(each) for each in given[:2]), *given[2:])  # type: ignore[arg-type]
