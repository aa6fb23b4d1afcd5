"""What stands beside a document: its links and who links it, or why it is not in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from apps.access.errors import NotFound
from apps.knowledge_graph.detail import NodeDetail, node_detail
from apps.knowledge_graph.models import CanonicalPage, Evidence
from apps.knowledge_graph.naming import PAGE_ENDINGS
from apps.knowledge_graph.reader import open_graph

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer


LINKS = 50
"""Links to a plain document that are shown; of a page, edges in each direction."""


@dataclass(frozen=True, slots=True)
class PlainLink:
    """A page that links a plain document."""

    uid: str
    label: str
    path: str
    line: int
    raw: str


@dataclass(frozen=True, slots=True)
class Panel:
    """``detail`` for a page that bears its slug; else ``why_not`` and the pages that link the document by its path."""

    detail: NodeDetail | None
    why_not: str = ""
    linked_by: Sequence[PlainLink] = field(default=())
    links: int = 0
    """How many links there are, shown or not."""


def panel(viewer: Viewer, source: Source, *, document: UUID, path: str) -> Panel | None:
    """The panel of a document that the viewer may read; None where the source has no pages."""
    reader, graph = open_graph(viewer, source)
    if graph is None:
        return None
    page = CanonicalPage.objects.filter(source=graph).of_documents([document]).kept().first()
    node = reader.node(graph.pk, page.uid) if page is not None else None
    if page is not None and node is not None and node.page == page.pk:
        try:
            return Panel(node_detail(viewer, source, reader, graph, page.uid, most=LINKS))
        except NotFound:
            return Panel(None)
    if page is not None:
        other = reader.pages([node.page]).get(node.page or 0) if node is not None else None
        why = f"the slug {page.uid} is borne by {other.path}" if other else f"the slug {page.uid} is not free"
    elif not path.lower().endswith(PAGE_ENDINGS):
        why = "only Markdown documents are pages"
    else:
        why = "its front matter has no known type with a valid slug"
    rows = (
        Evidence.objects.filter(source=graph, outcome="document", wanted__contains=[f"path:{path}"])
        .filter(page__in=CanonicalPage.objects.filter(source=graph, bears=True).live())
        .select_related("page")
        .order_by("page__path", "line", "column")
    )
    shown = [PlainLink(row.page.uid, row.page.label, row.page.path, row.line, row.raw) for row in rows[:LINKS]]
    return Panel(None, why, shown, rows.count() if len(shown) == LINKS else len(shown))
