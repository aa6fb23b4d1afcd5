"""Rows of collections: documents with their versions, chunks, links, images, and uploads that wait for a worker."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils import timezone

from apps.access.grants import GroupGrant, UserGrant
from apps.access.sources import Source
from apps.collections.querysets import (
    ChildOfCollection,
    CollectionDocumentQuerySet,
    CollectionQuerySet,
    DocumentChild,
    LinkQuerySet,
    UploadChild,
)
from apps.indexing.models import KEYS, Chunk
from apps.markup.values import CharacterBudget

JsonObject = dict[str, object]


class Collection(Source):
    """Curated documents without a repository: the unit of curation and of access."""

    kind = "collection"

    name = models.CharField(max_length=255)
    slug = models.CharField(max_length=80)
    language = models.CharField(max_length=20, default="english")
    """Language of the analyzer, or ``none``."""
    max_chars = models.PositiveIntegerField(default=4000)
    min_chars = models.PositiveIntegerField(default=400)
    max_chunks = models.PositiveIntegerField(default=512)
    evaluation = models.BooleanField(default=False, editable=False)
    """Belongs to an evaluation set and is in no scope but that of an evaluation run."""
    query_log_opt_out = models.BooleanField(default=False)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[Any] = CollectionQuerySet.as_manager()

    class Meta(Source.Meta):
        db_table = "md_collections"
        ordering = ["name", "id"]
        constraints = [
            *Source.Meta.constraints,
            models.UniqueConstraint(
                "owner",
                Lower("name"),
                condition=Q(deleted_at=None),
                name="md_collections_name_once_per_owner",
            ),
            models.UniqueConstraint(
                "owner",
                Lower("slug"),
                condition=Q(deleted_at=None),
                name="md_collections_slug_once_per_owner",
            ),
            models.CheckConstraint(
                condition=Q(max_chars__range=(500, 32_000)), name="md_collections_max_chars_in_bounds"
            ),
            models.CheckConstraint(
                condition=Q(min_chars__lte=F("max_chars") / 4), name="md_collections_min_chars_in_bounds"
            ),
            models.CheckConstraint(
                condition=Q(max_chunks__range=(1, 10_000)), name="md_collections_max_chunks_in_bounds"
            ),
        ]

    label_field = "name"

    @property
    def label(self) -> str:
        return self.name

    @property
    def profile(self) -> CharacterBudget:
        """How its documents are cut."""
        return CharacterBudget(self.max_chars, self.min_chars, self.max_chunks)

    @property
    def profile_id(self) -> str:
        """Names the chunking profile on chunks and documents: another id means that they must be cut again."""
        return f"chars-{self.max_chars}-{self.min_chars}-{self.max_chunks}"

    def get_absolute_url(self) -> str:
        return f"/docs/{self.pk}"


class CollectionUserGrant(UserGrant):
    content_object = models.ForeignKey(Collection, on_delete=models.CASCADE)

    class Meta(UserGrant.Meta):
        db_table = "md_collection_user_grants"
        constraints = [
            models.UniqueConstraint(fields=["content_object", "user"], name="md_collection_user_grants_once"),
        ]


class CollectionGroupGrant(GroupGrant):
    content_object = models.ForeignKey(Collection, on_delete=models.CASCADE)

    class Meta(GroupGrant.Meta):
        db_table = "md_collection_group_grants"
        constraints = [
            models.UniqueConstraint(fields=["content_object", "group"], name="md_collection_group_grants_once"),
        ]


class DocumentState(models.TextChoices):
    INDEXED = "indexed", "Indexed"
    EMPTY = "empty", "Empty"
    TRUNCATED = "truncated", "Truncated"
    SKIPPED = "skipped", "Skipped"


class Document(models.Model):
    """One uploaded text, as parsed from its current version."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="documents")
    source_key = models.CharField(max_length=1024, db_collation="C")
    """Path or name given at upload, normalised: the identity of the document."""
    title = models.TextField()
    title_override = models.TextField(blank=True, default="")
    state = models.CharField(max_length=10, choices=DocumentState.choices)
    state_reason = models.CharField(max_length=40, blank=True, default="")
    content_hash = models.BinaryField(max_length=32)
    """SHA-256 of the stored bytes."""
    size = models.PositiveIntegerField()
    """Bytes as stored."""
    version = models.PositiveIntegerField(default=1)
    format = models.CharField(max_length=10)
    encoding = models.CharField(max_length=40)
    encoding_guessed = models.BooleanField(default=False)
    replaced_characters = models.PositiveIntegerField(default=0)
    text = models.TextField(blank=True)
    frontmatter = models.JSONField(default=dict, blank=True)
    parsed = models.JSONField(default=dict, blank=True)
    """Heading tree, code blocks, tables, images, items, anchors: the structure that pages, links and the API show."""
    warnings = models.JSONField(default=list, blank=True)
    truncated_at_line = models.PositiveIntegerField(null=True, blank=True)
    word_count = models.PositiveIntegerField(default=0)
    line_count = models.PositiveIntegerField(default=0)
    chunk_count = models.PositiveIntegerField(default=0)
    profile = models.CharField(max_length=40, blank=True, default="")
    """Chunking profile and parser that its chunks came from."""
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)
    """When the current version was uploaded."""
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    trashed_at = models.DateTimeField(null=True, blank=True, editable=False)
    shelved_chunks = models.JSONField(default=list, blank=True, editable=False)
    """The chunks of a document in the trash, with their ids: they are in no other table meanwhile."""

    objects = CollectionDocumentQuerySet.as_manager()

    class Meta:
        db_table = "md_documents"
        ordering = ["source_key", "id"]
        constraints = [
            models.UniqueConstraint(fields=["collection", "source_key"], name="md_documents_key_once"),
            models.CheckConstraint(condition=~Q(source_key=""), name="md_documents_key_not_empty"),
            models.CheckConstraint(condition=Q(state__in=DocumentState.values), name="md_documents_state_known"),
        ]
        indexes = [
            models.Index(fields=["collection", "trashed_at"], name="md_documents_live"),
        ]

    def __str__(self) -> str:
        return self.source_key

    def get_absolute_url(self) -> str:
        return f"/docs/{self.collection_id}/documents/{self.pk}"


