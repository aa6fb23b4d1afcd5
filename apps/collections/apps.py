from __future__ import annotations

from django.apps import AppConfig


class CollectionsConfig(AppConfig):
    name = "apps.collections"
    label = "collections"
    verbose_name = "Collections"

    def ready(self) -> None:
        from apps.access.sources import register_source
        from apps.collections.models import Collection, CollectionGroupGrant, CollectionUserGrant, DocumentChunk
        from apps.indexing.stores import ChunkStore, register_store

        register_source(Collection, user_grants=CollectionUserGrant, group_grants=CollectionGroupGrant)
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
