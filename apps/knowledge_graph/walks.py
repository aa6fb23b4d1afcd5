"""Walks over a reader's graph: neighbours of hits, what lies around a node, the way between two."""

from apps.knowledge_graph.walking.around import Around, Way, edges_between, neighbourhood, shortest_path
from apps.knowledge_graph.walking.expansion import Expansion, Neighbour, Options, Seed, expand
from apps.knowledge_graph.walking.rejected import RejectedPage, already_rejected, rejected_documents
from apps.knowledge_graph.walking.steps import Filters, Newest, Step, newest

__all__ = [
    "Around",
    "Expansion",
    "Filters",
    "Neighbour",
    "Newest",
    "Options",
    "RejectedPage",
    "Seed",
    "Step",
    "Way",
    "already_rejected",
    "edges_between",
    "expand",
    "neighbourhood",
    "newest",
    "rejected_documents",
    "shortest_path",
]
