"""REST: the query log: everyone's own rows, and all of them with figures for administrators."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from apps.access.models import TokenScope
from apps.access.rest.cursors import page_of_rows
from apps.access.rest.schema import list_of
from apps.access.rest.strict import Choice, Integer, ListQuery, StrictSerializer, Text
from apps.access.rest.views import ApiView, Door
from apps.retrieval import query_log
from apps.retrieval.models import Door as QueryDoor
from apps.retrieval.models import Outcome


class QueryLogQuery(ListQuery):
    """Which queries."""

    outcome = Choice(Outcome.choices, required=False)
    door = Choice(QueryDoor.choices, required=False)
    q = Text(max_length=200, default="", query_text=True, help_text="Part of the query.")


class AllQueriesQuery(QueryLogQuery):
    """Which queries of whom."""

    user = Text(max_length=150, default="")


class StatisticsQuery(StrictSerializer):
    """Over how many days."""

    days = Integer(min_value=1, max_value=400, default=7)


class LoggedSourceOutput(serializers.Serializer[Any]):
    """A source; ``label`` is null when the caller cannot read it now."""

    key = serializers.CharField()
    label = serializers.CharField(allow_null=True)  # type: ignore[assignment]


class QueryOutput(serializers.Serializer[Any]):
    """One logged query."""

    id = serializers.CharField()
    at = serializers.DateTimeField()
    user = serializers.CharField()
    token = serializers.CharField(allow_null=True)
    door = serializers.CharField()
    tool = serializers.CharField()
    query = serializers.CharField()
    named = LoggedSourceOutput(many=True)
    found = LoggedSourceOutput(many=True)
    outcome = serializers.CharField()
    code = serializers.CharField()
    results = serializers.IntegerField()
    tokens = serializers.IntegerField()
    milliseconds = serializers.IntegerField()


class CountedOutput(serializers.Serializer[Any]):
    """A query or source and its number: how often, or milliseconds."""

    name = serializers.CharField()
    number = serializers.IntegerField()


class StatisticsOutput(serializers.Serializer[Any]):
    """Figures of the last ``days``; percentiles in milliseconds, null without rows."""

    days = serializers.IntegerField()
    queries = serializers.IntegerField()
    anonymous = serializers.IntegerField()
    outcomes = serializers.DictField(child=serializers.IntegerField())
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    zero_hit = CountedOutput(many=True)
    slowest = CountedOutput(many=True)
    sources = CountedOutput(many=True)


def _page(view: ApiView, rows: Any) -> Response:
    asked = view.query
    for name in ("outcome", "door"):
        if asked.get(name):
            rows = rows.filter(**{name: asked[name]})
    if asked["q"]:
        rows = rows.filter(query__icontains=asked["q"])
    rows = rows.select_related("user", "token")
    page = page_of_rows(rows, order=("-at", "id"), viewer=view.user, question={**asked, "path": view.request.path})
    labels = query_log.labels(page.items, view.viewer)

    def sources(keys: list[str]) -> list[dict[str, Any]]:
        return [{"key": key, "label": labels.get(key)} for key in keys]

    def present(row: Any) -> dict[str, Any]:
        return {
            "id": str(row.pk),
            "at": row.at,
            "user": row.user.get_username(),
            "token": row.token.name if row.token else None,
            "door": row.door,
            "tool": row.tool,
            "query": row.query,
            "named": sources(row.named),
            "found": sources(row.found),
            "outcome": row.outcome,
            "code": row.code,
            "results": row.results,
            "tokens": row.tokens,
            "milliseconds": row.milliseconds,
        }

    return Response(page.body(present))


class MyQueryLogView(ApiView):
    doors = {
        "GET": Door(
            right="self", summary="The caller's logged queries", query=QueryLogQuery, output=list_of(QueryOutput)
        ),
        "DELETE": Door(right="self", summary="Erase the caller's logged queries", scope=TokenScope.WRITE, status=204),
    }

    def get(self, request: Any) -> Response:
        return _page(self, query_log.own_rows(self.user))

    def delete(self, request: Any) -> Response:
        query_log.erase(self.user)
        return Response(status=204)


class QueryLogView(ApiView):
    doors = {
        "GET": Door(
            right="administer",
            summary="Every logged query, newest first",
            query=AllQueriesQuery,
            output=list_of(QueryOutput),
        )
    }

    def get(self, request: Any) -> Response:
        rows = query_log.all_rows()
        if self.query["user"]:
            rows = rows.filter(user__username=self.query["user"])
        return _page(self, rows)


class QueryStatisticsView(ApiView):
    doors = {
        "GET": Door(
            right="administer",
            summary="Queries without hits, slow ones, percentiles, and the sources found most often",
            query=StatisticsQuery,
            output=StatisticsOutput,
        )
    }

    def get(self, request: Any) -> Response:
        found = asdict(query_log.statistics(days=self.query["days"]))
        for name in ("zero_hit", "slowest", "sources"):
            found[name] = [{"name": one, "number": number} for one, number in found[name]]
        return Response(found)
