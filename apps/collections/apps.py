from __future__ import annotations

from django.apps import AppConfig


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    label = "collections"
    verbose_name = "Collections"
