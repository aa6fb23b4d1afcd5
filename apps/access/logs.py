"""Log lines that can be found by the request id that a caller was shown."""

from __future__ import annotations

import logging

from apps.access.origin import current_origin


class RequestIdFilter(logging.Filter):
    """Adds ``request_id`` to every record, ``-`` outside requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_origin().request_id or "-"
        return True
