"""Rows of the index: the abstract chunk, what is indexed for a source, postings, vectors and their profiles.

Postings never name a chunk by its public id. Each indexed source has a small *number*, each of its chunks a *slot*
below it, and both together are the chunk's ``ref`` (number in the upper 32 bits, slot in the lower). A posting holds
the low 16 bits of the slot, its block the rest, so an entry of 8 bytes carries all that BM25F needs.
"""

from __future__ import annotations

import secrets
import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, HashIndex
from django.db import models
from django.db.models import Q
from django.utils import timezone
from pgvector.django import HalfVectorField

from apps.access.querysets import SourceKeyQuerySet

SLOT_BITS = 32
BLOCK_BITS = 16
NAMES_SUFFIX = "#names"
"""Behind the name of a store: the index of its documents' names."""
KEYS = ("ref", "embed_hash")
"""What leads from a chunk to its postings and to its vector. The index of the chunks of a document holds both, so that
a search narrowed to some documents need not read their chunks: 3 ms in place of 21 for 22,000 of 100,000.
"""


def new_chunk_id() -> int:
    """A random positive 63-bit number: nobody counts chunks by their ids, nor guesses one."""
    return secrets.randbits(63) or 1


def new_chunk_ids(number: int) -> list[int]:
    """The same in bulk: asking the system once for each id costs as much as the rest of storing a chunk."""
    raw = secrets.token_bytes(8 * number)
    return [int.from_bytes(raw[place : place + 8], "big") >> 1 or 1 for place in range(0, 8 * number, 8)]


class Chunk(models.Model):
    """One searchable piece of a document. Subclasses add the foreign keys to its document and to its source."""

    id = models.BigIntegerField(primary_key=True, default=new_chunk_id, editable=False)
    ref = models.BigIntegerField(editable=False)
    """``number << 32 | slot``: the name of the chunk inside the index. It changes when its postings change."""
    chunk_index = models.IntegerField()
    heading_path = ArrayField(models.TextField(), default=list, blank=True)
    heading_level = models.SmallIntegerField(default=0)
    section_anchor = models.TextField(blank=True, default="")
    start_line = models.IntegerField()
    end_line = models.IntegerField()
    start_byte = models.IntegerField()
    end_byte = models.IntegerField()
    source = models.TextField()
    """The exact slice of the document's text."""
    text = models.TextField(null=True, blank=True)  # noqa: DJ001 - null says "the same as source", and costs no byte
    """What is searched and embedded, where it differs from ``source``; read ``searched``."""
    part = models.IntegerField(default=1)
    parts = models.IntegerField(default=1)
    flags = ArrayField(models.TextField(), default=list, blank=True)
    profile = models.TextField(blank=True, default="")
    """The chunking profile that cut it."""
    content_hash = models.BinaryField()
    """Digest of searched text and heading path: equal ones keep their row and id (16 bytes)."""
    embed_hash = models.BinaryField()
    """SHA-256 of the string that is embedded (``retrieval.md`` 4.1): the key of the vector (32 bytes)."""
    index_hash = models.BinaryField()
    """Digest of all that its postings are made of (16 bytes)."""
    copy_hash = models.BinaryField(null=True)
    """Digest of the text with blanks collapsed, from 200 characters on: equal ones are copies (16 bytes)."""

    class Meta:
        abstract = True
        constraints = [models.UniqueConstraint(fields=["ref"], name="%(app_label)s_%(class)s_ref_once")]
        indexes = [HashIndex(fields=["embed_hash"], name="%(app_label)s_%(class)s_embed")]

    def __str__(self) -> str:
        return " > ".join(self.heading_path) or f"chunk {self.chunk_index}"

    @property
    def searched(self) -> str:
        return self.source if self.text is None else self.text

    @property
    def number(self) -> int:
        return self.ref >> SLOT_BITS


class FindingSighting(models.Model):
    """When a finding of a source was first met. ``mark`` tells the finding, see ``apps.indexing.sightings``; the row
    goes when the finding does, so that one which comes back is new."""

    source_kind = models.CharField(max_length=20)
    source_id = models.UUIDField()
    mark = models.CharField(max_length=32)
    commit = models.CharField(max_length=64, blank=True, default="")
    first_seen_at = models.DateTimeField()

    objects = SourceKeyQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source_id", "mark"], name="indexing_findingsighting_once")]

    def __str__(self) -> str:
        return self.mark


