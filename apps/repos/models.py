"""Rows of repositories. What a commit holds is derived from git and can be rebuilt; settings and grants cannot."""

from __future__ import annotations

import datetime
import uuid
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from apps.access.grants import GroupGrant, UserGrant
from apps.access.rules import Right
from apps.access.sources import Source
from apps.indexing.models import KEYS, Chunk
from apps.jobs.models import Job
from apps.markup.values import WordWindow
from apps.repos import models_code  # noqa: F401 - its models belong to this room
from apps.repos.discovery import Kind
from apps.repos.querysets import (
    DocumentLinkQuerySet,
    DocumentQuerySet,
    RepositoryChildQuerySet,
    RepositoryQuerySet,
)

KINDS = [(kind.value, kind.label) for kind in Kind]


class Schedule(models.TextChoices):
    MANUAL = "manual", "By hand"
    HOURLY = "hourly", "Every hour"
    DAILY = "daily", "Every day"
    WEEKLY = "weekly", "Every Monday"
    WEBHOOK = "webhook", "On push (webhook)"


class State(models.TextChoices):
    NEVER_SYNCED = "never_synced", "never synced"
    READY = "ready", "ready"
    EMPTY = "empty", "empty"
    NOT_FOUND_UPSTREAM = "not_found_upstream", "not found upstream"


class CredentialKind(models.TextChoices):
    NONE = "", "none"
    TOKEN = "token", "Access token or password"
    SSH_KEY = "ssh_key", "SSH key"


class LinkStyle(models.TextChoices):
    AUTO = "auto", "by host name"
    GITHUB = "github", "GitHub"
    GITLAB = "gitlab", "GitLab"
    GITEA = "gitea", "Gitea, Forgejo"
    BITBUCKET = "bitbucket", "Bitbucket"
    TEMPLATE = "template", "own template"
    NONE = "none", "no links"


