from __future__ import annotations

from django.apps import AppConfig


class IndexingConfig(AppConfig):
    name = "apps.indexing"
    label = "indexing"
    verbose_name = "Indexing"

    def ready(self) -> None:
        from apps.indexing import upkeep

        upkeep.register()