class IndexedSource(models.Model):
    """What the index knows about the chunks of one store in one source. Its row lock orders all writers of the source.

    Counts are those of the live chunks; ``dead`` holds the slots (unsigned 32-bit, little endian) whose entries still
    stand in postings and must not count.
    """

    number = models.AutoField(primary_key=True)
    store = models.CharField(max_length=40)
    source_kind = models.CharField(max_length=20)
    source_id = models.UUIDField()
    language = models.CharField(max_length=20, default="english")
    analyzer_version = models.IntegerField(default=0)
    chunks = models.IntegerField(default=0)
    heading_length = models.BigIntegerField(default=0)
    """Sum of the heading field's lengths over live chunks, in words."""
    body_length = models.BigIntegerField(default=0)
    next_slot = models.BigIntegerField(default=0)
    next_segment = models.IntegerField(default=0)
    dead = models.BinaryField(default=b"")
    version = models.BigIntegerField(default=0)
    """Raised with every change of content: cursors compare it."""
    generation = models.SmallIntegerField(default=0)
    """Generation of vectors that answers."""
    building = models.SmallIntegerField(null=True, blank=True)
    """Generation that *re-embed* builds."""
    changed_at = models.DateTimeField(default=timezone.now)

    objects = SourceKeyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["store", "source_id"], name="indexing_indexedsource_once"),
            models.CheckConstraint(condition=Q(chunks__gte=0), name="indexing_indexedsource_counts"),
        ]
        indexes = [models.Index(fields=["source_kind", "source_id"], name="indexing_indexedsource_source")]

    def __str__(self) -> str:
        return f"{self.store} of {self.source_kind} {self.source_id}"


class IndexedDocument(models.Model):
    """What the postings of a document were made of, besides its chunks. Needed to take them back later."""

    pk = models.CompositePrimaryKey("number", "document_id")
    number = models.IntegerField()
    document_id = models.UUIDField()
    title = models.TextField(blank=True, default="")
    path = models.TextField()
    side = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.path


