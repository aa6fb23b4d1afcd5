"""REST: where to look, ranked passages, packs for a task, and why a document is where it is."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.response import Response

from apps.access.errors import NotFound
from apps.access.rest.views import ApiView, Door
from apps.access.sources import find_source
from apps.access.viewers import Viewer
from apps.collections.models import Collection
from apps.repos.models import Repository
from apps.retrieval import api_inputs, query_log
from apps.retrieval import api_question_values as shape
from apps.retrieval.api import EMPTY, day, named
from apps.retrieval.api_values import AnswerOutput, present_answer
from apps.retrieval.context import context
from apps.retrieval.explaining import explain
from apps.retrieval.models import Door as QueryDoor
from apps.retrieval.routing import route
from apps.retrieval.search import retrieve
from apps.retrieval.values import Filters, Mode, Question

NOT_FOUND = {404: ("not_found",), **EMPTY}


class RouteView(ApiView):
    doors = {
        "POST": Door(
            right="read",
            summary="Which repositories and collections are about a question",
            description="Scores from term statistics alone. Collections always fill the list, those under 0.3 marked "
            "weak; repositories that hold no word of the question are left out.",
            input=api_inputs.RouteInput,
            output=shape.RoutesOutput,
            bucket="search",
            codes=EMPTY,
        )
    }

    def post(self, request: Any) -> Response:
        asked = self.body()
        with query_log.noting(by=request.user, door=QueryDoor.REST, tool="route", query=asked["query"]) as note:
            found = route(viewer=self.viewer, query=asked["query"], top_k=asked["top_k"])
            strong = [one for one in (*found.repositories, *found.collections) if not one.weak]
            note.answered((one.kind, one.id) for one in strong)
        return Response(shape.present_routes(found))


class RetrieveView(ApiView):
    doors = {
        "POST": Door(
            right="read",
            summary="Ranked passages of documents and of code",
            description="Two blocks, the better one first, each of at most `top_k` rows; neither displaces the other.",
            input=api_inputs.RetrieveInput,
            output=AnswerOutput,
            bucket="search",
            codes=NOT_FOUND,
        )
    }

    def post(self, request: Any) -> Response:
        asked = self.body()
        repository = _repository(self.viewer, asked["repository"])
        question = Question(
            query=asked["query"],
            mode=mode(asked["mode"]),
            sources=((Repository.kind, repository),) if repository else (),
            filters=Filters(path=asked["path"], since=day(asked["since"], "since"), until=day(asked["until"], "until")),
            limit=asked["top_k"],
            cursor=asked["cursor"] or None,
            snippet_chars=asked["snippet_chars"],
            explain=asked["explain"],
            related=asked["related"],
        )
        with query_log.noting(
            by=request.user, door=QueryDoor.REST, tool="retrieve", query=question.query, named=question.sources
        ) as note:
            answer = retrieve(viewer=self.viewer, question=question)
            note.answered((hit.source.kind, hit.source.id) for hit in answer.hits)
        return Response(present_answer(answer, filters=question.filters.active, explain=question.explain))


class ContextView(ApiView):
    doors = {
        "POST": Door(
            right="read",
            summary="The sections that a task needs, as one text under a token budget",
            description="The same text as the context page and the agents' tool give. Tokens are UTF-8 bytes / 3.",
            input=api_inputs.ContextInput,
            output=shape.PackOutput,
            bucket="search",
            codes=NOT_FOUND,
        )
    }

    def post(self, request: Any) -> Response:
        asked = self.body()
        repository = _repository(self.viewer, asked["repository"])
        collection = find_source(Collection.kind, asked["collection"], self.viewer).pk if asked["collection"] else None
        sources = [(Repository.kind, repository), (Collection.kind, collection)]
        with query_log.noting(
            by=request.user,
            door=QueryDoor.REST,
            tool="context",
            query=asked["task"],
            named=[(kind, id_) for kind, id_ in sources if id_ is not None],
        ) as note:
            pack = context(
                viewer=self.viewer,
                task=asked["task"],
                max_tokens=asked["max_tokens"],
                repository=repository,
                collection=collection,
            )
            note.answered(((part.source.kind, part.source.id) for part in pack.parts), tokens=pack.tokens)
        return Response(shape.present_pack(pack))


class ExplainView(ApiView):
    doors = {
        "POST": Door(
            right="read",
            summary="Why a document stands where it does, or why it took no part",
            description="Rank and score of its best row in each stream, the three rows above it, or the first reason "
            "that kept it out. A hidden document and one that does not exist answer alike.",
            input=api_inputs.ExplainInput,
            output=shape.ExplanationOutput,
            bucket="search",
            codes=NOT_FOUND,
        )
    }

    def post(self, request: Any) -> Response:
        asked = self.body()
        try:
            document = UUID(asked["document"])
        except ValueError:
            raise NotFound from None
        question = Question(
            query=asked["query"],
            mode=mode(asked["mode"]),
            sources=named(asked["sources"], self.viewer),
            filters=Filters(
                kinds=frozenset(asked["kinds"]),
                since=day(asked["since"], "since"),
                until=day(asked["until"], "until"),
                **{name: asked[name] for name in ("path", "language", "tag", "type", "status")},
            ),
        )
        return Response(shape.present_explanation(explain(viewer=self.viewer, question=question, document=document)))


def mode(word: str) -> Mode:
    return "docs" if word in ("docs", "wiki") else "code" if word == "code" else "mixed"


def _repository(viewer: Viewer, slug: str) -> UUID | None:
    """Raises NotFound alike for a hidden and an absent one."""
    if not slug:
        return None
    found: UUID = Repository.objects.get_for(viewer, slug__iexact=slug).pk
    return found
