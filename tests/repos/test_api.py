"""REST of repositories: `api-and-mcp.md` facts 5, 19, 20, 22 to 25, 27 and `repository-documents.md` fact 43."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.access.grants import grant
from apps.access.models import AuditRecord, User
from apps.jobs.models import Job
from apps.jobs.worker import run_job
from apps.repos.models import Repository
from apps.repos.registration import delete_repository, enable_webhook

pytestmark = pytest.mark.django_db
JSON = "application/json"


@pytest.fixture
def api(admin: User, signed_in: Callable[[User], Client]) -> Client:
    return signed_in(admin)


@pytest.fixture
def otto(db: None) -> User:
    return User.objects.create_user("otto")


@pytest.fixture
def wim(db: None) -> User:
    return User.objects.create_user("wim")


@pytest.fixture
def public_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name leads to a public address; nothing is connected to."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: found)


def at(repository: Repository, rest: str = "") -> str:
    return f"/api/repos/{repository.slug}{rest}"


FILES = {
    "README.md": "# Site\n\nRead [setup](docs/setup.md) and [nothing](gone.md). See `src/app.py`.\n",
    "docs/setup.md": "# Set up\n\n## First\n\nInstall it.\n\n## Second\n\nRun it.\n",
    "docs/guides/deploy.md": "# Deploy\n\nBack to [setup](../setup.md#first).\n",
    "pyproject.toml": '[project]\n\nname = "x"\n    # kept\n',
    "src/app.py": "print(1)\n",
    "big.bin": b"\0\1\2",
}


def test_a_repository_is_registered_read_changed_and_deleted(api: Client, public_names: None) -> None:
    asked = {
        "git_url": "https://example.com/acme/site.git",
        "description": "d",
        "only": ["docs/**"],
        "credential": {"secret": "tok3n"},
    }
    made = api.post("/api/repos", asked, content_type=JSON)
    assert made.status_code == 201, made.content
    assert "tok3n" not in made.content.decode()
    place = made["Location"]
    assert place == "/api/repos/example.com/acme/site"
    body = made.json()
    assert (body["state"], body["visibility"], body["only"]) == ("never_synced", "private", ["docs/**"])
    assert (body["job"]["kind"], body["job"]["status"], body["credential"]) == ("sync", "queued", "token")
    assert api.get(place.upper().replace("/API/REPOS", "/api/repos")).json()["slug"] == "example.com/acme/site"
    changes = {"description": "e", "visibility": "public", "schedule": "daily", "query_log_opt_out": True}
    changed = api.patch(place, {**changes, "credential": None}, content_type=JSON).json()
    assert {name: changed[name] for name in changes} == changes
    assert (changed["credential"], changed["next_sync_at"] is not None) == ("", True)
    assert api.get("/api/repos", {"q": "SITE", "visibility": "public"}).json()["total"] == 1
    assert api.get("/api/repos", {"host": "example.org"}).json()["total"] == 0
    assert api.get("/api/repos", {"state": "syncing"}).json()["total"] == 1
    assert api.delete(place).status_code == 204
    assert api.get(place).status_code == 404
    assert not AuditRecord.objects.filter(after__icontains="tok3n").exists()


def test_changes_are_all_made_or_none(api: Client, public_names: None) -> None:
    place = api.post("/api/repos", {"git_url": "https://example.com/a/b"}, content_type=JSON)["Location"]
    answer = api.patch(
        place, {"description": "new", "credential": {"secret": "two words"}, "max_words": 256}, content_type=JSON
    )
    assert (answer.status_code, answer.json()["field"]) == (422, "credential")
    assert api.get(place).json()["description"] == ""
    answer = api.patch(place, {"language": "klingon"}, content_type=JSON)
    assert (answer.status_code, answer.json()["field"]) == (422, "language")
    answer = api.patch(place, {"max_words": 8}, content_type=JSON)
    assert (answer.status_code, answer.json()["code"]) == (422, "out_of_range")


def test_if_match_guards_a_change(api: Client, public_names: None) -> None:
    place = api.post("/api/repos", {"git_url": "https://example.com/a/b"}, content_type=JSON)["Location"]
    tag = api.get(place)["ETag"]
    assert api.get(place, headers={"If-None-Match": tag}).status_code == 304
    first = api.patch(place, {"description": "x"}, content_type=JSON, headers={"If-Match": tag})
    assert first.status_code == 200 and first["ETag"] != tag
    assert api.patch(place, {"description": "y"}, content_type=JSON, headers={"If-Match": tag}).status_code == 412


def test_api_fact_22_who_may_register(api: Client, signed_in: Any, otto: User, public_names: None) -> None:
    asked = {"git_url": "https://example.com/acme/site"}
    assert signed_in(otto).post("/api/repos", asked, content_type=JSON).status_code == 403
    assert api.post("/api/repos", asked, content_type=JSON).status_code == 201
    again = api.post("/api/repos", {"git_url": "https://example.com/Acme/Site.git"}, content_type=JSON)
    assert again.status_code == 409
    assert "/repos/example.com/" in again.json()["message"]
    by_ssh = api.post("/api/repos", {"git_url": "git@example.com:acme/other.git"}, content_type=JSON)
    assert (by_ssh.status_code, by_ssh.json()["field"]) == (422, "git_url")
    assert "https://example.com/acme/other.git" in by_ssh.json()["message"]


def test_api_fact_23_slug(api: Client, public_names: None) -> None:
    made = api.post("/api/repos", {"git_url": "https://GitLab.com/a/b/c.git"}, content_type=JSON)
    assert made.json()["slug"] == "gitlab.com/a~b/c"
    assert api.get(made["Location"]).status_code == 200
    for wrong in ("/api/repos/gitlab.com/a~b/..", "/api/repos/gitlab.com/./c", "/api/repos/gitlab.com/a b/c"):
        assert api.get(wrong).status_code == 404
    assert api.get(made["Location"] + "/").status_code == 404


def test_documents_chunks_and_etag(upstream: Any, portal: Any, api: Client, signed_in: Any, otto: User) -> None:
    upstream.commit(FILES)
    repository, _ = portal.synced(upstream, visibility="private")
    listed = api.get(at(repository, "/documents")).json()
    assert [item["path"] for item in listed["items"]] == sorted(
        ["README.md", "docs/guides/deploy.md", "docs/setup.md", "pyproject.toml"]
    )
    assert (listed["total"], listed["repository"]["commit"]) == (4, repository.synced_commit)
    assert api.get(at(repository, "/documents"), {"kind": "config"}).json()["total"] == 1
    assert api.get(at(repository, "/documents"), {"path": "docs/", "q": "DEPLOY"}).json()["total"] == 1
    assert api.get(at(repository, "/documents"), {"state": "held"}).json()["total"] == 0
    setup = next(item for item in listed["items"] if item["path"] == "docs/setup.md")
    place = at(repository, f"/documents/{setup['id']}")
    found = api.get(place)
    assert found.json()["text"] == FILES["docs/setup.md"]
    assert [heading["text"] for heading in found.json()["structure"]["headings"]] == ["Set up", "First", "Second"]
    chunks = api.get(place + "/chunks", {"limit": 1}).json()
    assert (chunks["total"], chunks["items"][0]["heading_path"]) == (2, ["Set up", "First"])
    assert chunks["items"][0]["vector"]["state"] == "none"
    rest = api.get(place + "/chunks", {"limit": 1, "cursor": chunks["next_cursor"]}).json()
    assert (rest["items"][0]["index"], rest["next_cursor"]) == (1, None)
    for chunk in (*chunks["items"], *rest["items"]):
        assert FILES["docs/setup.md"].encode()[chunk["start_byte"] : chunk["end_byte"]].decode() == chunk["source"]

    tag = found["ETag"]
    assert api.get(place, headers={"If-None-Match": tag}).status_code == 304
    assert signed_in(otto).get(place, headers={"If-None-Match": tag}).status_code == 404
    upstream.commit({"docs/setup.md": "# Set up\n\nAnew.\n"})
    portal.sync(repository)
    assert api.get(place, headers={"If-None-Match": tag}).status_code == 200
    stale = api.get(place + "/chunks", {"limit": 1, "cursor": chunks["next_cursor"]})
    assert (stale.status_code, stale.json()["code"]) == (400, "stale_cursor")


def test_repos_fact_43_tree_slug_page(upstream: Any, portal: Any, api: Client) -> None:
    upstream.commit(FILES)
    repository, _ = portal.synced(upstream)
    tree = api.get(at(repository, "/docs")).json()
    assert tree["total"] == 4
    assert tree["docs"][0]["path"] == "README.md"
    pages: list[Any] = []

    def walk(nodes: Any) -> None:
        for node in nodes:
            if "children" in node:
                assert not node.keys() & {"slug", "path"}
                walk(node["children"])
            else:
                pages.append(node)

    walk(tree["docs"])
    walk(tree["files"])
    assert len(pages) == 4
    for node in pages:
        page = api.get(at(repository, f"/docs/{node['slug']}"))
        assert (page.status_code, page.json()["path"]) == (200, node["path"])
    setup = api.get(at(repository, "/docs/setup")).json()
    assert setup["markdown"] == FILES["docs/setup.md"]
    assert '<h2 id="first"' in setup["html"] or "first" in setup["html"]
    assert [entry["anchor"] for entry in setup["toc"]] == ["first", "second"]
    assert (setup["previous"]["path"], setup["next"]["path"]) == ("README.md", "docs/guides/deploy.md")
    assert [entry["path"] for entry in setup["siblings"]] == ["docs/setup.md"]
    tag = api.get(at(repository, "/docs/setup"))["ETag"]
    assert api.get(at(repository, "/docs/setup"), headers={"If-None-Match": tag}).status_code == 304


def test_a_moved_page_is_301_and_a_removed_one_410(upstream: Any, portal: Any, api: Client) -> None:
    upstream.commit({"a.md": "# A\n\n" + "text " * 40, "b.md": "# B\n\nother"})
    repository, _ = portal.synced(upstream)
    upstream.git("mv", "a.md", "moved.md")
    upstream.git("rm", "-q", "b.md")
    gone_in = upstream.commit()
    portal.sync(repository)
    moved = api.get(at(repository, "/docs/a"))
    assert (moved.status_code, moved["Location"]) == (301, at(repository, "/docs/moved"))
    gone = api.get(at(repository, "/docs/b"))
    assert (gone.status_code, gone.json()["code"]) == (410, "gone")
    assert gone_in[:12] in gone.json()["message"]
    assert api.get(at(repository, "/docs/never")).status_code == 404


def test_api_fact_24_lines(upstream: Any, portal: Any, api: Client) -> None:
    ten = "".join(f"line {n}\n" for n in range(1, 11))
    many = "".join(f"- {n}\n" for n in range(1, 1502))
    workflow = "on: push\n\njobs:\n    a:\n\n        steps: []\n"
    upstream.commit({"ten.md": ten, "many.md": many, ".github/workflows/ci.yml": workflow, "package.json": "{\n\n}\n"})
    repository, _ = portal.synced(upstream)

    def lines(path: str, **asked: int) -> Any:
        return api.get(at(repository, "/files/range"), {"path": path, **asked})

    whole = lines("many.md", start_line=1, end_line=1000)
    assert (whole.status_code, len(whole.json()["lines"]), whole.json()["total_lines"]) == (200, 1000, 1501)
    assert lines("many.md", start_line=1, end_line=1001).status_code == 400
    behind = lines("ten.md", start_line=5000, end_line=5001)
    assert (behind.status_code, behind.json()["code"]) == (400, "out_of_range")
    assert "10 lines" in behind.json()["message"]
    cut = lines("ten.md", start_line=9, end_line=40).json()
    assert (cut["lines"], cut["end_line"]) == (["line 9", "line 10"], 10)
    for path, text in ((".github/workflows/ci.yml", workflow), ("package.json", "{\n\n}\n")):
        assert "\n".join(lines(path).json()["lines"]) + "\n" == text
    tag = lines("ten.md")["ETag"]
    again = api.get(at(repository, "/files/range"), {"path": "ten.md"}, headers={"If-None-Match": tag})
    assert again.status_code == 304


def test_api_fact_25_paths_without_text(upstream: Any, portal: Any, api: Client) -> None:
    upstream.commit({"a.md": "# A", "fake.md": b"\x89PNG\r\n\x1a\n\0\0", "lib.xyz": "x"})
    repository, _ = portal.synced(upstream)
    skipped = api.get(at(repository, "/files/range"), {"path": "fake.md"})
    assert (skipped.status_code, skipped.json()["code"]) == (409, "not_indexed")
    assert "binary" in skipped.json()["message"]
    assert api.get(at(repository, "/files/range")).json()["code"] == "required"
    for path in ("never.md", "../../../etc/passwd", "docs/../../x", "%2e%2e/x", "/etc/passwd"):
        assert api.get(at(repository, "/files/range"), {"path": path}).status_code == 404
    files = api.get(at(repository, "/files")).json()
    assert [(file["path"], file["state"]) for file in files["items"]] == [
        ("a.md", "indexed"),
        ("fake.md", "skipped"),
        ("lib.xyz", "not_taken"),
    ]
    assert api.get(at(repository, "/files"), {"state": "skipped", "q": "FAKE"}).json()["total"] == 1


def test_api_fact_19_and_20_sync_and_rights(
    upstream: Any, portal: Any, api: Client, signed_in: Any, wim: User, otto: User
) -> None:
    upstream.commit({"a.md": "# A"})
    repository, _ = portal.synced(upstream, visibility="private")
    grant(source=repository, to=wim, level="read", by=portal.admin)
    reader, outsider = signed_in(wim), signed_in(otto)
    for act in ("/sync", "/re-chunk", "/re-embed"):
        assert reader.post(at(repository, act)).status_code == 403
        assert outsider.post(at(repository, act)).status_code == 404
    grant(source=repository, to=wim, level="write", by=portal.admin)
    first = reader.post(at(repository, "/sync"), {"force": True}, content_type=JSON)
    second = reader.post(at(repository, "/sync"), content_type=JSON)
    assert (first.status_code, first.json()["deduplicated"]) == (202, False)
    assert (second.status_code, second.json()["deduplicated"]) == (200, True)
    assert first.json()["id"] == second.json()["id"]
    assert first["Location"] == f"/api/jobs/{first.json()['id']}"
    # The first sync has asked for vectors already; this joins it.
    assert reader.post(at(repository, "/re-embed"), {"force": True}, content_type=JSON).status_code == 200
    run_job(uuid.UUID(first.json()["id"]))
    anew = reader.post(at(repository, "/re-chunk"), content_type=JSON)
    assert anew.status_code == 202
    job = run_job(uuid.UUID(anew.json()["id"]))
    assert job is not None and job.counters["indexed_documents"] == 1
    jobs = reader.get(at(repository, "/jobs"), {"kind": "sync"}).json()
    assert jobs["total"] == 3
    assert reader.patch(at(repository), {"description": "x"}, content_type=JSON).status_code == 200
    assert reader.patch(at(repository), {"branch": "x"}, content_type=JSON).status_code == 403
    assert reader.delete(at(repository)).status_code == 403
    assert outsider.delete(at(repository)).status_code == 404
    assert reader.get(at(repository)).json()["git_url"] is None
    assert api.get(at(repository)).json()["git_url"] == str(upstream.path)


def test_report_with_changes_since_the_sync_before(upstream: Any, portal: Any, api: Client) -> None:
    repository = portal.add(upstream)
    assert api.get(at(repository, "/report")).status_code == 404
    upstream.commit({"a.md": "# A", "b.md": "# B", "fake.md": b"\x89PNG\r\n\x1a\n\0", "x.bin": b"\0"})
    first = portal.sync(repository)
    upstream.commit({"a.md": "# A2", "b.md": None})
    portal.sync(repository)
    report = api.get(at(repository, "/report")).json()
    assert report["counters"] == {
        "discovered_files": 2,
        "indexed_documents": 1,
        "indexed_chunks": 1,
        "unchanged_documents": 0,
        "deleted_documents": 1,
        "replaced_files": 1,
    }
    changes = {change["state"]: change["paths"] for change in report["changes"]}
    assert changes == {"replaced": ["a.md"], "removed": ["b.md"]}
    assert report["reasons"] == {"binary": 1}
    assert report["previous_commit"] != report["commit"] == repository.synced_commit
    older = api.get(at(repository, "/report"), {"job": str(first.pk)}).json()
    assert (older["job"]["id"], older["counters"]["indexed_documents"]) == (str(first.pk), 2)
    assert api.get(at(repository, "/report"), {"job": str(uuid.uuid4())}).status_code == 404


def test_held_deletions(upstream: Any, portal: Any, api: Client) -> None:
    upstream.commit({f"{n}.md": f"# {n}\n\nunlike {n * 7919}" for n in range(30)})
    repository, _ = portal.synced(upstream)
    upstream.commit({f"{n}.md": None for n in range(12)})
    portal.sync(repository)
    held = api.get(at(repository, "/held-deletions")).json()
    assert held["total"] == 12
    assert held["items"][0]["absent_since"].endswith("Z")
    keep = [held["items"][0]["id"]]
    kept = api.post(at(repository, "/held-deletions"), {"action": "discard", "documents": keep}, content_type=JSON)
    assert kept.status_code == 202
    run_job(uuid.UUID(kept.json()["id"]))
    approved = api.post(at(repository, "/held-deletions"), {"action": "approve"}, content_type=JSON)
    run_job(uuid.UUID(approved.json()["id"]))
    assert api.get(at(repository, "/documents")).json()["total"] == 19
    assert api.get(at(repository, "/documents"), {"state": "kept"}).json()["total"] == 1
    nothing = api.post(at(repository, "/held-deletions"), {"action": "approve"}, content_type=JSON)
    assert (nothing.status_code, nothing.json()["field"]) == (422, "documents")


def test_grants(upstream: Any, portal: Any, signed_in: Any, wim: User, otto: User) -> None:
    olga = User.objects.create_user("olga")
    repository = portal.add(upstream, owner=olga)
    Group.objects.create(name="docs / people")
    owner, reader = signed_in(olga), signed_in(wim)
    made = owner.put(at(repository, "/grants/user/wim"), {"level": "write"}, content_type=JSON)
    assert (made.status_code, made.json()["level"], made.json()["granted_by"]) == (200, "write", "olga")
    assert owner.put(at(repository, "/grants/group/docs / people"), {"level": "read"}, content_type=JSON).json()["kind"]
    assert [(one["kind"], one["name"]) for one in owner.get(at(repository, "/grants")).json()["items"]] == [
        ("group", "docs / people"),
        ("user", "wim"),
    ]
    assert reader.get(at(repository, "/grants")).status_code == 403
    assert reader.put(at(repository, "/grants/user/otto"), {"level": "read"}, content_type=JSON).status_code == 403
    assert signed_in(otto).get(at(repository, "/grants")).status_code == 404
    assert owner.put(at(repository, "/grants/user/nobody"), {"level": "read"}, content_type=JSON).status_code == 404
    assert owner.put(at(repository, "/grants/user/wim"), {"level": "admin"}, content_type=JSON).status_code == 422
    assert owner.delete(at(repository, "/grants/user/wim")).status_code == 204
    assert owner.delete(at(repository, "/grants/user/wim")).status_code == 404
    assert reader.get(at(repository)).status_code == 404


def push(secret: str, event: str = "push", delivery: str = "d1") -> dict[str, Any]:
    body = json.dumps({"ref": "refs/heads/main", "repository": {"default_branch": "main"}}).encode()
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": signature, "X-GitHub-Event": event, "X-GitHub-Delivery": delivery}
    return {"data": body, "content_type": JSON, "headers": headers}


def test_api_fact_27_webhook(upstream: Any, portal: Any, new_upstream: Any) -> None:
    repository, secret = enable_webhook(repository=portal.add(upstream), by=portal.admin)
    silent = portal.add(new_upstream("silent"))
    gone, gone_secret = enable_webhook(repository=portal.add(new_upstream("gone")), by=portal.admin)
    delete_repository(repository=gone, by=portal.admin)
    client = Client(enforce_csrf_checks=True)
    tries = [
        client.post(f"/webhooks/github/{uuid.uuid4()}", **push(secret)),
        client.post(f"/webhooks/github/{repository.hook_id}", **push("wrong")),
        client.post(f"/webhooks/github/{silent.hook_id}", **push("")),
        client.post(f"/webhooks/github/{gone.hook_id}", **push(gone_secret)),
        client.post(f"/webhooks/nohost/{repository.hook_id}", **push(secret)),
    ]
    assert {(answer.status_code, answer.content) for answer in tries} == {(404, tries[0].content)}
    place = f"/webhooks/github/{repository.hook_id}"
    assert client.post(place, **push(secret)).status_code == 202
    assert client.post(place, **push(secret)).status_code == 204
    assert client.post(place, **push(secret, event="ping", delivery="d2")).status_code == 204
    assert Job.objects.filter(kind="sync").count() == 1
    assert client.get(place).status_code == 405


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as found:
        assert client.get(path, {"limit": 100}).status_code == 200
    return len(found)


def test_queries_do_not_grow_with_rows(upstream: Any, portal: Any, api: Client, new_upstream: Any) -> None:
    upstream.commit({"a.md": "# A\n\n## B\n\nb", "b.md": "[a](a.md)"})
    repository, _ = portal.synced(upstream)
    document = repository.documents.get(path="a.md")
    lists = [
        "/api/repos",
        at(repository, "/documents"),
        at(repository, f"/documents/{document.pk}/chunks"),
        at(repository, f"/documents/{document.pk}"),
        at(repository, "/files"),
        at(repository, "/docs"),
        at(repository, "/jobs"),
    ]
    single = {place for place in lists if place.endswith((str(document.pk), "/docs"))}

    def count() -> list[int]:
        found = []
        for place in lists:
            with CaptureQueriesContext(connection) as seen:
                assert api.get(place, {} if place in single else {"limit": 100}).status_code == 200
            found.append(len(seen))
        return found

    count()
    before = count()
    more = {f"d{n}.md": f"# {n}\n\n[a](a.md)" for n in range(12)}
    upstream.commit({**more, "a.md": "# A\n\n" + "\n\n".join(f"## {n}\n\n[x](d{n}.md)" for n in range(9))})
    portal.sync(repository)
    for n in range(3):
        portal.add(new_upstream(f"r{n}"))
    assert count() == before
