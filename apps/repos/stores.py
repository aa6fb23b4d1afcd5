"""The chunk store of repository documents."""

from __future__ import annotations

from apps.indexing.stores import ChunkStore
from apps.repos.models import RepositoryDocumentChunk

STORE = ChunkStore(name="repo_docs", model=RepositoryDocumentChunk, source_kind="repository", source_field="repository")
