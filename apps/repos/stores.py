"""The chunk stores of repositories: documents and code."""

from __future__ import annotations

from apps.indexing.stores import ChunkStore
from apps.repos.models import RepositoryDocumentChunk
from apps.repos.models_code import CodeChunk

STORE = ChunkStore(name="repo_docs", model=RepositoryDocumentChunk, source_kind="repository", source_field="repository")
CODE_STORE = ChunkStore(
    name="code",
    model=CodeChunk,
    source_kind="repository",
    source_field="repository",
    document_field="file",
    block="code",
    path_field="file__path",
)