class DocumentVersion(models.Model):
    """The stored bytes of one version; the highest number is the current one."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content_hash = models.BinaryField(max_length=32)
    raw = models.BinaryField()
    uploaded_at = models.DateTimeField(default=timezone.now, editable=False)
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    objects = DocumentChild.as_manager()

    class Meta:
        db_table = "md_document_versions"
        ordering = ["document", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["document", "number"], name="md_document_versions_once"),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class DocumentChunk(Chunk):
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks", db_index=False)

    objects = ChildOfCollection.as_manager()

    class Meta(Chunk.Meta):
        db_table = "md_chunks"
        ordering = ["document", "chunk_index"]
        indexes = [
            *Chunk.Meta.indexes,
            models.Index(fields=["document", "chunk_index"], include=KEYS, name="md_chunks_in_order"),
        ]

    def get_absolute_url(self) -> str:
        return f"/chunks/{self.pk}"


class LinkState(models.TextChoices):
    RESOLVED = "resolved", "Resolved"
    ANCHOR_MISSING = "anchor missing", "Anchor missing"
    ASSET = "asset", "Image or file"
    EXTERNAL = "external", "External"
    BROKEN = "broken", "Broken"
    PENDING = "pending", "Not looked at yet"


class Asset(models.Model):
    """An image that came in an archive with the documents that show it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="assets")
    source_key = models.CharField(max_length=1024, db_collation="C")
    content_type = models.CharField(max_length=40)
    content_hash = models.BinaryField(max_length=32)
    size = models.PositiveIntegerField()
    data = models.BinaryField()
    changed_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ChildOfCollection.as_manager()

    class Meta:
        db_table = "md_assets"
        ordering = ["source_key", "id"]
        constraints = [models.UniqueConstraint(fields=["collection", "source_key"], name="md_assets_key_once")]

    def __str__(self) -> str:
        return self.source_key

    def get_absolute_url(self) -> str:
        return f"/docs/{self.collection_id}/assets/{self.pk}"


