"""The WSGI application that granian serves."""

from __future__ import annotations

import gc
import importlib
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cograph_site.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application

# SECURITY: a request may not hold the database for longer; workers and commands run outside of this file.
_options = settings.DATABASES["default"].setdefault("OPTIONS", {})
_limit = f"-c statement_timeout={settings.COGRAPH.statement_seconds * 1000}"
_options["options"] = f"{_options.get('options', '')} {_limit}".strip()

application = get_wsgi_application()
importlib.import_module(settings.ROOT_URLCONF)
# All that is loaded by now stays to the end: the collector need not look through it at every turn, which would take a
# tenth of the time of a search.
gc.collect()
gc.freeze()
