"""What the graph does when documents are stored or removed, inside the transaction of that act."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from uuid import UUID

from apps.indexing.observers import DocumentChange, DocumentRef
from apps.jobs.items import REPORT
from apps.jobs.models import Cause, Job, Status
from apps.jobs.queue import enqueue
from apps.knowledge_graph.models import CanonicalPage
from apps.knowledge_graph.reading.header import has_our_keys
from apps.knowledge_graph.reading.pages import may_be_page
from apps.knowledge_graph.storing.documents import BROKEN_HEADER, with_header
from apps.knowledge_graph.storing.incremental import change_documents
from apps.knowledge_graph.storing.sources import KINDS, find_graph, has_graph, lock_graph

PROJECT_DOCUMENT = "project_document"
PROJECT_GRAPH = "project_graph"
ONE_BY_ONE = 25
"""A batch with more pages than this is projected by one job: the whole graph costs less than so many transactions."""


class GraphObserver:
    """Queues the projection of pages that are stored; a removal changes the graph at once."""

    def stored(self, changes: Sequence[DocumentChange]) -> None:
        for (kind, source_id), mine in _by_source([change.ref for change in changes], changes).items():
            concerned = self._concerned(kind, source_id, mine)
            if not concerned:
                continue
            label = change_label(kind, source_id)
            report = _reporting(kind, source_id)
            if len(concerned) > ONE_BY_ONE:
                enqueue(
                    PROJECT_GRAPH,
                    source_key=(kind, source_id),
                    params={"change": label, "cause": "documents", REPORT: report},
                    cause=Cause.FOLLOW_UP,
                )
                continue
            for change in concerned:
                enqueue(
                    PROJECT_DOCUMENT,
                    source_key=(kind, source_id),
                    key=f"{change.ref.document_id}:{change.version_hash}",
                    params={
                        "document": str(change.ref.document_id),
                        "version": change.version_hash,
                        "path": change.ref.path,
                        "act": change.act,
                        "change": label,
                        REPORT: report,
                    },
                    cause=Cause.FOLLOW_UP,
                )

    def removing(self, documents: Sequence[DocumentRef]) -> AbstractContextManager[None]:
        return _removing(documents)

    def _concerned(self, kind: str, source_id: UUID, changes: Sequence[DocumentChange]) -> list[DocumentChange]:
        """Documents that are or were pages, or whose broken header may have to be lent by an older version. Where no
        graph is, foreign front matter (``type: post``) queues nothing."""
        if not has_graph(kind, source_id):  # and so no page
            return [
                change
                for change in changes
                if may_be_page(change.ref.path)
                and (has_our_keys(change.frontmatter) or change.warnings & BROKEN_HEADER)
            ]
        ids = [change.ref.document_id for change in changes]
        pages = set(CanonicalPage.objects.of_documents(ids).kept().with_key().values_list("key", flat=True))
        others = [
            change.ref.document_id
            for change in changes
            if change.ref.document_id not in pages and may_be_page(change.ref.path)
        ]
        if others:
            pages |= with_header(kind, others)
        return [change for change in changes if change.ref.document_id in pages]


@contextmanager
def _removing(documents: Sequence[DocumentRef]) -> Iterator[None]:
    """The graph without the documents, before they go: what others still say of them is left dangling."""
    for (kind, source_id), refs in _by_source(documents, documents).items():
        forget_documents(kind, source_id, [ref.document_id for ref in refs])
    yield


def forget_documents(kind: str, source_id: UUID, documents: Sequence[UUID]) -> None:
    """Take documents out of the graph, their past included; in the caller's transaction."""
    pages = CanonicalPage.objects.of_documents(documents).with_key()
    if not pages.exists():
        return
    lock_graph(kind, source_id)
    graph = find_graph(kind, source_id)
    if graph is None:
        return
    kept = set(pages.kept().values_list("key", flat=True))
    if kept:
        change = change_label(kind, source_id)
        change_documents(graph, dict.fromkeys(kept), cause="removed", change=change)
    # Past states of what was removed for good go by the keys of the database.
    CanonicalPage.objects.filter(source=graph).of_documents(documents)._raw_delete("default")


def change_label(kind: str, source_id: UUID) -> str:
    """What the changes of one moment share: the sync that runs, in a repository; each change by itself, elsewhere."""
    if kind == "repository":
        sync = Job.objects.filter(kind="sync", source_kind=kind, source_id=source_id, status=Status.RUNNING).first()
        if sync is not None:
            return f"sync {sync.pk}"
    return f"change {secrets.token_hex(8)}"


def _reporting(kind: str, source_id: UUID) -> str:
    """The job whose report will say what the graph made of the documents; empty where none runs."""
    running = Job.objects.filter(
        kind__in=("sync", "upload"), source_kind=kind, source_id=source_id, status=Status.RUNNING
    )
    found = running.values_list("pk", flat=True).first()
    return str(found) if found else ""


def _by_source(refs: Sequence[DocumentRef], values: Sequence[object]) -> dict[tuple[str, UUID], list]:  # type: ignore[type-arg]
    found: defaultdict[tuple[str, UUID], list[object]] = defaultdict(list)
    for ref, value in zip(refs, values, strict=True):
        if ref.source_kind in KINDS:
            found[ref.source_kind, ref.source_id].append(value)
    return found
