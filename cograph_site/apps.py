from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "cograph_site"
    verbose_name = "Cograph"
