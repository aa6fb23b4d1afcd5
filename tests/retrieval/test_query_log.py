"""The query log: what is kept of a question, for how long, and who sees it."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps.access.errors import NotFound
from apps.access.models import User
from apps.collections.models import Collection
from apps.retrieval import query_log
from apps.retrieval.models import AnonymousQueries, Door, QueryLogEntry
from apps.retrieval.search import search
from apps.retrieval.values import Question

Fill = Callable[..., None]


def ask(user: Any, query: str, **options: Any) -> None:
    question = Question(query=query, **options)
    with query_log.noting(by=user, door=Door.PAGE, tool="search", query=query, named=question.sources) as note:
        answer = search(viewer=user, question=question)
        note.answered((hit.source.kind, hit.source.id) for hit in answer.hits)


def test_api_fact_53_hits_nothing_and_errors_are_told_apart(fill: Fill, olga: User) -> None:
    fill({"a.md": "# Backups\n\nThey run at night.\n"})
    ask(olga, "backups")
    ask(olga, "zebra")
    with pytest.raises(NotFound), query_log.noting(by=olga, door=Door.MCP, tool="route", query="x"):
        raise NotFound
    rows = list(query_log.own_rows(olga))
    assert [(row.query, row.outcome, row.code, row.results) for row in reversed(rows)] == [
        ("backups", "ok", "", 1),
        ("zebra", "empty", "", 0),
        ("x", "error", "not_found", 0),
    ]
    assert [row.door for row in rows] == ["mcp", "page", "page"]


def test_api_fact_54_a_query_is_cut_at_a_character_border(olga: User) -> None:
    ask(olga, "é" * 99 + "x" + "日" * 34)
    kept = query_log.own_rows(olga).get().query
    assert kept == "é" * 99 + "x"
    assert len(kept.encode()) <= 200
    assert query_log.cut("a\0b\ud800c") == "a bc"


def test_api_fact_55_a_source_that_opted_out_leaves_no_trace(fill: Fill, shelf: Collection, olga: User) -> None:
    fill({"a.md": "# Backups\n\nThey run at night.\n"})
    other = Collection.objects.create(owner=olga, name="Other", slug="other")
    fill({"b.md": "# More backups\n\nBy day.\n"}, collection=other)
    Collection.objects.filter(pk=other.pk).update(query_log_opt_out=True)
    ask(olga, "backups", sources=(("collection", other.pk),))
    assert not QueryLogEntry.objects.exists()
    ask(olga, "backups")
    row = query_log.own_rows(olga).get()
    assert row.found == [f"collection:{shelf.pk}"]
    assert row.results == 1
    Collection.objects.filter(pk=other.pk).update(query_log_opt_out=False)
    ask(olga, "backups", sources=(("collection", other.pk),))
    assert query_log.own_rows(olga).count() == 2


def test_api_fact_56_a_log_that_cannot_be_written_costs_no_answer(fill: Fill, olga: User) -> None:
    fill({"a.md": "# Backups\n\nThey run at night.\n"})
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE query_log RENAME TO query_log_gone")
    ask(olga, "backups")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE query_log_gone RENAME TO query_log")
    assert not QueryLogEntry.objects.exists()


def test_api_fact_57_rows_are_their_owners(olga: User, otto: User) -> None:
    ask(olga, "one")
    ask(otto, "two")
    assert [row.query for row in query_log.own_rows(otto)] == ["two"]
    assert {row.query for row in query_log.all_rows()} == {"one", "two"}
    assert query_log.erase(olga) == 1
    assert not query_log.own_rows(olga).exists()
    assert query_log.own_rows(otto).count() == 1


def test_api_27_anonymous_queries_are_counted_and_not_kept(db: None) -> None:
    nobody = AnonymousUser()
    for _ in range(3):
        ask(nobody, "secret thoughts")
    assert not QueryLogEntry.objects.exists()
    assert AnonymousQueries.objects.get().queries == 3


def test_api_27_rows_end_after_thirty_days(olga: User) -> None:
    ask(olga, "old")
    QueryLogEntry.objects.update(at=timezone.now() - datetime.timedelta(days=31))
    ask(olga, "new")
    assert query_log.prune(timezone.now()) == 1
    assert query_log.own_rows(olga).get().query == "new"
    assert query_log.prune(timezone.now()) == 0


def test_names_of_sources_are_looked_up_in_the_scope_of_the_reader(
    fill: Fill, shelf: Collection, olga: User, otto: User
) -> None:
    fill({"a.md": "# Backups\n\nThey run at night.\n"})
    ask(olga, "backups")
    rows = list(query_log.own_rows(olga))
    assert query_log.labels(rows, olga) == {f"collection:{shelf.pk}": "Shelf"}
    assert query_log.labels(rows, otto) == {}


def test_statistics_of_a_week(olga: User) -> None:
    for milliseconds, outcome in ((1, "ok"), (2, "ok"), (3, "empty"), (100, "error")):
        QueryLogEntry.objects.create(
            user=olga, door="mcp", tool="retrieve", query=outcome, outcome=outcome, milliseconds=milliseconds,
            found=[f"repository:{uuid.UUID(int=1)}"] if outcome == "ok" else [],
        )  # fmt: skip
    told = query_log.statistics()
    assert (told.queries, told.p50, told.p95) == (4, 2.0, 100.0)
    assert told.zero_hit == [("empty", 1)]
    assert told.slowest[0] == ("error", 100)
    assert told.sources == [(f"repository:{uuid.UUID(int=1)}", 2)]


def test_portal_45_only_administrators_see_the_log_in_the_admin(olga: User) -> None:
    ask(olga, "what olga asked")
    row = QueryLogEntry.objects.get()
    ada = User.objects.create_superuser("ada")
    stan = User.objects.create_user("stan", is_staff=True)
    for user, expected in ((ada, True), (stan, False)):
        client = Client()
        client.force_login(user)
        answer = client.get("/admin/retrieval/querylogentry/")
        assert (answer.status_code == 200 and b"what olga asked" in answer.content) is expected
        page = client.get(f"/admin/retrieval/querylogentry/{row.pk}/change/")
        assert (page.status_code == 200) is expected
