"""Addresses of the job pages."""

from __future__ import annotations

from django.urls import path

from apps.jobs import views

app_name = "jobs"

urlpatterns = [
    path("jobs", views.job_list, name="list"),
    path("docs/jobs", views.job_list, {"source_kind": "collection"}, name="of-collections"),
    path("jobs/<uuid:job_id>", views.job_page, name="job"),
    path("jobs/<uuid:job_id>/cancel", views.cancel, name="cancel"),
    path("jobs/<uuid:job_id>/retry", views.retry, name="retry"),
]
