"""Admin of collections: scoped rows, read-only derived ones, acts by right (`portal.md` facts 39 to 41; access 22)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.access.audit import Act
from apps.access.grants import grant
from apps.access.models import AuditRecord, User
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document, DocumentChunk
from apps.collections.trash import trash_document
from apps.jobs.models import Job
from apps.jobs.worker import drain

Put = Callable[..., Any]
pytestmark = pytest.mark.django_db


@pytest.fixture
def stan(db: None) -> User:
    return User.objects.create_user("stan", is_staff=True)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def listing(name: str) -> str:
    return reverse(f"admin:collections_{name}_changelist")


MODELS = [model._meta.model_name or "" for model in apps.get_app_config("collections").get_models()]


def test_portal_rule_41_every_model_is_registered_and_opens(put: Put, handbook: Collection, ada: User) -> None:
    assert all(admin.site.is_registered(model) for model in apps.get_app_config("collections").get_models())
    put("a.md", "# A\n\n[b](b.md)")
    drain()
    boss = signed_in(ada)
    for model in apps.get_app_config("collections").get_models():
        name = model._meta.model_name or ""
        assert boss.get(listing(name)).status_code == 200, name
        row = model._default_manager.first()
        if row is not None:
            opened = boss.get(reverse(f"admin:collections_{name}_change", args=[row.pk]))
            assert opened.status_code == 200, name
        if name != "collection":
            assert boss.get(reverse(f"admin:collections_{name}_add")).status_code == 403, name
    chunk = DocumentChunk.objects.get()
    for act in ("change", "delete"):
        path = reverse(f"admin:collections_documentchunk_{act}", args=[chunk.pk])
        assert boss.post(path, {"post": "yes", "source": "x"}).status_code == 403


def test_collections_rule_2_6_the_trash_is_in_no_list(put: Put, handbook: Collection, olga: User, ada: User) -> None:
    put("thrown-away.md", "# A\n\n[b](thrown-away-too.md)")
    drain()
    trash_document(document=Document.objects.get(), by=olga)
    for model in ("document", "documentversion", "documentchunk", "documentlink"):
        assert b"thrown-away" not in signed_in(ada).get(listing(model)).content, model


def test_access_rule_4_only_administrators_change_an_owner(
    handbook: Collection, olga: User, otto: User, ada: User
) -> None:
    create_collection(by=otto, name="Handbook")
    olga.is_staff = True
    olga.save()

    def hand_over(by: User, name: str) -> str:
        chosen = {"action": "change_owner", "_selected_action": str(handbook.pk), "confirmed": "yes", "name": name}
        answer = signed_in(by).post(listing("collection"), chosen, follow=True)
        handbook.refresh_from_db()
        return answer.content.decode()

    hand_over(olga, "otto")
    assert handbook.owner == olga
    assert "no user of this name" in hand_over(ada, "nobody")
    assert "Rename one of them first" in hand_over(ada, "otto")
    assert handbook.owner == olga
    hand_over(ada, "ada")
    assert handbook.owner == ada
    hand_over(ada, "")
    assert handbook.owner is None


def test_portal_fact_39_staff_sees_public_rows_only(
    put: Put, handbook: Collection, stan: User, olga: User, ada: User
) -> None:
    put("secret.md", "# Secret")
    create_collection(by=olga, name="Open shelf", visibility="public")
    drain()
    staff = signed_in(stan)
    body = staff.get(listing("collection")).content.decode()
    assert "Open shelf" in body and "Handbook" not in body
    for name in MODELS:
        answer = staff.get(listing(name))
        assert answer.status_code in (200, 403), name
        assert "secret.md" not in answer.content.decode() and "Handbook" not in answer.content.decode()
    hidden = staff.get(reverse("admin:collections_collection_change", args=[handbook.pk]))
    absent = staff.get(reverse("admin:collections_collection_change", args=["0" * 32]))
    assert (hidden.status_code, hidden.headers.get("Location")) == (absent.status_code, absent.headers.get("Location"))


def act(client: Client, action: str, rows: list[Collection], **data: Any) -> Any:
    chosen = {"action": action, "_selected_action": [str(row.pk) for row in rows], **data}
    return client.post(listing("collection"), chosen, follow=True)


def test_portal_fact_40_acts_are_refused_row_by_row(stan: User, olga: User, readers: Group) -> None:
    mine = [create_collection(by=stan, name=name) for name in ("One", "Two")]
    open_shelf = create_collection(by=olga, name="Open shelf", visibility="public")
    staff = signed_in(stan)
    asked = act(staff, "embed_anew", [*mine, open_shelf])
    assert "will be embedded anew" in asked.content.decode() and not Job.objects.filter(kind="embed").exists()
    done = act(staff, "embed_anew", [*mine, open_shelf], confirmed="1").content.decode()
    assert "2 jobs queued." in done and "Open shelf: " in done
    assert set(Job.objects.filter(kind="embed").values_list("source_id", flat=True)) == {row.pk for row in mine}
    done = act(
        staff, "grant_group", [*mine, open_shelf], confirmed="1", group=readers.pk, level="read"
    ).content.decode()
    assert "Granted on 2 collections." in done and "Open shelf: " in done
    told = AuditRecord.objects.filter(act=Act.GRANT_MADE)
    assert sorted(told.values_list("target_name", flat=True)) == ["One", "Two"]
    for action in ("chunk_anew", "resolve_links", "make_public", "make_private"):
        assert "Open shelf: " in act(staff, action, [mine[0], open_shelf], confirmed="1").content.decode(), action
    assert "Two: " in act(staff, "make_admin_only", [mine[1]], confirmed="1").content.decode()


def test_forms_go_through_the_workflow(stan: User, ada: User, wim: User) -> None:
    staff = signed_in(stan)
    add = reverse("admin:collections_collection_add")
    answer = staff.post(add, {"name": "Shelf", "description": "d", "visibility": "private", "language": "english"})
    assert answer.status_code == 302
    made = Collection.objects.get()
    assert made.owner == stan and AuditRecord.objects.filter(act=Act.SOURCE_CREATED, target_id=str(made.pk)).exists()
    change = reverse("admin:collections_collection_change", args=[made.pk])
    form = {
        "name": "Shelf",
        "description": "e",
        "visibility": "private",
        "language": "english",
        "max_chars": "600",
        "min_chars": "50",
        "max_chunks": "9",
    }
    assert staff.post(change, form).status_code == 302
    made.refresh_from_db()
    assert (made.description, made.profile_id) == ("e", "chars-600-50-9")
    assert Job.objects.filter(kind="upload", source_id=made.pk).exists()
    staff.post(change, {**form, "max_chars": "9"})
    made.refresh_from_db()
    assert made.max_chars == 600
    wim.is_staff = True
    wim.save()
    grant(source=made, to=wim, level="write", by=stan)
    assert signed_in(wim).post(change, {**form, "name": "Mine", "description": "f"}).status_code == 302
    made.refresh_from_db()
    assert (made.name, made.description) == ("Shelf", "f")
    delete = reverse("admin:collections_collection_delete", args=[made.pk])
    assert signed_in(wim).post(delete, {"post": "yes"}).status_code == 403
    assert staff.post(delete, {"post": "yes"}).status_code == 302
    assert not Collection.objects.visible_to(ada).exists()


def test_portal_fact_41_the_list_does_not_grow_in_queries(ada: User, put: Put) -> None:
    boss = signed_in(ada)

    def count() -> int:
        boss.get(listing("collection"))
        with CaptureQueriesContext(connection) as seen:
            assert boss.get(listing("collection")).status_code == 200
        return len(
            [one for one in seen.captured_queries if not one["sql"].startswith(("SAVEPOINT", "RELEASE", "SET "))]
        )

    put("a.md", "[b](b.md)")
    for n in range(3):
        create_collection(by=ada, name=f"A{n}")
    few = count()
    for n in range(30):
        create_collection(by=ada, name=f"B{n}")
    assert count() == few <= 12