class Repository(Source):
    """A git repository at one branch. ``branch`` empty follows the remote HEAD.

    ``synced_commit`` is the commit that the stored documents show; ``last_checked_at`` the last time that upstream
    answered and all went well, with or without news.
    """

    kind: ClassVar[str] = "repository"
    visibility_right: ClassVar[Right] = Right.ADMINISTER
    delete_right: ClassVar[Right] = Right.ADMINISTER

    slug = models.CharField(max_length=255)
    git_url = models.CharField("git address", max_length=1000)
    trusted_path = models.BooleanField(
        default=False, editable=False, help_text="A local path given on the command line: no root has to hold it."
    )
    branch = models.CharField(max_length=244, blank=True, default="", help_text="Empty: the branch that HEAD names.")
    depth = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Commits to fetch; empty: full history."
    )
    schedule = models.CharField(max_length=10, choices=Schedule, default=Schedule.MANUAL)
    next_sync_at = models.DateTimeField(null=True, blank=True, editable=False)

    only = ArrayField(models.CharField(max_length=400), default=list, blank=True)
    include = ArrayField(models.CharField(max_length=400), default=list, blank=True)
    exclude = ArrayField(models.CharField(max_length=400), default=list, blank=True)
    docs_roots = ArrayField(models.CharField(max_length=400), default=list, blank=True)
    link_style = models.CharField(max_length=10, choices=LinkStyle, default=LinkStyle.AUTO)
    link_template = models.CharField(
        max_length=500, blank=True, default="", help_text="With {commit}, {path}, {start} and {end}."
    )

    max_words = models.PositiveIntegerField(
        default=512, validators=[MinValueValidator(16), MaxValueValidator(4096)], help_text="Words a chunk, 16 to 4096."
    )
    overlap_words = models.PositiveIntegerField(default=64, help_text="0 to half of the words a chunk.")
    max_chars = models.PositiveIntegerField(
        default=8000,
        validators=[MinValueValidator(500), MaxValueValidator(32_000)],
        help_text="Characters a chunk, 500 to 32,000.",
    )
    language = models.CharField(max_length=20, default="english", help_text="Stemming: a Snowball language, or none.")
    logs_queries = models.BooleanField(default=True, help_text="Off: no query log row names this repository.")

    credential_kind = models.CharField(max_length=10, choices=CredentialKind, blank=True, default="", editable=False)
    credential_user = models.CharField(max_length=200, blank=True, default="", editable=False)
    credential = models.BinaryField(null=True, blank=True, editable=False)
    hook_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    hook_secret = models.BinaryField(null=True, blank=True, editable=False)

    state = models.CharField(max_length=20, choices=State, default=State.NEVER_SYNCED, editable=False)
    synced_branch = models.CharField(max_length=244, blank=True, default="", editable=False)
    synced_commit = models.CharField(max_length=64, blank=True, default="", editable=False)
    committed_at = models.DateTimeField(null=True, blank=True, editable=False)
    synced_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_checked_at = models.DateTimeField(null=True, blank=True, editable=False)
    linked_with = models.CharField(
        max_length=64, blank=True, default="", editable=False, help_text="Digest of what its links were resolved in."
    )
    synced_with = models.CharField(
        max_length=64, blank=True, default="", editable=False, help_text="Digest of rules, filters and profile."
    )

    objects: ClassVar[Any] = RepositoryQuerySet.as_manager()

    class Meta(Source.Meta):
        db_table = "repositories"
        verbose_name = "repository"
        verbose_name_plural = "repositories"
        ordering = ("slug",)
        constraints = [
            *Source.Meta.constraints,
            models.UniqueConstraint(
                Lower("slug"), condition=models.Q(deleted_at__isnull=True), name="repositories_slug_is_unique"
            ),
            models.CheckConstraint(
                condition=models.Q(max_words__gte=16, max_words__lte=4096),
                name="repositories_max_words_in_bounds",
                violation_error_message="Words a chunk: 16 to 4096.",
            ),
            models.CheckConstraint(
                condition=models.Q(overlap_words__lte=models.F("max_words") / 2),
                name="repositories_overlap_at_most_half",
                violation_error_message="The overlap is at most half of the words a chunk.",
            ),
            models.CheckConstraint(
                condition=models.Q(max_chars__gte=500, max_chars__lte=32_000),
                name="repositories_max_chars_in_bounds",
                violation_error_message="Characters a chunk: 500 to 32,000.",
            ),
        ]

    def get_absolute_url(self) -> str:
        return f"/repos/{self.slug}"

    label_field = "slug"

    @property
    def label(self) -> str:
        return self.slug

    @property
    def state_words(self) -> str:
        return str(State(self.state).label)

    @property
    def schedule_words(self) -> str:
        return str(Schedule(self.schedule).label)

    @property
    def stale_since(self) -> datetime.datetime | None:
        """Time of the last good check, when the repository is stale; needs ``with_state()``."""
        return self.last_checked_at if getattr(self, "is_stale", False) else None

    @property
    def word_window(self) -> WordWindow:
        """How prose is cut."""
        return WordWindow(self.max_words, self.overlap_words, self.max_chars)

    @property
    def chunk_profile(self) -> str:
        """Name of the chunking profile, part of each document's identity."""
        return f"words:{self.max_words}/{self.overlap_words}/{self.max_chars}"


class RepositoryUserGrant(UserGrant):
    content_object = models.ForeignKey(Repository, on_delete=models.CASCADE)

    class Meta(UserGrant.Meta):
        db_table = "repository_user_grants"


class RepositoryGroupGrant(GroupGrant):
    content_object = models.ForeignKey(Repository, on_delete=models.CASCADE)

    class Meta(GroupGrant.Meta):
        db_table = "repository_group_grants"


class FileState(models.TextChoices):
    """What became of a path of the synced commit."""

    INDEXED = "indexed", "indexed"
    SKIPPED = "skipped", "skipped"
    ERROR = "error", "error"
    QUARANTINED = "quarantined", "quarantined"
    NOT_TAKEN = "not_taken", "not taken"


