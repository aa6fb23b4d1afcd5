from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "apps.jobs"
    label = "jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        from apps.jobs import housekeeping

        housekeeping.register()
