from __future__ import annotations

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"
    label = "retrieval"
    verbose_name = "Retrieval"

    def ready(self) -> None:
        from apps.indexing.profiles import register_gate
        from apps.indexing.stores import register_store
        from apps.jobs.kinds import JobKind, register_kind, register_prune, register_purge
        from apps.retrieval import duplicate_findings, query_log, routing
        from apps.retrieval.evaluation import gates
        from apps.retrieval.evaluation.shelf import CODE_OF_SETS, EvaluationCodeShelf
        from apps.retrieval.shelf_reading import add_shelf

        register_store(CODE_OF_SETS)
        add_shelf(EvaluationCodeShelf())
        register_gate(gates.check)

        duplicate_findings.register()
        register_prune(query_log.prune)
        register_kind(
            JobKind("describe_source", routing.refresh_lead, sources=frozenset({"repository"}), after=("sync",))
        )
        register_purge(routing.remove_lead, sources=["repository"])
