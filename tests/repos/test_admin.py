"""Acts of the admin on repositories: asked first, done by right, told row by row (`portal.md` rule 42, fact 40)."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from apps.access.models import User
from apps.jobs.models import Job
from apps.repos.models import Repository

pytestmark = pytest.mark.django_db


def make(slug: str, **values: object) -> Repository:
    return Repository.objects.create(slug=slug, git_url=f"https://{slug}.git", **values)


@pytest.mark.parametrize(
    ("action", "kind"),
    [("embed_anew", "embed"), ("link_symbols", "link_symbols"), ("resolve_links", "resolve_links")],
)
def test_portal_fact_40_acts_are_asked_done_and_refused_row_by_row(action: str, kind: str) -> None:
    stan = User.objects.create_user("stan", is_staff=True)
    mine = make("example.org/team/mine", owner=stan)
    readable = make("example.org/team/open", visibility="public")
    client = Client()
    client.force_login(stan)
    chosen = {"action": action, "_selected_action": [str(mine.pk), str(readable.pk)]}
    address = reverse("admin:repos_repository_changelist")
    asked = client.post(address, chosen).content.decode()
    assert "will be" in asked and not Job.objects.exists()
    done = client.post(address, {**chosen, "confirmed": "1"}, follow=True).content.decode()
    assert "1 job queued." in done
    assert ">example.org/team/open: " in done  # spelt as it is, without a large first letter
    assert [(job.kind, job.source_id) for job in Job.objects.all()] == [(kind, mine.pk)]
