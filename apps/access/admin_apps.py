"""Puts our admin site in the place of Django's. Apart from ``admin_site`` because apps load before models."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class CographAdminConfig(AdminConfig):
    default_site = "apps.access.admin_site.CographAdminSite"
