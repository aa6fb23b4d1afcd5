"""What this room tells the rooms below, once at start."""

from __future__ import annotations

from apps.access.secrets import register_secret
from apps.access.sources import register_source
from apps.indexing.stores import ChunkStore, register_store
from apps.repos.models import Repository, RepositoryDocumentChunk, RepositoryGroupGrant, RepositoryUserGrant

STORE = ChunkStore(name="repo_docs", model=RepositoryDocumentChunk, source_kind="repository", source_field="repository")


def register() -> None:
    register_source(Repository, user_grants=RepositoryUserGrant, group_grants=RepositoryGroupGrant)
    register_secret(Repository, "credential")
    register_secret(Repository, "hook_secret")
    register_store(STORE)
