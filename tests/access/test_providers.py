"""What the claims of a sign-in provider may decide (fact 30, rule 20)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group

from apps.access import providers
from apps.access.models import AuditRecord, GroupProfile, User


@pytest.fixture
def oidc(configure: Any) -> Any:
    def change(**values: Any) -> None:
        configure(oidc=dataclasses.replace(settings.COGRAPH.oidc, **values))

    return change


@pytest.fixture
def user(db: None) -> User:
    for name, managed in (("docs", True), ("ops", True), ("admins", False), ("local", False)):
        group = Group.objects.create(name=name)
        GroupProfile.objects.create(group=group, managed_by_provider=managed)
    Group.objects.create(name="bare")
    return User.objects.create_user("dana", email="Dana@example.org")


def groups(user: User) -> set[str]:
    return set(user.groups.values_list("name", flat=True))


def test_access_fact_30_a_claim_fills_provider_managed_groups_only(user: User) -> None:
    providers.apply_claims(user=user, claims={"groups": ["docs", "admins", "bare"]})
    assert groups(user) == {"docs"}
    user.groups.add(Group.objects.get(name="local"))
    providers.apply_claims(user=user, claims={"groups": ["ops"]})
    assert groups(user) == {"ops", "local"}
    providers.apply_claims(user=user, claims={})
    assert groups(user) == {"local"}
    assert AuditRecord.objects.filter(act="membership_changed").count() == 3
    assert not Group.objects.filter(name="unknown").exists()


@pytest.mark.parametrize("claim", ["docs", {"docs": 1}, [["docs"], 5, None, ""], None])
def test_odd_claims_count_as_none(user: User, claim: Any) -> None:
    providers.apply_claims(user=user, claims={"groups": claim})
    assert groups(user) == set()


def test_the_claim_of_groups_has_the_name_that_the_operator_gives(user: User, oidc: Any) -> None:
    oidc(groups_claim="roles")
    providers.apply_claims(user=user, claims={"groups": ["ops"], "roles": ["docs"]})
    assert groups(user) == {"docs"}


def test_administrators_come_from_the_named_group_and_go_with_it(user: User, oidc: Any) -> None:
    providers.apply_claims(user=user, claims={"groups": ["admins"]})
    assert not user.is_superuser
    oidc(admin_group="admins")
    providers.apply_claims(user=user, claims={"groups": ["admins"]})
    assert user.is_superuser
    assert groups(user) == set()
    providers.apply_claims(user=user, claims={"groups": []})
    user.refresh_from_db()
    assert not user.is_superuser
    assert not user.is_staff


def test_local_administrators_are_not_the_providers_to_demote(user: User, oidc: Any) -> None:
    oidc(admin_group="admins")
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    user.refresh_from_db()
    for claim in (["admins"], []):
        providers.apply_claims(user=user, claims={"groups": claim})
        assert user.is_superuser


def test_accounts_are_linked_by_verified_addresses_of_trusted_domains_only(user: User, oidc: Any) -> None:
    good = {"email": "dana@example.org", "email_verified": True}
    assert providers.account_for(good) is None
    oidc(trusted_domains=("Example.org",))
    assert providers.account_for(good) == user
    for wrong in (
        {"email": "dana@example.org"},
        {"email": "dana@example.org", "email_verified": "true"},
        {"email": "dana@example.org", "email_verified": False},
        {"email": "dana@evil.example", "email_verified": True},
        {"email": "dana@example.org.evil.example", "email_verified": True},
        {"email": "", "email_verified": True},
        {"email_verified": True},
    ):
        assert providers.account_for(wrong) is None, wrong
    User.objects.create_user("twin", email="dana@EXAMPLE.org")
    assert providers.account_for(good) is None
    User.objects.filter(username="twin").delete()
    User.objects.update(is_active=False)
    assert providers.account_for(good) is None
