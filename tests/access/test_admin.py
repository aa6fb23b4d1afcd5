"""The admin: scoped pages, closed pages, nothing of Django's own around them (facts 22 and 23, rule 14)."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.auth.models import Group
from django.contrib.messages import get_messages
from django.test import Client, RequestFactory
from django.urls import NoReverseMatch, path, reverse

from apps.access import tokens
from apps.access.admin_base import GrantAdmin, ReadOnlyAdmin, ScopedAdmin, act_on_rows
from apps.access.admin_site import CographAdminSite
from apps.access.errors import Forbidden
from apps.access.models import ApiToken, AuditRecord, GroupProfile, User
from apps.access.rules import Right
from cograph_site import urls as site_urls
from tests.access.conftest import World
from tests.access.samples import Leaf, Shelf, ShelfGroupGrant, ShelfUserGrant


class SamplesSite(CographAdminSite):
    def get_app_list(self, request: Any, app_label: str | None = None) -> list[Any]:
        """The samples are no installed app, which is all that the list of apps is about."""
        return []


site = SamplesSite(name="samples_admin")


class ShelfAdmin(ScopedAdmin):
    change_right = Right.WRITE
    delete_right = Right.MANAGE
    search_fields = ("name",)
    list_filter = ("owner", "visibility")
    fields = ("name", "owner", "visibility", "description")
    actions = ("touch",)

    def delete_row(self, request: Any, obj: Any) -> None:
        Shelf.objects.filter(pk=obj.pk).update(name="deleted by the workflow")

    def touch(self, request: Any, queryset: Any) -> None:
        def act(shelf: Shelf) -> None:
            if not Shelf.objects.writable_by(request.user).filter(pk=shelf.pk).exists():
                raise Forbidden

        act_on_rows(request, queryset.order_by("name"), act, done="{n} shelves touched.")


class LeafAdmin(ReadOnlyAdmin):
    list_display = ("text", "shelf")
    list_filter = ("shelf",)
    autocomplete_fields = ("shelf",)
    date_hierarchy = None


class GrowingLeafAdmin(ScopedAdmin):
    add_right = "self"
    change_right = Right.WRITE
    autocomplete_fields = ("shelf",)


site.register(Shelf, ShelfAdmin)
site.register(Leaf, GrowingLeafAdmin)
site.register(ShelfUserGrant, GrantAdmin)
site.register(ShelfGroupGrant, GrantAdmin)
site.register(Group, type(admin.site._registry[Group]))

urlpatterns = [path("admin/samples/", site.urls), *site_urls.urlpatterns]
pytestmark = [pytest.mark.urls(__name__)]
BASE = "/admin/samples/samples"


@pytest.fixture
def shelf(world: World) -> Shelf:
    return Shelf.objects.create(name="Hidden corner", owner=world.olga)


@pytest.fixture
def stan(world: World, signed_in: Any) -> Client:
    made: Client = signed_in(world.stan)
    return made


@pytest.fixture
def ada(world: World, signed_in: Any) -> Client:
    made: Client = signed_in(world.ada)
    return made


@pytest.fixture
def wim(world: World, signed_in: Any) -> Client:
    """Staff with a write grant on one shelf."""
    world.wim.is_staff = True
    world.wim.save()
    made: Client = signed_in(world.wim)
    return made


def test_access_fact_22_hidden_and_missing_rows_are_one_answer(world: World, stan: Client, shelf: Shelf) -> None:
    missing = "00000000-0000-4000-8000-000000000000"
    answers = []
    for key in (shelf.pk, missing):
        answer = stan.get(f"{BASE}/shelf/{key}/change/")
        texts = [str(message).replace(str(key), "KEY") for message in get_messages(answer.wsgi_request)]
        answers.append((answer.status_code, answer["Location"], texts[-1]))
        answers += [(act, stan.get(f"{BASE}/shelf/{key}/{act}/").status_code) for act in ("delete", "history")]
    assert answers[:3] == answers[3:]


def test_access_fact_22_autocomplete_and_filters_offer_visible_rows_only(
    world: World, stan: Client, shelf: Shelf
) -> None:
    shown = Shelf.objects.create(name="Corner of all", visibility="public")
    Leaf.objects.create(shelf=shelf, text="secret leaf")
    Leaf.objects.create(shelf=shown, text="open leaf")
    view = AutocompleteJsonView(admin_site=site)
    view.setup(stan.get(f"{BASE}/leaf/").wsgi_request)
    view.model_admin, view.term = site._registry[Shelf], "C"
    view.source_field = Leaf._meta.get_field("shelf")
    assert [one.name for one in view.get_queryset()] == ["Corner of all"]
    page = stan.get(f"{BASE}/leaf/").content.decode()
    assert "open leaf" in page
    assert "secret" not in page
    listed = stan.get(f"{BASE}/shelf/").content.decode()
    assert "Hidden" not in listed
    assert "olga" not in listed


def test_autocomplete_of_lists_with_counts_keeps_the_order_of_the_model(ada: Client) -> None:
    for asking, field, room in (
        ("document", "collection", "collections"),
        ("repositorydocument", "repository", "repos"),
    ):
        admin_page = admin.site._registry[apps.get_model(room, field)]
        assert admin_page.get_queryset(ada.get("/admin/").wsgi_request).ordered
        where = f"app_label={room}&model_name={asking}&field_name={field}"
        found = ada.get(f"/admin/autocomplete/?{where}&term=").json()["results"]
        assert found == sorted(found, key=lambda one: str(one["text"]))


def test_no_form_offers_the_history_that_is_switched_off(world: World, ada: Client, shelf: Shelf) -> None:
    for page in (f"{BASE}/shelf/{shelf.pk}/change/", f"/admin/access/user/{world.wim.pk}/change/"):
        answer = ada.get(page)
        assert answer.status_code == 200
        assert "/history/" not in answer.content.decode()
    assert ada.get(f"{BASE}/shelf/{shelf.pk}/history/").status_code == 404


def test_a_reader_sees_and_a_writer_changes(world: World, wim: Client, ada: Client, shelf: Shelf) -> None:
    from apps.access.grants import grant

    grant(source=shelf, to=world.wim, level="read", by=world.olga)
    page = wim.get(f"{BASE}/shelf/{shelf.pk}/change/")
    assert page.status_code == 200
    assert "_save" not in page.content.decode()
    values = {"name": "new", "visibility": "private", "description": ""}
    assert wim.post(f"{BASE}/shelf/{shelf.pk}/change/", values).status_code == 403
    grant(source=shelf, to=world.wim, level="write", by=world.olga)
    page = wim.get(f"{BASE}/shelf/{shelf.pk}/change/")
    assert "_save" in page.content.decode()
    assert "dana" not in page.content.decode()
    assert wim.post(f"{BASE}/shelf/{shelf.pk}/delete/", {"post": "yes"}).status_code == 403
    assert ada.post(f"{BASE}/shelf/{shelf.pk}/delete/", {"post": "yes"}).status_code == 302
    shelf.refresh_from_db()
    assert shelf.name == "deleted by the workflow"


def test_delete_confirmation_lists_nothing_that_lies_below(world: World, ada: Client, shelf: Shelf) -> None:
    Leaf.objects.create(shelf=shelf, text="a leaf below")
    assert "a leaf below" not in ada.get(f"{BASE}/shelf/{shelf.pk}/delete/").content.decode()


def test_related_fields_refuse_hidden_rows(world: World, stan: Client, shelf: Shelf) -> None:
    answer = stan.post(f"{BASE}/leaf/add/", {"shelf": str(shelf.pk), "text": "x"})
    assert answer.status_code == 200
    assert not Leaf.objects.exists()


def test_actions_refuse_row_by_row_and_bulk_deletion_is_off(world: World, wim: Client, shelf: Shelf) -> None:
    from apps.access.grants import grant

    mine = Shelf.objects.create(name="Mine", owner=world.wim)
    grant(source=shelf, to=world.wim, level="read", by=world.olga)
    page = wim.get(f"{BASE}/shelf/").content.decode()
    assert "delete_selected" not in page
    answer = wim.post(f"{BASE}/shelf/", {"action": "touch", "_selected_action": [str(mine.pk), str(shelf.pk)]})
    texts = [str(message) for message in get_messages(answer.wsgi_request)]
    assert texts[0].startswith("Hidden corner: ")
    assert texts[1] == "1 shelves touched."


def test_columns_that_are_not_offered_cannot_be_asked(world: World, stan: Client) -> None:
    Shelf.objects.create(name="open", visibility="public", description="kept for later")
    for query in ("description__startswith=k", "owner__password__startswith=p", "owner__username=olga"):
        answer = stan.get(f"{BASE}/shelf/?{query}")
        assert answer.status_code in (302, 400), query
    assert stan.get(f"{BASE}/shelf/?visibility__exact=public").status_code == 200


def test_access_fact_23_staff_cannot_make_themselves_superuser(world: World, stan: Client) -> None:
    assert world.stan.has_perm("access.change_user")
    address = reverse("admin:access_user_change", args=[world.stan.pk])
    assert stan.get(address).status_code == 403
    values = {"username": "stan", "is_superuser": "on", "is_staff": "on", "is_active": "on"}
    posts = [
        address,
        reverse("admin:access_user_changelist"),
        reverse("admin:access_user_add"),
        reverse("admin:auth_user_password_change", args=[world.stan.pk]),
        reverse("admin:auth_group_add"),
        reverse("admin:auth_group_change", args=[world.docs.pk]),
    ]
    for post in posts:
        assert stan.post(post, values).status_code == 403, post
    world.stan.refresh_from_db()
    assert not world.stan.is_superuser


@pytest.mark.parametrize("model", ["user", "apitoken", "auditrecord", "loginfailure", "keptanswer"])
def test_pages_of_accounts_are_for_administrators(world: World, stan: Client, ada: Client, model: str) -> None:
    address = reverse(f"admin:access_{model}_changelist")
    missing = reverse(f"admin:access_{model}_change", args=["00000000-0000-4000-8000-000000000000"])
    assert stan.get(address).status_code == 403
    assert stan.get(missing).status_code in (403, 302) and stan.get(missing).status_code == 403
    assert ada.get(address).status_code == 200
    page = stan.get("/admin/").content.decode()
    assert address not in page


def test_grant_tables_are_read_by_administrators_only(world: World, stan: Client, ada: Client, shelf: Shelf) -> None:
    from apps.access.grants import grant

    grant(source=shelf, to=world.docs, level="write", by=world.olga)
    grant(source=shelf, to=world.wim, level="read", by=world.olga)
    for kind in ("shelfusergrant", "shelfgroupgrant"):
        assert stan.get(f"{BASE}/{kind}/").status_code == 403
        page = ada.get(f"{BASE}/{kind}/")
        assert page.status_code == 200
        assert "Hidden corner" in page.content.decode()
        assert ada.get(f"{BASE}/{kind}/add/").status_code == 403


def test_who_may_not_enter_is_refused_and_no_second_login_form_stands(world: World, signed_in: Any) -> None:
    otto = signed_in(world.otto)
    for address in ("/admin/", "/admin/login/", reverse("admin:access_user_changelist")):
        answer = otto.get(address, follow=True)
        assert answer.status_code == 403, address
    answer = Client().post("/admin/login/", {"username": "ada", "password": "x"})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login")


def test_administrators_change_accounts_and_the_trail_tells(world: World, ada: Client) -> None:
    address = reverse("admin:access_user_change", args=[world.otto.pk])
    assert ada.get(address).status_code == 200
    values = {"username": "otto", "is_staff": "on", "groups": [str(world.docs.pk)]}
    assert ada.post(address, values).status_code == 302
    world.otto.refresh_from_db()
    assert (world.otto.is_staff, world.otto.is_active, world.otto.session_epoch) == (True, False, 1)
    row = AuditRecord.objects.get(act="user_changed")
    assert (row.actor_name, row.target_name) == ("ada", "otto")
    assert row.before == {"is_active": True, "is_staff": False}
    assert AuditRecord.objects.get(act="membership_changed").after == {"groups": ["docs"]}
    assert not LogEntry.objects.exists()
    made = ada.post(
        reverse("admin:access_user_add"),
        {"username": "neu", "usable_password": "true", "password1": "long enough now", "password2": "long enough now"},
    )
    assert made.status_code == 302
    assert AuditRecord.objects.get(act="user_created").target_name == "neu"
    password = reverse("admin:auth_user_password_change", args=[world.otto.pk])
    assert ada.get(password).status_code == 200
    sent = {"password1": "another long one", "password2": "another long one", "usable_password": "true"}
    assert ada.post(password, sent).status_code == 302
    assert AuditRecord.objects.get(act="password_changed").target_name == "otto"
    assert ada.post(reverse("admin:access_user_delete", args=[world.otto.pk]), {"post": "yes"}).status_code == 302
    assert AuditRecord.objects.get(act="user_deleted").target_name == "otto"
    assert not LogEntry.objects.exists()


def test_the_last_administrator_stays(world: World, ada: Client) -> None:
    address = reverse("admin:access_user_change", args=[world.ada.pk])
    assert ada.post(address, {"username": "ada", "is_active": "on", "is_staff": "on"}).status_code == 409
    assert ada.post(reverse("admin:access_user_delete", args=[world.ada.pk]), {"post": "yes"}).status_code == 409
    assert User.objects.get(pk=world.ada.pk).is_superuser


def test_deleting_a_user_ends_grants_and_leaves_sources(world: World, ada: Client) -> None:
    assert ada.post(reverse("admin:access_user_delete", args=[world.wim.pk]), {"post": "yes"}).status_code == 302
    row = AuditRecord.objects.get(act="user_deleted")
    assert row.before["grants_ended"] == [{"source": "collection Cv", "level": "write"}]
    assert ada.post(reverse("admin:access_user_delete", args=[world.olga.pk]), {"post": "yes"}).status_code == 302
    source = type(world["Rv"]).objects.get(pk=world["Rv"].pk)
    assert source.owner is None
    assert "Rv" in world.readable(world.dana)


def test_groups_are_kept_with_their_profile(world: World, ada: Client) -> None:
    assert ada.get(reverse("admin:auth_group_changelist")).status_code == 200
    ada.post(reverse("admin:auth_group_add"), {"name": "ops", "managed_by_provider": "on"})
    group = Group.objects.get(name="ops")
    assert GroupProfile.objects.get(group=group).managed_by_provider
    ada.post(reverse("admin:auth_group_change", args=[group.pk]), {"name": "operators"})
    assert not GroupProfile.objects.get(group=group).managed_by_provider
    ada.post(reverse("admin:auth_group_delete", args=[world.docs.pk]), {"post": "yes"})
    row = AuditRecord.objects.get(act="group_deleted")
    assert {one["source"] for one in row.before["grants_ended"]} == {
        "repository example.org/team/rv",
        "repository example.org/team/ra",
    }
    assert world.readable(world.dana) == {"Rp", "Cp"}


def test_tokens_are_revoked_and_users_disabled_by_actions(world: World, ada: Client) -> None:
    token, _ = tokens.create_token(user=world.dana, name="one", scopes=["read"])
    ada.post(reverse("admin:access_apitoken_changelist"), {"action": "revoke", "_selected_action": [str(token.pk)]})
    assert not ApiToken.objects.live().exists()
    assert AuditRecord.objects.get(act="token_revoked").actor_name == "ada"
    ada.post(reverse("admin:access_user_changelist"), {"action": "disable", "_selected_action": [str(world.dana.pk)]})
    assert not User.objects.get(pk=world.dana.pk).is_active


def test_the_trail_is_read_only_even_for_administrators(world: World, ada: Client) -> None:
    row = AuditRecord.objects.first()
    assert row is not None
    page = ada.get(reverse("admin:access_auditrecord_change", args=[row.pk]))
    assert page.status_code == 200
    assert "_save" not in page.content.decode()
    assert ada.post(reverse("admin:access_auditrecord_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    assert ada.get(reverse("admin:access_auditrecord_changelist") + "?act__exact=grant_made").status_code == 200


def test_every_admin_page_opens_for_staff_and_administrators_or_says_403(
    world: World, stan: Client, ada: Client
) -> None:
    for model in admin.site._registry:
        names = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        try:
            address = reverse(f"{names}_changelist")
        except NoReverseMatch:
            continue
        assert stan.get(address).status_code in (200, 403), address
        assert ada.get(address).status_code == 200, address
        assert ada.get(reverse(f"{names}_add")).status_code in (200, 403), address
        assert stan.get(reverse(f"{names}_add")).status_code in (200, 403), address


def test_every_admin_page_of_our_rooms_stands_on_the_scoped_bases() -> None:
    from apps.access.admin_base import TrailAdmin

    loose = [
        model._meta.label
        for model, page in admin.site._registry.items()
        if model.__module__.startswith(("apps.", "django.contrib.auth")) and not isinstance(page, TrailAdmin)
    ]
    assert loose == []


def test_portal_rule_41_every_list_of_the_admin_has_a_search_and_filters(ada: Client) -> None:
    lacking = []
    for model, page in admin.site._registry.items():
        if not model.__module__.startswith(("apps.", "django.contrib.auth", "cograph_site.")):
            continue
        request = RequestFactory().get("/admin/")
        if not page.get_search_fields(request) or not (page.list_filter or page.date_hierarchy):
            lacking.append(model._meta.label)
            continue
        address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        answer = ada.get(f"{address}?q=xylophone")
        assert answer.status_code == 200, address
        assert 'id="searchbar"' in answer.content.decode(), address
    assert lacking == []


def test_the_grant_of_one_admin_page_is_named() -> None:
    assert isinstance(site._registry[Leaf], ScopedAdmin)
    assert LeafAdmin.list_filter == ("shelf",)
