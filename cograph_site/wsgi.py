"""The WSGI application that granian serves."""

from __future__ import annotations

import gc
import importlib
import os
import threading

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cograph_site.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application

# SECURITY: a request may not hold the database for longer; workers and commands run outside of this file.
_options = settings.DATABASES["default"].setdefault("OPTIONS", {})
_limit = f"-c statement_timeout={settings.COGRAPH.statement_seconds * 1000}"
_options["options"] = f"{_options.get('options', '')} {_limit}".strip()

application = get_wsgi_application()
importlib.import_module(settings.ROOT_URLCONF)


def _keep_what_is_loaded() -> None:
    """All that is loaded by now stays to the end: the collector need not look through it at every turn, which would
    take a tenth of the time of a search."""
    gc.collect()
    gc.freeze()


def _load_the_rest() -> None:
    """What the first page can do without: the SDK of agents."""
    importlib.import_module("apps.mcp.exchange")
    _keep_what_is_loaded()


_keep_what_is_loaded()
threading.Thread(target=_load_the_rest, name="loading").start()
