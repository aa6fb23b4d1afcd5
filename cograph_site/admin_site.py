"""The admin's index page with the figures of the portal above the list of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apps.access.admin_site import CographAdminSite
from cograph_site.admin_figures import panels

if TYPE_CHECKING:
    from django.http import HttpRequest


class PortalAdminSite(CographAdminSite):
    index_template = "admin/portal_index.html"

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().index(request, {"panels": panels(request.user), **(extra_context or {})})
