"""Pages as each persona gets them, as whole page and as fragment, with templates that fail on an unknown variable."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from apps.repos.models import RepositoryDocument, RepositoryDocumentRedirect

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]

PERSONAS = ("anonymous", "otto", "dana", "wim", "olga", "stan", "ada")
OPEN_TO_ALL = [
    "/",
    "/about",
    "/help",
    "/help/keyboard",
    "/help/using/searching",
    "/account",
    "/account/tokens",
    "/jobs",
    "/docs/jobs",
    "/repos",
]
HOSTILE = "<img src=x onerror=alert(1)>"


def of_repository(slug: str) -> list[str]:
    start = f"/repos/{slug}"
    return [
        start,
        f"{start}/docs",
        f"{start}/docs/readme",
        f"{start}/docs/docs-setup",
        f"{start}/files",
        f"{start}/files/README.md",
        f"{start}/files/src/main.go",
        f"{start}/report",
    ]


@pytest.mark.parametrize("persona", PERSONAS)
def test_portal_fact_1_every_page_as_each_persona(world: Any, persona: str) -> None:
    client = world.client(persona)
    expected = 302 if persona == "anonymous" else 200
    for path in OPEN_TO_ALL + of_repository(world.public.slug):
        assert client.get(path).status_code == expected, path
    reads = persona in ("dana", "wim", "olga", "ada")
    hidden = 302 if persona == "anonymous" else 200 if reads else 404
    for path in of_repository(world.private.slug):
        assert client.get(path).status_code == hidden, path
    settings_status = {"anonymous": 302, "ada": 200, "olga": 200, "dana": 403, "wim": 403}.get(persona, 404)
    assert client.get(f"/repos/{world.private.slug}/settings").status_code == settings_status
    assert client.get("/repos/add").status_code == {"anonymous": 302, "ada": 200}.get(persona, 404)
    assert client.get("/login").status_code == (200 if persona == "anonymous" else 302)


def test_portal_fact_1_links_reach_every_page(world: Any) -> None:
    client = world.client("ada")
    seen: set[str] = set()
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        if path in seen or path.startswith(("/admin", "/api", "/static")):
            continue
        seen.add(path)
        response = client.get(path)
        assert response.status_code in (200, 302), path
        body = response.content.decode()
        waiting += [href for href in re.findall(r'href="(/[^"#?]*)', body) if href not in seen]
    wanted = {"/", "/repos", "/jobs", "/account", "/account/tokens", "/about", "/help", "/repos/add"}
    wanted |= {path for path in of_repository(world.public.slug) if "main.go" not in path}
    assert wanted <= seen


@pytest.mark.parametrize("name", ["", "jobs", "repos", "files", "report"])
def test_portal_fact_3_page_or_fragment_never_half(world: Any, name: str) -> None:
    client = world.client("ada")
    path = {
        "": "/",
        "jobs": "/jobs",
        "repos": "/repos",
        "files": f"/repos/{world.public.slug}/files",
        "report": f"/repos/{world.public.slug}/report",
    }[name]
    page = client.get(path)
    assert b"<!doctype html>" in page.content
    assert b"</html>" in page.content
    assert "HX-Request" in page["Vary"]
    fragment = client.get(path, headers={"HX-Request": "true"})
    assert fragment.status_code == 200
    assert "HX-Request" in fragment["Vary"]
    if name:
        assert b"<html" not in fragment.content
    restored = client.get(path, headers={"HX-Request": "true", "HX-History-Restore-Request": "true"})
    assert b"<!doctype html>" in restored.content


def test_portal_rule_5_one_h1_landmarks_labels(world: Any) -> None:
    client = world.client("ada")
    job = reverse("jobs:job", args=[world.public.reports.get().job_id])
    for path in [
        *OPEN_TO_ALL,
        *of_repository(world.public.slug),
        f"/repos/{world.public.slug}/settings",
        "/repos/add",
        job,
    ]:
        body = client.get(path).content.decode()
        assert len(re.findall(r"<h1\b", body)) == 1, path
        assert '<html lang="en"' in body
        assert body.index('class="skip"') < body.index("<header")
        assert '<main id="cg-main"' in body
        ids = re.findall(r'\sid="([^"]+)"', body)
        assert len(ids) == len(set(ids)), (path, [one for one in ids if ids.count(one) > 1])
        labelled = set(re.findall(r'<label[^>]*\sfor="([^"]+)"', body))
        for field in re.findall(
            r"<(?:input|select|textarea)\b[^>]*>",
            re.sub(r"<label[^>]*>(?:(?!</label>).)*<(?:input|select|textarea)", "<", body, flags=re.DOTALL),
        ):
            if 'type="hidden"' in field or "aria-label" in field or 'aria-hidden="true"' in field:
                continue
            found = re.search(r'\sid="([^"]+)"', field)
            assert found and found[1] in labelled, (path, field)


def test_portal_fact_13_moved_page_redirects_once(world: Any, documents: Callable[..., RepositoryDocument]) -> None:
    document = documents(world.public, "b/guide.md")
    RepositoryDocumentRedirect.objects.create(
        repository=world.public, slug="a-guide", path="a/guide.md", document=document
    )
    response = world.client("otto").get(f"/repos/{world.public.slug}/docs/a-guide")
    assert response.status_code == 301
    assert response["Location"] == f"/repos/{world.public.slug}/docs/{document.slug}"
    assert world.client("otto").get(response["Location"]).status_code == 200


def test_portal_fact_14_removed_hidden_and_missing(world: Any) -> None:
    for repository in (world.public, world.private):
        RepositoryDocumentRedirect.objects.create(
            repository=repository, slug="gone", path="docs/gone.md", commit="abcdef0123456789"
        )
    client = world.client("otto")
    gone = client.get(f"/repos/{world.public.slug}/docs/gone")
    assert gone.status_code == 410
    assert "docs/gone.md" in gone.content.decode()
    assert "abcdef012345" in gone.content.decode()
    answers = [
        client.get(f"/repos/{world.private.slug}/docs/readme"),
        client.get(f"/repos/{world.private.slug}/docs/gone"),
        client.get(f"/repos/{world.private.slug}"),
        client.get(f"/repos/{world.public.slug}/docs/never-was"),
        client.get("/repos/github.com/nobody/nothing/docs/readme"),
        client.get("/no/such/page"),
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1


def test_portal_fact_15_empty_documents(world: Any, documents: Callable[..., RepositoryDocument]) -> None:
    for name, text in (("zero.md", ""), ("blank.md", "  \n \n"), ("meta.md", "---\ntitle: T\n---\n")):
        document = documents(
            world.public, name, text, state="empty", frontmatter={"title": "T"} if name == "meta.md" else {}
        )
        response = world.client("otto").get(f"/repos/{world.public.slug}/docs/{document.slug}")
        assert response.status_code == 200
        assert "This file is empty" in response.content.decode()
        assert world.client("otto").get(f"/repos/{world.public.slug}/files/{name}").status_code == 200


def test_portal_fact_26_stale_is_said_and_content_stays(world: Any, jobs: Callable[..., Any]) -> None:
    from django.utils import timezone

    for _ in range(3):
        jobs(
            world.public,
            status="error",
            error_code="unreachable",
            error_message="The host did not answer.",
            finished_at=timezone.now(),
        )
    client = world.client("otto")
    header = client.get(f"/repos/{world.public.slug}").content.decode()
    assert "stale" in header
    assert "the last 3 runs failed" in header
    assert "stale" in client.get("/").content.decode()
    assert client.get(f"/repos/{world.public.slug}/docs/readme").status_code == 200


def test_portal_fact_37_hostile_text_is_text_everywhere(
    world: Any, documents: Callable[..., RepositoryDocument], jobs: Callable[..., Any]
) -> None:
    from apps.jobs.models import JobItem

    document = documents(
        world.public,
        f"docs/{HOSTILE}.md",
        f"# {HOSTILE}\n\n## {HOSTILE}\n",
        slug="hostile",
        frontmatter={HOSTILE: HOSTILE},
    )
    world.public.description = HOSTILE
    world.public.save()
    job = jobs(
        world.public,
        kind="embed",
        status="error",
        error_code="x",
        error_message=HOSTILE,
        outcome=HOSTILE,
        stage=HOSTILE,
        notes=[{"message": HOSTILE, "samples": [{"path": HOSTILE, "reason": HOSTILE}]}],
    )
    JobItem.objects.create(job=job, path=HOSTILE, state="error", message=HOSTILE, reason=HOSTILE)
    start = f"/repos/{world.public.slug}"
    paths = [
        "/",
        "/repos",
        "/jobs",
        f"/jobs/{job.pk}",
        start,
        f"{start}/docs",
        f"{start}/docs/hostile",
        f"{start}/files",
        f"{start}/files/{document.path}",
        f"{start}/report",
        f"{start}/settings",
    ]
    client = world.client("ada")
    for path in paths:
        response = client.get(path)
        assert response.status_code == 200, path
        assert "<img" not in response.content.decode(), path
    assert escape(HOSTILE) in client.get(f"/jobs/{job.pk}").content.decode()


def test_portal_rule_10_errors_have_pages(world: Any) -> None:
    client = world.client("dana")
    forbidden = client.post(f"/repos/{world.private.slug}/sync")
    assert forbidden.status_code == 403
    assert "You may not do this" in forbidden.content.decode()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(world.people["wim"])
    assert "You may not do this" in strict.post(f"/repos/{world.private.slug}/sync").content.decode()


def test_portal_rule_10_a_500_page_carries_the_request_id_and_no_detail() -> None:
    from django.test import RequestFactory

    from cograph_site.errors import server_error

    request = RequestFactory().get("/")
    request.request_id = "0123abcd"  # type: ignore[attr-defined]
    body = server_error(request).content.decode()
    assert "0123abcd" in body
    assert "Traceback" not in body


def test_portal_rule_6_the_server_remembers_the_theme(world: Any) -> None:
    client = world.client("otto")
    assert "data-theme" not in client.get("/about").content.decode()
    answer = client.post("/theme", {"theme": "dark", "next": "/about"})
    assert answer["Location"] == "/about"
    assert '<html lang="en" data-theme="dark">' in client.get("/about").content.decode()
    assert client.post("/theme", {"theme": "light", "next": "https://evil.example/"})["Location"] == "/"
    client.post("/theme", {"theme": "auto"})
    assert "data-theme" not in client.get("/about").content.decode()
    client.cookies["cg_theme"] = '"><script>'
    assert "<script>" not in client.get("/about").content.decode()


def test_portal_rule_8_times_numbers_sizes() -> None:
    import datetime

    from django.utils import timezone

    from cograph_site.templatetags import cograph

    moment = timezone.now() - datetime.timedelta(minutes=12)
    shown = cograph.ago(moment)
    assert "12 min ago" in shown
    assert f'title="{moment:%Y-%m-%d %H:%M:%S} UTC"' in shown
    assert f'datetime="{moment:%Y-%m-%dT%H:%M:%SZ}"' in shown
    assert cograph.number(1234567) == "1,234,567"
    assert [cograph.size(value) for value in (812, 4300, 13002342, None)] == ["812 bytes", "4.2 KiB", "12.4 MiB", "–"]
    assert cograph.marked([("<b>a", False), ("b>", True)]) == "&lt;b&gt;a<mark>b&gt;</mark>"


def test_portal_rule_39_four_steps_tick_themselves_off(world: Any) -> None:
    from apps.access.tokens import create_token

    client = world.client("ada")

    def done() -> list[str]:
        body = client.get("/").content.decode()
        return re.findall(r'<li class="done"><a href="[^"]*">([^<]*)', body)

    assert done() == ["Add a repository"]
    create_token(user=world.people["ada"], name="agent", scopes=["mcp"])
    assert done() == ["Add a repository", "Connect an agent"]
    session = client.session
    session["searched"] = True
    session.save()
    assert done() == ["Search the sample", "Add a repository", "Connect an agent"]
    assert "First steps" not in world.client("otto").get("/").content.decode()