class NamedDocument(models.Model):
    """A document as those name it who know it: by file, title, alias, or a heading (``retrieval.md`` 6).

    Its terms stand in postings too, under an indexed source of their own (store ``…#names``) in which a document is
    what a chunk is elsewhere: names in the heading field, the path in the path field, headings in the body.
    """

    ref = models.BigIntegerField(primary_key=True)
    number = models.IntegerField()
    document_id = models.UUIDField()
    path = models.TextField()
    title = models.TextField(blank=True, default="")
    aliases = ArrayField(models.TextField(), default=list, blank=True)
    side = models.BooleanField(default=False)
    stem = models.TextField()
    """Folded stem of the file name."""
    capital = models.BooleanField(default=False)
    """Whether the file name is written in capitals, as README is."""
    depth = models.SmallIntegerField()
    """Number of folders above it."""
    folded = ArrayField(models.TextField(), default=list, blank=True)
    """Names and headings of nothing but common words, as folded strings: what a query of such words may mean."""
    terms = ArrayField(models.TextField(), default=list, blank=True)
    """Distinct terms of its names and headings, whose rarity an answer needs."""
    sections = models.JSONField(default=list, blank=True)
    """In file order: heading path, id and ref of the first chunk, first line, last line with all sub-sections."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["number", "document_id"], name="indexing_nameddocument_once")]
        indexes = [
            models.Index(fields=["number", "stem"], name="indexing_nameddocument_stem"),
            GinIndex(fields=["folded"], name="indexing_nameddocument_folded"),
        ]

    def __str__(self) -> str:
        return self.path


class TombstoneQuerySet(SourceKeyQuerySet["ChunkTombstone"]):
    """Seen by the readers of the source."""

    deployment_rows = False


class ChunkTombstone(models.Model):
    """A chunk that its living document no longer has. The text is gone; the place says what to offer instead."""

    chunk_id = models.BigIntegerField(primary_key=True)
    source_kind = models.CharField(max_length=20)
    source_id = models.UUIDField()
    document_id = models.UUIDField()
    chunk_index = models.IntegerField()
    heading_path = ArrayField(models.TextField(), default=list)
    removed_at = models.DateTimeField(default=timezone.now)

    objects = TombstoneQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["source_id", "document_id"], name="indexing_tombstone_document"),
            models.Index(fields=["removed_at"], name="indexing_tombstone_age"),
        ]

    def __str__(self) -> str:
        return f"chunk {self.chunk_id}, removed"


class Posting(models.Model):
    """The entries of one term in one block of 65,536 slots of one source, as one segment wrote them.

    ``chunks``, ``in_heading`` and ``in_path`` are *changes* of the number of live chunks that hold the term at all, in
    the heading field, in the path field; they may be negative, and their sum over segments is the statistic. An entry
    is 8 bytes: slot (u16), body length (u16), tf body (u8), tf heading (u8), heading length (u8), tf path (u8).
    """

    pk = models.CompositePrimaryKey("term", "number", "block", "segment")
    term = models.TextField(db_collation="C")
    number = models.IntegerField()
    block = models.SmallIntegerField()
    segment = models.IntegerField()
    chunks = models.IntegerField()
    in_heading = models.IntegerField()
    in_path = models.IntegerField()
    entries = models.BinaryField()

    class Meta:
        # All rows of a segment have the same key here, so the index is a few bytes a row and its inserts meet one page.
        indexes = [models.Index(fields=["number", "segment"], name="indexing_posting_segment")]

    def __str__(self) -> str:
        return f"{self.term} in {self.number}"


class ProfileState(models.TextChoices):
    ACTIVE = "active", "Serving"
    NEXT = "next", "Being built"
    RETIRED = "retired", "Retired"


class EmbeddingProfile(models.Model):
    """One way to make vectors. Vectors of two profiles never meet in one ranking."""

    id = models.AutoField(primary_key=True)
    fingerprint = models.CharField(max_length=64, unique=True)
    """Digest of weights, tokenizer, template, token limit, pooling, dimension; of an endpoint's address and model."""
    backend = models.TextField()
    options = models.JSONField(default=dict, blank=True)
    """Address, model and dimension it was made with, so that it can still answer queries after the setting changed."""
    label = models.TextField()
    dimension = models.IntegerField()
    weight = models.FloatField(default=1.0)
    min_cosine = models.FloatField(default=0.0)
    max_tokens = models.IntegerField(null=True, blank=True)
    check_vector = ArrayField(models.FloatField(), default=list, blank=True)
    """Vector of the fixed check text when the profile was made; an endpoint is compared with it daily."""
    drifted_at = models.DateTimeField(null=True, blank=True)
    """When the backend was last found to answer the check text differently."""
    state = models.CharField(max_length=8, choices=ProfileState.choices)
    created_at = models.DateTimeField(default=timezone.now)
    served_from = models.DateTimeField(null=True, blank=True)
    indexed_rows = models.BigIntegerField(default=0)
    """Rows when its HNSW index was built; 0 without an index."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="active"), name="indexing_embeddingprofile_one_active"
            ),
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="next"), name="indexing_embeddingprofile_one_next"
            ),
            models.CheckConstraint(condition=Q(dimension__gte=1), name="indexing_embeddingprofile_dimension"),
        ]

    def __str__(self) -> str:
        return self.label


class Vector(models.Model):
    """The vector of one embedded text in one source. Chunks point to it by hash; it points to no chunk.

    A table of its own, because a changed chunk row must not pay for an insert into the vector index; without a type
    modifier, because profiles differ in dimension.
    """

    pk = models.CompositePrimaryKey("profile_id", "number", "hash", "generation")
    profile = models.ForeignKey(
        EmbeddingProfile, on_delete=models.CASCADE, db_index=False, db_constraint=False, related_name="+"
    )
    number = models.IntegerField()
    hash = models.BinaryField()
    generation = models.SmallIntegerField(default=0)
    embedding = HalfVectorField()
    tokens = models.IntegerField(default=0)
    truncated = models.BooleanField(default=False)

    class Meta:
        indexes = [
            HashIndex(fields=["hash"], name="indexing_vector_by_text"),
            # Those of a source lie beside each other in the table, not in the primary key, which has them by hash: an
            # exact look at all of them takes a third less by this way.
            models.Index(fields=["number"], name="indexing_vector_of_source"),
        ]

    def __str__(self) -> str:
        return f"vector in {self.number}"


class EmbeddingFailure(models.Model):
    """A text that the embedder refused or answered badly. It is tried again when its text or the profile changes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    profile = models.ForeignKey(EmbeddingProfile, on_delete=models.CASCADE, related_name="+")
    number = models.IntegerField()
    hash = models.BinaryField()
    generation = models.SmallIntegerField(default=0)
    reason = models.TextField()
    failed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["profile", "number", "hash", "generation"], name="indexing_embeddingfailure_once"
            )
        ]

    def __str__(self) -> str:
        return self.reason
