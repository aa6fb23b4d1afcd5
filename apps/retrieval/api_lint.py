"""REST: every finding of one source, merged from all rooms."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from rest_framework import serializers
from rest_framework.response import Response

from apps.access.rest.cursors import page_of_list
from apps.access.rest.schema import list_of
from apps.access.rest.strict import Choice, ListQuery, Text
from apps.access.rest.views import ApiView, Door
from apps.access.sources import Source
from apps.collections.api import InCollection
from apps.indexing.findings import SEVERITIES, Finding, Severity, findings
from apps.indexing.findings_output import as_json
from apps.repos.api import InRepository


class LintQuery(ListQuery):
    """Filters of findings."""

    rule = Text(max_length=60, default="", help_text="A rule id, such as `link_broken` or `KG101`.")
    severity = Choice(SEVERITIES, required=False)


class FindingOutput(serializers.Serializer[Any]):
    """One thing to repair. Lines and columns count from 1; ``replacement`` is the repaired line, where one is known.
    ``since`` and ``first_commit``: when and at which commit it was first met; null until a job has looked."""

    rule = serializers.CharField()
    severity = serializers.ChoiceField(choices=SEVERITIES)
    message = serializers.CharField()
    hint = serializers.CharField()
    path = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    document = serializers.CharField(allow_null=True)
    fingerprint = serializers.CharField()
    replacement = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField(allow_null=True)
    first_commit = serializers.CharField(allow_null=True)


class Linting(ApiView):
    """Common to both kinds of source."""

    doors = {
        "GET": Door(
            right="read",
            summary="Every finding: links, anchors, drift, undocumented symbols, parse warnings, graph rules",
            description="Worst first, then by path and line. Only what the caller may read is looked at: a link to a "
            "hidden document is found like one to a missing document.",
            query=LintQuery,
            output=list_of(FindingOutput),
        )
    }

    def answered(self, source: Source) -> Response:
        rules = [self.query["rule"]] if self.query["rule"] else []
        severity = cast("Severity | None", self.query.get("severity") or None)
        rows = findings(self.viewer, source, rules=rules, severity=severity)
        question = {**self.query, "source": str(source.pk), "lint": "1"}
        page = page_of_list(rows, viewer=self.viewer, question=question)
        return Response(page.body(_shown))


def _shown(finding: Finding) -> dict[str, Any]:
    return as_json([finding])[0]


class RepositoryLintView(InRepository, Linting):
    doors = Linting.doors

    def get(self, request: Any, **names: Any) -> Response:
        return self.answered(self.repository)


class CollectionLintView(InCollection, Linting):
    doors = Linting.doors

    def get(self, request: Any, collection_id: UUID) -> Response:
        return self.answered(self.collection)
