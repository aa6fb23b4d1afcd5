"""REST: jobs, vectors and grants of collections."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.response import Response

from apps.access.models import TokenScope
from apps.access.rest.grant_views import SourceGrantsView, SourceGrantView
from apps.access.rest.schema import list_of
from apps.access.rest.views import ApiView, Door
from apps.collections import api_values as shape
from apps.collections.api import InCollection
from apps.collections.coverage import coverage_of
from apps.collections.models import Collection, Document, DocumentState
from apps.indexing.api_values import EmbedInput
from apps.indexing.embedding.jobs import request as request_embedding
from apps.jobs import control
from apps.jobs.api import JobListQuery, job_page, queued, retried
from apps.jobs.api_values import JobOutput, QueuedJobOutput
from apps.jobs.models import Job

QUEUED: dict[str, Any] = {
    "scope": TokenScope.WRITE,
    "output": QueuedJobOutput,
    "status": 202,
    "also": (200,),
    "creates": True,
}


class CollectionJobsView(InCollection):
    doors = {
        "GET": Door(
            right="read", summary="Jobs of a collection, newest first", query=JobListQuery, output=list_of(JobOutput)
        )
    }

    def get(self, request: Any, collection_id: UUID) -> Response:
        return job_page(self, Job.objects.visible_to(self.viewer).of_source(Collection.kind, collection_id))


class AllCollectionJobsView(ApiView):
    doors = {
        "GET": Door(
            right="read",
            summary="Jobs of every readable collection, newest first",
            query=JobListQuery,
            output=list_of(JobOutput),
        )
    }

    def get(self, request: Any) -> Response:
        return job_page(self, Job.objects.visible_to(self.viewer).filter(source_kind=Collection.kind))


class CollectionJobRetryView(ApiView):
    """A job of another kind of source is as absent here as a hidden one."""

    job: Job
    doors = {
        "POST": Door(
            right="write",
            summary="Do again what a job of a collection did not do; a live job of the same object is returned",
            codes={409: ("conflict", "payload_expired"), 429: ("too_many_jobs",)},
            **QUEUED,
        )
    }

    def authorize(self, **names: Any) -> None:
        rows = Job.objects.select_related("requested_by").filter(source_kind=Collection.kind)
        self.job = rows.get_for(self.viewer, pk=names["job_id"])
        control.check_may_write(self.job, self.viewer)

    def post(self, request: Any, job_id: UUID) -> Response:
        return retried(self, self.job)


class EmbedStatusView(InCollection):
    doors = {
        "GET": Door(right="read", summary="How far the vectors of a collection are", output=shape.EmbedStatusOutput)
    }

    def get(self, request: Any, collection_id: UUID) -> Response:
        documents = Document.objects.visible_to(self.viewer).filter(collection=self.collection)
        truncated = documents.filter(state=DocumentState.TRUNCATED).count()
        return Response(shape.present_embed_status(coverage_of(self.collection), truncated))


class CollectionReembedView(InCollection):
    doors = {
        "POST": Door(
            right="write",
            summary="Make the vectors that are missing, or all anew",
            input=EmbedInput,
            codes={429: ("too_many_jobs",)},
            **QUEUED,
        )
    }

    def post(self, request: Any, collection_id: UUID) -> Response:
        again = self.body()["force"]
        return queued(self, request_embedding(self.collection, again=again, by=self.user))


class CollectionGrantsView(InCollection, SourceGrantsView):
    """Who may read and write a collection."""


class CollectionGrantView(InCollection, SourceGrantView):
    """One grant on a collection."""
