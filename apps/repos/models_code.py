"""Rows of code: files, symbols, edges, pieces of bodies, and which passages name which symbol. All of it is derived."""

from __future__ import annotations

import uuid
from typing import ClassVar
from urllib.parse import quote

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Upper
from django.utils import timezone

from apps.indexing.models import KEYS, Chunk
from apps.repos.querysets import RepositoryChildQuerySet


class CodeFileState(models.TextChoices):
    INDEXED = "indexed", "indexed"
    PARTIAL = "partial", "partly indexed"
    SKIPPED = "skipped", "skipped"


class CodeFile(models.Model):
    """A source file of a known language at the synced commit. Its text stands in ``repo_files``."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    repository = models.ForeignKey(
        "repos.Repository", on_delete=models.CASCADE, related_name="code_files", db_index=False
    )
    path = models.TextField()
    blob = models.CharField(max_length=64)
    language = models.CharField(max_length=20)
    package = models.TextField(blank=True, default="", help_text="What imports of the repository call this file.")
    version = models.CharField(max_length=20, help_text="Of the code that read it; another one reads anew.")
    state = models.CharField(max_length=8, choices=CodeFileState)
    reason = models.CharField(max_length=40, blank=True, default="")
    message = models.TextField(blank=True, default="")
    error_line = models.IntegerField(null=True)
    test = models.BooleanField(default=False)
    side = models.BooleanField(default=False, help_text="Fixtures and vendored text.")
    line_count = models.IntegerField(default=0)
    committed_at = models.DateTimeField(
        null=True, editable=False, help_text="Of the last commit that changed the file; empty until it is looked up."
    )
    names = ArrayField(models.TextField(), default=list, help_text="Every name that its references are made of.")
    exports = models.JSONField(
        default=dict, help_text="Names under which others import its symbols, with the name in the file."
    )
    flags = ArrayField(models.TextField(), default=list, help_text="Command line flags that it spells.")
    env_names = ArrayField(models.TextField(), default=list, help_text="Environment variables that it spells.")

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "code_files"
        default_permissions = ("view",)
        verbose_name = "source file"
        constraints = [models.UniqueConstraint(fields=["repository", "path"], name="code_files_path_is_unique")]
        indexes = [GinIndex(fields=["names"], name="code_files_names")]

    def __str__(self) -> str:
        return self.path

    def get_absolute_url(self) -> str:
        return f"/repos/{self.repository.slug}/files/{quote(self.path)}"

    @property
    def title(self) -> str:
        return self.path.rpartition("/")[2]


class CodeNode(models.Model):
    """A symbol. ``key`` is made of path, qualified name and signature, so an edit of the body keeps the row."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="nodes", db_index=False)
    file = models.ForeignKey(CodeFile, on_delete=models.CASCADE, related_name="nodes", db_index=False)
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="members")
    key = models.BinaryField()
    language = models.CharField(max_length=20)
    kind = models.CharField(max_length=12)
    name = models.TextField()
    qualified_name = models.TextField()
    signature = models.TextField(blank=True, default="")
    doc = models.TextField("doc comment", blank=True, default="")
    start_line = models.IntegerField()
    end_line = models.IntegerField()
    start_byte = models.IntegerField()
    end_byte = models.IntegerField()
    exported = models.BooleanField(default=False)
    test = models.BooleanField(default=False)
    side = models.BooleanField(default=False)
    segments = models.TextField(help_text="The words of the name, folded, a blank before each.")
    search_keys = ArrayField(models.TextField(), default=list, help_text="What the symbol stream looks up.")
    number = models.IntegerField(null=True, help_text="In its repository: what the entries of letter triples hold.")

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "code_nodes"
        default_permissions = ("view",)
        verbose_name = "symbol"
        constraints = [models.UniqueConstraint(fields=["file", "key"], name="code_nodes_key_is_unique")]
        indexes = [
            models.Index(fields=["repository", "name"], name="code_nodes_name"),
            models.Index(fields=["repository", "number"], name="code_nodes_number"),
            models.Index("repository", Upper("name"), name="code_nodes_begin"),
            GinIndex(fields=["search_keys"], name="code_nodes_search"),
        ]

    def __str__(self) -> str:
        return self.qualified_name

    def get_absolute_url(self) -> str:
        return f"/repos/{self.repository.slug}/code/{self.pk}"


