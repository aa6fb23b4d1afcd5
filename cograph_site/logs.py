"""One line a message on standard error, with the id of the request it belongs to and without secrets."""

from __future__ import annotations

import logging
from typing import Any

from apps.access.origin import current_origin


class RequestId(logging.Filter):
    """Adds `request_id` to every record; `-` outside a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_origin().request_id or "-"
        return True


def configuration(level: str) -> dict[str, Any]:
    """The value of Django's LOGGING setting."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"request_id": {"()": RequestId}},
        "formatters": {
            "line": {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["request_id"],
            },
        },
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            "django": {"handlers": [], "level": level.upper(), "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            "django-q": {"handlers": [], "level": "WARNING", "propagate": True},
        },
    }
