"""The audit trail: one row in the transaction of every act that changes who may do what, or that takes data out."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from django.db import connection, models, transaction

from apps.access.errors import BadRequest
from apps.access.origin import current_origin

if TYPE_CHECKING:
    from django.contrib.auth.models import Group

    from apps.access.models import AuditRecord, User
    from apps.access.sources import Source

Target: TypeAlias = "Source | User | Group | tuple[str, str, str] | None"


class Act(models.TextChoices):
    SIGNED_IN = "signed_in", "Signed in"
    SIGNED_OUT = "signed_out", "Signed out"
    SIGN_IN_FAILED = "sign_in_failed", "Failed sign-in"
    PASSWORD_CHANGED = "password_changed", "Password changed"
    USER_CREATED = "user_created", "User created"
    USER_CHANGED = "user_changed", "User changed"
    USER_DELETED = "user_deleted", "User deleted"
    GROUP_CREATED = "group_created", "Group created"
    GROUP_CHANGED = "group_changed", "Group changed"
    GROUP_DELETED = "group_deleted", "Group deleted"
    MEMBERSHIP_CHANGED = "membership_changed", "Membership changed"
    GRANT_MADE = "grant_made", "Grant made"
    GRANT_ENDED = "grant_ended", "Grant ended"
    OWNER_CHANGED = "owner_changed", "Owner changed"
    VISIBILITY_CHANGED = "visibility_changed", "Visibility changed"
    SOURCE_CREATED = "source_created", "Source created"
    SOURCE_CHANGED = "source_changed", "Source changed"
    SOURCE_DELETED = "source_deleted", "Source deleted"
    CREDENTIAL_CHANGED = "credential_changed", "Credential changed"
    TOKEN_MADE = "token_made", "Token made"
    TOKEN_REVOKED = "token_revoked", "Token revoked"
    SETTINGS_CHANGED = "settings_changed", "Settings changed"
    JOB_RETRIED = "job_retried", "Job retried"
    JOB_CANCELLED = "job_cancelled", "Job cancelled"
    DELETIONS_APPROVED = "deletions_approved", "Held deletions approved"
    DELETIONS_DISCARDED = "deletions_discarded", "Held deletions discarded"
    EXPORTED = "exported", "Exported"
    VIEW_AS_BEGUN = "view_as_begun", "View as begun"
    VIEW_AS_ENDED = "view_as_ended", "View as ended"
    SECRETS_REKEYED = "secrets_rekeyed", "Secrets re-keyed"
    PROFILE_GATE_OVERRIDDEN = "profile_gate_overridden", "Profile gate overridden"


def record(
    act: Act | str,
    *,
    by: User | None,
    target: Target = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditRecord:
    """Write one row. Secrets are given as the word ``changed``, never as their value.

    Raises RuntimeError outside a transaction: the row stands or falls with the act that it records.
    """
    from apps.access.models import AuditRecord

    if not connection.in_atomic_block:
        raise RuntimeError("an audit row is written in the transaction of the act")
    origin = current_origin()
    kind, id, name = _target(target)
    return AuditRecord.objects.create(
        act=Act(act),
        actor_id=by.pk if by else None,
        actor_name=by.get_username() if by else "",
        how=origin.how,
        token_id=origin.token_id,
        target_kind=kind,
        target_id=id,
        target_name=name[:500],
        before=dict(before) if before is not None else None,
        after=dict(after) if after is not None else None,
        request_id=origin.request_id,
        address=origin.address,
    )


def matching(asked: Mapping[str, Any]) -> models.QuerySet[AuditRecord]:
    """The rows that every given filter takes: act, actor, how, target_kind, target_id, since, until (ISO 8601).

    For administrators; the caller has made sure of that. Raises BadRequest for a moment that cannot be read.
    """
    from apps.access.models import AuditRecord

    fields = {"act": "act", "actor": "actor_name", "how": "how", "target_kind": "target_kind", "target_id": "target_id"}
    chosen: dict[str, Any] = {field: asked[name] for name, field in fields.items() if asked.get(name)}
    for name, lookup in (("since", "time__gte"), ("until", "time__lt")):
        if asked.get(name):
            chosen[lookup] = _moment(str(asked[name]), name)
    return AuditRecord.objects.filter(**chosen)


def _moment(text: str, field: str) -> datetime.datetime:
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest("A moment is written in ISO 8601, for example 2026-01-31T09:30:00Z.", field=field) from None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


@transaction.atomic
def prune(*, before: datetime.datetime) -> int:
    """Delete the rows that are older than ``before``, the one deletion that the trigger lets pass. Returns how many."""
    from apps.access.models import AuditRecord

    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('cograph.audit_prune', 'on', true)")
        deleted, _ = AuditRecord.objects.filter(time__lt=before).delete()
        cursor.execute("SELECT set_config('cograph.audit_prune', '', true)")
    return deleted


def _target(target: Target) -> tuple[str, str, str]:
    if target is None:
        return "", "", ""
    if isinstance(target, tuple):
        kind, id, name = target
        return kind, str(id), name
    kind = getattr(target, "kind", None) or target._meta.model_name or ""
    return kind, str(target.pk), str(target)
