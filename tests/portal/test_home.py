"""The home page: first steps, how the portal is, what changed lately, and the way to what has no card."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest

from apps.collections.curation import create_collection
from apps.collections.uploads import upload_document
from apps.jobs.models import Job
from apps.repos.models import Repository
from cograph_site.home import CARDS
from cograph_site.samples import CANONICAL

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loud_templates")]


def test_portal_rule_39_the_sample_is_no_upload(world: Any) -> None:
    ada = world.people["ada"]

    def uploaded() -> bool:
        body = world.client("ada").get("/").content.decode()
        return "Upload a document" in re.findall(r'<li class="done"><a href="[^"]*">([^<]*)', body)

    for name, ticked in ((CANONICAL, False), ("Glossary", True)):
        collection = create_collection(by=ada, name=name, visibility="public")
        upload_document(collection=collection, by=ada, source_key="a.md", raw=b"# A\n")
        assert uploaded() is ticked


def test_portal_rule_2_what_has_no_card_is_one_link_away(world: Any, repositories: Callable[..., Repository]) -> None:
    assert '<a href="/repos">All repositories</a>' not in world.client("otto").get("/").content.decode()
    for number in range(CARDS):
        repositories(f"github.com/acme/r{number}", visibility="public")
    assert '<a href="/repos">All repositories</a>' in world.client("otto").get("/").content.decode()


def test_portal_rule_2_the_health_strip_tells_of_missing_vectors(
    world: Any, jobs: Callable[..., Job], settings: Any
) -> None:
    def strip(backend: str) -> str:
        embedding = dataclasses.replace(settings.COGRAPH.embedding, backend=backend)
        settings.COGRAPH = dataclasses.replace(settings.COGRAPH, embedding=embedding)
        body: str = world.client("ada").get("/").content.decode()
        return " ".join(re.sub("<[^>]+>", " ", body.partition('class="health"')[2].partition("</section>")[0]).split())

    assert "no vectors missing" in strip("minilm")
    for source in (world.public, world.private):
        jobs(source, kind="embed", status="queued")
    jobs(world.public, kind="embed", status="error")
    assert "vectors missing in 2 sources" in strip("minilm")
    assert "vectors" not in strip("none")


def test_portal_rule_2_only_what_changed_or_failed_is_told(world: Any, jobs: Callable[..., Job]) -> None:
    jobs(world.public, kind="merge_postings")
    jobs(world.public, kind="lint_graph", status="error", error_message="The disk is full.")
    body = world.client("otto").get("/").content.decode().partition("What changed lately")[2]
    assert "Sync</a>" in body
    assert "Merge postings" not in body
    assert "The disk is full." in body
