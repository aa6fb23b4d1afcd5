"""The address of everything. Each room brings its own pages and endpoints; this file only joins them."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from cograph_site import health, rooms

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/", admin.site.urls),
    path("api/", include(rooms.endpoints())),
    *rooms.pages(),
]
