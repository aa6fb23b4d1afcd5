"""Sources as jobs know them: by (kind, id), loaded through the registry of the access room."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING
from uuid import UUID

from apps.access.compiled import MARK_OF_ID, Rows

if TYPE_CHECKING:
    from apps.access.sources import Source


def load_source(kind: str, source_id: UUID) -> Source | None:
    """The source, or None when it is deleted. For workers only: it asks for no viewer."""
    from apps.access.sources import source_model

    return _living(source_model(kind)).first(source_id)


@functools.cache
def _living(model: type[Source]) -> Rows[Source]:
    return Rows(lambda key: model._default_manager.filter(pk=key, deleted_at__isnull=True).order_by(), MARK_OF_ID)
