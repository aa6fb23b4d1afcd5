"""The REST door of collections: `api-and-mcp.md` facts 1, 4, 5, 8, 14 to 16, 20, 21, 26 and `collections.md` 48."""

from __future__ import annotations

import io
import uuid
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.access.grants import grant
from apps.access.models import User
from apps.access.visibility import set_owner
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.jobs.models import Job
from apps.jobs.worker import drain

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def api(olga: User, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(olga)


def address(collection: Collection, rest: str = "") -> str:
    return f"/api/md-collections/{collection.pk}{rest}"


def test_api_fact_01_unknown_field_names_the_nearest(api: Client) -> None:
    answer = api.post("/api/md-collections", {"name": "A", "visability": "public"}, content_type=JSON)
    assert answer.status_code == 422
    assert (answer.json()["code"], answer.json()["field"]) == ("unknown_field", "visability")
    assert "visibility" in answer.json()["message"]
    assert not Collection.objects.exists()


def test_a_collection_is_made_read_changed_and_deleted(api: Client) -> None:
    made = api.post("/api/md-collections", {"name": "A", "description": "d"}, content_type=JSON)
    assert made.status_code == 201
    place = made["Location"]
    assert api.get(place).json() == made.json()
    assert made.json()["visibility"] == "private"
    changed = api.patch(place, {"description": "e", "visibility": "public"}, content_type=JSON)
    assert (changed.json()["description"], changed.json()["visibility"]) == ("e", "public")
    assert api.get("/api/md-collections?q=A").json()["total"] == 1
    assert api.get("/api/md-collections?q=%25").json()["total"] == 0
    assert api.delete(place).status_code == 204
    assert api.get(place).status_code == 404


def test_an_etag_tells_what_the_answer_shows(api: Client, handbook: Collection, otto: User, ada: User) -> None:
    def put(key: str, content: str) -> Any:
        asked = {"source_key": key, "content": content}
        return api.post(address(handbook, "/documents"), asked, content_type=JSON)

    place = put("a.md", "[b](b.md)")["Location"]
    seen = api.get(place)["ETag"]
    for act in (
        drain,
        lambda: (put("b.md", "# B"), drain()),
        lambda: trash_document(document=Document.objects.get(source_key="b.md"), by=handbook.owner),
    ):
        act()
        answer = api.get(place, headers={"If-None-Match": seen})
        assert answer.status_code == 200
        seen = answer["ETag"]
    assert api.get(place, headers={"If-None-Match": seen}).status_code == 304
    seen = api.get(address(handbook))["ETag"]
    grant(source=handbook, to=handbook.owner, level="read", by=ada)
    set_owner(source=handbook, owner=otto, by=ada)
    assert api.get(address(handbook), headers={"If-None-Match": seen}).status_code == 200


@pytest.mark.parametrize("field", ["title", "source_key"])
def test_a_file_in_place_of_a_text_is_refused(api: Client, handbook: Collection, field: str) -> None:
    form = {"file": SimpleUploadedFile("a.md", b"# A"), field: SimpleUploadedFile("b.md", b"# B")}
    answer = api.post(address(handbook, "/documents"), form)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_api_fact_14_created_replaced_unchanged(api: Client, handbook: Collection) -> None:
    def put(content: str) -> Any:
        return api.post(address(handbook, "/documents"), {"source_key": "a.md", "content": content}, content_type=JSON)

    first = put("# A")
    assert (first.status_code, first.json()["state"]) == (201, "created")
    assert {job["kind"] for job in first.json()["jobs"]} >= {"resolve_links"}
    assert api.get(first["Location"]).json()["text"] == "# A"
    second = put("# B")
    assert (second.status_code, second.json()["state"]) == (200, "replaced")
    third = put("# B")
    assert (third.status_code, third.json()["state"], third.json()["jobs"]) == (200, "unchanged", [])


def test_api_fact_15_refusals(api: Client, handbook: Collection) -> None:
    def put(key: str, content: str = "x") -> Any:
        return api.post(address(handbook, "/documents"), {"source_key": key, "content": content}, content_type=JSON)

    assert (put("").status_code, put("").json()["field"]) == (422, "source_key")
    assert put("run.exe").status_code == 415
    assert put("big.md", "x" * (10_485_760 + 1)).status_code == 413
    twice = [{"source_key": "a.md", "content": "1"}, {"source_key": "a.md", "content": "2"}]
    answer = api.post(address(handbook, "/documents/batch"), {"documents": twice}, content_type=JSON)
    assert answer.status_code == 422 and "a.md" in answer.json()["message"]
    assert not Document.objects.exists()


def test_api_fact_16_batch_as_list_files_and_archive(api: Client, handbook: Collection) -> None:
    batch = [{"source_key": f"{n}.md", "content": f"# {n}"} for n in range(4)]
    answer = api.post(
        address(handbook, "/documents/batch"), [*batch, {"source_key": "x.exe", "content": "MZ"}], content_type=JSON
    )
    assert (answer.status_code, answer.json()["files"]) == (202, 5)
    drain()
    job = Job.objects.get(pk=answer.json()["job"]["id"])
    assert (job.status, job.warnings, job.counters["created"]) == ("success", 1, 4)

    files = [SimpleUploadedFile("a.md", b"# A"), SimpleUploadedFile("b.md", b"# B")]
    answer = api.post(address(handbook, "/documents/batch"), {"files": files, "paths": ["x/a.md", "x/b.md"]})
    assert answer.status_code == 202
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("z/c.md", "# C")
    answer = api.post(address(handbook, "/documents/batch"), {"archive": SimpleUploadedFile("z.zip", out.getvalue())})
    assert answer.status_code == 202
    drain()
    keys = set(Document.objects.values_list("source_key", flat=True))
    assert {"x/a.md", "x/b.md", "z/c.md"} <= keys


def test_one_file_as_multipart(api: Client, handbook: Collection) -> None:
    file = SimpleUploadedFile("note.md", "# Ü".encode("latin-1"))
    answer = api.post(address(handbook, "/documents"), {"file": file, "source_key": "n/note.md"})
    assert (answer.status_code, answer.json()["source_key"]) == (201, "n/note.md")
    assert answer.json()["warnings"][0]["code"] == "encoding_guessed"
    assert Document.objects.get().text == "# Ü"


def test_api_fact_05_etag(api: Client, handbook: Collection, signed_in: Any, otto: User) -> None:
    place = api.post(address(handbook, "/documents"), {"source_key": "a.md", "content": "# A"}, content_type=JSON)[
        "Location"
    ]
    tag = api.get(place)["ETag"]
    assert api.get(place, headers={"If-None-Match": tag}).status_code == 304
    assert signed_in(otto).get(place, headers={"If-None-Match": tag}).status_code == 404
    api.post(address(handbook, "/documents"), {"source_key": "a.md", "content": "# B"}, content_type=JSON)
    assert api.get(place, headers={"If-None-Match": tag}).status_code == 200


def test_collections_fact_48_hidden_is_absent(api: Client, handbook: Collection, signed_in: Any, otto: User) -> None:
    place = api.post(address(handbook, "/documents"), {"source_key": "a.md", "content": "# A"}, content_type=JSON)[
        "Location"
    ]
    outsider = signed_in(otto)
    unknown = f"/api/md-collections/{uuid.uuid4()}"
    for hidden in (address(handbook), address(handbook, "/documents"), place, place + "/chunks"):
        absent = hidden.replace(address(handbook), unknown)
        first, second = outsider.get(hidden), outsider.get(absent)
        assert (first.status_code, first.content) == (404, second.content)
    for method in ("post", "delete", "patch"):
        first = getattr(outsider, method)(address(handbook, "/documents"), {}, content_type=JSON)
        second = getattr(outsider, method)(unknown + "/documents", {}, content_type=JSON)
        assert (first.status_code, first.content) == (second.status_code, second.content)
    assert outsider.get("/api/md-collections").json()["total"] == 0


def test_api_facts_20_and_21_rights(handbook: Collection, signed_in: Any, olga: User, wim: User, otto: User) -> None:
    grant(source=handbook, to=wim, level="read", by=olga)
    reader = signed_in(wim)
    document = {"source_key": "a.md", "content": "# A"}
    assert reader.post(address(handbook, "/documents"), document, content_type=JSON).status_code == 403
    grant(source=handbook, to=wim, level="write", by=olga)
    assert reader.post(address(handbook, "/documents"), document, content_type=JSON).status_code == 201
    assert reader.delete(address(handbook)).status_code == 403
    assert reader.patch(address(handbook), {"description": "by a writer"}, content_type=JSON).status_code == 200
    assert reader.patch(address(handbook), {"name": "B"}, content_type=JSON).status_code == 403
    assert signed_in(otto).delete(address(handbook)).status_code == 404


def test_api_fact_26_empty_documents(api: Client, handbook: Collection) -> None:
    for key, content in (("zero.md", ""), ("header.md", "---\ntitle: T\n---\n")):
        place = api.post(address(handbook, "/documents"), {"source_key": key, "content": content}, content_type=JSON)[
            "Location"
        ]
        assert api.get(place).json()["state"] == "empty"
        assert api.get(place + "/chunks").json() == {"items": [], "total": 0, "next_cursor": None}


def test_trash_restore_and_purge(api: Client, handbook: Collection) -> None:
    place = api.post(address(handbook, "/documents"), {"source_key": "a.md", "content": "# A"}, content_type=JSON)[
        "Location"
    ]
    assert api.delete(place).status_code == 204
    assert api.get(place).status_code == 404
    assert api.get(address(handbook)).json()["documents"] == 0
    assert api.post(place + "/restore").status_code == 200
    assert api.get(place).status_code == 200
    assert api.delete(place + "?purge=1").status_code == 204
    assert api.post(place + "/restore").status_code == 404
    assert not Document.objects.exists()


def test_lists_page_without_repeating(api: Client, handbook: Collection) -> None:
    for n in range(5):
        api.post(address(handbook, "/documents"), {"source_key": f"{n}.md", "content": f"# {n}"}, content_type=JSON)
    seen, cursor = [], ""
    while True:
        page = api.get(
            address(handbook, "/documents"), {"limit": 2, "cursor": cursor} if cursor else {"limit": 2}
        ).json()
        assert page["total"] == 5
        seen += [item["source_key"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"{n}.md" for n in range(5)]
