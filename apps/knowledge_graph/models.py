"""Rows of the graph. All of them are derived from canonical documents and can be rebuilt; decisions about proposals
cannot.

Every key contains the source. The composite foreign keys, and ON DELETE CASCADE in the database itself, are added by
the migration; so no field here has a constraint of Django's own, and Django deletes nothing on its own account.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Func, Q
from django.utils import timezone

from apps.access.sources import Source
from apps.knowledge_graph.querysets import GraphChild, GraphSourceQuerySet, PageQuerySet
from apps.knowledge_graph.vocabulary import EDGE_TYPES, NODE_TYPES, PROVENANCES, STATUSES, UNKNOWN, WALK_RANK_SQL

SLUG = 128


def _link(to: Any, **options: Any) -> Any:
    """A foreign key whose constraint the migration adds."""
    return models.ForeignKey(to, on_delete=models.DO_NOTHING, db_constraint=False, **options)


class HeaderState(models.TextChoices):
    CURRENT = "current", "current"
    STALE = "stale_header", "stale header"
    FORMER = "former", "no page any more"


class Outcome(models.TextChoices):
    EDGE = "edge", "edge"
    SELF = "self", "links to itself"
    AMBIGUOUS = "ambiguous", "ambiguous"
    UNRESOLVED = "unresolved", "unresolved"
    DOCUMENT = "document", "no page"
    METADATA = "metadata", "name only"
    WITHHELD = "withheld", "its page lost the slug"


class TypeSource(models.TextChoices):
    AUTHORED = "authored", "as written"
    MATRIX = "matrix", "by page types"
    INFERRED = "inferred", "proposed"


class Verdict(models.TextChoices):
    ACCEPTED = "accepted", "accepted"
    REJECTED = "rejected", "rejected"


class GraphSource(models.Model):
    """A repository or a collection with canonical pages. ``projector`` numbers the rules that made its rows."""

    repository = _link("repos.Repository", null=True, related_name="+", db_index=False)
    collection = _link("collections.Collection", null=True, related_name="+", db_index=False)
    revision = models.PositiveIntegerField(default=0)
    projector = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(default=timezone.now)

    objects: ClassVar[Any] = GraphSourceQuerySet.as_manager()

    class Meta:
        db_table = "kb_sources"
        default_permissions = ("view",)
        verbose_name = "graph"
        constraints = [
            models.UniqueConstraint(fields=["repository"], name="kb_sources_repository_once"),
            models.UniqueConstraint(fields=["collection"], name="kb_sources_collection_once"),
            models.CheckConstraint(
                condition=Q(repository=None, collection__isnull=False) | Q(repository__isnull=False, collection=None),
                name="kb_sources_one_of_two",
            ),
        ]

    def __str__(self) -> str:
        return self.owner.label

    @property
    def owner(self) -> Source:
        """The repository or collection."""
        found: Source = self.repository if self.repository_id else self.collection
        return found

    @property
    def kind(self) -> str:
        return "repository" if self.repository_id else "collection"

    @property
    def source_key(self) -> tuple[str, UUID]:
        source_id: Any = self.repository_id or self.collection_id
        return self.kind, source_id


class CanonicalPage(models.Model):
    """A document that is a page, or was one: losers of a contested slug and former pages included."""

    source = _link(GraphSource, related_name="+")
    repository_document = _link("repos.RepositoryDocument", null=True, related_name="+", db_index=False)
    document = _link("collections.Document", null=True, related_name="+", db_index=False)
    path = models.TextField()
    uid = models.CharField(max_length=SLUG)
    node_type = models.CharField(max_length=20)
    label = models.TextField()
    status = models.CharField(max_length=12)
    header = models.JSONField(default=dict)
    header_state = models.CharField(max_length=12, choices=HeaderState)
    bears = models.BooleanField(default=False, help_text="It has its slug, and so a node.")
    names = ArrayField(models.TextField(), default=list)
    problems = models.JSONField(default=list)
    version_hash = models.CharField(max_length=64)
    header_hash = models.CharField(max_length=64, blank=True, default="")
    projector = models.PositiveIntegerField(default=0)

    objects: ClassVar[Any] = PageQuerySet.as_manager()

    class Meta:
        db_table = "kb_pages"
        default_permissions = ("view",)
        verbose_name = "canonical page"
        constraints = [
            models.UniqueConstraint(fields=["source", "id"], name="kb_pages_in_source"),
            models.UniqueConstraint(fields=["repository_document"], name="kb_pages_repository_document_once"),
            models.UniqueConstraint(fields=["document"], name="kb_pages_document_once"),
            models.UniqueConstraint(
                fields=["source", "uid"], condition=Q(bears=True), name="kb_pages_one_bears_a_slug"
            ),
            models.CheckConstraint(
                condition=Q(repository_document=None, document__isnull=False)
                | Q(repository_document__isnull=False, document=None),
                name="kb_pages_one_of_two",
            ),
            models.CheckConstraint(condition=Q(node_type__in=NODE_TYPES), name="kb_pages_type_known"),
            models.CheckConstraint(condition=Q(status__in=STATUSES), name="kb_pages_status_known"),
        ]
        indexes = [
            models.Index(fields=["source", "uid"], name="kb_pages_by_uid"),
            GinIndex(fields=["names"], fastupdate=False, name="kb_pages_names"),
        ]

    def __str__(self) -> str:
        return self.path

    @property
    def document_key(self) -> Any:
        return self.repository_document_id or self.document_id


class _Dated(models.Model):
    valid_from = models.PositiveIntegerField()

    class Meta:
        abstract = True


class _NodeColumns(_Dated):
    node_uid = models.CharField(max_length=SLUG)
    node_type = models.CharField(max_length=20)
    label = models.TextField()
    status = models.CharField(max_length=12, blank=True, default="")
    priority = models.PositiveSmallIntegerField(default=50)
    payload = models.JSONField(default=dict)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.node_uid


class _EdgeColumns(_Dated):
    from_uid = models.CharField(max_length=SLUG)
    to_uid = models.CharField(max_length=SLUG)
    edge_type = models.CharField(max_length=20)
    weight = models.DecimalField(max_digits=8, decimal_places=4)
    provenance = models.CharField(max_length=30)
    type_source = models.CharField(max_length=10, choices=TypeSource)
    payload = models.JSONField(default=dict)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.from_uid} {self.edge_type} {self.to_uid}"


class _EvidenceColumns(_Dated):
    version_hash = models.CharField(max_length=64, blank=True, default="")
    ordinal = models.PositiveIntegerField()
    provenance = models.CharField(max_length=30)
    mode = models.CharField(max_length=8, default="name")
    target = models.TextField()
    stated_type = models.CharField(max_length=20, null=True)  # noqa: DJ001 - null says "none stated"
    field = models.CharField(max_length=30, blank=True, default="")
    heading_path = ArrayField(models.TextField(), default=list)
    line = models.PositiveIntegerField()
    column = models.PositiveIntegerField()
    raw = models.TextField()
    anchor = models.TextField(blank=True, default="")
    label = models.TextField(blank=True, default="")
    embed = models.BooleanField(default=False)
    weight = models.DecimalField(max_digits=8, decimal_places=4, null=True)
    problem = models.CharField(max_length=12, blank=True, default="")
    outcome = models.CharField(max_length=10, choices=Outcome)
    rivals = ArrayField(models.TextField(), default=list)
    fallback_uid = models.CharField(max_length=SLUG, null=True)  # noqa: DJ001 - null says "cannot dangle"

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.raw


class Node(_NodeColumns):
    """A page, or the place of one that is missing (``dangling``)."""

    source = _link(GraphSource, related_name="+", db_index=False)
    page = _link(CanonicalPage, null=True, related_name="+")
    dangling = models.GeneratedField(
        expression=Func(
            F("payload"), template="(COALESCE(%(expressions)s ->> 'dangling', '') = 'true')",
            output_field=models.BooleanField(),
        ),
        output_field=models.BooleanField(),
        db_persist=True,
    )  # fmt: skip
    valid_to = models.PositiveIntegerField(null=True, editable=False)

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_nodes"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["source", "node_uid"], name="kb_nodes_uid_once"),
            models.CheckConstraint(
                condition=Q(node_type__in=NODE_TYPES, dangling=False) | Q(node_type=UNKNOWN, dangling=True),
                name="kb_nodes_type_known",
            ),
            models.CheckConstraint(
                condition=Q(dangling=True, page=None) | Q(dangling=False, page__isnull=False),
                name="kb_nodes_dangling_without_page",
            ),
            models.CheckConstraint(condition=Q(priority__lte=100), name="kb_nodes_priority_in_bounds"),
            models.CheckConstraint(condition=Q(valid_to=None), name="kb_nodes_are_current"),
        ]


class Edge(_EdgeColumns):
    """``from_uid`` stands in relation ``edge_type`` to ``to_uid``. ``page`` is the page that says so; null when a
    machine proposes it."""

    source = _link(GraphSource, related_name="+", db_index=False)
    page = _link(CanonicalPage, null=True, related_name="+")
    edge_uid = models.GeneratedField(
        expression=Func(
            F("from_uid"), F("edge_type"), F("to_uid"), arg_joiner=" || '>' || ", template="(%(expressions)s)"
        ),
        output_field=models.CharField(max_length=2 * SLUG + 22),
        db_persist=True,
    )
    walk_weight = models.GeneratedField(
        expression=Func(
            template="(CASE WHEN provenance = 'inferred' THEN round(weight * COALESCE((payload ->> 'confidence')"
            "::numeric, 1), 4) ELSE weight END)",
            output_field=models.DecimalField(max_digits=8, decimal_places=4),
        ),
        output_field=models.DecimalField(max_digits=8, decimal_places=4),
        db_persist=True,
        help_text="What a walk multiplies by: the weight, of a guess times its confidence.",
    )
    walk_rank = models.GeneratedField(
        expression=Func(template=f"({WALK_RANK_SQL})", output_field=models.SmallIntegerField()),
        output_field=models.SmallIntegerField(),
        db_persist=True,
        help_text="Rank of the type, then strength of the evidence: which of two equal weights goes first.",
    )
    valid_to = models.PositiveIntegerField(null=True, editable=False)
    from_node = models.ForeignObject(
        Node, on_delete=models.DO_NOTHING, from_fields=["source", "from_uid"], to_fields=["source", "node_uid"],
        related_name="+",
    )  # fmt: skip
    to_node = models.ForeignObject(
        Node, on_delete=models.DO_NOTHING, from_fields=["source", "to_uid"], to_fields=["source", "node_uid"],
        related_name="+",
    )  # fmt: skip

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_edges"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["source", "edge_uid"], name="kb_edges_uid_once"),
            models.CheckConstraint(condition=Q(edge_type__in=EDGE_TYPES), name="kb_edges_type_known"),
            models.CheckConstraint(condition=Q(provenance__in=PROVENANCES), name="kb_edges_provenance_known"),
            models.CheckConstraint(
                condition=Q(weight__gt=Decimal(0), weight__lte=Decimal(1)), name="kb_edges_weight_in_bounds"
            ),
            models.CheckConstraint(condition=~Q(from_uid=F("to_uid")), name="kb_edges_two_ends"),
            models.CheckConstraint(
                condition=Q(type_source="inferred", provenance="inferred", page=None)
                | (~Q(type_source="inferred") & ~Q(provenance="inferred") & Q(page__isnull=False)),
                name="kb_edges_authored_have_a_page",
            ),
            models.CheckConstraint(condition=Q(valid_to=None), name="kb_edges_are_current"),
        ]
        indexes = [
            # In the order of walks and with all that they look at: of a hub only the first entries are read.
            models.Index(
                F("source"),
                F("from_uid"),
                F("walk_weight").desc(),
                F("walk_rank"),
                F("to_uid"),
                include=["edge_type", "provenance", "type_source"],
                name="kb_edges_out",
            ),
            models.Index(
                F("source"),
                F("to_uid"),
                F("walk_weight").desc(),
                F("walk_rank"),
                F("from_uid"),
                include=["edge_type", "provenance", "type_source"],
                name="kb_edges_in",
            ),
            models.Index(fields=["source", "from_uid", "to_uid"], name="kb_edges_pair"),
            # A chain of supersession must not read every edge of a hub.
            models.Index(
                fields=["source", "to_uid"],
                include=["from_uid", "provenance"],
                condition=Q(edge_type="supersedes"),
                name="kb_edges_superseding",
            ),
            models.Index(
                fields=["source", "from_uid"],
                include=["to_uid", "provenance"],
                condition=Q(edge_type="invalidated_by"),
                name="kb_edges_invalidated",
            ),
        ]


class Evidence(_EvidenceColumns):
    """One place in a page that names another, and what became of it."""

    source = _link(GraphSource, related_name="+", db_index=False)
    page = _link(CanonicalPage, related_name="+", db_index=False)
    edge_uid = models.CharField(max_length=2 * SLUG + 22, null=True)  # noqa: DJ001 - null says "no edge"
    wanted = ArrayField(models.TextField(), default=list)
    valid_to = models.PositiveIntegerField(null=True, editable=False)
    edge = models.ForeignObject(
        Edge, on_delete=models.DO_NOTHING, from_fields=["source", "edge_uid"], to_fields=["source", "edge_uid"],
        related_name="+", null=True,
    )  # fmt: skip

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_evidence"
        default_permissions = ("view",)
        verbose_name_plural = "evidence"
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=Outcome.values), name="kb_evidence_outcome_known"),
            models.CheckConstraint(
                condition=Q(outcome="edge", edge_uid__isnull=False) | (~Q(outcome="edge") & Q(edge_uid=None)),
                name="kb_evidence_edge_exactly_with_outcome",
            ),
            models.CheckConstraint(condition=Q(provenance__in=PROVENANCES), name="kb_evidence_provenance_known"),
            models.CheckConstraint(condition=Q(valid_to=None), name="kb_evidence_is_current"),
        ]
        indexes = [
            models.Index(fields=["source", "edge_uid"], name="kb_evidence_edge"),
            models.Index(fields=["page", "ordinal"], name="kb_evidence_page"),
            GinIndex(fields=["wanted"], fastupdate=False, name="kb_evidence_wanted"),
        ]


class NodePast(_NodeColumns):
    """A node as it was from revision ``valid_from`` until before ``valid_to``."""

    source = _link(GraphSource, related_name="+", db_index=False)
    page = _link(CanonicalPage, null=True, related_name="+")
    row = models.BigIntegerField()
    valid_to = models.PositiveIntegerField()

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_nodes_past"
        default_permissions = ("view",)
        indexes = [models.Index(fields=["source", "valid_from", "valid_to"], name="kb_nodes_past_time")]


class EdgePast(_EdgeColumns):
    source = _link(GraphSource, related_name="+", db_index=False)
    page = _link(CanonicalPage, null=True, related_name="+")
    row = models.BigIntegerField()
    edge_uid = models.CharField(max_length=2 * SLUG + 22)
    valid_to = models.PositiveIntegerField()

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_edges_past"
        default_permissions = ("view",)
        indexes = [models.Index(fields=["source", "valid_from", "valid_to"], name="kb_edges_past_time")]


class EvidencePast(_EvidenceColumns):
    source = _link(GraphSource, related_name="+", db_index=False)
    page = _link(CanonicalPage, related_name="+")
    row = models.BigIntegerField()
    edge_uid = models.CharField(max_length=2 * SLUG + 22, null=True)  # noqa: DJ001 - null says "no edge"
    wanted = ArrayField(models.TextField(), default=list)
    valid_to = models.PositiveIntegerField()

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_evidence_past"
        default_permissions = ("view",)
        indexes = [models.Index(fields=["source", "valid_from", "valid_to"], name="kb_evidence_past_time")]


class CrossSourceReference(models.Model):
    """``[[source:slug]]`` as written; what it means is looked up for each reader anew."""

    source = _link(GraphSource, related_name="+")
    page = _link(CanonicalPage, related_name="+")
    line = models.PositiveIntegerField()
    raw = models.TextField()
    wanted_kind = models.CharField(max_length=12, blank=True, default="")
    wanted_source = models.TextField()
    wanted_slug = models.CharField(max_length=SLUG)
    stated_type = models.CharField(max_length=20, null=True)  # noqa: DJ001 - null says "none stated"
    label = models.TextField(blank=True, default="")
    field = models.CharField(max_length=30, blank=True, default="")

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_cross_source_references"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.raw


class GraphRevision(models.Model):
    """One state of a graph. ``change`` names the commit or the change of a collection that made it."""

    source = _link(GraphSource, related_name="+", db_index=False)
    number = models.PositiveIntegerField()
    change = models.CharField(max_length=80, blank=True, default="")
    cause = models.CharField(max_length=40)
    created_at = models.DateTimeField(default=timezone.now)

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_revisions"
        default_permissions = ("view",)
        ordering = ("source", "number")
        constraints = [models.UniqueConstraint(fields=["source", "number"], name="kb_revisions_number_once")]

    def __str__(self) -> str:
        return f"revision {self.number}"


class ProposalDecision(models.Model):
    """What a person said to a proposed edge; a rejection holds for the pair and type for good."""

    source = _link(GraphSource, related_name="+", db_index=False)
    from_uid = models.CharField(max_length=SLUG)
    to_uid = models.CharField(max_length=SLUG)
    edge_type = models.CharField(max_length=20)
    verdict = models.CharField(max_length=10, choices=Verdict)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    decided_at = models.DateTimeField(default=timezone.now)

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_proposal_decisions"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["source", "from_uid", "to_uid", "edge_type"], name="kb_proposal_decisions_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.from_uid} {self.edge_type} {self.to_uid}: {self.verdict}"


class LintFinding(models.Model):
    """A finding of the stored graph; all findings of a source are replaced together."""

    source = _link(GraphSource, related_name="+")
    page = _link(CanonicalPage, null=True, related_name="+")
    revision = models.PositiveIntegerField()
    rule = models.CharField(max_length=8)
    severity = models.CharField(max_length=8)
    path = models.TextField(blank=True, default="")
    line = models.PositiveIntegerField(null=True)
    column = models.PositiveIntegerField(null=True)
    message = models.TextField()
    hint = models.TextField(blank=True, default="")
    fingerprint = models.CharField(max_length=64)

    objects: ClassVar[Any] = GraphChild.as_manager()

    class Meta:
        db_table = "kb_lint_findings"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.rule} {self.path}"
