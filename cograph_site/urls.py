"""The address of everything. Each room brings its own pages and endpoints; this file only joins them."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from cograph_site import guides, health, pages, rooms

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("", pages.home, name="home"),
    path("about", pages.about, name="about"),
    path("theme", pages.theme, name="theme"),
    path("diagram", pages.diagram, name="diagram"),
    path("help", guides.guide, name="help"),
    path("help/keyboard", guides.keyboard, name="help-keyboard"),
    path("help/<path:slug>", guides.guide, name="help-page"),
    path("admin/", admin.site.urls),
    path("api/", include(rooms.endpoints())),
    *rooms.pages(),
]

handler400 = "cograph_site.errors.bad_request"
handler403 = "cograph_site.errors.forbidden"
handler404 = "cograph_site.errors.not_found"
handler500 = "cograph_site.errors.server_error"