class CodeTriple(models.Model):
    """The symbols of one segment whose names hold a letter triple, packed: see ``apps.repos.code.alike``."""

    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="+", db_index=False)
    triple = models.TextField()
    segment = models.IntegerField()
    entries = models.BinaryField()

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "code_triples"
        default_permissions = ("view",)
        verbose_name = "letter triple"
        indexes = [
            models.Index(fields=["repository", "triple"], name="code_triples_triple"),
            models.Index(fields=["repository", "segment"], name="code_triples_segment"),
        ]

    def __str__(self) -> str:
        return self.triple


class EdgeKind(models.TextChoices):
    DECLARES = "declares", "declares"
    CALLS = "calls", "calls"
    IMPORTS = "imports", "imports"
    INHERITS = "inherits", "inherits"


class CodeEdge(models.Model):
    """A relation of two symbols. Without ``target`` it leads out of the repository or could not be told; the name as
    written is kept. For imports ``qualifier`` is the module, ``name`` the member, ``subject`` the local name."""

    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="+", db_index=False)
    file = models.ForeignKey(CodeFile, on_delete=models.CASCADE, related_name="edges")
    source = models.ForeignKey(CodeNode, on_delete=models.CASCADE, related_name="edges_out")
    target = models.ForeignKey(CodeNode, null=True, on_delete=models.SET_NULL, related_name="edges_in")
    kind = models.CharField(max_length=8, choices=EdgeKind)
    qualifier = models.TextField(blank=True, default="")
    name = models.TextField(blank=True, default="")
    subject = models.TextField(blank=True, default="")
    line = models.IntegerField()
    column = models.IntegerField(default=1)
    confidence = models.SmallIntegerField(default=0)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "code_edges"
        default_permissions = ("view",)
        verbose_name = "code edge"

    def __str__(self) -> str:
        return self.written

    @property
    def written(self) -> str:
        """The name as the source has it."""
        return ".".join(part for part in (self.qualifier, self.name) if part)


class CodeLinkState(models.TextChoices):
    RESOLVED = "resolved", "resolved"
    ANCHOR_MISSING = "anchor missing", "anchor missing"
    UNRESOLVED = "unresolved", "unresolved"


class CodeDocumentLink(models.Model):
    """A string literal that names a document (``retrieval.md`` 13). Lines and columns count from 1."""

    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="+")
    file = models.ForeignKey(CodeFile, on_delete=models.CASCADE, related_name="document_links")
    node = models.ForeignKey(CodeNode, on_delete=models.CASCADE, related_name="document_links")
    written = models.TextField()
    path = models.TextField(blank=True, default="")
    fragment = models.TextField(blank=True, default="")
    url = models.TextField(blank=True, default="")
    line = models.IntegerField()
    column = models.IntegerField()
    state = models.CharField(max_length=14, choices=CodeLinkState, default=CodeLinkState.UNRESOLVED)
    target_document = models.ForeignKey(
        "repos.RepositoryDocument", null=True, on_delete=models.SET_NULL, related_name="named_in_code"
    )
    anchor = models.TextField(blank=True, default="")
    candidates = ArrayField(models.TextField(), default=list)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "code_document_links"
        default_permissions = ("view",)
        verbose_name = "document named in code"
        constraints = [
            models.UniqueConstraint(fields=["file", "line", "column", "written"], name="code_document_links_once")
        ]

    def __str__(self) -> str:
        return self.written


class CodeChunk(Chunk):
    """A piece of the body of one symbol; ``section_anchor`` holds the id of the symbol."""

    file = models.ForeignKey(CodeFile, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="+", db_index=False)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta(Chunk.Meta):
        db_table = "code_chunks"
        default_permissions = ("view",)
        verbose_name = "code chunk"
        indexes = [
            models.Index(fields=["embed_hash"], name="code_chunks_embed"),
            models.Index(fields=["file", "chunk_index"], include=KEYS, name="code_chunks_file"),
            models.Index(fields=["repository"], name="code_chunks_repository"),
        ]


class ChunkNames(models.Model):
    """The names that stand in one chunk of a document, kept so that linking never reads the text again.

    ``names`` is a list of [name, form, count, line in the chunk from 0]; ``tails`` their last parts.
    """

    chunk = models.OneToOneField(
        "repos.RepositoryDocumentChunk", on_delete=models.CASCADE, primary_key=True, related_name="names"
    )
    document = models.ForeignKey("repos.RepositoryDocument", on_delete=models.CASCADE, related_name="+")
    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="+")
    path = models.TextField(help_text="Of the document when its names were resolved: a moved one is linked anew.")
    names = models.JSONField(default=list)
    tails = ArrayField(models.TextField(), default=list)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "repo_document_chunk_names"
        default_permissions = ("view",)
        verbose_name = "names in a chunk"
        verbose_name_plural = "names in chunks"
        indexes = [GinIndex(fields=["tails"], name="repo_chunk_names_tails")]

    def __str__(self) -> str:
        return ", ".join(self.tails[:5])


