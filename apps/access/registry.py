"""Which models are sources. Rooms above register theirs in ``AppConfig.ready``; the rules ask here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.db import models

    from apps.access.sources import Source


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A source model with the two tables that hold its grants."""

    model: type[Source]
    user_grants: type[models.Model]
    group_grants: type[models.Model]


_entries: dict[str, SourceEntry] = {}


def register_source(model: type[Source], *, user_grants: type[models.Model], group_grants: type[models.Model]) -> None:
    """Make ``model`` a source. Raises ValueError when its kind is taken by another model."""
    known = _entries.get(model.kind)
    if known is not None and known.model is not model:
        raise ValueError(f"the source kind {model.kind!r} is taken by {known.model.__name__}")
    _entries[model.kind] = SourceEntry(model, user_grants, group_grants)


def unregister_source(model: type[Source]) -> None:
    """Undo ``register_source``, for tests that bring a source of their own."""
    _entries.pop(model.kind, None)


def source_entries() -> tuple[SourceEntry, ...]:
    return tuple(_entries.values())


def source_models() -> tuple[type[Source], ...]:
    return tuple(entry.model for entry in _entries.values())


def source_model(kind: str) -> type[Source]:
    """The model of a kind. Raises KeyError when no room registered it."""
    return _entries[kind].model


def entry_of(model: type[Any]) -> SourceEntry:
    """The entry of a source model, also for its proxies. Raises KeyError when it is not registered."""
    entry = _entries[model.kind]
    if not issubclass(model, entry.model):
        raise KeyError(model)
    return entry
