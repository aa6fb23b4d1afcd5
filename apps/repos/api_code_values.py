"""What REST says of symbols: inputs and outputs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from apps.access.rest.schema import list_of
from apps.access.rest.strict import Choice, Integer, Listed, ListQuery, StrictSerializer, Text
from apps.repos.api_values import FreshnessOutput, freshness
from apps.repos.code.bodies import Body
from apps.repos.code.neighbours import DIRECTIONS, Edge, Neighbourhood
from apps.repos.code.related import NamingLiteral, RelatedChunk, RelatedSymbol
from apps.repos.code.searching import Found
from apps.repos.hosts import host_of
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode, EdgeKind

SYMBOL_KINDS = (
    "module", "class", "interface", "struct", "enum", "trait", "type", "function", "method", "constructor", "constant",
    "variable", "field", "namespace", "macro",
)  # fmt: skip


class NodeQuery(ListQuery):
    """Filters of the list of symbols. With ``q`` they are ranked, else by path and line."""

    q = Text(max_length=2000, default="", query_text=True, help_text="A name, a part of one, or its words.")
    kind = Choice(SYMBOL_KINDS, required=False)
    language = Text(max_length=20, default="")
    path = Text(max_length=1000, default="", help_text="Prefix of the path, or a glob.")


class OneNodeQuery(StrictSerializer):
    """How much around a symbol."""

    context_lines = Integer(min_value=0, max_value=50, default=0)
    related = Integer(min_value=0, max_value=10, default=3, help_text="Passages of documents that discuss it.")


class RelatedQuery(StrictSerializer):
    """Which way to walk and how far."""

    depth = Integer(min_value=1, max_value=2, default=1)
    direction = Choice(DIRECTIONS, default="both")
    kinds = Listed(child=Choice(EdgeKind.values), max_length=4, default=list)
    limit = Integer(min_value=1, max_value=100, default=50)


class NodeLine(serializers.Serializer[Any]):
    """A symbol. Lines count from 1, ends included. ``evidence`` (0 to 1) and ``matched`` tell how ``q`` found it."""

    id = serializers.CharField()
    kind = serializers.CharField()
    language = serializers.CharField()
    name = serializers.CharField()
    qualified_name = serializers.CharField()
    signature = serializers.CharField()
    doc_line = serializers.CharField()
    path = serializers.CharField()
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    exported = serializers.BooleanField()
    url = serializers.CharField()
    evidence = serializers.FloatField(allow_null=True)
    matched = serializers.CharField(allow_null=True)


class NodePage(list_of(NodeLine)):  # type: ignore[misc]
    """A page of symbols, with the state of the repository."""

    repository = FreshnessOutput()


class RelatedChunkOutput(serializers.Serializer[Any]):
    """A passage of a document that names a symbol. ``form``: inline code, dotted name or call."""

    chunk = serializers.CharField()
    document = serializers.CharField()
    path = serializers.CharField()
    title = serializers.CharField()
    kind = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    anchor = serializers.CharField()
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    line = serializers.IntegerField()
    snippet = serializers.CharField()
    url = serializers.CharField()
    confidence = serializers.IntegerField()
    form = serializers.CharField()
    count = serializers.IntegerField()


class RelatedSymbolOutput(serializers.Serializer[Any]):
    """A symbol that a document names, with the best confidence (0 to 100) and how often it does."""

    id = serializers.CharField()
    kind = serializers.CharField()
    name = serializers.CharField()
    qualified_name = serializers.CharField()
    path = serializers.CharField()
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    confidence = serializers.IntegerField()
    count = serializers.IntegerField()
    url = serializers.CharField()


class RelatedCodeOutput(serializers.Serializer[Any]):
    """The symbols that a document names, the surest first; ``more`` are not shown."""

    symbols = RelatedSymbolOutput(many=True)
    more = serializers.IntegerField()


class NamingLiteralOutput(serializers.Serializer[Any]):
    """A string literal in code that names a document, as written. ``state``: resolved, or anchor missing."""

    node = serializers.CharField()
    qualified_name = serializers.CharField()
    path = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()
    written = serializers.CharField()
    anchor = serializers.CharField()
    state = serializers.CharField()


class NodeOutput(NodeLine):
    """A symbol with its body, verbatim. ``body`` is null when the text of its file is not stored."""

    doc = serializers.CharField()
    test = serializers.BooleanField()
    parent = serializers.CharField(allow_null=True)  # type: ignore[assignment]
    start_byte = serializers.IntegerField()
    end_byte = serializers.IntegerField()
    body = serializers.CharField(allow_null=True)
    body_start_line = serializers.IntegerField(allow_null=True)
    body_end_line = serializers.IntegerField(allow_null=True)
    total_lines = serializers.IntegerField(allow_null=True)
    callers = serializers.IntegerField()
    callees = serializers.IntegerField()
    related_repo_doc_chunks = RelatedChunkOutput(many=True)
    host_url = serializers.CharField(allow_null=True)
    repository = FreshnessOutput()


class EdgeOutput(serializers.Serializer[Any]):
    """A relation, with the place where it stands."""

    kind = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    target = serializers.CharField()
    name = serializers.CharField()
    path = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()
    confidence = serializers.IntegerField()


class NeighbourhoodOutput(serializers.Serializer[Any]):
    """Symbols around a symbol. ``truncated``: there are more than are given."""

    node = NodeLine()
    nodes = NodeLine(many=True)
    edges = EdgeOutput(many=True)
    truncated = serializers.BooleanField()
    repository = FreshnessOutput()


FORMS = {1: "code", 2: "dotted", 3: "call"}


def present_node(repository: Repository, node: CodeNode) -> dict[str, Any]:
    return {
        "id": str(node.pk),
        "kind": node.kind,
        "language": node.language,
        "name": node.name,
        "qualified_name": node.qualified_name,
        "signature": node.signature,
        "doc_line": node.doc.split("\n", 1)[0],
        "path": node.file.path,
        "start_line": node.start_line,
        "end_line": node.end_line,
        "exported": node.exported,
        "url": node_url(repository, node.pk),
        "evidence": None,
        "matched": None,
    }


def present_found(repository: Repository, found: Found) -> dict[str, Any]:
    return {
        "id": str(found.node_id),
        "kind": found.kind,
        "language": found.language,
        "name": found.name,
        "qualified_name": found.qualified_name,
        "signature": found.signature,
        "doc_line": found.doc_line,
        "path": found.path,
        "start_line": found.start_line,
        "end_line": found.end_line,
        "exported": found.exported,
        "url": node_url(repository, found.node_id),
        "evidence": found.evidence,
        "matched": found.matched,
    }


def node_url(repository: Repository, node: uuid.UUID) -> str:
    return f"/repos/{repository.slug}/code/{node}"


def present_chunk(chunk: RelatedChunk) -> dict[str, Any]:
    return {
        "chunk": str(chunk.chunk_id),
        "document": str(chunk.document_id),
        "path": chunk.path,
        "title": chunk.title,
        "kind": chunk.kind,
        "heading_path": list(chunk.heading_path),
        "anchor": chunk.anchor,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "line": chunk.line,
        "snippet": chunk.snippet,
        "url": chunk.address,
        "confidence": chunk.confidence,
        "form": FORMS.get(chunk.form, ""),
        "count": chunk.count,
    }


def present_symbol(symbol: RelatedSymbol) -> dict[str, Any]:
    return {
        "id": str(symbol.node_id),
        "kind": symbol.kind,
        "name": symbol.name,
        "qualified_name": symbol.qualified_name,
        "path": symbol.path,
        "start_line": symbol.start_line,
        "end_line": symbol.end_line,
        "confidence": symbol.confidence,
        "count": symbol.count,
        "url": symbol.address,
    }


def present_literal(literal: NamingLiteral) -> dict[str, Any]:
    return {
        "node": str(literal.node_id),
        "qualified_name": literal.qualified_name,
        "path": literal.path,
        "line": literal.line,
        "column": literal.column,
        "written": literal.written,
        "anchor": literal.anchor,
        "state": literal.state,
    }


def present_whole(
    repository: Repository,
    node: CodeNode,
    body: Body | None,
    counted: dict[str, int],
    related: Sequence[RelatedChunk],
) -> dict[str, Any]:
    host = host_of(repository.git_url, repository.link_style, repository.link_template)
    return {
        **present_node(repository, node),
        "doc": node.doc,
        "test": node.test,
        "parent": str(node.parent_id) if node.parent_id else None,
        "start_byte": node.start_byte,
        "end_byte": node.end_byte,
        "body": body.text if body else None,
        "body_start_line": body.start_line if body else None,
        "body_end_line": body.end_line if body else None,
        "total_lines": body.total_lines if body else None,
        **counted,
        "related_repo_doc_chunks": [present_chunk(chunk) for chunk in related],
        "host_url": host.file(repository.synced_commit, node.file.path, node.start_line, node.end_line),
        "repository": freshness(repository),
    }


def present_edge(edge: Edge) -> dict[str, Any]:
    return {
        "kind": edge.kind,
        "source": str(edge.source),
        "target": str(edge.target),
        "name": edge.name,
        "path": edge.path,
        "line": edge.line,
        "column": edge.column,
        "confidence": edge.confidence,
    }


def present_around(repository: Repository, node: CodeNode, around: Neighbourhood) -> dict[str, Any]:
    return {
        "node": present_node(repository, node),
        "nodes": [present_node(repository, one) for one in around.nodes],
        "edges": [present_edge(edge) for edge in around.edges],
        "truncated": around.truncated,
        "repository": freshness(repository),
    }
