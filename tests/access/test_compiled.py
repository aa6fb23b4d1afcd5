"""Statements that are compiled once give what the querysets give that they were made of."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection, models
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.access.compiled import (
    AFTER_ID,
    AFTER_TIME,
    MARK_OF_ID,
    MARK_OF_NOW,
    ReadableList,
    ReadablePages,
    ReadableRows,
    ReadableValues,
    Rows,
    among,
)
from apps.access.models import ApiToken, Session, User
from apps.access.rest.cursors import page_of_readable, page_of_rows
from apps.collections import catalogue as collections
from apps.collections.models import Collection
from apps.repos import catalogue as repositories
from apps.repos.models import Repository
from tests.portal.worlds import make_repository

pytestmark = pytest.mark.django_db


def fields_of(row: models.Model, *more: str) -> dict[str, Any]:
    names = [field.attname for field in row._meta.concrete_fields]
    return {name: getattr(row, name) for name in (*names, *more)}


def test_every_kind_of_field_and_annotation_arrives_as_the_queryset_loads_it() -> None:
    owner = User.objects.create_user("olga")
    repository = make_repository("github.com/acme/one", visibility="public", owner=owner)
    collection = Collection.objects.create(name="Shelf", owner=owner, visibility="public")
    plain = Repository.objects.visible_to(owner).with_state().get(pk=repository.pk)
    names = ("is_syncing", "failed_runs", "is_stale")
    for loaded in (
        repositories.repository_at(owner, "GITHUB.com/acme/One"),
        repositories.with_state(owner, [repository.pk])[repository.pk],
    ):
        assert fields_of(loaded, *names) == fields_of(plain, *names)
        assert loaded == plain and not loaded._state.adding and not loaded.get_deferred_fields()
    for shelf in (
        collections.collection_at(owner, str(collection.pk)),
        collections.with_ids(owner, [collection.pk])[collection.pk],
    ):
        assert fields_of(shelf) == fields_of(Collection.objects.get(pk=collection.pk))


def test_the_second_call_takes_its_own_values_and_its_own_viewer() -> None:
    olga, otto = User.objects.create_user("olga"), User.objects.create_user("otto")
    hers = Collection.objects.create(name="Hers", owner=olga)
    his = Collection.objects.create(name="His", owner=otto)
    rows: ReadableRows[Collection] = ReadableRows(
        lambda viewer, ids: Collection.objects.visible_to(viewer).filter(among("pk", ids)).order_by("name"),
        MARK_OF_ID,
    )
    assert [rows.all(one, [hers.pk, his.pk]) for one in (olga, otto, olga)] == [[hers], [his], [hers]]
    assert rows.all(olga, [his.pk]) == [] and rows.first(otto, [his.pk]) == his
    assert rows.all(AnonymousUser(), [hers.pk, his.pk]) == []
    ada = User.objects.create_superuser("ada")
    assert rows.all(ada, [hers.pk, his.pk]) == [hers, his]


def test_nobody_is_no_viewer() -> None:
    rows: ReadableRows[Collection] = ReadableRows(lambda viewer: Collection.objects.visible_to(viewer))
    with pytest.raises(TypeError):
        rows.all(None)  # type: ignore[arg-type]


def test_the_joined_row_comes_along_in_the_same_statement_or_is_none() -> None:
    olga = User.objects.create_user("olga")
    later = timezone.now() + datetime.timedelta(days=1)
    Session.objects.create(session_key="hers", session_data="", expire_date=later, user=olga)
    Session.objects.create(session_key="nobody", session_data="", expire_date=later)
    rows: Rows[Session] = Rows(
        lambda key, now: Session.objects.filter(session_key=key, expire_date__gt=now).select_related("user"),
        "key",
        MARK_OF_NOW,
    )
    with CaptureQueriesContext(connection) as seen:
        hers, nobody = rows.first("hers", timezone.now()), rows.first("nobody", timezone.now())
        assert hers is not None and nobody is not None
        assert hers.user == olga and nobody.user is None
    assert len(seen) == 2
    assert fields_of(hers.user) == fields_of(User.objects.get(pk=olga.pk))
    assert rows.first("hers", later + datetime.timedelta(seconds=1)) is None


def test_a_queryset_that_can_have_no_row_asks_nothing() -> None:
    rows: Rows[ApiToken] = Rows(lambda name: ApiToken.objects.none().filter(name=name), "name")
    with CaptureQueriesContext(connection) as seen:
        assert rows.all("any") == []
    assert len(seen) == 0


def test_api_fact_03_pages_of_a_compiled_list_are_those_of_the_queryset() -> None:
    olga, otto = User.objects.create_user("olga"), User.objects.create_user("otto")
    at = timezone.now()
    for number in range(7):
        # Two at each moment, so that only the key decides between them.
        Collection.objects.create(
            name=f"c{number}", slug=f"c{number}", owner=olga, created_at=at + datetime.timedelta(seconds=number // 2)
        )
    Collection.objects.create(name="his", slug="his", owner=otto)
    pages: ReadablePages[Collection] = ReadablePages(
        lambda viewer: Collection.objects.visible_to(viewer).select_related("owner"),
        order=("-created_at", "id"),
        after=(AFTER_TIME, AFTER_ID),
    )
    for viewer in (olga, otto, User.objects.create_superuser("ada"), AnonymousUser()):
        rows = Collection.objects.visible_to(viewer)
        for limit in (1, 2, 3, 7, 8, 100):
            cursor: str | None = ""
            found = []
            while cursor is not None:
                question = {"limit": limit, "cursor": cursor}
                page = page_of_readable(pages, viewer=viewer, question=question)
                plain = page_of_rows(rows, order=pages.order, viewer=viewer, question=question)
                assert ([row.pk for row in page.items], page.total) == ([row.pk for row in plain.items], plain.total)
                found += [row.pk for row in page.items]
                cursor = page.next_cursor
            assert found == [row.pk for row in rows.order_by("-created_at", "id")]
    assert page_of_readable(pages, viewer=olga, question={"limit": 9}).items[0].owner == olga


def test_a_mark_that_does_not_reach_the_statement_is_refused() -> None:
    rows: Rows[Collection] = Rows(lambda name: Collection.objects.filter(name__icontains=name), "a name")
    with pytest.raises(TypeError, match="a name"):
        rows.all("Shelf")


def test_numbered_pages_of_a_compiled_list_are_those_of_the_queryset() -> None:
    olga, otto = User.objects.create_user("olga"), User.objects.create_user("otto")
    for number in range(7):
        Collection.objects.create(name=f"c{number}", slug=f"c{number}", owner=olga)
    Collection.objects.create(name="his", slug="his", owner=otto)
    listed: ReadableList[Collection] = ReadableList(
        lambda viewer, name: Collection.objects.visible_to(viewer).exclude(name=name).order_by("-name", "id"), "a name"
    )
    for viewer in (olga, otto, User.objects.create_superuser("ada"), AnonymousUser(), olga):
        rows = Collection.objects.visible_to(viewer).exclude(name="c3").order_by("-name", "id")
        found = listed.of(viewer, "c3")
        assert (found.count(), len(found)) == (rows.count(), rows.count())
        for start, end in ((0, 3), (3, 6), (6, 9), (0, 100), (90, 100)):
            assert found[start:end] == list(rows[start:end])


def test_compiled_values_are_those_of_the_queryset() -> None:
    olga, otto = User.objects.create_user("olga"), User.objects.create_user("otto")
    Collection.objects.create(name="Hers", owner=olga)
    values = ReadableValues(
        lambda viewer, name: (
            Collection.objects.visible_to(viewer)
            .filter(name=name)
            .order_by()
            .values("name")
            .annotate(n=models.Count("pk"))
            .values_list("name", "n")
        ),
        "a name",
    )
    assert [values.all(viewer, "Hers") for viewer in (olga, otto, AnonymousUser(), olga)] == [
        [("Hers", 1)], [], [], [("Hers", 1)],
    ]  # fmt: skip
