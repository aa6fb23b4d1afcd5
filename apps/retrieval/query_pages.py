"""The page of one's own query log: what is kept, and the button that erases it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.access.pages import answer, paged
from apps.retrieval import query_log


@require_http_methods(["GET", "HEAD", "POST"])
def queries(request: HttpRequest) -> HttpResponse:
    user = request.user
    if not user.is_authenticated:
        return redirect(f"/login?next={request.path}")
    if request.method == "POST":
        count = query_log.erase(user)
        messages.success(request, "Your query log was empty." if not count else f"{count} queries are erased.")
        return redirect("queries")
    page = paged(query_log.own_rows(user), request)
    rows = list(page.object_list)
    known = query_log.labels(rows, user)
    lines = [(row, [known[key] for key in dict.fromkeys((*row.named, *row.found)) if key in known]) for row in rows]
    return answer(request, "retrieval/queries.html", {"page": page, "lines": lines, "days": query_log.kept_days()})
