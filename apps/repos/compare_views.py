"""Two versions of a document that syncs brought, as a page and as a patch (``portal.md`` 25)."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer
from apps.access.viewers import viewer_of
from apps.indexing.comparison import choose, page_values
from apps.markup.line_diff import as_patch
from apps.repos import presentation
from apps.repos.comparing import compare_versions, kept_versions
from apps.repos.lookup import document_for, repository_for
from apps.repos.reader_views import RAW_HEADERS, moved


@require_safe
def compare_page(request: HttpRequest, slug: str, doc_slug: str) -> HttpResponse:
    repository = repository_for(viewer_of(request), slug)
    document = document_for(repository, doc_slug)
    if isinstance(document, str):
        return moved("repos:compare", repository, document, request.GET.urlencode())
    versions = kept_versions(document)
    choice = choose(request.GET, [version.name for version in versions])
    context: dict[str, Any] = {
        "header": presentation.header(repository, "repos:docs"),
        "document": document,
        "crumbs": document.path.split("/"),
        "versions": versions,
        "choice": choice,
        "compared": None,
    }
    if choice.both and choice.differs:
        context |= page_values(compare_versions(document, versions, *choice.both))
        context["patch"] = reverse("repos:compare-raw", args=[repository.slug, document.slug]) + choice.query
    return answer(request, "repos/compare.html", context)


@require_safe
def compare_patch(request: HttpRequest, slug: str, doc_slug: str) -> HttpResponse:
    """The same as unified text, whole."""
    repository = repository_for(viewer_of(request), slug)
    document = document_for(repository, doc_slug)
    if isinstance(document, str):
        return moved("repos:compare-raw", repository, document, request.GET.urlencode())
    versions = kept_versions(document)
    both = choose(request.GET, [version.name for version in versions]).both
    if both is None:
        raise NotFound
    compared = compare_versions(document, versions, *both)
    paths = {version.words: version.path for version in versions}
    names = [f"{paths[side.words]} ({side.words})" for side in (compared.old, compared.new)]
    return HttpResponse(as_patch(compared.lines, *names), content_type="text/plain; charset=utf-8", headers=RAW_HEADERS)
