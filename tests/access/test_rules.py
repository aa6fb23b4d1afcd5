"""Who may see and do what: exact sets for every persona (facts 1 to 7) and what changes them (8 to 11, 31)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from apps.access import rules
from apps.access.errors import Forbidden, Invalid, NotFound
from apps.access.grants import grant, grants_of, revoke
from apps.access.models import AuditRecord
from apps.access.sources import find_source
from apps.access.viewers import GroupViewer
from apps.access.visibility import set_owner, set_visibility
from tests.access.conftest import Change, World
from tests.access.samples import Leaf, Shelf, Thread

PUBLIC = {"Rp", "Cp"}
EVERYTHING = {"Rp", "Rv", "Ra", "Cp", "Cv", "Ca", "Cx"}


@pytest.mark.parametrize(("public_read", "expected"), [(False, set()), (True, PUBLIC)])
def test_access_fact_01_anonymous_reads(world: World, configure: Change, public_read: bool, expected: set[str]) -> None:
    configure(public_read=public_read)
    assert world.readable(world.anonymous) == expected
    assert world.writable(world.anonymous) == set()


def test_access_fact_02_grants_to_groups_and_persons(world: World) -> None:
    assert world.readable(world.dana) == PUBLIC | {"Rv", "Ra"}
    assert world.readable(world.wim) == PUBLIC | {"Cv"}


def test_access_fact_03_owner_has_no_standing_on_admin_only(world: World) -> None:
    assert world.readable(world.olga) == PUBLIC | {"Rv", "Cv"}


def test_access_fact_04_outsider_and_staff_read_what_is_public(world: World) -> None:
    assert world.stan.has_perm("repos.view_repository")
    assert world.readable(world.otto) == PUBLIC
    assert world.readable(world.stan) == PUBLIC


def test_access_fact_05_administrators_active_and_not(world: World) -> None:
    assert world.readable(world.ada) == EVERYTHING
    assert world.readable(world.ina) == set()
    assert world.writable(world.ina) == set()
    assert world.manageable(world.ina) == set()


def test_access_fact_06_writable(world: World) -> None:
    assert world.writable(world.dana) == set()
    assert world.writable(world.wim) == {"Cv"}
    assert world.writable(world.olga) == {"Rv", "Cv"}
    assert world.writable(world.ada) == EVERYTHING


def test_access_fact_07_delete_and_publish(world: World) -> None:
    def may(viewer: Any) -> set[str]:
        return {
            name
            for name, source in world.sources.items()
            if name.startswith("C") and type(source).objects.having(source.delete_right, viewer).filter(pk=source.pk)
        }

    assert may(world.wim) == set()
    assert may(world.olga) == {"Cv"}
    assert may(world.ada) == {"Cp", "Cv", "Ca", "Cx"}
    repository = world["Rv"]
    with pytest.raises(Forbidden):
        set_visibility(source=repository, visibility="public", by=world.olga)


def test_access_fact_08_grants_on_admin_only(world: World) -> None:
    with pytest.raises(NotFound):
        grant(source=world["Ca"], to=world.docs, level="read", by=world.olga)
    with pytest.raises(Invalid) as refused:
        grant(source=world["Ca"], to=world.wim, level="read", by=world.ada)
    assert refused.value.code == "grant_not_allowed"
    grant(source=world["Ca"], to=world.docs, level="write", by=world.ada)
    assert "Ca" in world.writable(world.dana)
    assert "Ca" not in world.manageable(world.dana)


def test_access_fact_09_admin_only_and_back(world: World) -> None:
    grant(source=world["Cv"], to=world.docs, level="read", by=world.olga)
    set_visibility(source=world["Cv"], visibility="admin_only", by=world.ada)
    assert "Cv" not in world.readable(world.wim) | world.readable(world.olga) | world.readable(world.dana)
    set_visibility(source=world["Cv"], visibility="private", by=world.ada)
    assert "Cv" not in world.readable(world.wim) | world.readable(world.dana)
    assert "Cv" in world.readable(world.olga)
    row = AuditRecord.objects.get(act="visibility_changed", after={"visibility": "admin_only"})
    assert {"grantee": "user wim", "level": "write"} in row.before["grants_ended"]
    assert {"grantee": "group docs", "level": "read"} in row.before["grants_ended"]


def test_administrators_group_grants_outlive_admin_only(world: World) -> None:
    grant(source=world["Cv"], to=world.docs, level="read", by=world.ada)
    set_visibility(source=world["Cv"], visibility="admin_only", by=world.ada)
    assert "Cv" in world.readable(world.dana)
    assert [(value.name, value.granted_as_admin) for value in grants_of(world["Cv"])] == [("docs", True)]


def test_an_owner_may_neither_set_nor_clear_admin_only(world: World) -> None:
    with pytest.raises(Forbidden):
        set_visibility(source=world["Cv"], visibility="admin_only", by=world.olga)
    with pytest.raises(NotFound):
        set_visibility(source=world["Ca"], visibility="private", by=world.olga)
    set_visibility(source=world["Cv"], visibility="public", by=world.olga)
    assert "Cv" in world.readable(world.otto)


def test_access_fact_10_demotion_of_the_granting_administrator(world: World) -> None:
    world.ada.is_superuser = False
    world.ada.save()
    assert "Ra" in world.readable(world.dana)


def test_access_fact_31_no_audit_row_no_grant(world: World) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE access_auditrecord ADD CONSTRAINT refuse_all CHECK (time IS NULL) NOT VALID")
    with pytest.raises(DatabaseError), transaction.atomic():
        grant(source=world["Cv"], to=world.otto, level="read", by=world.olga)
    assert "Cv" not in world.readable(world.otto)


def test_none_and_strangers_are_no_viewers(world: World) -> None:
    for wrong in (None, "ada", object()):
        for verb in ("visible_to", "writable_by", "manageable_by"):
            with pytest.raises(TypeError):
                getattr(type(world["Rp"]).objects, verb)(wrong)


def test_a_group_viewer_is_a_member_and_nothing_else(world: World) -> None:
    assert world.readable(GroupViewer(world.docs)) == PUBLIC | {"Rv", "Ra"}
    assert world.writable(GroupViewer(world.docs)) == set()
    assert world.manageable(GroupViewer(world.docs)) == set()


def test_the_best_grant_wins_and_one_row_stands_for_each_grantee(world: World) -> None:
    world.wim.groups.add(world.docs)
    grant(source=world["Cv"], to=world.docs, level="read", by=world.olga)
    assert "Cv" in world.writable(world.wim)
    grant(source=world["Cv"], to=world.wim, level="read", by=world.olga)
    assert "Cv" not in world.writable(world.wim)
    assert len(grants_of(world["Cv"])) == 2


def test_a_writer_may_not_grant_and_an_outsider_learns_nothing(world: World) -> None:
    with pytest.raises(Forbidden):
        grant(source=world["Cv"], to=world.otto, level="read", by=world.wim)
    with pytest.raises(NotFound):
        grant(source=world["Cv"], to=world.otto, level="read", by=world.otto)
    with pytest.raises(NotFound):
        revoke(source=world["Cv"], to=world.wim, by=world.otto)
    revoke(source=world["Cv"], to=world.wim, by=world.olga)
    assert world.readable(world.wim) == PUBLIC


def test_model_wide_permissions_open_no_row(world: World) -> None:
    for source in world.sources.values():
        app = source._meta.app_label
        if app != "samples":
            assert world.stan.has_perm(f"{app}.read")
    assert world.readable(world.stan) == PUBLIC
    assert world.writable(world.stan) == set()


def test_a_deleted_source_is_nobodys(world: World) -> None:
    from django.utils import timezone

    source = world["Cv"]
    source.deleted_at = timezone.now()
    source.save()
    for viewer in (world.ada, world.olga, world.wim):
        assert "Cv" not in world.readable(viewer) | world.writable(viewer) | world.manageable(viewer)


def test_a_deleted_owner_leaves_grants_and_administrators(world: World) -> None:
    source = world["Rv"]
    source.owner = None
    source.save()
    assert "Rv" in world.readable(world.dana)
    assert "Rv" not in world.readable(world.olga)


def test_only_administrators_change_an_owner(world: World) -> None:
    with pytest.raises(Forbidden):
        set_owner(source=world["Cv"], owner=world.wim, by=world.olga)
    set_owner(source=world["Cv"], owner=world.otto, by=world.ada)
    assert "Cv" in world.manageable(world.otto)
    assert "Cv" not in world.readable(world.olga)


def test_find_source_answers_alike_for_hidden_absent_and_unknown_kinds(
    world: World, django_assert_num_queries: Any
) -> None:
    hidden = world["Rv"]
    texts = set()
    for kind, key in (("repository", hidden.pk), ("repository", "00000000-0000-4000-8000-000000000000")):
        with django_assert_num_queries(1), pytest.raises(NotFound) as refused:
            find_source(kind, key, world.otto, "write")
        texts.add(str(refused.value))
    for kind, key in (("repository", "no-uuid"), ("planet", hidden.pk)):
        with pytest.raises(NotFound) as refused:
            find_source(kind, key, world.otto)
        texts.add(str(refused.value))
    assert len(texts) == 1
    with pytest.raises(Forbidden):
        find_source("repository", hidden.pk, world.dana, "write")
    assert find_source("repository", hidden.pk, world.olga, "write") == hidden


def test_rows_below_a_source_inherit_and_rows_with_two_parents_need_both(world: World) -> None:
    shown = Shelf.objects.create(name="shown", visibility="public")
    hidden = Shelf.objects.create(name="hidden", owner=world.olga)
    here, there = Leaf.objects.create(shelf=shown, text="here"), Leaf.objects.create(shelf=hidden, text="there")
    inside = Thread.objects.create(start=here, end=here)
    outside = Thread.objects.create(start=here, end=there)
    assert set(Leaf.objects.visible_to(world.otto)) == {here}
    assert set(Leaf.objects.visible_to(world.olga)) == {here, there}
    assert set(Thread.objects.visible_to(world.otto)) == {inside}
    assert set(Thread.objects.visible_to(world.olga)) == {inside, outside}
    assert set(Leaf.objects.writable_by(world.olga)) == {there}
    sql = str(Leaf.objects.visible_to(world.dana).query)
    assert "DISTINCT" not in sql
    with pytest.raises(NotFound):
        Leaf.objects.get_for(world.otto, pk=there.pk)
    with pytest.raises(Forbidden):
        Leaf.objects.get_for(world.otto, "write", pk=here.pk)
    assert Leaf.objects.get_for(world.olga, "write", pk=there.pk) == there


def test_access_fact_19_names_are_no_oracle(world: World) -> None:
    from apps.access.sources import source_model

    try:
        model = source_model("collection")
    except KeyError:
        pytest.skip("the room of collections is not there yet")
    taken = world["Cx"]
    made = model.objects.create(name=taken.name, slug=taken.slug, owner=world.otto)
    assert made.pk != taken.pk


def test_administrator_means_active_superuser(world: World) -> None:
    assert rules.is_administrator(world.ada)
    for viewer in (world.ina, world.stan, world.anonymous, GroupViewer(world.docs)):
        assert not rules.is_administrator(viewer)
