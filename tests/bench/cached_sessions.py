"""Django's own sessions with a cache before the database, over our table: the control of `tests.bench.faces`."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends.cached_db import SessionStore as CachedStore


class SessionStore(CachedStore):
    @classmethod
    def get_model_class(cls) -> Any:
        from apps.access.models import Session

        return Session
