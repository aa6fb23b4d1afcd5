"""REST: searching, and reading the chunk that was found. The same search as the page's."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from rest_framework.response import Response

from apps.access.errors import Invalid
from apps.access.rest import problems
from apps.access.rest.etags import etag_of, not_modified, tagged
from apps.access.rest.views import ApiView, Door
from apps.access.sources import find_source
from apps.access.viewers import Viewer
from apps.collections.api import InCollection
from apps.repos.api import InRepository
from apps.repos.models import Repository
from apps.retrieval import api_inputs as take
from apps.retrieval import api_values as shape
from apps.retrieval import query_log
from apps.retrieval.chunk_reading import ChunkGone, read_chunk
from apps.retrieval.models import Door as QueryDoor
from apps.retrieval.search import search
from apps.retrieval.suggesting import suggest
from apps.retrieval.values import Filters, Question

EMPTY = {422: ("required",)}


class Searching(ApiView):
    """Common to the endpoints that search."""

    def answered(self, question: Question) -> Response:
        with query_log.noting(
            by=self.request.user, door=QueryDoor.REST, tool="search", query=question.query, named=question.sources
        ) as note:
            answer = search(viewer=self.viewer, question=question)
            note.answered((hit.source.kind, hit.source.id) for hit in answer.hits)
        return Response(shape.present_answer(answer, filters=question.filters.active, explain=question.explain))


class SearchView(Searching):
    doors = {
        "POST": Door(
            right="read",
            summary="Search every readable source, or the named ones",
            description="What the search page shows: one fused list over every store, with facets. Named sources that "
            "the caller cannot read answer 404, like those that do not exist.",
            input=take.SearchInput,
            output=shape.AnswerOutput,
            bucket="search",
            codes={404: ("not_found",), **EMPTY},
        )
    }

    def post(self, request: Any) -> Response:
        asked = self.body()
        filters = Filters(
            kinds=frozenset(asked["kinds"]),
            since=day(asked["since"], "since"),
            until=day(asked["until"], "until"),
            **{name: asked[name] for name in ("path", "language", "tag", "type", "status")},
        )
        return self.answered(_question(asked, sources=named(asked["sources"], self.viewer), filters=filters))


class RepositorySearchView(InRepository, Searching):
    doors = {
        "POST": Door(
            right="read",
            summary="Search one repository",
            input=take.RepositorySearchInput,
            output=shape.AnswerOutput,
            bucket="search",
            codes=EMPTY,
        )
    }

    def post(self, request: Any, **names: Any) -> Response:
        asked = self.body()
        filters = Filters(path=asked["path"], since=day(asked["since"], "since"), until=day(asked["until"], "until"))
        mode = "docs" if asked["mode"] == "wiki" else asked["mode"]
        sources = ((Repository.kind, self.repository.pk),)
        return self.answered(
            _question(asked, sources=sources, filters=filters, mode=mode, snippet_chars=asked["snippet_chars"])
        )


class CollectionSearchView(InCollection, Searching):
    doors = {
        "POST": Door(
            right="read",
            summary="Search one collection",
            input=take.CollectionSearchInput,
            output=shape.AnswerOutput,
            bucket="search",
            codes=EMPTY,
        )
    }

    def post(self, request: Any, collection_id: UUID) -> Response:
        asked = self.body()
        sources = ((self.collection.kind, self.collection.pk),)
        return self.answered(_question(asked, sources=sources, snippet_chars=asked["snippet_chars"]))


class SuggestView(ApiView):
    doors = {
        "GET": Door(
            right="read",
            summary="Titles, headings and symbols that begin as typed",
            query=take.SuggestQuery,
            output=shape.SuggestionsOutput,
        )
    }

    def get(self, request: Any) -> Response:
        return Response({"items": [asdict(one) for one in suggest(self.viewer, self.query["q"])]})


class ChunkView(ApiView):
    doors = {
        "GET": Door(
            right="read",
            summary="One chunk of any store, with its neighbours",
            description="A chunk that its document no longer has answers 410 with the document, the heading path and "
            "the chunk that stands in its place.",
            query=take.ChunkQuery,
            output=shape.ChunkViewOutput,
            tagged=True,
            codes={410: ("gone",)},
        )
    }

    def get(self, request: Any, chunk_id: int) -> Any:
        try:
            view = read_chunk(self.viewer, chunk_id, neighbours=self.query["neighbours"])
        except ChunkGone as gone:
            body = {
                **problems.body_of(gone),
                "heading_path": list(gone.heading_path),
                "document_url": gone.document_url,
                "successor": str(gone.successor) if gone.successor is not None else None,
            }
            return Response(body, status=gone.status, content_type=problems.MEDIA_TYPE)
        answer = shape.present_chunk_view(view)
        etag = etag_of(repr(answer))
        return not_modified(request, etag) or tagged(Response(answer), etag)


def _question(asked: dict[str, Any], **more: Any) -> Question:
    return Question(
        query=asked["query"], limit=asked["limit"], cursor=asked["cursor"] or None, explain=asked["explain"], **more
    )


def named(values: Sequence[str], viewer: Viewer) -> tuple[tuple[str, UUID], ...]:
    """The sources that a body names. Raises Invalid for what is no name, NotFound alike for hidden and absent ones."""
    found: dict[tuple[str, UUID], None] = {}
    for place, value in enumerate(values):
        kind, colon, name = value.partition(":")
        if not colon or not name:
            raise Invalid(
                "A source is named repository:host/owner/name, repository:id or collection:id.",
                field=f"sources[{place}]",
            )
        if kind == Repository.kind and "/" in name:
            source = Repository.objects.get_for(viewer, slug__iexact=name)
        else:
            source = find_source(kind, name, viewer)
        found[source.kind, source.pk] = None
    return tuple(found)


def day(text: str, field: str) -> datetime.date | None:
    """Raises Invalid for what is no day."""
    if not text:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise Invalid("A day is written 2026-05-03.", field=field) from None