class RepositoryFile(models.Model):
    """A path of the synced commit, document or not. ``raw_path`` holds the bytes of a path that is no UTF-8."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="files", db_index=False)
    path = models.TextField()
    raw_path = models.BinaryField(null=True)
    mode = models.PositiveIntegerField(help_text="Git's octal mode as a number: 0o100644.")
    blob = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField(null=True)
    kind = models.CharField(max_length=10, choices=KINDS, blank=True, default="")
    state = models.CharField(max_length=12, choices=FileState)
    reason = models.CharField(max_length=60, blank=True, default="")
    message = models.TextField(blank=True, default="")
    versions = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="What made the state: parser and profile; another one reads anew.",
    )
    text = models.TextField(null=True)  # noqa: DJ001 - null says "not stored"; a source file may be empty

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "repo_files"
        default_permissions = ("view",)
        verbose_name = "file"
        constraints = [
            models.UniqueConstraint(
                fields=["repository", "path", "raw_path"], nulls_distinct=False, name="repo_files_path_is_unique"
            )
        ]

    def __str__(self) -> str:
        return self.path


class DocumentState(models.TextChoices):
    INDEXED = "indexed", "indexed"
    EMPTY = "empty", "empty"


class Absence(models.TextChoices):
    """A document that the latest commit does not hold: its deletion waits, or a writer chose to keep it."""

    NONE = "", "in the latest commit"
    HELD = "held", "not in the latest commit, deletion waits"
    APPROVED = "approved", "not in the latest commit, about to be deleted"
    KEPT = "kept", "not in the latest commit, kept"


class RepositoryDocument(models.Model):
    """A document at the synced commit: redacted text, parsed structure, and the address that it keeps."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="documents", db_index=False)
    path = models.TextField()
    raw_path = models.BinaryField(null=True)
    kind = models.CharField(max_length=10, choices=KINDS)
    title = models.TextField()
    slug = models.CharField(max_length=120)
    state = models.CharField(max_length=10, choices=DocumentState)

    blob = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    content_hash = models.CharField(max_length=64, help_text="SHA-256 of the stored text, hexadecimal.")
    parser_version = models.CharField(max_length=20)
    chunk_profile = models.CharField(max_length=40)
    encoding = models.CharField(max_length=40)

    text = models.TextField()
    frontmatter = models.JSONField(default=dict)
    structure = models.JSONField(default=dict, help_text="headings, sections, code blocks, tables, items, references")
    anchors = ArrayField(models.TextField(), default=list)
    warnings = models.JSONField(default=list)
    word_count = models.PositiveIntegerField(default=0)
    line_count = models.PositiveIntegerField(default=0)
    chunk_count = models.PositiveIntegerField(default=0)
    redacted_count = models.PositiveIntegerField(default=0)

    commit = models.CharField(max_length=64, blank=True, default="", help_text="Last commit that changed the content.")
    committed_at = models.DateTimeField(null=True)
    absence = models.CharField(max_length=8, choices=Absence, blank=True, default="")
    absent_commit = models.CharField(max_length=64, blank=True, default="")
    absent_since = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        db_table = "repo_documents"
        default_permissions = ("view",)
        verbose_name = "repository document"
        constraints = [
            models.UniqueConstraint(
                fields=["repository", "path", "raw_path"], nulls_distinct=False, name="repo_documents_path_is_unique"
            ),
            models.UniqueConstraint(
                fields=["repository", "slug"],
                deferrable=models.Deferrable.DEFERRED,  # a batch may hand an address from one page to another
                name="repo_documents_slug_is_unique",
            ),
        ]
        indexes = [
            models.Index(fields=["repository"], condition=~models.Q(absence=""), name="repo_documents_absent"),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return f"/repos/{self.repository.slug}/docs/{self.slug}"


class RepositoryDocumentChunk(Chunk):
    document = models.ForeignKey(RepositoryDocument, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="+", db_index=False)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta(Chunk.Meta):
        db_table = "repo_document_chunks"
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["embed_hash"], name="repo_chunks_embed"),
            models.Index(fields=["document", "chunk_index"], include=KEYS, name="repo_chunks_document"),
            models.Index(fields=["repository"], name="repo_chunks_repository"),
        ]


