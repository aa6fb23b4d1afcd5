"""Rows of this room: the query log."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from apps.access.querysets import SourceKeyQuerySet
from apps.retrieval import models_evaluation  # noqa: F401 - its models belong to this room

QUERY_BYTES = 200
"""Of a query are kept, cut at a character border (``api-and-mcp.md`` 27)."""


class Door(models.TextChoices):
    PAGE = "page", "page"
    REST = "rest", "REST"
    MCP = "mcp", "MCP"


class Outcome(models.TextChoices):
    OK = "ok", "found"
    EMPTY = "empty", "nothing found"
    ERROR = "error", "error"


class QueryLogEntry(models.Model):
    """One search, retrieve, route or context call of a signed-in person.

    Sources are ``kind:id`` keys without foreign key: their names are looked up inside the scope of whoever reads the
    row. A source that opted out of the log is in no row.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    at = models.DateTimeField(default=timezone.now, db_index=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token = models.ForeignKey("access.ApiToken", null=True, on_delete=models.SET_NULL, related_name="+")
    door = models.CharField(max_length=4, choices=Door.choices)
    tool = models.CharField(max_length=40)
    query = models.CharField(max_length=QUERY_BYTES)
    named = ArrayField(models.CharField(max_length=60), default=list)
    found = ArrayField(models.CharField(max_length=60), default=list)
    outcome = models.CharField(max_length=5, choices=Outcome.choices)
    code = models.CharField(max_length=40, blank=True, default="")
    results = models.PositiveIntegerField(default=0)
    tokens = models.PositiveIntegerField(default=0)
    milliseconds = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "query_log"
        default_permissions = ("view",)
        ordering = ("-at", "-id")
        verbose_name = "query"
        verbose_name_plural = "query log"
        indexes = [models.Index(fields=["user", "-at"], name="query_log_own")]
        constraints = [
            models.CheckConstraint(condition=models.Q(door__in=Door.values), name="query_log_door_known"),
            models.CheckConstraint(condition=models.Q(outcome__in=Outcome.values), name="query_log_outcome_known"),
        ]

    def __str__(self) -> str:
        return self.query


class AnonymousQueries(models.Model):
    """How often people without an account asked, by day and door. What they asked is not kept."""

    day = models.DateField()
    door = models.CharField(max_length=4, choices=Door.choices)
    tool = models.CharField(max_length=40)
    queries = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "query_log_anonymous"
        default_permissions = ("view",)
        ordering = ("-day", "door", "tool")
        verbose_name = "anonymous queries of a day"
        verbose_name_plural = "anonymous queries"
        constraints = [models.UniqueConstraint(fields=["day", "door", "tool"], name="query_log_anonymous_once")]

    def __str__(self) -> str:
        return f"{self.day} {self.door} {self.tool}"


class LeadQuerySet(SourceKeyQuerySet["SourceLead"]):
    deployment_rows = False


class SourceLead(models.Model):
    """The words with which a repository introduces itself, for routing; derived from its README after each sync."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    source_kind = models.CharField(max_length=20)
    source_id = models.UUIDField()
    terms = ArrayField(models.TextField(), default=list)

    objects = LeadQuerySet.as_manager()

    class Meta:
        db_table = "source_leads"
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(fields=["source_kind", "source_id"], name="source_leads_once")]

    def __str__(self) -> str:
        return f"lead of {self.source_kind} {self.source_id}"
