"""Code of evaluation sets: functions without a repository, in a store of their own that no other search asks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from uuid import UUID

from apps.collections.models import DocumentChunk
from apps.indexing.scope import Scope
from apps.indexing.stores import ChunkStore
from apps.retrieval.shelf_values import Candidate
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

    def symbols(self, scope: Scope, refs: Sequence[int], nodes: Sequence[UUID]) -> Iterable[Candidate]:
        for row in self.candidates(scope, refs):
            yield dataclasses.replace(row, node=row.document_id)
