"""What REST tells of searches and chunks."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from apps.indexing.api_values import ChunkOutput, present_chunk
from apps.repos.api_code_values import NamingLiteralOutput, RelatedSymbolOutput, present_literal, present_symbol
from apps.retrieval.api_beside_values import (
    NearPageOutput,
    PageNameOutput,
    RejectedOutput,
    present_near,
    present_rejected,
)
from apps.retrieval.api_source_values import SourceRefOutput, present_source
from apps.retrieval.chunk_reading import ChunkView
from apps.retrieval.snippets import Snippet
from apps.retrieval.values import Answer, Empty, Found, Hit, SourceRef


class SuggestionOutput(serializers.Serializer[Any]):
    """A title, a heading or a symbol; ``detail`` is its path or qualified name."""

    kind = serializers.CharField()
    text = serializers.CharField()
    detail = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    url = serializers.CharField()


class SuggestionsOutput(serializers.Serializer[Any]):
    """At most ten."""

    items = SuggestionOutput(many=True)


class SnippetOutput(serializers.Serializer[Any]):
    """An exact slice of the source; ``marks`` are pairs of character offsets into ``text``."""

    text = serializers.CharField()
    marks = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    start_byte = serializers.IntegerField()
    end_byte = serializers.IntegerField()
    cut_before = serializers.BooleanField()
    cut_after = serializers.BooleanField()
    truncated = serializers.BooleanField()
    anchored = serializers.BooleanField()


class StreamOutput(serializers.Serializer[Any]):
    """A row's place in one stream; ``state`` says why there is none."""

    rank = serializers.IntegerField(allow_null=True)
    score = serializers.FloatField(allow_null=True)
    state = serializers.CharField()
    weight = serializers.FloatField()


class MatchedOutput(serializers.Serializer[Any]):
    """A word of the query and the fields that hold it."""

    word = serializers.CharField()
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]


class ScoreOutput(serializers.Serializer[Any]):
    """The parts of the score, when asked to explain."""

    fused = serializers.FloatField()
    page = serializers.FloatField()
    factor = serializers.FloatField()
    final = serializers.FloatField()


class WhyOutput(serializers.Serializer[Any]):
    """Why a row was found."""

    streams = serializers.DictField(child=StreamOutput())
    matched = MatchedOutput(many=True)
    filters = serializers.DictField(child=serializers.CharField())
    name_class = serializers.CharField()
    score = ScoreOutput(allow_null=True)


class PlaceOutput(serializers.Serializer[Any]):
    """Where an equal text stands too."""

    source = SourceRefOutput()  # type: ignore[assignment]
    path = serializers.CharField()
    url = serializers.CharField()


class SymbolRefOutput(serializers.Serializer[Any]):
    """The symbol that a row of code is about; ``id`` is that of its node."""

    id = serializers.CharField()
    kind = serializers.CharField()
    name = serializers.CharField()
    qualified_name = serializers.CharField()
    signature = serializers.CharField()
    doc_line = serializers.CharField()


class PassageOutput(serializers.Serializer[Any]):
    """A passage of a document that names the symbol."""

    chunk_id = serializers.CharField()
    document_id = serializers.CharField()
    title = serializers.CharField()
    path = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    anchor = serializers.CharField()
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    url = serializers.CharField()
    snippet = serializers.CharField()


class BlockOutput(serializers.Serializer[Any]):
    """Documents or code, the better block first; ``strength`` 0 to 1."""

    name = serializers.CharField()
    strength = serializers.FloatField()
    total = serializers.IntegerField()
    capped = serializers.BooleanField()


