from __future__ import annotations

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"
    label = "retrieval"
    verbose_name = "Retrieval"

    def ready(self) -> None:
        from apps.jobs.kinds import register_prune
        from apps.retrieval import query_log

        register_prune(query_log.prune)
