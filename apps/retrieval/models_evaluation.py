"""Rows of evaluation: sets of questions with judged answers, what runs measured, and the least that must be reached."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from apps.access.querysets import SourceKeyQuerySet


class Level(models.TextChoices):
    CHUNK = "chunk", "chunk"
    SECTION = "section", "section"
    PAGE = "page", "page"


class EvaluationSet(models.Model):
    """Questions of one kind. An imported set owns a collection, which is in no scope but that of its own runs."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, unique=True)
    block = models.CharField(max_length=4, choices=[("docs", "documents"), ("code", "code")], default="docs")
    collection_id = models.UUIDField(null=True, blank=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "evaluation_sets"
        default_permissions = ("view",)
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class EvaluationQuery(models.Model):
    set = models.ForeignKey(EvaluationSet, on_delete=models.CASCADE, related_name="queries")
    key = models.CharField(max_length=200)
    text = models.TextField()

    class Meta:
        db_table = "evaluation_queries"
        default_permissions = ("view",)
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=["set", "key"], name="evaluation_queries_once")]

    def __str__(self) -> str:
        return self.text


class JudgementQuerySet(SourceKeyQuerySet["Judgement"]):
    """Seen by the readers of the source that was judged."""

    deployment_rows = False


class Judgement(models.Model):
    """How well one place answers a question, 1 to 3. Of an imported set ``target`` is the key that its files give;
    else document and heading path name the place, so that it follows a document that moves."""

    query = models.ForeignKey(EvaluationQuery, on_delete=models.CASCADE, related_name="judgements")
    level = models.CharField(max_length=7, choices=Level)
    target = models.TextField(blank=True, default="")
    source_kind = models.CharField(max_length=20)
    source_id = models.UUIDField()
    document_id = models.UUIDField(null=True)
    path = models.TextField(blank=True, default="")
    heading_path = ArrayField(models.TextField(), default=list, blank=True)
    grade = models.PositiveSmallIntegerField(default=1)

    objects = JudgementQuerySet.as_manager()

    class Meta:
        db_table = "evaluation_judgements"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["query", "level", "target", "document_id", "heading_path"],
                nulls_distinct=False,
                name="evaluation_judgements_once",
            ),
            models.CheckConstraint(condition=models.Q(grade__range=(1, 3)), name="evaluation_judgements_grade"),
        ]

    def __str__(self) -> str:
        return self.target or self.path


class EvaluationRun(models.Model):
    """What one run measured, with all that it depended on."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    set = models.ForeignKey(EvaluationSet, on_delete=models.CASCADE, related_name="runs")
    at = models.DateTimeField(default=timezone.now, db_index=True)
    mode = models.CharField(max_length=8)
    profile = models.TextField(blank=True, default="")
    weights = models.JSONField(default=dict)
    commit = models.CharField(max_length=64, blank=True, default="")
    metrics = models.JSONField(default=dict)
    """level -> metric -> value"""
    milliseconds = models.JSONField(default=dict)
    """p50 and p95 of wall and CPU"""
    queries = models.PositiveIntegerField(default=0)
    stale = models.PositiveIntegerField(default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        db_table = "evaluation_runs"
        default_permissions = ("view",)
        ordering = ("-at", "-id")

    def __str__(self) -> str:
        return f"{self.set} {self.mode} {self.at:%Y-%m-%d %H:%M}"


class EvaluationGate(models.Model):
    """The least that a profile must reach before it serves, and how far it may fall below the one that serves."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    set = models.ForeignKey(EvaluationSet, on_delete=models.CASCADE, related_name="gates")
    level = models.CharField(max_length=7, choices=Level)
    metric = models.CharField(
        max_length=12, choices=[(name, name) for name in ("ndcg@10", "mrr@10", "recall@10", "recall@100")]
    )
    minimum = models.FloatField()
    largest_fall = models.FloatField(null=True, blank=True)

    class Meta:
        db_table = "evaluation_gates"
        default_permissions = ("view", "add", "change", "delete")
        constraints = [
            models.UniqueConstraint(fields=["set", "level", "metric"], name="evaluation_gates_once"),
            models.CheckConstraint(condition=models.Q(minimum__range=(0, 1)), name="evaluation_gates_share"),
        ]

    def __str__(self) -> str:
        return f"{self.set} {self.level} {self.metric}"
