"""Where git hosts tell of pushes. No session, no token: a delivery proves itself by its signature."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from apps.access.errors import Refusal
from apps.access.rest import problems
from apps.repos.webhooks import receive


@csrf_exempt
@require_POST
def webhook(request: HttpRequest, provider: str, hook_id: str) -> HttpResponse:
    """202 when a sync was asked for, 204 when there is nothing to do, else 404, whatever the reason."""
    try:
        taken = receive(provider, hook_id, request.headers, request.body)
    except Refusal as refusal:
        return problems.plain_response(problems.body_of(refusal), problems.headers_of(refusal))
    return HttpResponse(status=204 if taken.job is None else 202)
