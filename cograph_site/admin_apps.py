"""Puts our admin site in the place of Django's. Apart from `admin_site.py` because apps load before models."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class PortalAdminConfig(AdminConfig):
    default_site = "cograph_site.admin_site.PortalAdminSite"
