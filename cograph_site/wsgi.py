"""The WSGI application that granian serves."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cograph_site.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application

# SECURITY: a request may not hold the database for longer; workers and commands run outside of this file.
_options = settings.DATABASES["default"].setdefault("OPTIONS", {})
_limit = f"-c statement_timeout={settings.COGRAPH.statement_seconds * 1000}"
_options["options"] = f"{_options.get('options', '')} {_limit}".strip()

application = get_wsgi_application()
