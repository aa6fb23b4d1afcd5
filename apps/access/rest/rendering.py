"""Answers as JSON. Values are plain by the time they come here, so orjson writes them as they stand."""

from __future__ import annotations

from typing import Any

import orjson
from rest_framework.renderers import JSONRenderer
from rest_framework.utils.encoders import JSONEncoder

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
_other = JSONEncoder().default


class PlainJsonRenderer(JSONRenderer):
    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        if data is None:
            return b""
        try:
            return orjson.dumps(data, default=_other, option=_OPTIONS)
        except TypeError:
            # An echo of what orjson cannot write: a number beyond 64 bits, half of a surrogate pair.
            return super().render(data, accepted_media_type, renderer_context)
