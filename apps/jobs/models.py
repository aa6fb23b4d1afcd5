"""Rows of jobs: the truth about work, of which the message queue only carries ids."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.jobs.querysets import JobChildQuerySet, JobQuerySet, SuspectQuerySet

QUARANTINE_LOSSES = 3
ONE_LIVE_JOB = "jobs_one_live_job_per_object"


class Status(models.TextChoices):
    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    SUCCESS = "success", "done"
    ERROR = "error", "failed"
    CANCELLED = "cancelled", "cancelled"


class Cause(models.TextChoices):
    """Why a job exists. Scheduled work waits behind everything else; follow-ups count against no limit of live jobs."""

    MANUAL = "manual", "asked for"
    SCHEDULE = "schedule", "schedule"
    WEBHOOK = "webhook", "webhook"
    FOLLOW_UP = "follow_up", "follow-up"
    SYSTEM = "system", "system"


class ItemState(models.TextChoices):
    CREATED = "created", "created"
    REPLACED = "replaced", "replaced"
    UNCHANGED = "unchanged", "unchanged"
    MOVED = "moved", "moved"
    REMOVED = "removed", "removed"
    SKIPPED = "skipped", "skipped"
    HELD = "held", "held"
    ERROR = "error", "error"
    QUARANTINED = "quarantined", "quarantined"


class Ending(models.TextChoices):
    """How one attempt ended."""

    SUCCESS = "success", "done"
    ERROR = "error", "failed"
    CANCELLED = "cancelled", "cancelled"
    TRANSIENT = "transient", "will be tried again"
    LOST = "lost", "worker lost"


LIVE = (Status.QUEUED, Status.RUNNING)
FINISHED = (Status.SUCCESS, Status.ERROR, Status.CANCELLED)
WARNING_STATES = frozenset({ItemState.ERROR, ItemState.QUARANTINED})


class Job(models.Model):
    """One piece of durable work about one source (or about the deployment: ``source_kind`` is empty).

    ``key`` tells objects of one kind and source apart (an upload batch, an embedding profile). ``lease_token`` is
    unique on purpose: PostgreSQL then takes the strong row lock for an UPDATE that changes it, which waits for a batch
    that holds the row with FOR KEY SHARE, while renewals and progress pass it by.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=40)
    source_kind = models.CharField(max_length=20, blank=True, default="")
    source_id = models.UUIDField(null=True, blank=True)
    key = models.CharField(max_length=200, blank=True, default="")
    params = models.JSONField(default=dict, blank=True)

    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    stage = models.CharField(max_length=80, blank=True, default="")
    done = models.PositiveBigIntegerField(null=True, blank=True)
    total = models.PositiveBigIntegerField(null=True, blank=True)
    warnings = models.PositiveIntegerField(default=0)
    notes = models.JSONField(default=list, blank=True)
    counters = models.JSONField(default=dict, blank=True)
    outcome = models.TextField(blank=True, default="")
    error_code = models.CharField(max_length=60, blank=True, default="")
    error_message = models.TextField(blank=True, default="")

    cause = models.CharField(max_length=10, choices=Cause, default=Cause.MANUAL)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    again = models.BooleanField(default=False)
    again_params = models.JSONField(default=dict, blank=True)
    retry_of = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="retries")
    same_as = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="A job whose report is this one's too, line by line.",
    )

    attempts = models.PositiveSmallIntegerField(default=0)
    runs = models.PositiveIntegerField(default=0)
    slot = models.CharField(max_length=200, blank=True, default="")
    not_before = models.DateTimeField(null=True, blank=True)
    waiting_reason = models.CharField(max_length=200, blank=True, default="")
    cancel_requested = models.BooleanField(default=False)
    lease_token = models.UUIDField(null=True, blank=True, unique=True)
    lease_expires = models.DateTimeField(null=True, blank=True)
    resend_at = models.DateTimeField(null=True, blank=True)
    sends = models.PositiveSmallIntegerField(default=0)

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    attempt_started_at = models.DateTimeField(null=True, blank=True)
    counting_from = models.DateTimeField(null=True, blank=True)
    counting_base = models.PositiveBigIntegerField(default=0)
    progress_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "id")
        default_permissions = ("view",)
        constraints = (
            models.UniqueConstraint(
                fields=("kind", "source_kind", "source_id", "key"),
                condition=models.Q(status__in=("queued", "running")),
                nulls_distinct=False,
                name=ONE_LIVE_JOB,
            ),
            models.CheckConstraint(
                name="jobs_status_ties_lease_and_finish",
                condition=models.Q(
                    status="queued", lease_token__isnull=True, lease_expires__isnull=True, finished_at__isnull=True
                )
                | models.Q(
                    status="running",
                    lease_token__isnull=False,
                    lease_expires__isnull=False,
                    started_at__isnull=False,
                    finished_at__isnull=True,
                )
                | models.Q(
                    status__in=("success", "error", "cancelled"),
                    lease_token__isnull=True,
                    lease_expires__isnull=True,
                    finished_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="jobs_source_is_whole",
                condition=models.Q(source_kind="", source_id__isnull=True)
                | (~models.Q(source_kind="") & models.Q(source_id__isnull=False)),
            ),
        )
        indexes = (
            models.Index(fields=("source_kind", "source_id", "-created_at"), name="jobs_job_source"),
            models.Index(fields=("-created_at", "id"), name="jobs_job_created"),
            models.Index(
                fields=("status", "resend_at"),
                condition=models.Q(status__in=("queued", "running")),
                name="jobs_job_live",
            ),
            models.Index(
                fields=("requested_by",),
                condition=models.Q(status__in=("queued", "running")),
                name="jobs_job_live_of_user",
            ),
            models.Index(fields=("same_as",), condition=models.Q(same_as__isnull=False), name="jobs_job_same_as"),
        )

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} ({self.state_words})"

    def get_absolute_url(self) -> str:
        return f"/jobs/{self.pk}"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE

    @property
    def state_words(self) -> str:
        """The state as every face names it."""
        if self.status == Status.SUCCESS and self.warnings:
            return "done with warnings"
        if self.status == Status.QUEUED and self.waiting_reason:
            return "waiting"
        return str(Status(self.status).label)

    @property
    def percentage(self) -> int | None:
        """0..100, or None while the total is unknown. Rounded down: 100 means that nothing is left."""
        if self.done is None or not self.total:
            return None
        return min(100, self.done * 100 // self.total)

    @property
    def rate(self) -> float | None:
        """Units a second in this attempt, or None before two progress writes."""
        if self.counting_from is None or self.progress_at is None or self.done is None:
            return None
        seconds = (self.progress_at - self.counting_from).total_seconds()
        counted = self.done - self.counting_base
        return counted / seconds if seconds > 0 and counted > 0 else None

    @property
    def remaining(self) -> timedelta | None:
        """Time left at the present rate; only while the job runs and its total is known."""
        if self.status != Status.RUNNING or self.total is None or self.done is None or not self.rate:
            return None
        return timedelta(seconds=max(0, self.total - self.done) / self.rate)

    @property
    def duration(self) -> timedelta | None:
        if self.started_at is None:
            return None
        return (self.finished_at or timezone.now()) - self.started_at

    @property
    def reporter_id(self) -> uuid.UUID:
        """The job that holds the lines of this one's report."""
        return self.same_as_id or self.pk

    @property
    def items(self) -> JobChildQuerySet:
        """The lines of the report."""
        return JobItem.objects.of_report(self.reporter_id, self.finished_at or timezone.now())

    @property
    def source_key(self) -> tuple[str, uuid.UUID] | None:
        return (self.source_kind, self.source_id) if self.source_id is not None else None


class JobAttempt(models.Model):
    """One run of a job by one worker, with what became of it."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="attempt_rows")
    number = models.PositiveIntegerField()
    worker = models.CharField(max_length=120)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    ending = models.CharField(max_length=10, choices=Ending, blank=True, default="")
    error_code = models.CharField(max_length=60, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    stages = models.JSONField(default=list, blank=True)

    objects = JobChildQuerySet.as_manager()

    class Meta:
        ordering = ("job", "number")
        default_permissions = ("view",)
        constraints = (models.UniqueConstraint(fields=("job", "number"), name="jobs_attempt_number_is_unique"),)

    def __str__(self) -> str:
        return f"attempt {self.number} ({self.ending or 'running'})"


class JobItem(models.Model):
    """What a job did with one file."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="own_items", db_index=False)
    path = models.TextField()
    state = models.CharField(max_length=12, choices=ItemState)
    reason = models.CharField(max_length=60, blank=True, default="")
    message = models.TextField(blank=True, default="")
    line = models.PositiveIntegerField(null=True, blank=True)
    column = models.PositiveIntegerField(null=True, blank=True)
    size = models.PositiveBigIntegerField(null=True, blank=True)
    milliseconds = models.PositiveIntegerField(null=True, blank=True)
    chunks = models.PositiveIntegerField(null=True, blank=True)
    warning = models.BooleanField(default=False)
    details = models.JSONField(default=dict, blank=True)

    objects = JobChildQuerySet.as_manager()

    class Meta:
        ordering = ("path",)
        default_permissions = ("view",)
        constraints = (models.UniqueConstraint(fields=("job", "path"), name="jobs_one_item_per_path"),)

    def __str__(self) -> str:
        return f"{self.path}: {self.state}"


class UnderWay(models.Model):
    """A file that a running job is working on, recorded before the batch: what is left here when a lease is lost."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="under_way", db_index=False)
    path = models.TextField()
    content_id = models.CharField(max_length=128)

    objects = JobChildQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = (models.UniqueConstraint(fields=("job", "path"), name="jobs_under_way_once"),)

    def __str__(self) -> str:
        return self.path


class Suspect(models.Model):
    """A file version that was under way when a worker was lost; quarantined at QUARANTINE_LOSSES."""

    source_kind = models.CharField(max_length=20)
    source_id = models.UUIDField()
    path = models.TextField()
    content_id = models.CharField(max_length=128)
    losses = models.PositiveSmallIntegerField(default=0)
    job = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="+")
    alone = models.BooleanField(default=False)
    quarantined_at = models.DateTimeField(null=True, blank=True)

    objects = SuspectQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        constraints = (
            models.UniqueConstraint(
                fields=("source_kind", "source_id", "path", "content_id"), name="jobs_one_suspect_per_version"
            ),
        )

    def __str__(self) -> str:
        return f"{self.path} ({self.losses} losses)"


class Clock(models.Model):
    """When something is next due or last ran, one row a name (``sweep``, ``kind:retention``)."""

    name = models.CharField(max_length=80, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.at}"


JsonObject = dict[str, Any]
