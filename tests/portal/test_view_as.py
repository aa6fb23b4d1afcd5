"""View as: the pages around it, and what the banner says meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from apps.access.models import AuditRecord

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]


def test_access_fact_24_view_as_a_user(world: Any) -> None:
    ada = world.client("ada")
    hidden = f"/repos/{world.private.slug}"
    assert ada.get(hidden).status_code == 200
    assert world.client("otto").get("/view-as").status_code == 404
    assert "no active user" in ada.post("/view-as", {"kind": "user", "name": "nobody"}).content.decode()
    assert ada.post("/view-as", {"kind": "user", "name": "otto"})["Location"] == "/"
    home = ada.get("/").content.decode()
    assert "You view the portal as otto: they see 2 of 4 documents." in home
    assert world.private.slug not in home
    missing, absent = ada.get(hidden), ada.get("/repos/github.com/no/thing")
    assert missing.status_code == 404
    assert missing.content == absent.content
    assert "You view the portal as otto" in missing.content.decode()
    refused = ada.post(f"/repos/{world.public.slug}/sync")
    assert refused.status_code == 403
    assert ada.get("/account/tokens").status_code == 403
    assert ada.get("/view-as/stop").status_code == 200
    assert ada.post("/view-as/stop")["Location"] == "/"
    assert "You view the portal" not in ada.get("/").content.decode()
    acts = AuditRecord.objects.filter(act__startswith="view_as").values_list("act", flat=True)
    assert sorted(acts) == ["view_as_begun", "view_as_ended"]


def test_view_as_a_member_of_a_group_and_as_anonymous(world: Any) -> None:
    ada = world.client("ada")
    ada.post("/view-as", {"kind": "group", "name": "docs"})
    home = ada.get("/").content.decode()
    assert "a member of docs" in home
    assert world.private.slug in home
    ada.post("/view-as/stop")
    ada.post("/view-as", {"kind": "anonymous"})
    assert "anonymous is sent to sign in" in ada.get("/").content.decode().lower()
    ada.post("/view-as/stop")
    assert ada.get("/").status_code == 200
