"""Readers while the index changes behind them, and sources that do not: `retrieval.md` facts 19, 105, 117, 121."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from apps.access.models import User
from apps.collections.models import Collection
from apps.indexing import postings
from apps.indexing.chunks import reindex
from apps.indexing.models import IndexedSource
from apps.indexing.stores import get_store
from apps.jobs.models import Job
from apps.jobs.worker import run_job
from apps.repos.models import Repository
from apps.repos.registration import request_sync
from apps.retrieval.context import context
from apps.retrieval.search import search
from apps.retrieval.values import Answer, Question
from tests.retrieval.library import commit_all, repository_of

Fill = Callable[..., None]
QUERIES = ("heron marsh", "wading bird", "nest")
TIMES = 20


def told(answer: Answer) -> tuple[Any, ...]:
    """What a reader sees of an answer: rows with their scores and the parts of these."""
    rows = [(hit.path, hit.heading_path, hit.final, hit.fused, hit.snippet.text, hit.streams) for hit in answer.hits]
    return (*rows, answer.total, answer.facets, answer.degraded)


def poll(viewer: User, until: threading.Event, seen: list[Any]) -> None:
    try:
        while not until.is_set():
            seen.append(tuple(told(search(viewer=viewer, question=Question(query))) for query in QUERIES))
    except Exception as problem:
        seen.append(problem)
    finally:
        connection.close()


def readers(viewer: User, number: int, work: Callable[[], None]) -> list[Any]:
    """Everything that ``number`` readers see while ``work`` is done."""
    done = threading.Event()
    seen: list[list[Any]] = [[] for _ in range(number)]
    threads = [threading.Thread(target=poll, args=(viewer, done, mine)) for mine in seen]
    for thread in threads:
        thread.start()
    try:
        work()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert all(seen), "each reader had an answer meanwhile"
    return [one for mine in seen for one in mine]


def birds(number: int) -> dict[str, str]:
    return {
        f"{n:02}.md": f"# Bird {n}\n\nA heron in a marsh, {'wading ' * (n % 5)}bird {n}.\n\n## Nest\n\nA nest {n}.\n"
        for n in range(number)
    }


def entries(shelf: Collection) -> Sequence[IndexedSource]:
    return list(IndexedSource.objects.filter(source_id=shelf.pk))


def segments() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM indexing_posting")
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_retrieval_fact_19_a_merge_behind_a_reader(fill: Fill, olga: User, shelf: Collection) -> None:
    files = birds(12)
    for key, text in files.items():
        fill({key: text}, embed=False)
    fill({"03.md": files["03.md"] + "\nAnd a marsh.\n"})
    before = tuple(told(search(viewer=olga, question=Question(query))) for query in QUERIES)
    rows = segments()

    def work() -> None:
        for entry in entries(shelf):
            with transaction.atomic():
                postings.merge(IndexedSource.objects.select_for_update().get(pk=entry.pk))

    seen = readers(olga, 1, work)
    assert segments() < rows, "there was something to merge"
    assert {*map(repr, seen)} == {repr(before)}
    assert repr(tuple(told(search(viewer=olga, question=Question(query))) for query in QUERIES)) == repr(before)


@pytest.mark.django_db(transaction=True)
def test_retrieval_fact_105_whole_answers_while_a_source_is_made_anew(
    fill: Fill, olga: User, shelf: Collection
) -> None:
    fill(birds(8))
    before = tuple(told(search(viewer=olga, question=Question(query))) for query in QUERIES)
    assert all(answer[0] for answer in before)
    store = get_store("md_collections")

    def work() -> None:
        for _ in range(TIMES):
            with transaction.atomic():
                entry = IndexedSource.objects.select_for_update().get(store=store.name, source_id=shelf.pk)
                reindex(store, entry, language=entry.language)

    assert {*map(repr, readers(olga, 2, work))} == {repr(before)}, "no answer is empty, halved or an error"


@pytest.mark.django_db
def test_retrieval_fact_117_a_file_name_in_back_ticks(tmp_path: Path, signed_in: Any) -> None:
    ada = User.objects.create_superuser("ada")
    files = {
        "docs/guide.md": "# Guide\n\nSee `app.py` for it.\n",
        "src/app.py": "def begin():\n    pass\n",
        "tests/app.py": "def test_begin():\n    pass\n",
    }
    repository = repository_of(tmp_path / "acme" / "kit", files, ada)
    page = signed_in(ada).get(repository.documents.get(path="docs/guide.md").get_absolute_url()).content.decode()
    assert f'href="{repository.get_absolute_url()}/files/src/app.py' in page
    assert "tests/app.py" not in page


@pytest.mark.django_db
def test_retrieval_fact_121_three_failed_syncs_are_told(tmp_path: Path, signed_in: Any) -> None:
    ada = User.objects.create_superuser("ada")
    folder = tmp_path / "acme" / "kit"
    repository = repository_of(folder, {"docs/heron.md": "# Heron\n\nA heron in the marsh.\n"}, ada)
    client: Client = signed_in(ada)

    def ask(path: str, **body: Any) -> Any:
        return client.post(f"/api/{path}", body, content_type="application/json").json()

    (hit,) = ask("search", query="heron")["items"]
    (part,) = ask("context", task="heron")["parts"]
    good = repository.last_checked_at
    assert good is not None
    for shown in (hit, part):
        assert shown["version"] == repository.synced_commit
        assert datetime.datetime.fromisoformat(shown["checked_time"]) == good
        assert shown["stale_since"] is None
    assert "stale since" not in context(viewer=ada, task="heron").text

    folder.rename(folder.with_name("away"))
    fail_three_times(repository, ada)
    (hit,) = ask("search", query="heron")["items"]
    pack = ask("context", task="heron")
    for shown in (hit, pack["parts"][0]):
        assert shown["version"] == repository.synced_commit
        assert datetime.datetime.fromisoformat(shown["stale_since"]) == good
    assert f"stale since {good:%Y-%m-%d %H:%M}Z" in pack["text"]
    page = client.get("/search?q=heron").content.decode()
    assert '<span class="badge warn">stale</span> since' in page

    folder.with_name("away").rename(folder)
    (folder / "docs/heron.md").write_text("# Heron\n\nA grey heron in the marsh.\n")
    commit_all(folder)
    sync(repository, ada)
    (hit,) = ask("search", query="grey heron")["items"]
    assert hit["stale_since"] is None


def sync(repository: Repository, by: User) -> Job:
    job = run_job(request_sync(repository=repository, by=by).job.pk)
    assert job is not None
    return job


def fail_three_times(repository: Repository, by: User) -> None:
    for _ in range(3):
        assert sync(repository, by).error_code, "a folder that went away"


@pytest.mark.django_db
def test_retrieval_rule_10_5_stale_and_without_text(tmp_path: Path) -> None:
    ada = User.objects.create_superuser("ada")
    repository_of(tmp_path / "acme" / "kit", {"notes.bin": "x"}, ada)

    def reason() -> str:
        empty = search(viewer=ada, question=Question("heron")).empty
        return empty.reason if empty else ""

    assert reason() == "not_indexed"
    long_ago = timezone.now() - datetime.timedelta(days=9)
    Repository.objects.update(schedule="hourly", last_checked_at=long_ago)
    assert reason() == "stale"