class ChunkMention(models.Model):
    """One symbol that one chunk of a document names. ``first_line`` counts from 0 within the chunk, so that it stays
    true when the chunk moves."""

    chunk = models.ForeignKey("repos.RepositoryDocumentChunk", on_delete=models.CASCADE, related_name="mentions")
    node = models.ForeignKey(CodeNode, on_delete=models.CASCADE, related_name="mentions")
    document = models.ForeignKey("repos.RepositoryDocument", on_delete=models.CASCADE, related_name="mentions")
    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="+")
    name = models.TextField()
    form = models.SmallIntegerField(help_text="1 inline code, 2 dotted name, 3 call")
    confidence = models.SmallIntegerField()
    count = models.IntegerField()
    first_line = models.IntegerField()

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "repo_document_chunk_mentions"
        default_permissions = ("view",)
        verbose_name = "mention of a symbol"
        verbose_name_plural = "mentions of symbols"
        constraints = [models.UniqueConstraint(fields=["chunk", "node"], name="repo_chunk_mentions_once")]

    def __str__(self) -> str:
        return self.name


class DepartureKind(models.TextChoices):
    SYMBOL = "symbol", "symbol"
    PATH = "path", "path"
    FLAG = "flag", "command line flag"
    ENV = "env", "environment variable"


class CodeDeparture(models.Model):
    """A name that the code of an earlier commit had and that of the synced one has not."""

    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="departures")
    kind = models.CharField(max_length=6, choices=DepartureKind)
    name = models.TextField(help_text="Last part of the name.")
    qualified_name = models.TextField()
    path = models.TextField(blank=True, default="")
    commit = models.CharField(max_length=64, blank=True, default="", help_text="That removed it.")
    survivor = models.TextField(blank=True, default="", help_text="The nearest name that is left.")
    noticed_at = models.DateTimeField(default=timezone.now)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "code_departures"
        default_permissions = ("view",)
        verbose_name = "name gone from the code"
        verbose_name_plural = "names gone from the code"
        constraints = [
            models.UniqueConstraint(
                fields=["repository", "kind", "qualified_name", "path"], name="code_departures_once"
            )
        ]

    def __str__(self) -> str:
        return self.qualified_name


class CodeCoverage(models.Model):
    """How much of the public code documents mention, at one commit; a row is added when the numbers change."""

    repository = models.ForeignKey("repos.Repository", on_delete=models.CASCADE, related_name="coverage")
    commit = models.CharField(max_length=64)
    exported = models.IntegerField()
    documented = models.IntegerField()
    packages = models.JSONField(default=dict, help_text="package -> [exported, documented]")
    created_at = models.DateTimeField(default=timezone.now)

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "code_coverage"
        default_permissions = ("view",)
        verbose_name = "documentation coverage"
        verbose_name_plural = "documentation coverage"
        ordering: ClassVar = ("created_at", "id")

    def __str__(self) -> str:
        return f"{self.documented} of {self.exported} at {self.commit[:7]}"


class CodeState(models.Model):
    """How far the derived rows of a repository are: what a run that died left undone is done by the next."""

    repository = models.OneToOneField(
        "repos.Repository", on_delete=models.CASCADE, primary_key=True, related_name="code_state"
    )
    commit = models.CharField(max_length=64, blank=True, default="", help_text="Whose code is stored, all steps done.")
    is_resolved = models.BooleanField(default=False)
    layout = models.CharField(
        max_length=64, blank=True, default="", help_text="Digest of the configuration by which imports were resolved."
    )
    is_linked = models.BooleanField(default=False)
    next_number = models.IntegerField(default=0, help_text="Of the next new symbol.")
    segments = ArrayField(models.IntegerField(), default=list, help_text="How many symbols each of the triples holds.")
    history_searched = models.BooleanField(default=False, help_text="Names that left before the first sync.")

    objects = RepositoryChildQuerySet.as_manager()

    class Meta:
        db_table = "code_states"
        default_permissions = ("view",)
        verbose_name = "state of the code index"
        verbose_name_plural = "states of the code index"

    def __str__(self) -> str:
        return self.commit[:7]
