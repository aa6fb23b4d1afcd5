"""What the occurrences of one page lead to, and the edges that they make. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from apps.knowledge_graph.naming import (
    dangling_uid,
    folder_of,
    page_names,
    wanted_by_address,
    wanted_by_name,
    wanted_by_owner,
)
from apps.knowledge_graph.values import EdgeValue, EvidenceValue, Meaning, NodeValue, Occurrence, Page
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


@dataclass(frozen=True, slots=True)
class PageGraph:
    """What one page gives: its node, its outgoing edges by uid, all of its evidence in the order of the text."""

    node: NodeValue | None
    edges: dict[str, EdgeValue]
    evidence: tuple[EvidenceValue, ...]


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


def resolve_page(page: Page, lookup: Lookup) -> PageGraph:
    """Node, edges and evidence of a page that bears its slug."""
    evidence = [_resolve(page, occurrence, lookup) for occurrence in page.occurrences]
    edges = _edges(page, [(row, type_) for row, type_ in evidence if row.edge_uid is not None])
    return PageGraph(node_of(page), edges, tuple(row for row, _ in evidence))


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


def _resolve(page: Page, occurrence: Occurrence, lookup: Lookup) -> tuple[EvidenceValue, tuple[str, str, bool]]:
    """The evidence, with (target, edge type, stated)."""
    wanted = wanted_of(occurrence, page.path)
    fallback = dangling_uid(occurrence.target) if occurrence.mode == "name" and not occurrence.problem else None
    rivals: tuple[str, ...] = ()
    target: Meaning | None = None
    outcome = "unresolved"
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
    kind = occurrence.stated or ""
    to_uid = target.uid if target else ""
    if outcome == "edge" and target is not None:
        kind = kind or matrix_type(page.header.node_type, target.node_type)
        edge_uid = f"{page.uid}>{kind}>{target.uid}"
    row = EvidenceValue(
        page.document,
        occurrence,
        outcome,  # type: ignore[arg-type]
        edge_uid,
        wanted,
        fallback,
        _version(page, occurrence),
        rivals,
    )
    return row, (to_uid, kind, occurrence.stated is not None)


def evidence_order(row: EvidenceValue) -> tuple[int, int, int]:
    """Strongest evidence first; what an edge shows is its first row."""
    occurrence = row.occurrence
    return (strength(occurrence.provenance, occurrence.stated is not None), occurrence.line, occurrence.column)


def _edges(page: Page, rows: Sequence[tuple[EvidenceValue, tuple[str, str, bool]]]) -> dict[str, EdgeValue]:
    groups: dict[str, list[tuple[EvidenceValue, tuple[str, str, bool]]]] = {}
    for row, target in rows:
        groups.setdefault(row.edge_uid or "", []).append((row, target))
    edges: dict[str, EdgeValue] = {}
    for uid, group in groups.items():
        group.sort(key=lambda pair: evidence_order(pair[0]))
        first, (to_uid, kind, stated) = group[0]
        weights = (row.occurrence.weight for row, _ in group if row.occurrence.weight is not None)
        edges[uid] = EdgeValue(
            page.uid,
            to_uid,
            kind,
            next(weights, DEFAULT_WEIGHTS[kind]),
            first.occurrence.provenance,
            "authored" if stated else "matrix",
            page.document,
        )
    return edges
