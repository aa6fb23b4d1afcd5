"""The app that brings the breaking kinds into real workers."""

from __future__ import annotations

from django.apps import AppConfig


class BreakingKinds(AppConfig):
    name = "tests.jobs.breaking_app"
    label = "breaking_kinds"

    def ready(self) -> None:
        from django_q.signals import post_execute_in_worker

        from tests.jobs import breaking_kinds

        post_execute_in_worker.connect(breaking_kinds.after_finish, dispatch_uid="after_finish")
        breaking_kinds.register()