class HitOutput(serializers.Serializer[Any]):
    """A row. ``location`` is what every reading tool takes; ``version`` is a commit, or a version of a document;
    ``status`` that of a canonical page, ``replaced_by`` the newest pages that have taken its place. A row of code
    brings passages that name it, one of a repository's document symbols that it names, and code that names it."""

    layer = serializers.CharField()
    chunk_id = serializers.CharField()
    document_id = serializers.CharField()
    source = SourceRefOutput()  # type: ignore[assignment]
    title = serializers.CharField()
    path = serializers.CharField()
    kind = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    anchor = serializers.CharField()
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    location = serializers.CharField()
    url = serializers.CharField()
    chunk_url = serializers.CharField()
    snippet = SnippetOutput()
    tokens = serializers.IntegerField()
    version = serializers.CharField()
    text_time = serializers.DateTimeField(allow_null=True)
    checked_time = serializers.DateTimeField(allow_null=True)
    stale_since = serializers.DateTimeField(allow_null=True)
    why = WhyOutput()
    also_in = PlaceOutput(many=True)
    also_in_more = serializers.IntegerField()
    status = serializers.CharField()
    replaced_by = PageNameOutput(many=True)
    symbol = SymbolRefOutput(allow_null=True)
    related_repo_doc_chunks = PassageOutput(many=True)
    related_symbols = RelatedSymbolOutput(many=True)
    named_in_code = NamingLiteralOutput(many=True)


class FacetValueOutput(serializers.Serializer[Any]):
    """A value and how many rows have it."""

    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    count = serializers.IntegerField()


