"""How a document stands when its projection begins, by one statement: asked for by every job, under the locks."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.access.cursors import prepared_cursor
from apps.knowledge_graph.models import GraphSource

_COLUMNS = "s.id, s.repository_id, s.collection_id, s.revision, s.projector, s.changed_at, p.uid, p.header_state"
_STANDING = {
    "repository": (
        f"SELECT d.path, d.content_hash, true, {_COLUMNS} FROM repo_documents d"  # noqa: S608 - of constants
        " LEFT JOIN kb_sources s ON s.repository_id = d.repository_id"
        " LEFT JOIN kb_pages p ON p.repository_document_id = d.id WHERE d.id = %s"
    ),
    "collection": (
        f"SELECT d.source_key, encode(d.content_hash, 'hex'), d.trashed_at IS NULL, {_COLUMNS} FROM md_documents d"  # noqa: S608
        " LEFT JOIN kb_sources s ON s.collection_id = d.collection_id"
        " LEFT JOIN kb_pages p ON p.document_id = d.id WHERE d.id = %s"
    ),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """``state`` as of `StoredDocument`; ``graph`` of its source; ``uid`` and ``header_state`` of its page. None and
    empty for what is not there."""

    state: tuple[str, str, bool]
    graph: GraphSource | None
    uid: str
    header_state: str

    @property
    def is_page(self) -> bool:
        return self.header_state not in ("", "former")


def standing_of(kind: str, document_id: UUID) -> Standing | None:
    with prepared_cursor() as cursor:
        cursor.execute(_STANDING[kind], (document_id,))
        row = cursor.fetchone()
    if row is None:
        return None
    path, digest, live, id_, repository, collection, revision, projector, changed_at, uid, header_state = row
    graph = None
    if id_ is not None:
        graph = GraphSource(
            id=id_,
            repository_id=repository,
            collection_id=collection,
            revision=revision,
            projector=projector,
            changed_at=changed_at,
        )
    return Standing((path, digest, live), graph, uid or "", header_state or "")
