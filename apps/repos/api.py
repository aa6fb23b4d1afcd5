"""REST: repositories, their syncs, reports, held deletions and grants. What they hold stands in ``api_reading``."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.response import Response

from apps.access import rules
from apps.access.compiled import MARK_OF_NOW, MARK_OF_TEXT, ReadableRows
from apps.access.errors import NotFound
from apps.access.models import TokenScope
from apps.access.rest.cursors import page_of_rows
from apps.access.rest.etags import check_if_match, etag_of, not_modified, tagged
from apps.access.rest.grant_views import SourceGrantsView, SourceGrantView
from apps.access.rest.schema import list_of
from apps.access.rest.strict import ListQuery
from apps.access.rest.views import ApiView, Door
from apps.access.rules import Right
from apps.indexing.api_values import EmbedInput
from apps.indexing.embedding.jobs import request as request_embedding
from apps.jobs.api import JobListQuery, job_page, queued
from apps.jobs.api_values import JobOutput, QueuedJobOutput
from apps.jobs.api_values import present_line as present_job
from apps.jobs.models import Job
from apps.jobs.presentation import JobLine
from apps.repos import api_inputs as take
from apps.repos import api_values as shape
from apps.repos import catalogue, registration, statistics
from apps.repos.catalogue import counted
from apps.repos.changes import apply_changes
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.querysets import overdue_before
from apps.repos.reports import report_of

WRITE = TokenScope.WRITE
CHANGES = ("created", "replaced", "moved", "removed", "held")
SHOWN_PATHS = 100
QUEUED: dict[str, Any] = {
    "scope": WRITE,
    "output": QueuedJobOutput,
    "status": 202,
    "also": (200,),
    "creates": True,
    "codes": {429: ("too_many_jobs",)},
}


_AT_SLUG: ReadableRows[Repository] = ReadableRows(
    lambda viewer, slug, *_: counted(Repository.objects.visible_to(viewer), MARK_OF_NOW).filter(slug__iexact=slug),
    MARK_OF_TEXT,
    *overdue_before(MARK_OF_NOW),
)


class InRepository(ApiView):
    """Below one repository: looked up by the caller's scope before anything else."""

    repository: Any

    def authorize(self, **names: Any) -> None:
        slug = f"{names['host']}/{names['owner']}/{names['name']}"
        if self.door.right == Right.READ:
            found: Any = _AT_SLUG.first(self.viewer, slug, *overdue_before(timezone.now()))
            if found is None:
                raise NotFound
            self.repository = self.source = found
            return
        rows = counted(Repository.objects.all())
        self.repository = self.source = rows.get_for(self.viewer, Right(self.door.right), slug__iexact=slug)

    def question(self, **more: Any) -> dict[str, Any]:
        """What a cursor of a list below this repository is bound to."""
        return {**self.query, **more, "repository": str(self.repository.pk), "path_info": self.request.path}


class RepositoriesView(ApiView):
    doors = {
        "GET": Door(
            right="read",
            summary="Repositories that the caller may read",
            query=take.RepositoryQuery,
            output=shape.RepositoryPage,
        ),
        "POST": Door(
            right="administer",
            summary="Register a repository and queue its first sync",
            scope=WRITE,
            input=take.RepositoryInput,
            output=shape.RegisteredOutput,
            status=201,
            creates=True,
            codes={409: ("conflict",), 429: ("too_many_jobs",)},
        ),
    }

    def get(self, request: Any) -> Response:
        asked = self.query
        page = catalogue.page_of(
            self.viewer,
            question=asked,
            search=asked["q"],
            state=asked.get("state") or "",
            host=asked["host"],
            visibility=asked.get("visibility") or "",
        )
        return Response(page.body(shape.present_line))

    def post(self, request: Any) -> Response:
        asked = self.body()
        credential = asked.pop("credential", None)
        made = registration.register_repository(
            by=self.user, credential=registration.NewCredential(**credential) if credential else None, **asked
        )
        row = counted(Repository.objects.all()).get(pk=made.repository.pk)
        job = present_job(JobLine(made.job, made.repository))
        return Response(
            {**whole(row, self.viewer), "job": job}, status=201, headers={"Location": f"/api/repos/{row.slug}"}
        )


def whole(repository: Any, viewer: Any) -> dict[str, Any]:
    return shape.present_repository(
        repository,
        counts=statistics.counts(repository),
        languages=statistics.languages(repository),
        administers=rules.is_administrator(viewer),
    )