class FacetOutput(serializers.Serializer[Any]):
    """A property of the rows with the values that occur."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    values = FacetValueOutput(many=True)


class EmptyOutput(serializers.Serializer[Any]):
    """Why there are no rows."""

    code = serializers.CharField()
    message = serializers.CharField()
    words = serializers.ListField(child=serializers.CharField())
    filter = serializers.CharField()


class NearOutput(serializers.Serializer[Any]):
    """A heading that may help when nothing was found."""

    title = serializers.CharField()
    heading_path = serializers.ListField(child=serializers.CharField())
    url = serializers.CharField()


class DegradedOutput(serializers.Serializer[Any]):
    """A stream that took no part, and why."""

    stream = serializers.CharField()
    reason = serializers.CharField()


class AnswerOutput(serializers.Serializer[Any]):
    """Rows of one fused list. ``total`` is its length; ``capped`` says that more may exist. ``neighbours`` and
    ``already_rejected`` stand beside them, on the first page only."""

    items = HitOutput(many=True)
    total = serializers.IntegerField()
    capped = serializers.BooleanField()
    next_cursor = serializers.CharField(allow_null=True)
    facets = FacetOutput(many=True)
    reason = EmptyOutput(allow_null=True)
    nearest = NearOutput(many=True)
    absent_words = serializers.ListField(child=serializers.CharField())
    dropped_terms = serializers.IntegerField()
    degraded = DegradedOutput(many=True)
    profile = serializers.CharField()
    blocks = BlockOutput(many=True)
    neighbours = NearPageOutput(many=True)
    already_rejected = RejectedOutput(many=True)


class DocumentRefOutput(serializers.Serializer[Any]):
    """The document of a chunk."""

    id = serializers.CharField()
    title = serializers.CharField()
    path = serializers.CharField()
    url = serializers.CharField()


class ChunkViewOutput(ChunkOutput):
    """A chunk with its document and source, and the chunks around it."""

    searched = serializers.CharField()
    truncated = serializers.BooleanField()
    url = serializers.CharField()
    estimated_tokens = serializers.IntegerField()
    document = DocumentRefOutput()
    belongs_to = SourceRefOutput()
    neighbours = ChunkOutput(many=True)


def present_answer(answer: Answer, *, filters: dict[str, str], explain: bool) -> dict[str, Any]:
    return {
        "items": [present_hit(hit, filters, explain=explain) for hit in answer.hits],
        "total": answer.total,
        "capped": answer.capped,
        "next_cursor": answer.next_cursor,
        "facets": [
            {
                "name": facet.name,
                "label": facet.label,
                "values": [{"value": one.value, "label": one.label, "count": one.count} for one in facet.values],
            }
            for facet in answer.facets
        ],
        "reason": present_empty(answer.empty),
        "nearest": [
            {"title": near.title, "heading_path": list(near.heading_path), "url": near.url} for near in answer.nearest
        ],
        "absent_words": list(answer.absent_words),
        "dropped_terms": answer.dropped_terms,
        "degraded": [{"stream": one.stream, "reason": one.reason} for one in answer.degraded],
        "profile": answer.profile,
        "blocks": [
            {"name": one.name, "strength": one.strength, "total": one.total, "capped": one.capped}
            for one in answer.blocks
        ],
        "neighbours": [present_near(one) for one in answer.neighbours],
        "already_rejected": [present_rejected(one) for one in answer.already_rejected],
    }


def present_empty(empty: Empty | None) -> dict[str, Any] | None:
    if empty is None:
        return None
    return {"code": empty.reason, "message": empty.message, "words": list(empty.words), "filter": empty.filter}


def present_hit(hit: Hit, filters: dict[str, str], *, explain: bool) -> dict[str, Any]:
    return {
        "layer": hit.layer,
        "chunk_id": str(hit.chunk_id) if hit.chunk_id else "",
        "document_id": str(hit.document_id),
        "source": present_source(hit.source),
        "title": hit.title,
        "path": hit.path,
        "kind": hit.kind,
        "heading_path": list(hit.heading_path),
        "anchor": hit.anchor,
        "start_line": hit.start_line,
        "end_line": hit.end_line,
        "location": hit.location,
        "url": hit.url,
        "chunk_url": hit.chunk_url,
        "snippet": present_snippet(hit.snippet),
        "tokens": hit.tokens,
        "version": hit.version,
        "text_time": hit.text_time,
        "checked_time": hit.checked_time,
        "stale_since": hit.stale_since,
        "why": {
            "streams": {name: present_place(found) for name, found in hit.streams.items()},
            "matched": [{"word": term.word, "fields": list(term.fields)} for term in hit.matched],
            "filters": filters,
            "name_class": hit.name_class,
            "score": {"fused": hit.fused, "page": hit.page, "factor": hit.factor, "final": hit.final}
            if explain
            else None,
        },
        "also_in": [
            {"source": present_source(place.source), "path": place.path, "url": place.url} for place in hit.also_in
        ],
        "also_in_more": hit.also_in_more,
        "status": hit.status,
        "replaced_by": [asdict(page) for page in hit.replaced_by],
        "symbol": {**asdict(hit.symbol), "id": str(hit.symbol.id)} if hit.symbol else None,
        "related_repo_doc_chunks": [
            {**asdict(one), "chunk_id": str(one.chunk_id), "document_id": str(one.document_id)} for one in hit.related
        ],
        "related_symbols": [present_symbol(one) for one in hit.code],
        "named_in_code": [present_literal(one) for one in hit.literals],
    }


def present_place(found: Found) -> dict[str, Any]:
    return {"rank": found.rank, "score": found.score, "state": found.state, "weight": found.weight}


def present_snippet(snippet: Snippet) -> dict[str, Any]:
    return {
        "text": snippet.text,
        "marks": [list(mark) for mark in snippet.marks],
        "start_line": snippet.start_line,
        "end_line": snippet.end_line,
        "start_byte": snippet.start_byte,
        "end_byte": snippet.end_byte,
        "cut_before": snippet.cut_before,
        "cut_after": snippet.cut_after,
        "truncated": snippet.truncated,
        "anchored": snippet.anchored,
    }


def present_chunk_view(view: ChunkView) -> dict[str, Any]:
    chunk, source = view.chunk, view.source
    return {
        **present_chunk(chunk, view.vectors[chunk.pk]),
        "searched": chunk.searched,
        "truncated": "truncated" in chunk.flags or view.vectors[chunk.pk].truncated,
        "url": view.url,
        "estimated_tokens": math.ceil(len(chunk.source.encode()) / 3),
        "document": {
            "id": str(view.document.pk),
            "title": view.document.title,
            "path": view.path,
            "url": view.document.get_absolute_url(),
        },
        "belongs_to": present_source(SourceRef(source.kind, source.pk, source.label, source.get_absolute_url())),
        "neighbours": [present_chunk(one, view.vectors[one.pk]) for one in view.around],
    }
