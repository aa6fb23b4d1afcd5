"""Walks over a reader's graph: neighbours of hits, what lies around a node, the way between two."""

from apps.knowledge_graph.walking.around import Around, edges_between, neighbourhood
from apps.knowledge_graph.walking.expansion import Expansion, Found, Neighbour, Options, Seed, expand, find_pages, walk
from apps.knowledge_graph.walking.rejected import LEAST_COSINE, RejectedPage, already_rejected, moved
from apps.knowledge_graph.walking.steps import Filters, Met, Newest, Step, newest
from apps.knowledge_graph.walking.ways import Way, shortest_path

__all__ = [
    "LEAST_COSINE",
    "Around",
    "Expansion",
    "Filters",
    "Found",
    "Met",
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
    "find_pages",
    "moved",
    "neighbourhood",
    "newest",
    "shortest_path",
    "walk",
]
