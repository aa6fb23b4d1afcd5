"""Vectors of collections: `collections.md` facts 26, 27, 47; access facts 51 and 56."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from apps.access.models import User
from apps.collections.curation import delete_collection, request_reembed, update_collection
from apps.collections.models import Asset, Collection, Document, DocumentChunk, DocumentLink, DocumentVersion, Upload
from apps.indexing.embedding import hashing
from apps.indexing.models import IndexedSource, Vector
from apps.indexing.serving import active_profile
from apps.jobs.models import Job
from apps.jobs.queue import enqueue
from apps.jobs.worker import drain, run_job
from apps.retrieval.search import search
from apps.retrieval.values import Question
from tests.indexing import service

Put = Callable[..., Any]
pytestmark = pytest.mark.django_db


@pytest.fixture
def embedding(settings: Any) -> Callable[..., None]:
    def choose(**options: Any) -> None:
        area = dataclasses.replace(settings.COGRAPH.embedding, **options)
        settings.COGRAPH = dataclasses.replace(settings.COGRAPH, embedding=area, allowed_private_hosts=("127.0.0.1",))

    return choose


@pytest.fixture
def endpoint(embedding: Callable[..., None]) -> Iterator[service.Service]:
    running, server = service.start()
    embedding(backend="endpoint", url=running.url, model="tried", dimension=64)
    yield running
    server.shutdown()
    server.server_close()


def status(collection: Collection, olga: User) -> dict[str, Any]:
    client = Client()
    client.force_login(olga)
    answer: dict[str, Any] = client.get(f"/api/md-collections/{collection.pk}/embed-status").json()
    return answer


def found(collection: Collection, olga: User, query: str) -> list[str]:
    answer = search(viewer=olga, question=Question(query, sources=(("collection", collection.pk),)))
    return [hit.path for hit in answer.hits]


def test_collections_fact_26_access_fact_51_embedder_down_and_back(
    endpoint: service.Service, put: Put, handbook: Collection, olga: User
) -> None:
    endpoint.status = 503
    assert put("a.md", "# Alpha\n\nthe walrus").outcome.state == "created"
    assert put("b.md", "# Beta\n\nthe penguin").outcome.state == "created"
    drain()
    assert found(handbook, olga, "walrus") == ["a.md"], "found by words at once"
    held = status(handbook, olga)
    assert (held["total"], held["embedded"], held["pending"], held["is_ready"]) == (2, 0, 2, False)
    endpoint.status = 200
    Job.objects.update(not_before=None)  # the time that the job waits has passed
    drain()
    held = status(handbook, olga)
    assert (held["embedded"], held["pending"], held["is_ready"]) == (2, 0, True)


def test_collections_fact_27_embed_status_of_an_empty_collection(handbook: Collection, olga: User) -> None:
    held = status(handbook, olga)
    assert (held["total"], held["embedded"], held["pending"], held["is_ready"]) == (0, 0, 0, False)


def test_collections_fact_47_another_model_serves_when_it_is_complete(
    embedding: Callable[..., None], put: Put, handbook: Collection, olga: User
) -> None:
    embedding(backend="hashing", dimension=384)
    for n in range(4):
        put(f"{n}.md", f"# Page {n}\n\nwords of number {n}")
    drain()
    first = active_profile()
    assert first is not None and first.dimension == 384
    before = found(handbook, olga, "words of number 2")
    embedding(backend="hashing", dimension=768)
    job = request_reembed(collection=handbook, by=olga)
    done = run_job(job.pk)
    assert done is not None and done.status == "success"
    # The new set is complete for this collection, and still the old one answers: the switch is one act for all.
    assert active_profile() == first
    assert found(handbook, olga, "words of number 2") == before
    held = status(handbook, olga)
    assert (held["embedded"], held["profile"] != "", held["next_profile"] != "") == (4, True, True)
    drain()
    second = active_profile()
    assert second is not None and second.dimension == 768
    assert found(handbook, olga, "words of number 2") == before
    assert not Job.objects.filter(status="error").exists()
    assert Vector.objects.count() == Vector.objects.filter(profile=second).count() == 4


def test_chunks_of_an_older_profile_count_as_pending(put: Put, handbook: Collection, olga: User) -> None:
    put("a.md", "# A\n\n" + "\n\n".join("word " * 90 for _ in range(6)))
    drain()
    whole = status(handbook, olga)
    assert whole["is_ready"] is True
    update_collection(collection=handbook, by=olga, profile=(600, 50, 512))
    held = status(handbook, olga)
    assert (held["embedded"], held["pending"], held["is_ready"]) == (0, whole["total"], False)
    drain()
    assert status(handbook, olga)["is_ready"] is True
    assert status(handbook, olga)["total"] > whole["total"]


def test_access_fact_56_a_collection_deleted_while_it_is_embedded(
    put: Put, handbook: Collection, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a.md", "# A\n\n[b](b.md)")
    Asset.objects.create(
        collection=handbook, source_key="p.png", content_type="image/png", content_hash=b"x", size=1, data=b"x"
    )
    inner = hashing.Hashing.documents

    def deleting(self: hashing.Hashing, pieces: Any) -> Any:
        if Collection.objects.visible_to(olga).exists():
            delete_collection(collection=handbook, by=olga)
        return inner(self, pieces)

    monkeypatch.setattr(hashing.Hashing, "documents", deleting)
    job = enqueue("embed", source=handbook).job
    run_job(job.pk)
    job.refresh_from_db()
    assert job.status == "cancelled"
    client = Client()
    client.force_login(olga)
    for path in (f"/docs/{handbook.pk}", f"/api/md-collections/{handbook.pk}", f"/jobs/{job.pk}"):
        assert client.get(path).status_code == 404
    drain()
    for model in (Collection, Document, DocumentVersion, DocumentChunk, DocumentLink, Asset, Upload):
        assert not model._default_manager.exists(), model.__name__
    assert not IndexedSource.objects.filter(source_id=handbook.pk).exists()
    assert not Vector.objects.exists()
