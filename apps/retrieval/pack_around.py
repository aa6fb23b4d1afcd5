"""What stands around the seeds of a pack: graph, links, code and folder, as pointers (``retrieval.md`` 12.3, 12.4)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote
from uuid import UUID

from apps.repos.code import around_hits
from apps.repos.code.around_hits import Around as CodeAround
from apps.repos.models_code import CodeNode
from apps.retrieval.hits import PASSAGES, hydrate_with
from apps.retrieval.packing import Pointer
from apps.retrieval.surroundings import Document, LinksOut, Near, around

if TYPE_CHECKING:
    from apps.indexing.scope import Scope
    from apps.repos.code.related import RelatedSymbol
    from apps.retrieval.beside_values import NearPage
    from apps.retrieval.ordering import Fused
    from apps.retrieval.sections import SectionUnit
    from apps.retrieval.shelf_values import Candidate
    from apps.retrieval.shelf_values import Found as Winner
    from apps.retrieval.streams import Streams

BEST_AROUND = 5
"""Of each tier and seed; the rest is counted."""
CODE_ROWS = 3
MOST_SYMBOLS = 40
"""Symbols of one passage that are looked at."""
MOST_LITERALS = 1000
"""Places in code that name one document; they are counted so far."""

Tier = Literal["seed", "graph", "link", "code reference", "co-located"]
Code = tuple["Streams", "Fused"]
"""The code block and its rows in order."""


@dataclass(frozen=True, slots=True)
class CodeFound:
    """The rows of the code block, texts of its first ones, and what passages of the seeds have to do with code."""

    order: Sequence[Candidate] = ()
    winners: Mapping[int, Winner] = field(default_factory=dict)
    around: CodeAround = field(default_factory=CodeAround)


TIER: Tier = "code reference"


def pointer(tier: Tier, document: Document, unit: SectionUnit, why: str) -> Pointer:
    heading = " › ".join(unit.heading_path) or document.title
    location = f"{document.path}{'#' + unit.anchor if unit.anchor else ''}:{unit.start}-{unit.end}"
    tokens = math.ceil(document.size(unit) / 3)
    return Pointer(tier, heading, location, document.address(unit.anchor), tokens, why, document.id, document.source)


def pointers_around(
    scope: Scope,
    seeds: Sequence[Document],
    rows: Sequence[Candidate],
    fused: Fused,
    neighbours: Sequence[NearPage],
    links: LinksOut,
    code: CodeFound,
) -> list[Pointer]:
    """All tiers but the first, in their order; a document stands in the first tier that names it. ``rows`` are the
    passages of the seeds."""
    worth = _worth(fused)
    known = {document.id for document in seeds}
    found = _graph([one for one in neighbours if one.place.document_id not in known], len(seeds))
    known |= {one.document_id for one in found if one.document_id}
    told = {*map(str, known), *worth}
    linked, beside = around(scope, seeds, links.pairs, told, BEST_AROUND)
    found += _documents("link", linked, "linked from", seeds, worth, known)
    found += of_code(seeds, rows, links.files, code)
    return found + _documents("co-located", beside, "in the folder of", seeds, worth, known)


def _worth(fused: Fused) -> dict[str, float]:
    """The best final score of each document in the answer."""
    worth: dict[str, float] = {}
    finals = fused.standings.finals(fused.order.column("ref"))
    for document, final in zip(fused.order.column("document"), finals, strict=True):
        worth.setdefault(document, final)
    return worth


def _graph(neighbours: Sequence[NearPage], seeds: int) -> list[Pointer]:
    """Neighbours in their order, five for each seed; a page that replaces a seed comes first and says so."""
    shown = neighbours[: BEST_AROUND * max(seeds, 1)]
    found = []
    for one in shown:
        place = one.place
        title = " › ".join((place.title, *place.trail))
        why = ", ".join(part for part in (one.label, one.why) if part)
        found.append(
            Pointer("graph", title, place.location, place.url, place.tokens, why, place.document_id, place.source)
        )
    if len(neighbours) > len(shown):
        found.append(_more("graph", len(neighbours) - len(shown), "near in the graph"))
    return found


def _documents(
    tier: Tier,
    found: Mapping[UUID, Near],
    words: str,
    seeds: Sequence[Document],
    worth: Mapping[str, float],
    known: set[UUID],
) -> list[Pointer]:
    """The best five of each seed by their own match with the task, the rest counted. What is shown becomes known."""
    pointers: list[Pointer] = []
    for seed in seeds:
        around_seed = found.get(seed.id, Near(()))
        near = [document for document in around_seed.documents if document.id not in known]
        near.sort(key=lambda document: (-worth.get(str(document.id), 0.0), document.path))
        shown = near[:BEST_AROUND]
        pointers += [pointer(tier, document, document.whole(), f"{words} {seed.path}") for document in shown]
        known |= {document.id for document in shown}
        if left := len(near) - len(shown) + around_seed.others:
            pointers.append(_more(tier, left, f"{words} {seed.path}"))
    return pointers


def with_code(
    blocks: Sequence[tuple[Streams, Sequence[Candidate], Fused]], seeds: Sequence[Candidate], code: Code | None
) -> tuple[list[dict[int, Winner]], CodeFound]:
    """Texts of the rows of ``blocks``, and of code what a pack tells, by one statement."""
    own = [row for row in seeds if row.store == PASSAGES]
    asked = around_hits.statement(
        nodes=(),
        chunks=[row.chunk_id for row in own if row.chunk_id],
        documents=list(dict.fromkeys(row.document_id for row in own)),
        passages=0,
        symbols=MOST_SYMBOLS,
        literals=MOST_LITERALS,
    )
    of_code = [(code[0], code[1].order[:CODE_ROWS], code[1])] if code else []
    winners, around = hydrate_with([*blocks, *of_code], asked)
    if not code:
        return winners, CodeFound(around=around)
    return winners[:-1], CodeFound(code[1].order, winners[-1], around)


def of_code(
    seeds: Sequence[Document], rows: Sequence[Candidate], files: Mapping[UUID, Sequence[str]], code: CodeFound
) -> list[Pointer]:
    """The first rows of the code block, symbols and ``files`` that the seeds mention, code that names the seeds.

    Code and documents of one repository have the same readers.
    """
    own = [seed for seed in seeds if seed.store == "repo_docs"]
    rank = {row.symbol: place for place, row in enumerate(code.order)}
    mentioned, literals = _mentioned(own, rows, code.around.symbols), code.around.literals
    literals = {seed.id: literals[seed.id] for seed in own if seed.id in literals}
    named = [one.node_id for symbols in mentioned.values() for one in symbols]
    homes = _homes([*named, *(one.node_id for found in literals.values() for one in found)])
    pointers = _best_rows(code)
    known = {one.document_id for one in pointers}
    for seed in own:
        symbols = sorted(
            mentioned.get(seed.id, ()),
            key=lambda one: (
                rank.get(str(one.node_id), len(rank)),
                -one.confidence,
                one.path,
                one.start_line,
                one.name,
            ),
        )
        of_seed = [
            _symbol(one.node_id, one.qualified_name, f"{one.path}:{one.start_line}-{one.end_line}", homes, "named in")
            for one in symbols
        ]
        of_seed += [
            _symbol(one.node_id, one.qualified_name, f"{one.path}:{one.line}-{one.line}", homes, "names")
            for one in literals.get(seed.id, ())
        ]
        of_seed += [
            Pointer(TIER, path.rpartition("/")[2], path, f"{seed.source.url}/files/{quote(path)}", 0, "linked from")
            for path in files.get(seed.id, ())
        ]
        new = [one for one in of_seed if one.document_id is None or one.document_id not in known]
        pointers += [replace(one, why=f"{one.why} {seed.path}", source=seed.source) for one in new[:BEST_AROUND]]
        known |= {one.document_id for one in new}
        if len(new) > BEST_AROUND:
            pointers.append(_more(TIER, len(new) - BEST_AROUND, f"beside {seed.path}"))
    return pointers


def _symbol(node: UUID, name: str, location: str, homes: Mapping[UUID, tuple[str, int]], why: str) -> Pointer:
    url, tokens = homes.get(node, ("", 0))
    return Pointer(TIER, name, location, url, tokens, why, node)


def _more(tier: Tier, count: int, words: str) -> Pointer:
    return Pointer(tier, f"{count} more {words}", "", "", 0, "")


def _best_rows(code: CodeFound) -> list[Pointer]:
    pointers = []
    for row in code.order[:CODE_ROWS]:
        winner = code.winners.get(row.ref)
        if winner is not None:
            location = f"{row.path}:{winner.start_line}-{winner.end_line}"
            tokens = math.ceil(len(winner.text.encode()) / 3)
            pointers.append(
                Pointer(TIER, row.title, location, winner.url, tokens, "matches the task", row.node, winner.source)
            )
    return pointers


def _mentioned(
    seeds: Sequence[Document], rows: Sequence[Candidate], named: Mapping[int, Sequence[RelatedSymbol]]
) -> dict[UUID, list[RelatedSymbol]]:
    """Symbols that the passages of each seed name, once each."""
    documents = {str(seed.id): seed.id for seed in seeds}
    passages = {row.chunk_id: documents[row.document] for row in rows if row.document in documents and row.chunk_id}
    found: dict[UUID, dict[UUID, RelatedSymbol]] = defaultdict(dict)
    for chunk in sorted(passages):
        for symbol in named.get(chunk, ()):
            found[passages[chunk]].setdefault(symbol.node_id, symbol)
    return {document: list(symbols.values()) for document, symbols in found.items()}


def _homes(nodes: Sequence[UUID]) -> dict[UUID, tuple[str, int]]:
    """Address and tokens of symbols."""
    rows = CodeNode.objects.filter(pk__in=set(nodes)).values_list("pk", "repository__slug", "start_byte", "end_byte")
    return {pk: (f"/repos/{slug}/code/{pk}", math.ceil((end - start) / 3)) for pk, slug, start, end in rows}
