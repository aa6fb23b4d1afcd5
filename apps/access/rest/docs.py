"""The OpenAPI document and its reader. Open to everybody: it tells what can be asked, never what is there."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from apps.access.rest import throttles


@functools.cache
def document() -> bytes:
    """OpenAPI 3.1 of every endpoint as JSON. It depends on the code alone, so one process makes it once."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    rendered: bytes = OpenApiJsonRenderer().render(schema, renderer_context={})
    return rendered


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """GET /api/schema."""
    throttles.count("anonymous", throttles.identity_of(request))
    text = document()
    etag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "public, max-age=300"}
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(text, content_type="application/vnd.oai.openapi+json; charset=utf-8", headers=headers)


class DocsView(SpectacularSwaggerSplitView):
    """Swagger UI from vendored files, its start script and its style in files of their own, as the policy wants."""

    permission_classes = [AllowAny]
    authentication_classes: Any = []
    url = "/api/schema"
    url_self = "/api/docs"
    template_name = "access/api_docs.html"
    title = "Cograph API"
    schema = None

    @staticmethod
    def _swagger_ui_favicon() -> str:
        return static("img/icon.svg")


docs = method_decorator(require_safe, name="dispatch")(DocsView).as_view()
