"""The audit trail (rule 21)."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from django.db import InternalError, connection, transaction
from django.db.utils import DatabaseError
from django.utils import timezone

from apps.access import audit
from apps.access.models import AuditRecord, User
from apps.access.origin import Origin, acting

REFUSED = (InternalError, DatabaseError)


@pytest.fixture
def row(db: None) -> AuditRecord:
    user = User.objects.create_user("dana")
    origin = Origin(how="token", request_id="r" * 32, address="203.0.113.7", token_id="t")
    with acting(origin), transaction.atomic():
        return audit.record(audit.Act.EXPORTED, by=user, target=("repository", "1", "a"), after={"n": 1})


def test_a_row_says_who_what_and_how(row: AuditRecord) -> None:
    row.refresh_from_db()
    assert (row.actor_name, row.act, row.how, row.token_id) == ("dana", "exported", "token", "t")
    assert (row.target_kind, row.target_id, row.target_name) == ("repository", "1", "a")
    assert (row.request_id, row.address, row.after) == ("r" * 32, "203.0.113.7", {"n": 1})


def test_no_row_is_changed_or_deleted_by_any_door(row: AuditRecord) -> None:
    acts: list[Any] = [
        lambda: AuditRecord.objects.update(actor_name="nobody"),
        lambda: AuditRecord.objects.all().delete(),
        row.delete,
        row.save,
    ]
    for act in acts:
        with pytest.raises(REFUSED), transaction.atomic():
            act()
    with pytest.raises(REFUSED), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM access_auditrecord")
    assert AuditRecord.objects.count() == 1


def test_deleting_the_actor_keeps_the_row(row: AuditRecord) -> None:
    User.objects.all().delete()
    assert AuditRecord.objects.get().actor_name == "dana"


def test_retention_prunes_what_is_old_and_then_the_lock_holds_again(row: AuditRecord) -> None:
    now = timezone.now()
    with transaction.atomic():
        old = AuditRecord.objects.create(act=audit.Act.EXPORTED, how="system", time=now - datetime.timedelta(days=401))
    assert audit.prune(before=now - datetime.timedelta(days=400)) == 1
    assert not AuditRecord.objects.filter(pk=old.pk).exists()
    with pytest.raises(REFUSED), transaction.atomic():
        row.delete()


@pytest.mark.django_db(transaction=True)
def test_a_row_outside_a_transaction_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        audit.record(audit.Act.EXPORTED, by=None)


def test_the_acts_are_those_of_the_rules() -> None:
    assert {act.value for act in audit.Act} >= {
        "signed_in", "signed_out", "sign_in_failed", "password_changed", "user_changed", "group_changed",
        "membership_changed", "grant_made", "grant_ended", "owner_changed", "visibility_changed", "source_created",
        "source_changed", "source_deleted", "credential_changed", "token_made", "token_revoked", "settings_changed",
        "job_retried", "job_cancelled", "deletions_approved", "deletions_discarded", "exported", "view_as_begun",
        "view_as_ended", "secrets_rekeyed", "profile_gate_overridden",
    }  # fmt: skip