class LinkState(models.TextChoices):
    RESOLVED = "resolved", "resolved"
    ANCHOR_MISSING = "anchor missing", "anchor missing"
    ASSET = "asset", "asset"
    EXTERNAL = "external", "external"
    BROKEN = "broken", "broken"


class RepositoryDocumentLink(models.Model):
    """One address that a document links to, with all lines that use it; kept also when it leads nowhere."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(RepositoryDocument, on_delete=models.CASCADE, related_name="links", db_index=False)
    link_type = models.CharField(max_length=10)
    href = models.TextField()
    text = models.TextField(blank=True)
    lines = ArrayField(models.PositiveIntegerField())
    path = models.TextField(blank=True, default="")
    fragment = models.TextField(blank=True, default="")
    alias = models.TextField(blank=True, default="")
    rel_type = models.CharField(max_length=60, blank=True, default="")
    field = models.TextField(blank=True, default="")
    embed = models.BooleanField(default=False)
    image = models.BooleanField(default=False)

    state = models.CharField(max_length=14, choices=LinkState, default=LinkState.BROKEN)
    reason = models.CharField(max_length=20, blank=True, default="")
    rule = models.PositiveSmallIntegerField(null=True)
    target_document = models.ForeignKey(
        RepositoryDocument, null=True, on_delete=models.SET_NULL, related_name="backlinks"
    )
    target_path = models.TextField(blank=True, default="", help_text="Tracked file or folder that is no document.")
    anchor = models.TextField(blank=True, default="", help_text="The true anchor that the fragment means.")
    candidates = ArrayField(models.TextField(), default=list)
    suggestion = models.TextField(blank=True, default="")

    objects = DocumentLinkQuerySet.as_manager()

    class Meta:
        db_table = "repo_document_links"
        default_permissions = ("view",)
        indexes = [models.Index(fields=["document"], name="repo_document_links_document")]

    def __str__(self) -> str:
        return self.href


class RepositoryDocumentRedirect(models.Model):
    """An address that a page once had: leads to the living document, or tells which commit removed it (410)."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="redirects", db_index=False)
    slug = models.CharField(max_length=120)
    path = models.TextField()
    title = models.TextField(blank=True, default="")
    document = models.ForeignKey(RepositoryDocument, null=True, on_delete=models.SET_NULL, related_name="old_slugs")
    commit = models.CharField(max_length=64, blank=True, default="", help_text="That moved or removed the page.")
    created_at = models.DateTimeField(default=timezone.now)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "repo_document_redirects"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["repository", "slug"], name="repo_document_redirects_slug_is_unique")
        ]

    def __str__(self) -> str:
        return self.slug


class SyncReport(models.Model):
    """What one sync found beyond the items and counters of its job."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="sync_report")
    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="reports")
    commit = models.CharField(max_length=64, blank=True, default="")
    previous_commit = models.CharField(max_length=64, blank=True, default="")
    branch = models.CharField(max_length=244, blank=True, default="")
    totals = models.JSONField(default=dict, help_text="moved, held, redacted, clean, …")
    not_taken = models.JSONField(default=dict, help_text="reason -> count and sample paths")
    created_at = models.DateTimeField(default=timezone.now)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "repo_sync_reports"
        default_permissions = ("view",)
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.branch} at {self.commit[:7]}"


class WebhookDelivery(models.Model):
    """A delivery that was taken, so that a repeated one makes no second job."""

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="+", db_index=False)
    delivery = models.CharField(max_length=200)
    received_at = models.DateTimeField(default=timezone.now, db_index=True)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "repo_webhook_deliveries"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["repository", "delivery"], name="repo_webhook_deliveries_taken_once")
        ]

    def __str__(self) -> str:
        return self.delivery
