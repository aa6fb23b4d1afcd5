from __future__ import annotations

from django.apps import AppConfig


class KnowledgeGraphConfig(AppConfig):
    name = "apps.knowledge_graph"
    label = "knowledge_graph"
    verbose_name = "Knowledge graph"
