"""What the occurrences of one page lead to, and the edges that they make. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from apps.knowledge_graph.naming import (
    dangling_uid,
    folder_of,
    page_names,
    wanted_by_address,
    wanted_by_name,
    wanted_by_owner,
)
from apps.knowledge_graph.values import EdgeValue, EvidenceValue, Meaning, NodeValue, Occurrence, OutcomeName, Page
from apps.knowledge_graph.vocabulary import (
    DEFAULT_PRIORITY,
    DEFAULT_WEIGHTS,
    FOLDERS,
    PROJECT,
    UNKNOWN,
    matrix_type,
    strength,
)

Lookup = Callable[[str], Collection[Meaning]]
Question = tuple[str, str, str | None, str]
"""All of an occurrence that decides where it leads from its page: mode, target, stated type, problem."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an occurrence; ``wanted`` are the names that decided it."""

    outcome: OutcomeName
    edge_uid: str | None
    wanted: tuple[str, ...]
    fallback_uid: str | None
    rivals: tuple[str, ...] = ()


def question_of(occurrence: Occurrence) -> Question:
    return occurrence.mode, occurrence.target, occurrence.stated, occurrence.problem


@dataclass(frozen=True, slots=True)
class PageGraph:
    """What one page gives: its node, its outgoing edges by uid, all of its evidence in the order of the text."""

    node: NodeValue | None
    edges: dict[str, EdgeValue]
    evidence: tuple[EvidenceValue, ...]


def answer_of(row: EvidenceValue) -> Answer:
    return Answer(row.outcome, row.edge_uid, row.wanted, row.fallback_uid, row.rivals)


def names_of(page: Page) -> tuple[str, ...]:
    """The names that lead to a page that bears its slug."""
    return page_names(uid=page.uid, aliases=page.header.aliases, path=page.path, label=page.label)


def claim_rank(*, live: bool, node_type: str, path: str) -> tuple[bool, bool, str]:
    """Of several documents with one slug the one with the smallest rank bears it; arrival plays no part."""
    return (not live, not fits_folder(node_type, path), path)


def fits_folder(node_type: str, path: str) -> bool:
    """Whether the nearest ancestor folder that bears the name of a type bears that of this one."""
    nearest = next((step for step in reversed(folder_of(path).split("/")) if step in _TYPED_FOLDERS), None)
    return nearest == FOLDERS.get(node_type) if node_type != PROJECT else nearest is None


_TYPED_FOLDERS = frozenset(FOLDERS.values())


def wanted_of(occurrence: Occurrence, page_path: str) -> tuple[str, ...]:
    """The names that decide where an occurrence leads, in the order in which they are tried."""
    if occurrence.problem:
        return ()
    if occurrence.mode == "address":
        return wanted_by_address(occurrence.target, page_path)
    if occurrence.mode == "owner":
        return wanted_by_owner(occurrence.target)
    return wanted_by_name(occurrence.target, page_path)


def node_of(page: Page) -> NodeValue:
    payload: dict[str, object] = {"dangling": False, "canonical_status": page.header.status}
    if page.header.others:
        payload["others"] = dict(page.header.others)
    return NodeValue(
        page.uid,
        page.header.node_type,
        page.label,
        page.header.status,
        page.header.priority,
        page.document,
        payload,
    )


def dangling_node(uid: str) -> NodeValue:
    return NodeValue(uid, UNKNOWN, uid, "", DEFAULT_PRIORITY, None, {"dangling": True})


def resolve_page(page: Page, lookup: Lookup, known: Mapping[Question, Answer] | None = None) -> PageGraph:
    """Node, edges and evidence of a page that bears its slug. ``known``: answers that need no look-up."""
    answers = dict(known or {})
    evidence: list[EvidenceValue] = []
    for occurrence in page.occurrences:
        question = question_of(occurrence)
        answer = answers.get(question)
        if answer is None:
            answer = answers[question] = _resolve(page, occurrence, lookup)
        evidence.append(
            EvidenceValue(
                page.document,
                occurrence,
                answer.outcome,
                answer.edge_uid,
                answer.wanted,
                answer.fallback_uid,
                _version(page, occurrence),
                answer.rivals,
            )
        )
    return PageGraph(node_of(page), _edges(page, evidence), tuple(evidence))


def wanted_names(page: Page, known: Mapping[Question, Answer]) -> set[str]:
    """The names that must be looked up to resolve a page of which ``known`` is known."""
    return {
        name
        for occurrence in page.occurrences
        if question_of(occurrence) not in known
        for name in wanted_of(occurrence, page.path)
    }


def withheld(page: Page) -> PageGraph:
    """A page that another one keeps from its slug: no node, no edge; its occurrences wait."""
    rows = tuple(
        EvidenceValue(
            page.document,
            occurrence,
            "withheld",
            None,
            wanted_of(occurrence, page.path),
            None,
            _version(page, occurrence),
        )
        for occurrence in page.occurrences
    )
    return PageGraph(None, {}, rows)


def _version(page: Page, occurrence: Occurrence) -> str:
    return page.header_hash if occurrence.in_header else page.version_hash


def _resolve(page: Page, occurrence: Occurrence, lookup: Lookup) -> Answer:
    wanted = wanted_of(occurrence, page.path)
    fallback = dangling_uid(occurrence.target) if occurrence.mode == "name" and not occurrence.problem else None
    rivals: tuple[str, ...] = ()
    target: Meaning | None = None
    outcome: OutcomeName = "unresolved"
    for name in wanted:
        meanings = lookup(name)
        if not meanings:
            continue
        if len(meanings) > 1:
            rivals, outcome = tuple(sorted(each.uid for each in meanings)), "ambiguous"
        else:
            (target,) = meanings
            outcome = "self" if target.uid == page.uid else "edge"
        break
    else:
        if occurrence.mode == "owner":
            outcome = "metadata"
        elif occurrence.mode == "address":
            outcome = "document"
        elif fallback == page.uid:  # a slug that names its own page was found above; kept for safety of the key
            outcome = "self"
        elif fallback is not None:
            target, outcome = Meaning(fallback, UNKNOWN), "edge"
    edge_uid = None
    if outcome == "edge" and target is not None:
        kind = occurrence.stated or matrix_type(page.header.node_type, target.node_type)
        edge_uid = f"{page.uid}>{kind}>{target.uid}"
    return Answer(outcome, edge_uid, wanted, fallback, rivals)


def evidence_order(row: EvidenceValue) -> tuple[int, int, int]:
    """Strongest evidence first; what an edge shows is its first row."""
    occurrence = row.occurrence
    return (strength(occurrence.provenance, occurrence.stated is not None), occurrence.line, occurrence.column)


def _edges(page: Page, evidence: Sequence[EvidenceValue]) -> dict[str, EdgeValue]:
    groups: dict[str, list[EvidenceValue]] = {}
    for row in evidence:
        if row.edge_uid is not None:
            groups.setdefault(row.edge_uid, []).append(row)
    edges: dict[str, EdgeValue] = {}
    for uid, group in groups.items():
        group.sort(key=evidence_order)
        first = group[0].occurrence
        _, kind, to_uid = uid.split(">")
        weights = (row.occurrence.weight for row in group if row.occurrence.weight is not None)
        edges[uid] = EdgeValue(
            page.uid,
            to_uid,
            kind,
            next(weights, DEFAULT_WEIGHTS[kind]),
            first.provenance,
            "authored" if first.stated is not None else "matrix",
            page.document,
        )
    return edges
