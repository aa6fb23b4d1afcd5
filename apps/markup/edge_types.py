"""The words that may stand before ``::`` in a wiki link: the edge types of the knowledge graph."""

from __future__ import annotations

EDGE_TYPES = (
    "implements",
    "supersedes",
    "decision_for",
    "depends_on",
    "uses",
    "affects",
    "invalidated_by",
    "documented_by",
    "owned_by",
    "related_to",
)
"""In the order that decides between equal paths (``knowledge-graph.md`` 3)."""
