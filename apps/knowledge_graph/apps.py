from __future__ import annotations

from django.apps import AppConfig


class KnowledgeGraphConfig(AppConfig):
    name = "apps.knowledge_graph"
    label = "knowledge_graph"
    verbose_name = "Knowledge graph"

    def ready(self) -> None:
        from apps.indexing.findings import register_finder
        from apps.indexing.observers import register_document_observer
        from apps.jobs.kinds import JobKind, register_kind, register_purge
        from apps.knowledge_graph import tasks
        from apps.knowledge_graph.lint import FINDER
        from apps.knowledge_graph.observing import GraphObserver
        from apps.knowledge_graph.storing.sources import KINDS

        sources = frozenset(KINDS)
        register_document_observer(GraphObserver())
        register_kind(
            JobKind(
                name=tasks.PROJECT_DOCUMENT,
                run=tasks.project_document,
                sources=sources,
                deadline=tasks.DOCUMENT_DEADLINE,
                waits=tasks.waits,
                folded=True,
            )
        )
        register_kind(JobKind(name=tasks.PROJECT_GRAPH, run=tasks.project_graph, sources=sources, every=tasks.outdated))
        register_kind(
            JobKind(
                name="lint_graph",
                run=tasks.lint_graph,
                sources=sources,
                after=(tasks.PROJECT_DOCUMENT, tasks.PROJECT_GRAPH),
            )
        )
        register_kind(
            JobKind(name=tasks.PROPOSE_EDGES, run=tasks.propose_edges, sources=sources, every=tasks.unproposed)
        )
        register_finder(FINDER)
        register_purge(tasks.purge, sources=KINDS)
