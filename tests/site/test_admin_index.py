"""The index page of the admin counts what its reader may see (portal 43, fact 39)."""

from __future__ import annotations

import uuid

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from apps.access.models import User
from apps.jobs.models import Job
from apps.repos.models import Repository
from apps.retrieval.models import QueryLogEntry
from cograph_site.admin_figures import panels

pytestmark = pytest.mark.django_db


@pytest.fixture
def repositories() -> None:
    for slug, visibility in (("git.example/a/open", "public"), ("git.example/a/hidden", "private")):
        Repository.objects.create(slug=slug, git_url=f"https://{slug}.git", visibility=visibility)


def figures(user: User) -> dict[str, dict[str, object]]:
    return {panel.title: {figure.words: figure.value for figure in panel.figures} for panel in panels(user)}


def test_portal_fact_39_staff_see_numbers_of_public_rows_only(repositories: None) -> None:
    users = get_user_model().objects
    seen = figures(users.create_user("stan", is_staff=True))
    assert seen["Repositories"]["in all"] == 1
    assert "This deployment" not in seen
    seen = figures(users.create_superuser("ada"))
    assert seen["Repositories"]["in all"] == 2
    assert seen["This deployment"]["last job sweep"] is None


def test_portal_rule_43_what_is_read_what_is_asked_and_what_is_missing(repositories: None) -> None:
    ada = get_user_model().objects.create_superuser("ada")
    open_one = Repository.objects.get(visibility="public")
    for outcome in ("ok", "empty", "empty"):
        QueryLogEntry.objects.create(user=ada, query="x", outcome=outcome, door="page", tool="search")
    for _ in range(2):
        Job.objects.create(kind="embed", source_kind="repository", source_id=open_one.pk, key=uuid.uuid4().hex)
    seen = figures(ada)
    assert seen["This deployment"]["queries in 7 days"] == 3
    assert seen["This deployment"]["of them without a result"] == 2
    assert str(seen["This deployment"]["free disk"]).endswith("iB")
    assert seen["Jobs"]["sources without all vectors"] == 1
    assert seen["Content"] == {"documents": 0, "graph nodes": 0, "names without a page": 0}


def test_the_page_shows_them_without_recent_actions(client: Client, repositories: None) -> None:
    client.force_login(get_user_model().objects.create_superuser("ada"))
    answer = client.get("/admin/")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "This deployment" in page
    assert "free disk" in page
    assert "recent-actions" not in page
    assert "style=" not in page
