"""Addresses of the REST endpoints of jobs, below ``/api/``."""

from __future__ import annotations

from django.urls import path

from apps.jobs import api

urlpatterns = [
    path("jobs", api.JobsView.as_view()),
    path("jobs/<uuid:job_id>", api.JobView.as_view()),
    path("jobs/<uuid:job_id>/items", api.JobItemsView.as_view()),
    path("jobs/<uuid:job_id>/cancel", api.JobCancelView.as_view()),
    path("jobs/<uuid:job_id>/retry", api.JobRetryView.as_view()),
]
