from __future__ import annotations

from django.apps import AppConfig


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    label = "collections"
    verbose_name = "Collections"

    def ready(self) -> None:
        from apps.access.sources import register_source
        from apps.access.view_as import register_documents
        from apps.collections import findings, tasks
        from apps.collections.models import (
            Collection,
            CollectionGroupGrant,
            CollectionUserGrant,
            Document,
            DocumentChunk,
        )
        from apps.indexing.stores import ChunkStore, register_store
        from apps.jobs.kinds import JobKind, register_kind, register_prune, register_purge

        register_source(Collection, user_grants=CollectionUserGrant, group_grants=CollectionGroupGrant)
        register_documents(Document)
        register_store(
            ChunkStore(
                name="md_collections",
                model=DocumentChunk,
                source_kind=Collection.kind,
                source_field="collection",
                path_field="document__source_key",
                label_field="name",
            )
        )
        register_kind(
            JobKind(
                name="upload",
                run=tasks.run_upload,
                sources=frozenset({Collection.kind}),
                payload_ready=tasks.payload_ready,
                prune=tasks.prune_uploads,
            )
        )
        register_kind(JobKind(name="resolve_links", run=tasks.run_resolve_links, sources=frozenset({Collection.kind})))
        register_prune(tasks.prune_trash)
        findings.register()
        register_purge(tasks.purge, sources=[Collection.kind])
