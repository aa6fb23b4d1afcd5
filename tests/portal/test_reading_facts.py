"""Facts of reading that go through real pages of a synced repository: `portal.md` facts 11, 21 and 38."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import Group

from apps.access.grants import grant
from apps.repos.models import Repository

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]
Synced = Callable[..., Repository]


def text(response: Any) -> str:
    assert response.status_code == 200, response.content.decode()[:400]
    return str(response.content.decode())


def test_portal_facts_11_and_38_anchors_are_reached_and_files_are_no_programs(world: Any, synced: Synced) -> None:
    repository = synced()
    client = world.client("otto")
    base = f"/repos/{repository.slug}"
    body = text(client.get(f"{base}/docs/set-up"))
    wanted = ["first-steps", "sync--export--v2", "部署手順", "部署手順-1", "-go", "-go-1"]
    assert [one for one in re.findall(r'<h2 id="([^"]+)"', body) if not one.startswith("cg-")] == wanted
    contents = body.partition('class="toc"')[2].partition("</nav>")[0]
    linked = [unquote(one) for one in re.findall(r'href="#([^"]+)"', contents)]
    assert [one for one in linked if one in wanted] == wanted
    prose = body[body.index('id="cg-prose"') :]
    assert "#部署手順-1" in {unquote(one) for one in re.findall(r'href="([^"]*#[^"]+)"[^>]*>jump', prose)}
    raw = client.get(f"{base}/files/src/main.py?raw=1")
    assert raw["Content-Type"].startswith("text/plain") and "sandbox" in raw["Content-Security-Policy"]
    image = client.get(f"{base}/images/img/bad.svg")
    assert image["Content-Type"] == "image/svg+xml"
    assert image["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert raw["X-Content-Type-Options"] == image["X-Content-Type-Options"] == "nosniff"
    hostile = text(client.get(f"{base}/docs/hostile"))
    shown = hostile[hostile.index('id="cg-prose"') :]
    assert f'<img src="{base}/images/img/bad.svg"' in shown
    assert "<svg onload" not in shown and "<script>alert" not in shown


def test_portal_fact_21_a_member_follows_a_citation(world: Any, synced: Synced) -> None:
    repository = synced("closed", visibility="private")
    address = f"/repos/{repository.slug}/docs/set-up"
    member = world.client("dana")
    assert member.get(address).status_code == 404
    grant(source=repository, to=Group.objects.get(name="docs"), level="read", by=world.people["ada"])
    body = text(member.get(address))
    assert 'id="first-steps"' in body
    assert world.client("otto").get(address).status_code == 404
