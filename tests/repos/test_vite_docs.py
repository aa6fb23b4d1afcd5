"""A real documentation tree: 84 documents of the Vite project."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.access.models import User
from apps.repos.links import load_tree
from apps.repos.models import RepositoryDocument, RepositoryDocumentChunk, RepositoryDocumentLink
from tests.repos.conftest import Portal, Upstream

SHARED = Path(os.environ.get("COGRAPH_SHARED", Path(__file__).parents[3] / "shared"))
TREE = SHARED / "corpora" / "vite-docs" / "tree"

needs_corpus = pytest.mark.skipif(not TREE.is_dir(), reason="the shared corpora are not here (COGRAPH_SHARED)")


@pytest.fixture
def vite(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path / "vitejs" / "vite")
    shutil.copytree(TREE, upstream.path, dirs_exist_ok=True)
    upstream.commit()
    return upstream


@needs_corpus
@pytest.mark.django_db
def test_repos_vite_docs_twice(vite: Upstream, upstream: Upstream, portal: Portal) -> None:
    repository, job = portal.synced(vite)
    assert job.status == "success", job.error_message
    counters = job.counters
    assert (counters["discovered_files"], counters["indexed_documents"]) == (84, 84)
    documents = RepositoryDocument.objects.filter(repository=repository)
    assert documents.count() == 84
    assert len(set(documents.values_list("slug", flat=True))) == 84
    structures = documents.values_list("structure", flat=True)
    headings = [heading for structure in structures for heading in structure["headings"] if not heading["nested"]]
    assert len(headings) == 1972
    chunks = set(RepositoryDocumentChunk.objects.values_list("pk", flat=True))
    with CaptureQueriesContext(connection) as queries:
        job = portal.sync(repository)
    assert job.counters["unchanged_documents"] == 84
    assert job.counters["indexed_documents"] == 0
    assert {item.milliseconds for item in job.items.all()} == {None}
    assert set(RepositoryDocumentChunk.objects.values_list("pk", flat=True)) == chunks
    small = upstream.commit({"a.md": "# A", "b.md": "# B"}) and portal.synced(upstream)[0]
    with CaptureQueriesContext(connection) as few:
        portal.sync(small)
    assert len(queries) == len(few), "no query in a loop"
    links = RepositoryDocumentLink.objects.filter(repository=repository)
    from_root = links.filter(href__startswith="/guide/")
    assert from_root.filter(state__in=("resolved", "anchor missing")).count() == from_root.count()
    assert load_tree(repository).pages.keys() == set(documents.values_list("path", flat=True))


@needs_corpus
@pytest.mark.django_db
def test_repos_vite_docs_slices_are_exact(vite: Upstream, portal: Portal) -> None:
    repository, _ = portal.synced(vite)
    for document in RepositoryDocument.objects.filter(repository=repository).prefetch_related("chunks"):
        raw = document.text.encode()
        assert document.chunk_count == len(document.chunks.all())
        for chunk in document.chunks.all():
            assert raw[chunk.start_byte : chunk.end_byte].decode() == chunk.source


@pytest.mark.django_db(transaction=True)
def test_repos_fact_29_readers_see_before_or_after(upstream: Upstream, db: Any) -> None:
    portal = Portal(User.objects.create_superuser("ada", password="x"))

    def text(version: int, number: int) -> str:
        return "".join(f"# Page {number}\n\n## Part {part}\n\nversion{version} of part {part}\n\n" for part in range(3))

    upstream.commit({f"p{number:02}.md": text(0, number) for number in range(80)})
    repository, _ = portal.synced(upstream)
    ended = threading.Event()
    faults: list[str] = []
    looks = 0

    def look() -> None:
        nonlocal looks
        try:
            while not ended.is_set():
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(
                        "SELECT d.path, d.text, d.chunk_count, array_agg(c.source) FROM repo_documents d"
                        " JOIN repo_document_chunks c ON c.document_id = d.id GROUP BY d.id"
                    )
                    rows = cursor.fetchall()
                looks += 1
                if len(rows) != 80:
                    faults.append(f"{len(rows)} documents")
                for path, whole, count, sources in rows:
                    if len(sources) != count or any(source not in whole for source in sources):
                        faults.append(f"{path} is mixed")
        except Exception as error:
            faults.append(repr(error))
        finally:
            connection.close()

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for version in (1, 2):
            upstream.commit({f"p{number:02}.md": text(version, number) for number in range(80)})
            job = portal.sync(repository)
            assert job.counters["replaced_files"] == 80
    finally:
        ended.set()
        reader.join()
    assert faults == []
    assert looks > 3
