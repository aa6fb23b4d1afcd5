"""Permalinks of passages in collections, and of passages that are no longer there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.collections.curation import create_collection
from apps.collections.models import DocumentChunk
from apps.collections.uploads import upload_document
from apps.jobs.worker import run_job
from apps.repos.models import Repository, RepositoryDocumentChunk
from apps.repos.registration import request_sync
from tests.portal.worlds import commit

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]


def test_portal_rule_24_a_passage_of_a_collection_stands_beside_its_source(world: Any) -> None:
    olga = world.people["olga"]
    collection = create_collection(by=olga, name="Pages", visibility="public")
    text = "# Wombats\n\n## Diet\n\nGrass *only*.\n"
    upload_document(collection=collection, by=olga, source_key="w.md", raw=text.encode(), title=None)
    chunk = DocumentChunk.objects.filter(collection=collection).order_by("-chunk_index")[0]
    body = world.client("otto").get(f"/chunks/{chunk.pk}").content.decode()
    assert f'data-passage="{chunk.start_line}-{chunk.end_line}"' in body
    assert "Grass <em>only</em>." in body
    assert body.count('<tr class="marked"') == chunk.end_line - chunk.start_line + 1


def test_portal_rule_24_a_replaced_passage_names_what_replaced_it(
    world: Any, synced: Callable[..., Repository], tmp_path: Path
) -> None:
    repository = synced(files={"z.md": "# Zoo\n\n## Diet\n\nquagga grass\n"})
    closed = synced("closed", visibility="private", files={"z.md": "# Zoo\n\n## Diet\n\nquagga grass\n"})
    old = {
        one: RepositoryDocumentChunk.objects.filter(repository=one, document__path="z.md").latest("chunk_index").pk
        for one in (repository, closed)
    }
    for one in (repository, closed):
        path = tmp_path / "acme" / one.slug.rpartition("/")[2]
        commit(path, {"z.md": "# Zoo\n\n## Diet\n\nquagga hay, and much more of it\n"})
        run_job(request_sync(repository=one, by=world.people["ada"]).job.pk)
    client = world.client("otto")
    page = client.get(f"/chunks/{old[repository]}")
    assert page.status_code == 410
    body = page.content.decode()
    new = RepositoryDocumentChunk.objects.filter(repository=repository, document__path="z.md").latest("chunk_index")
    assert f'href="/chunks/{new.pk}"' in body
    assert "Zoo › Diet" in body
    assert f'href="{repository.get_absolute_url()}/docs/z"' in body
    hidden, absent = client.get(f"/chunks/{old[closed]}"), client.get("/chunks/12345")
    assert (hidden.status_code, hidden.content) == (404, absent.content)
