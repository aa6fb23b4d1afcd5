"""Code of evaluation sets: functions without a repository, in a store of their own that no other search asks."""

from __future__ import annotations

from collections.abc import Sequence

from apps.collections.models import DocumentChunk
from apps.indexing.stores import ChunkStore
from apps.retrieval.shelves import CollectionShelf

CODE_OF_SETS = ChunkStore(
    name="evaluation_code",
    model=DocumentChunk,
    source_kind="collection",
    source_field="collection",
    block="code",
    path_field="document__source_key",
    label_field="name",
)


class EvaluationCodeShelf(CollectionShelf):
    """Each document is one function, which stands for itself as a symbol does."""

    store = CODE_OF_SETS.name

    def symbols_of(self, documents: Sequence[str]) -> Sequence[str | None]:
        return documents