class RepositoryView(InRepository):
    doors = {
        "GET": Door(right="read", summary="One repository", output=shape.RepositoryOutput, tagged=True),
        "PATCH": Door(
            right="write",
            summary="Change a repository",
            description="A description takes the right to write, all else an administrator. All changes or none.",
            scope=WRITE,
            input=take.RepositoryChanges,
            output=shape.RepositoryOutput,
            tagged=True,
        ),
        "DELETE": Door(
            right="administer",
            of_source=True,
            summary="Hide a repository from everybody at once, and remove its rows by a job",
            scope=WRITE,
            status=204,
        ),
    }

    def _etag(self) -> str:
        held = self.repository
        settings = [getattr(held, name) for name in sorted(registration.SETTINGS)]
        return etag_of(
            held.pk, held.visibility, held.owner_id, held.synced_commit, held.last_checked_at, held.state,
            held.is_syncing, held.is_stale, held.credential_kind, held.next_sync_at, held.documents_count,
            rules.is_administrator(self.viewer), *settings,
        )  # fmt: skip

    def get(self, request: Any, **names: Any) -> Any:
        etag = self._etag()
        return not_modified(request, etag) or tagged(Response(whole(self.repository, self.viewer)), etag)

    def patch(self, request: Any, **names: Any) -> Response:
        check_if_match(request, self._etag())
        changes = self.body()
        if "query_log_opt_out" in changes:
            changes["logs_queries"] = not changes.pop("query_log_opt_out")
        apply_changes(repository=self.repository, by=self.user, changes=changes)
        self.repository = counted(Repository.objects.all()).get(pk=self.repository.pk)
        return tagged(Response(whole(self.repository, self.viewer)), self._etag())

    def delete(self, request: Any, **names: Any) -> Response:
        registration.delete_repository(repository=self.repository, by=self.user)
        return Response(status=204)


class SyncView(InRepository):
    doors = {"POST": Door(right="write", summary="Sync now, or join the live sync", input=take.SyncInput, **QUEUED)}

    def post(self, request: Any, **names: Any) -> Response:
        force = self.body()["force"]
        return queued(self, registration.request_sync(repository=self.repository, by=self.user, force=force))


class RechunkView(InRepository):
    doors = {"POST": Door(right="write", summary="Read and cut every document again, by a sync", **QUEUED)}

    def post(self, request: Any, **names: Any) -> Response:
        return queued(self, registration.request_chunk_anew(repository=self.repository, by=self.user))


class ReembedView(InRepository):
    doors = {
        "POST": Door(
            right="write", summary="Make the vectors that are missing, or all anew", input=EmbedInput, **QUEUED
        )
    }

    def post(self, request: Any, **names: Any) -> Response:
        again = self.body()["force"]
        return queued(self, request_embedding(self.repository, again=again, by=self.user))


class HeldDeletionsView(InRepository):
    doors = {
        "GET": Door(
            right="read", summary="Documents whose deletion waits for a writer", query=ListQuery, output=shape.HeldPage
        ),
        "POST": Door(
            right="write", summary="Let held deletions happen, or keep the documents", input=take.DeletionsInput,
            **QUEUED,
        ),
    }  # fmt: skip

    def get(self, request: Any, **names: Any) -> Response:
        rows = RepositoryDocument.objects.visible_to(self.viewer).filter(repository=self.repository).held()
        rows = rows.only("id", "path", "title", "slug", "absent_commit", "absent_since")
        page = page_of_rows(rows, order=("path", "id"), viewer=self.viewer, question=self.question())
        return Response(page.body(lambda document: shape.present_held(self.repository, document)))

    def post(self, request: Any, **names: Any) -> Response:
        asked = self.body()
        act = registration.approve_deletions if asked["action"] == "approve" else registration.discard_deletions
        return queued(self, act(repository=self.repository, by=self.user, documents=asked.get("documents")))


class ReportView(InRepository):
    doors = {
        "GET": Door(
            right="read",
            summary="What the latest sync, or the one that `job` names, did",
            query=take.ReportQuery,
            output=shape.ReportOutput,
        )
    }

    def get(self, request: Any, **names: Any) -> Response:
        found = report_of(self.repository, self.query.get("job"))
        changes = []
        for state in CHANGES:
            items = found.job.items.filter(state=state).order_by("path")
            paths = list(items.values_list("path", flat=True)[:SHOWN_PATHS])
            if paths:
                changes.append({"state": state, "count": found.states.get(state, 0), "paths": paths})
        return Response(shape.present_report(found, present_job(JobLine(found.job, self.repository)), changes))


class RepositoryJobsView(InRepository):
    doors = {
        "GET": Door(
            right="read", summary="Jobs of a repository, newest first", query=JobListQuery, output=list_of(JobOutput)
        )
    }

    def get(self, request: Any, **names: Any) -> Response:
        return job_page(self, Job.objects.visible_to(self.viewer).of_source(Repository.kind, self.repository.pk))


class RepositoryGrantsView(InRepository, SourceGrantsView):
    """Who may read and write a repository."""


class RepositoryGrantView(InRepository, SourceGrantView):
    """One grant on a repository."""
