"""Samples are given once, and what was deleted stays away (portal 38, fact 31)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from apps.access.models import User
from apps.collections.curation import delete_collection
from apps.collections.models import Collection, Document, DocumentLink
from apps.indexing.models import IndexedSource
from apps.jobs.models import Job
from apps.jobs.queue import enqueue
from apps.jobs.worker import run_job
from apps.repos.models import Repository
from apps.repos.registration import delete_repository
from cograph_site import samples
from cograph_site.models import GivenSample

pytestmark = pytest.mark.django_db


@pytest.fixture
def administrator() -> User:
    return get_user_model().objects.create_superuser("ada")


@pytest.fixture
def otto() -> User:
    return get_user_model().objects.create_user("otto")


@pytest.fixture
def said() -> list[str]:
    return []


def test_the_guides_become_a_public_repository_with_its_first_sync(administrator: User, said: list[str]) -> None:
    assert samples.give(said.append) == list(samples.SAMPLES)
    repository = Repository.objects.get(slug=samples.GUIDES)
    assert repository.visibility == "public"
    assert Job.objects.filter(kind="sync", source_id=repository.pk).count() == 1
    assert samples.give(said.append) == []
    assert said == [f"added the sample {name}" for name in samples.SAMPLES]


def test_the_canonical_sample_is_searchable_at_once_and_has_its_faults(
    administrator: User, said: list[str], otto: User
) -> None:
    samples.give(said.append)
    collection = Collection.objects.visible_to(otto).get(name=samples.CANONICAL)
    assert Document.objects.filter(collection=collection, state="indexed").count() == 7
    entry = IndexedSource.objects.get(source_id=collection.pk, store="md_collections")
    assert entry.chunks >= 7
    enqueue("resolve_links", source=collection)
    for job in Job.objects.live().filter(kind="resolve_links"):
        run_job(job.pk)
    broken = DocumentLink.objects.filter(collection=collection, state="broken").values_list("href", flat=True)
    assert sorted(broken) == ["../plans/capacity.md", "mod-alerting"]


def test_portal_fact_31_deleted_samples_stay_away(administrator: User, said: list[str]) -> None:
    samples.give(said.append)
    delete_repository(repository=Repository.objects.get(slug=samples.GUIDES), by=administrator)
    delete_collection(collection=Collection.objects.get(name=samples.CANONICAL), by=administrator)
    assert samples.give(said.append) == []
    samples.refresh_guides(said.append)
    assert not Repository.objects.visible_to(administrator).exists()
    assert not Collection.objects.visible_to(administrator).exists()


def test_declined_samples_are_not_given_later(administrator: User, said: list[str]) -> None:
    samples.decline()
    samples.decline()
    assert samples.give(said.append) == []
    assert GivenSample.objects.count() == len(samples.SAMPLES)


def test_a_failing_sample_is_told_and_tried_again(
    administrator: User, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(by: User) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(samples, "SAMPLES", {"broken": broken})
    assert samples.give(said.append) == []
    assert said == ["the sample broken could not be made: disk full"]
    assert not GivenSample.objects.exists()


def test_without_an_administrator_nothing_is_given(said: list[str]) -> None:
    assert samples.give(said.append) == []


def test_the_guides_repository_holds_the_guides_and_follows_them(tmp_path: Path) -> None:
    folder = tmp_path / "guides"
    assert samples.commit_guides(folder)
    assert not samples.commit_guides(folder)
    listed = subprocess.run(
        ["git", "-C", folder, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "docs/README.md" in listed
    assert all(path.startswith("docs/") for path in listed)
    (folder / "docs" / "stale.md").write_text("# Not of this version\n")
    assert not samples.commit_guides(folder)


def test_a_new_version_of_the_guides_is_synced(
    administrator: User, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.give(said.append)
    monkeypatch.setattr(samples, "commit_guides", lambda folder: True)
    Job.objects.all().delete()
    samples.refresh_guides(said.append)
    assert "synced" in said[-1]
    assert Job.objects.filter(kind="sync").count() == 1


def test_the_guides_are_found_again_when_the_data_folder_has_moved(administrator: User, said: list[str]) -> None:
    samples.give(said.append)
    here = Repository.objects.get(slug=samples.GUIDES).git_url
    Repository.objects.filter(slug=samples.GUIDES).update(git_url="/srv/before/samples/docs")
    Job.objects.all().delete()
    samples.refresh_guides(said.append)
    repository = Repository.objects.get(slug=samples.GUIDES)
    assert (repository.git_url, repository.trusted_path) == (here, True)
    assert Job.objects.filter(kind="sync", source_id=repository.pk).count() == 1


def test_a_repository_of_that_name_that_is_not_the_guides_is_left_alone(administrator: User, said: list[str]) -> None:
    samples.give(said.append)
    Repository.objects.filter(slug=samples.GUIDES).update(git_url="https://git.example/cograph/docs")
    Job.objects.all().delete()
    samples.refresh_guides(said.append)
    assert Repository.objects.get(slug=samples.GUIDES).git_url == "https://git.example/cograph/docs"
    assert not Job.objects.exists()
