"""The search page and the permalink of a passage."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from apps.access.errors import BadRequest, Invalid
from apps.access.pages import SEARCHED, answer, wants_fragment
from apps.access.viewers import viewer_of
from apps.retrieval import presentation, query_log
from apps.retrieval.asking import question_of
from apps.retrieval.chunk_reading import ChunkGone
from apps.retrieval.evaluation.marks import offered
from apps.retrieval.models import Door
from apps.retrieval.near_symbols import Spelling, spellings
from apps.retrieval.passages import passage_for
from apps.retrieval.search import search
from apps.retrieval.values import Answer

MIN_CHARS = 2
"""While typing, nothing is asked below this length."""


@require_safe
def search_page(request: HttpRequest) -> HttpResponse:
    """One form, by GET. htmx gets the results alone, for the same address."""
    viewer = viewer_of(request)
    params = request.GET
    query = params.get("q", "").strip()
    near: list[Spelling] = []
    fragment = wants_fragment(request)
    found: Answer | None = None
    problem = ""
    if query and not (fragment and len(query) < MIN_CHARS):
        try:
            question = question_of(params, viewer)
            with query_log.noting(
                by=request.user, door=Door.PAGE, tool="search", query=query, named=question.sources
            ) as note:
                found = search(viewer=viewer, question=question)
                if found.empty is not None:
                    near = spellings(viewer, question, found.absent_words or found.empty.words)
                note.answered((hit.source.kind, hit.source.id) for hit in found.hits)
        except BadRequest:
            # The sources have changed since the page before: begin at the first page.
            return redirect(request.path + presentation.address(params))
        except Invalid as refusal:
            problem = refusal.message
    if found is not None and found.hits and SEARCHED not in request.session:
        request.session[SEARCHED] = True
    context = _values(request, found, problem, fragment=fragment)
    context["spellings"] = [
        {"name": one.name, "href": request.path + presentation.address(params, q=one.query)} for one in near
    ]
    response = answer(request, "retrieval/search.html", context, fragment="retrieval/_results.html")
    if fragment:
        response["HX-Replace-Url"] = request.path + presentation.address(params)
    return response


def _values(request: HttpRequest, found: Answer | None, problem: str, *, fragment: bool) -> dict[str, Any]:
    params = request.GET
    filters = presentation.chips(params, presentation.facet_labels(found.facets) if found else {})
    return {
        "query": params.get("q", "").strip(),
        "problem": problem,
        "wanted": found is not None,
        "answer": found,
        "said": presentation.total_words(found) if found else problem,
        "groups": presentation.grouped(found.hits, marks=offered(viewer_of(request), found.query, found.hits))
        if found
        else [],
        "asked": params.urlencode(),
        "boxes": presentation.facet_boxes(found.facets, params) if found else [],
        "filters": filters,
        "typed": {name: params.get(name, "") for name in ("path", "tag", "since", "until")},
        "unfiltered": presentation.address(params, **dict.fromkeys(presentation.FILTERS)),
        "kept": presentation.kept(params),
        "profile": found.profile if found else "",
        "previous_page": presentation.page_address(params, found.previous_cursor)
        if found and found.previous_cursor
        else presentation.address(params)
        if params.get("cursor")
        else "",
        "next_page": presentation.page_address(params, found.next_cursor) if found and found.next_cursor else "",
        "is_fragment": fragment,
    }


@require_safe
def chunk_page(request: HttpRequest, chunk_id: int) -> HttpResponse:
    """A passage beside its source, or what became of it. Raises NotFound alike for hidden and for absent ones."""
    try:
        return answer(request, "retrieval/chunk.html", {"passage": passage_for(viewer_of(request), chunk_id)})
    except ChunkGone as gone:
        return answer(request, "retrieval/gone.html", {"gone": gone}, status=gone.status)
