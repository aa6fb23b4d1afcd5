"""Jobs, vectors and grants of collections by REST: `api-and-mcp.md` facts 17, 18, 20, 21."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.access.grants import grant
from apps.access.models import User
from apps.access.visibility import set_visibility
from apps.collections.models import Collection, Document, Upload
from apps.jobs.models import Job
from apps.jobs.queue import enqueue
from apps.jobs.worker import drain

pytestmark = pytest.mark.django_db
JSON = "application/json"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def api(olga: User) -> Client:
    return signed_in(olga)


def at(collection: Collection, rest: str = "") -> str:
    return f"/api/md-collections/{collection.pk}{rest}"


def test_api_fact_17_embed_status(api: Client, handbook: Collection, put: Any) -> None:
    empty = api.get(at(handbook, "/embed-status")).json()
    assert (empty["total"], empty["embedded"], empty["is_ready"]) == (0, 0, False)
    put("a.md", "# A\n\none\n\n# B\n\ntwo")
    chunks = Document.objects.get().chunk_count
    missing = api.get(at(handbook, "/embed-status")).json()
    assert (missing["total"], missing["embedded"], missing["pending"]) == (chunks, 0, chunks)
    assert missing["is_ready"] is False
    assert api.post(at(handbook, "/re-embed"), content_type=JSON).status_code in (200, 202)
    drain()
    ready = api.get(at(handbook, "/embed-status")).json()
    assert (ready["embedded"], ready["pending"], ready["is_ready"]) == (chunks, 0, True)
    assert ready["profile"]
    document = Document.objects.get()
    shown = api.get(at(handbook, f"/documents/{document.pk}/chunks")).json()
    assert {chunk["vector"]["state"] for chunk in shown["items"]} == {"embedded"}


def test_api_fact_18_retry_of_a_failed_upload_twice(api: Client, handbook: Collection) -> None:
    staged = api.post(
        at(handbook, "/documents/batch"), [{"source_key": "a.md", "content": "# A"}], content_type=JSON
    ).json()
    assert api.post(f"/api/jobs/{staged['job']['id']}/cancel").status_code == 200
    place = f"/api/md-collections/-/jobs/{staged['job']['id']}/retry"
    first, second = api.post(place), api.post(place)
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"] != staged["job"]["id"]
    drain()
    assert Job.objects.get(pk=first.json()["id"]).status == "success"
    assert Document.objects.get().text == "# A"
    assert Upload.objects.exists()


def test_api_fact_20_rights_over_jobs_and_vectors(handbook: Collection, olga: User, wim: User, otto: User) -> None:
    grant(source=handbook, to=wim, level="read", by=olga)
    job = enqueue("resolve_links", source=handbook, by=olga).job
    signed_in(olga).post(f"/api/jobs/{job.pk}/cancel")
    reader, outsider = signed_in(wim), signed_in(otto)
    places = [at(handbook, "/re-embed"), f"/api/md-collections/-/jobs/{job.pk}/retry", f"/api/jobs/{job.pk}/retry"]
    for place in places:
        assert reader.post(place, content_type=JSON).status_code == 403
        assert outsider.post(place, content_type=JSON).status_code == 404
    grant(source=handbook, to=wim, level="write", by=olga)
    assert reader.post(places[0], {"force": True}, content_type=JSON).status_code == 202
    assert reader.post(places[1], content_type=JSON).status_code == 202


def test_api_fact_21_who_deletes(handbook: Collection, olga: User, wim: User, ada: User) -> None:
    grant(source=handbook, to=wim, level="write", by=olga)
    assert signed_in(wim).delete(at(handbook)).status_code == 403
    set_visibility(source=handbook, visibility="admin_only", by=ada)
    assert signed_in(olga).delete(at(handbook)).status_code == 404
    assert signed_in(ada).delete(at(handbook)).status_code == 204


def test_lists_of_jobs(api: Client, handbook: Collection, put: Any, otto: User) -> None:
    put("a.md", "# A")
    mine = api.get(at(handbook, "/jobs")).json()
    assert mine["total"] >= 1
    assert api.get("/api/md-collections/-/jobs").json()["total"] == mine["total"]
    assert api.get(at(handbook, "/jobs"), {"kind": "embed", "status": "running"}).json()["total"] == 0
    assert signed_in(otto).get("/api/md-collections/-/jobs").json()["total"] == 0
    assert signed_in(otto).get(at(handbook, "/jobs")).status_code == 404
    deployment = enqueue("retention").job
    assert api.post(f"/api/md-collections/-/jobs/{deployment.pk}/retry").status_code == 404
    assert api.post(f"/api/md-collections/-/jobs/{uuid.uuid4()}/retry").status_code == 404


def test_grants_of_a_collection(api: Client, handbook: Collection, readers: Group, wim: User, ada: User) -> None:
    assert api.put(at(handbook, "/grants/group/readers"), {"level": "read"}, content_type=JSON).status_code == 200
    assert api.put(at(handbook, "/grants/user/wim"), {"level": "write"}, content_type=JSON).status_code == 200
    assert api.get(at(handbook, "/grants")).json()["total"] == 2
    assert signed_in(wim).get(at(handbook, "/grants")).status_code == 403
    assert api.delete(at(handbook, "/grants/user/wim")).status_code == 204
    assert signed_in(wim).get(at(handbook, "/grants")).status_code == 404
    set_visibility(source=handbook, visibility="admin_only", by=ada)
    assert api.put(at(handbook, "/grants/group/readers"), {"level": "read"}, content_type=JSON).status_code == 404
    refused = signed_in(ada).put(at(handbook, "/grants/user/wim"), {"level": "read"}, content_type=JSON)
    assert (refused.status_code, refused.json()["code"]) == (422, "grant_not_allowed")


def test_queries_do_not_grow_with_rows(api: Client, handbook: Collection, put: Any, olga: User) -> None:
    put("a.md", "# A\n\na")
    document = Document.objects.get()
    places = [
        "/api/md-collections",
        at(handbook, "/documents"),
        at(handbook, f"/documents/{document.pk}/chunks"),
        at(handbook, "/jobs"),
        "/api/md-collections/-/jobs",
        "/api/jobs",
    ]

    def count() -> list[int]:
        found = []
        for place in places:
            with CaptureQueriesContext(connection) as seen:
                assert api.get(place, {"limit": 100}).status_code == 200
            found.append(len(seen))
        return found

    drain()
    count()
    before = count()
    put("a.md", "\n\n".join(f"# {n}\n\n{'text ' * 200}" for n in range(9)))
    for n in range(5):
        put(f"{n}.md", f"# {n}")
        api.post("/api/md-collections", {"name": f"C{n}"}, content_type=JSON)
    drain()
    assert count() == before
