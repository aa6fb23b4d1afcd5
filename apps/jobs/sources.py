"""Sources as jobs know them: by (kind, id), loaded through the registry of the access room."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from apps.access.sources import Source


def load_source(kind: str, source_id: UUID) -> Source | None:
    """The source, or None when it is deleted. For workers only: it asks for no viewer."""
    from apps.access.sources import source_model

    return source_model(kind)._default_manager.filter(pk=source_id, deleted_at__isnull=True).first()
