"""The address of everything. Each room brings its own pages; this file only joins them."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

urlpatterns = [
    path("admin/", admin.site.urls),
]
