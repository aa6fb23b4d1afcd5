"""Accounts, tokens, failed sign-ins, the audit trail and kept answers of creating requests."""

from __future__ import annotations

import datetime
import uuid

from django.contrib.auth.models import AbstractUser, Group
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac

from apps.access.audit import Act


class User(AbstractUser):
    """A person or service that may sign in."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session_epoch = models.PositiveIntegerField(default=0, editable=False)
    """Raised to end every session of the user at once."""
    administrator_by_provider = models.BooleanField(default=False, editable=False)
    """Superuser by the provider's claim only, so that the claim may take it back."""

    def get_session_auth_hash(self) -> str:
        return self._epoch_hash()

    def get_session_auth_fallback_hash(self):  # type: ignore[no-untyped-def]
        from django.conf import settings

        for secret in settings.SECRET_KEY_FALLBACKS:
            yield self._epoch_hash(secret)

    def _epoch_hash(self, secret: str | bytes | None = None) -> str:
        return salted_hmac(
            "apps.access.models.User.session",
            f"{self.session_epoch}:{self.password}",
            secret=secret,
            algorithm="sha256",
        ).hexdigest()


class Session(AbstractBaseSession):
    """A session with its account as a column, so that one statement fetches both."""

    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")

    class Meta(AbstractBaseSession.Meta):
        db_table = "access_session"

    @classmethod
    def get_session_store_class(cls):  # type: ignore[no-untyped-def]
        from apps.access.sessions import SessionStore

        return SessionStore


class GroupProfile(models.Model):
    """What a group is besides its name: whether the sign-in provider decides who is in it."""

    group = models.OneToOneField(Group, primary_key=True, on_delete=models.CASCADE, related_name="profile")
    managed_by_provider = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.group.name


class ProviderIdentity(models.Model):
    """Who a user is at a sign-in provider: never changed, so that a name given anew there opens nothing here."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)

    class Meta:
        verbose_name_plural = "provider identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="access_identity_once")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class TokenScope(models.TextChoices):
    READ = "read", "Read by REST"
    WRITE = "write", "Write by REST (includes read)"
    MCP = "mcp", "Use the MCP server"


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def live(self, now: datetime.datetime | None = None) -> ApiTokenQuerySet:
        """Tokens that still open a door, if their user does."""
        return self.filter(revoked_at__isnull=True).filter(
            models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=now or timezone.now())
        )


class ApiToken(models.Model):
    """A key for programs. Only its digest is kept; it acts as its user within its scopes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=8, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=5, choices=TokenScope.choices))
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class LoginFailure(models.Model):
    """A failed sign-in that still counts. The account is kept as a keyed digest: people type passwords as names."""

    account = models.CharField(max_length=64)
    address = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["account", "at"], name="access_failure_by_account"),
            models.Index(fields=["address", "at"], name="access_failure_by_address"),
        ]

    def __str__(self) -> str:
        return f"failed sign-in at {self.at:%Y-%m-%d %H:%M}"


class AuditRecord(models.Model):
    """One act. Append-only: a database trigger refuses updates, and deletions outside retention.

    Actor and target are kept as text, without foreign keys, so that deleting an account rewrites no history.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    time = models.DateTimeField(default=timezone.now)
    actor_id = models.UUIDField(null=True)
    actor_name = models.CharField(max_length=150, blank=True)
    how = models.CharField(max_length=10)
    token_id = models.CharField(max_length=36, blank=True)
    act = models.CharField(max_length=30, choices=Act.choices)
    target_kind = models.CharField(max_length=40, blank=True)
    target_id = models.CharField(max_length=64, blank=True)
    target_name = models.CharField(max_length=500, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    request_id = models.CharField(max_length=32, blank=True)
    address = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-time", "id"]
        indexes = [
            models.Index(fields=["-time", "id"], name="access_audit_by_time"),
            models.Index(fields=["target_kind", "target_id"], name="access_audit_by_target"),
        ]

    def __str__(self) -> str:
        return f"{self.get_act_display()} by {self.actor_name or self.how}"


class KeptAnswer(models.Model):
    """The stored answer of a creating request, for ``Idempotency-Key``. ``status`` is null while it still runs."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    method = models.CharField(max_length=7)
    path = models.CharField(max_length=500)
    key = models.CharField(max_length=200)
    body_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "method", "path", "key"], name="access_kept_answer_once")
        ]
        indexes = [models.Index(fields=["created_at"], name="access_kept_answer_by_time")]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"
