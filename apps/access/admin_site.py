"""The admin site: no sign-in form of its own, no list of recent actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseRedirect

if TYPE_CHECKING:
    from django.http import HttpRequest


class CographAdminSite(admin.AdminSite):
    """Django's admin for operators.

    SECURITY: its own login page would be a way around the sign-in throttle, so those who are not signed in go to
    the portal's page, and those who are but may not enter get 403.
    """

    site_header = "Cograph"
    site_title = "Cograph"
    index_title = "Administration"

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if self.has_permission(request):
            return HttpResponseRedirect("/admin/")
        if request.user.is_authenticated:
            raise PermissionDenied
        return HttpResponseRedirect(str(settings.LOGIN_URL))

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        # 307 keeps the method: the portal signs out by POST only.
        return HttpResponse(status=307, headers={"Location": "/logout"})

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return HttpResponseRedirect("/account")