class DocumentLink(models.Model):
    """One address that a document uses, however often: never dropped because it fails."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="links")
    link_type = models.CharField(max_length=10)
    href = models.TextField()
    digest = models.BinaryField(max_length=16)
    """Digest of the address, because an index cannot hold one of any length."""
    text = models.TextField(blank=True)
    lines = ArrayField(models.PositiveIntegerField(), default=list)
    fragment = models.TextField(blank=True)
    alias = models.TextField(blank=True)
    rel_type = models.CharField(max_length=200, blank=True)
    field = models.TextField(blank=True)
    embed = models.BooleanField(default=False)
    state = models.CharField(max_length=14, choices=LinkState.choices, default=LinkState.PENDING)
    reason = models.CharField(max_length=20, blank=True, default="")
    rule = models.PositiveSmallIntegerField(null=True, blank=True)
    target_document = models.ForeignKey(
        Document, null=True, blank=True, on_delete=models.SET_NULL, related_name="backlinks"
    )
    target_asset = models.ForeignKey(Asset, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    anchor = models.TextField(blank=True, default="")
    """The anchor as it stands in the target."""
    candidates = models.JSONField(default=list, blank=True)
    """Keys among which an ambiguous name cannot choose."""
    suggestion = models.TextField(blank=True, default="")

    objects = LinkQuerySet.as_manager()

    class Meta:
        db_table = "md_links"
        ordering = ["document", "id"]
        constraints = [
            models.UniqueConstraint(fields=["document", "link_type", "digest"], name="md_links_once"),
            models.CheckConstraint(
                condition=Q(state__in=[LinkState.RESOLVED, LinkState.ANCHOR_MISSING]) | Q(target_document=None),
                name="md_links_target_only_when_bound",
            ),
        ]
        indexes = [models.Index(fields=["collection", "state"], name="md_links_by_state")]

    def __str__(self) -> str:
        return self.href


class Upload(models.Model):
    """What an ``upload`` job works on, beside the Job row: kept for a retry after the job has ended."""

    PURPOSES: ClassVar = [("upload", "Upload"), ("rechunk", "Re-chunk")]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="uploads")
    purpose = models.CharField(max_length=10, choices=PURPOSES, default="upload")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    size = models.BigIntegerField(default=0)
    """Bytes staged."""
    ignored = models.PositiveIntegerField(default=0)
    """Side files and folders of an archive that were passed over."""
    expired = models.BooleanField(default=False)
    """Its entries are gone: it cannot be retried."""

    objects = ChildOfCollection.as_manager()

    class Meta:
        db_table = "md_jobs"
        ordering = ["-created_at", "id"]

    def __str__(self) -> str:
        return f"upload of {self.created_at:%Y-%m-%d %H:%M}"


class StagedEntry(models.Model):
    """One file of an upload: its bytes, or why it was refused."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="entries")
    position = models.PositiveIntegerField()
    source_key = models.TextField(db_collation="C")
    title = models.TextField(blank=True, default="")
    asset_type = models.CharField(max_length=40, blank=True, default="")
    """Content type of an image; empty for a document."""
    raw = models.BinaryField(null=True)
    content_hash = models.BinaryField(max_length=32, null=True)
    size = models.PositiveBigIntegerField(default=0)
    error_code = models.CharField(max_length=40, blank=True, default="")
    error_message = models.TextField(blank=True, default="")

    objects = UploadChild.as_manager()

    class Meta:
        db_table = "md_staged_entries"
        verbose_name_plural = "staged entries"
        ordering = ["upload", "position"]
        constraints = [models.UniqueConstraint(fields=["upload", "position"], name="md_staged_entries_once")]

    def __str__(self) -> str:
        return self.source_key
