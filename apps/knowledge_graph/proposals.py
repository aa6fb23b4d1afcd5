"""The inferred layer: what proposers think of, kept apart from what is written, and what people say to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from apps.access.rules import Right
from apps.knowledge_graph.models import Edge, GraphSource, Node, ProposalDecision, TypeSource, Verdict
from apps.knowledge_graph.pasting import Paste, line_to_paste
from apps.knowledge_graph.proposing.gathering import gather
from apps.knowledge_graph.proposing.values import Proposal, Proposer
from apps.knowledge_graph.storing.sources import lock_graph
from apps.knowledge_graph.vocabulary import DEFAULT_WEIGHTS, matrix_type

if TYPE_CHECKING:
    from apps.access.models import User

BUILT_IN = (
    "apps.knowledge_graph.proposing.mention.propose",
    "apps.knowledge_graph.proposing.shared_symbol.propose",
    "apps.knowledge_graph.proposing.mutual_neighbours.propose",
)


def proposers() -> list[Proposer]:
    """The functions of ``COGRAPH_GRAPH__PROPOSERS``; the built-in ones when it is empty."""
    return [cast("Proposer", import_string(path)) for path in settings.COGRAPH.graph.proposers or BUILT_IN]


def propose(graph: GraphSource, chosen: Iterable[Proposer] | None = None) -> int:
    """Replace the proposals of one source by what its proposers give now; returns how many stand.

    A row that is proposed again keeps its id. Pairs with an authored edge in either direction, and what was decided
    before, are left out.
    """
    pages = gather(graph)
    given = [proposal for proposer in chosen or proposers() for proposal in proposer(pages)]
    with transaction.atomic():
        lock_graph(*graph.source_key)
        graph.refresh_from_db()
        wanted = _wanted(graph, given)
        stored = {row.edge_uid: row for row in Edge.objects.filter(source=graph, provenance="inferred")}
        gone = [row.pk for uid, row in stored.items() if uid not in wanted]
        Edge.objects.filter(pk__in=gone)._raw_delete("default")
        for uid, row in wanted.items():
            old = stored.get(uid)
            if old is None:
                row.save(force_insert=True)
            elif old.payload != row.payload:
                Edge.objects.filter(pk=old.pk).update(payload=row.payload)
        return len(wanted)


def _wanted(graph: GraphSource, given: Iterable[Proposal]) -> dict[str, Edge]:
    types = dict(Node.objects.filter(source=graph, dangling=False).values_list("node_uid", "node_type"))
    authored = Edge.objects.filter(source=graph).exclude(provenance="inferred").values_list("from_uid", "to_uid")
    joined = {frozenset(pair) for pair in authored}
    decided = set(
        ProposalDecision.objects.filter(source=graph, verdict=Verdict.REJECTED).values_list(
            "from_uid", "to_uid", "edge_type"
        )
    )
    found: dict[str, Edge] = {}
    for proposal in given:
        pair = (proposal.from_uid, proposal.to_uid)
        if len(set(pair)) < 2 or not set(pair) <= set(types) or frozenset(pair) in joined:
            continue
        edge_type = matrix_type(types[pair[0]], types[pair[1]])
        if (*pair, edge_type) in decided:
            continue
        uid = f"{pair[0]}>{edge_type}>{pair[1]}"
        reasons = [dict(reason) for reason in proposal.reasons]
        if uid in found:
            payload = found[uid].payload
            payload["confidence"] = max(payload["confidence"], proposal.confidence)
            payload["reasons"] += reasons
            continue
        found[uid] = Edge(
            source=graph,
            from_uid=pair[0],
            to_uid=pair[1],
            edge_type=edge_type,
            weight=DEFAULT_WEIGHTS[edge_type],
            provenance="inferred",
            type_source=TypeSource.INFERRED,
            payload={"confidence": proposal.confidence, "reasons": reasons},
            valid_from=graph.revision,
        )
    return found


def decide(*, edge: Edge, verdict: str, by: User) -> Paste | None:
    """Accept or reject a proposal. Accepting changes no file: it gives the line that a person pastes, and the guess
    goes when the text holds it. A rejection is remembered for the pair and type. Raises NotFound, Forbidden."""
    held: Edge = Edge.objects.filter(provenance="inferred").get_for(by, Right.WRITE, pk=edge.pk)
    with transaction.atomic():
        lock_graph(*held.source.source_key)
        ProposalDecision.objects.update_or_create(
            source=held.source,
            from_uid=held.from_uid,
            to_uid=held.to_uid,
            edge_type=held.edge_type,
            defaults={"verdict": verdict, "decided_by": by},
        )
        if verdict == Verdict.REJECTED:
            Edge.objects.filter(pk=held.pk)._raw_delete("default")
            return None
    return line_to_paste(held)
