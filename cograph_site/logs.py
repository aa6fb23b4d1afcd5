"""One line a message on standard error, with the id of the request it belongs to and without secrets."""

from __future__ import annotations

import logging
from typing import Any

from apps.access.origin import current_origin
from apps.access.redact import redact


class RequestId(logging.Filter):
    """Adds `request_id` to every record; `-` outside a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_origin().request_id or "-"
        return True


class RedactingFormatter(logging.Formatter):
    """SECURITY: libraries log addresses and headers as they are; tracebacks quote values. All of it passes here."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def configuration(level: str) -> dict[str, Any]:
    """The value of Django's LOGGING setting. `level` is debug, info, warning or error."""
    chosen = level.upper()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"request_id": {"()": RequestId}},
        "formatters": {
            "line": {
                "()": RedactingFormatter,
                "format": "{asctime} {levelname} {name} [{request_id}] {message}",
                "style": "{",
            },
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request_id"]},
        },
        "root": {"handlers": ["stderr"], "level": chosen},
        "loggers": {
            "django": {"handlers": [], "level": chosen, "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            # A canary every few seconds is no news; what jobs do is told by apps.jobs.
            "django-q": {"handlers": [], "level": "DEBUG" if chosen == "DEBUG" else "WARNING", "propagate": True},
            # Its session lives for one request: three lines a call that say so, each of which costs CPU.
            "mcp": {"handlers": [], "level": "DEBUG" if chosen == "DEBUG" else "WARNING", "propagate": True},
        },
    }
