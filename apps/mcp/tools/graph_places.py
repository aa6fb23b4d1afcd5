"""Where the pages of nodes are, in words and values that the reading tools take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apps.collections import catalogue as collections
from apps.knowledge_graph.reader import Reader, SeenNode
from apps.mcp.bounds import one_line
from apps.mcp.replies import Call
from apps.repos import catalogue as repos


@dataclass(frozen=True, slots=True)
class Place:
    """Where the page of a node is, and what it costs to read."""

    location: str = ""
    tokens: int = 0

    @property
    def words(self) -> str:
        return f" · {one_line(self.location, 200)} · {self.tokens} tokens" if self.location else ""

    @property
    def meta(self) -> dict[str, Any]:
        return {"location": self.location, "tokens": self.tokens} if self.location else {}


NOWHERE = Place()


def places_of(call: Call, reader: Reader, nodes: Iterable[SeenNode]) -> dict[str, Place]:
    """By uid; nodes that only links name are left out."""
    uids = {node.page: node.uid for node in nodes}
    pages = reader.pages(uids)
    documents = {id_: page.repository_document_id or page.document_id for id_, page in pages.items()}
    room: Any = repos if call["repository"] else collections
    sizes = room.sizes(call.viewer, documents.values())
    return {uids[id_]: Place(page.path, math.ceil((sizes.get(documents[id_]) or 0) / 3)) for id_, page in pages.items()}
