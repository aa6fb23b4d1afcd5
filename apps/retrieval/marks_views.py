"""Marks of a result page: this row answers the question."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.access.pages import wants_fragment
from apps.access.viewers import viewer_of
from apps.retrieval.evaluation.marks import mark


@require_POST
def marks(request: HttpRequest) -> HttpResponse:
    """The query string is that of the search page, to which the reader comes back."""
    made = mark(
        by=viewer_of(request),
        set_id=request.POST.get("set", ""),
        query=request.GET.get("q", ""),
        row=request.POST.get("row", ""),
        given=request.POST.get("act") == "give",
    )
    asked = request.GET.urlencode()
    if wants_fragment(request):
        return render(request, "retrieval/_mark.html", {"mark": made, "asked": asked})
    return redirect(f"{reverse('search')}?{asked}")
