"""What writers and administrators do to a repository: sync, decide about deletions, add, change, grant."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from apps.access import grants, rules
from apps.access.errors import Forbidden, Invalid, NotFound
from apps.access.grant_posts import GRANT_ACTS, change_grants
from apps.access.models import User
from apps.access.pages import answer, wants_fragment
from apps.access.rules import Level, Visibility
from apps.access.viewers import viewer_of
from apps.repos import presentation, registration
from apps.repos.code.relinking import request_link_symbols
from apps.repos.lookup import repository_for
from apps.repos.models import Repository, Schedule
from apps.repos.preview import FilterPreview, preview_filters

if TYPE_CHECKING:
    from collections.abc import Mapping

OFFERED = (".claude/skills/**", ".agents/skills/**")
"""Globs that the form offers for ``include`` (``repository-documents.md`` 3.4)."""


def _user(request: HttpRequest) -> User:
    return cast("User", request.user)


@require_POST
def sync(request: HttpRequest, slug: str) -> HttpResponse:
    repository = repository_for(viewer_of(request), slug)
    asked = registration.request_sync(repository=repository, by=_user(request))
    if asked.deduplicated:
        messages.info(request, "A sync was already asked for; this is its progress.")
    return redirect("repos:overview", slug=repository.slug)


@require_POST
def held(request: HttpRequest, slug: str) -> HttpResponse:
    """Approve or discard every held deletion."""
    repository = repository_for(viewer_of(request), slug)
    if request.POST.get("act") == "approve":
        registration.approve_deletions(repository=repository, by=_user(request))
        messages.success(request, "The documents are being deleted; the bar below shows how far.")
    else:
        registration.discard_deletions(repository=repository, by=_user(request))
        messages.success(request, "The documents are kept although the latest commit does not hold them.")
    return redirect("repos:report", slug=repository.slug)


def _globs(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


FIELDS = ("git_url", "branch", "name", "visibility", "schedule", "description", "only", "include", "exclude")


@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest) -> HttpResponse:
    """Register a repository and start its first sync; for administrators."""
    if not rules.is_administrator(viewer_of(request)):
        raise NotFound
    problem: Invalid | None = None
    values: Mapping[str, str] = {name: request.POST.get(name, "") for name in FIELDS}
    if request.method == "POST":
        secret = request.POST.get("secret", "")
        try:
            made = registration.register_repository(
                by=_user(request),
                git_url=values["git_url"].strip(),
                name=values["name"].strip(),
                visibility=values["visibility"] or Visibility.PRIVATE,
                credential=registration.NewCredential(secret, user=request.POST.get("secret_user", ""))
                if secret
                else None,
                branch=values["branch"].strip(),
                schedule=values["schedule"] or Schedule.MANUAL,
                description=values["description"].strip(),
                only=_globs(values["only"]),
                include=_globs(values["include"]),
                exclude=_globs(values["exclude"]),
            )
            return redirect("repos:overview", slug=made.repository.slug)
        except Invalid as refusal:
            problem = refusal
    context = {
        "values": values,
        "problem": problem,
        "visibilities": Visibility.choices,
        "schedules": [choice for choice in Schedule.choices if choice[0] != Schedule.WEBHOOK],
        "offered": OFFERED,
    }
    return answer(request, "repos/add.html", context, status=problem.status if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def settings_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Grants for those who manage, the rest for administrators. What one may not change is not shown."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    head = presentation.header(repository, "repos:settings")
    if not head.may_manage:
        raise Forbidden
    problem: Invalid | None = None
    preview: FilterPreview | None = None
    secret = ""
    act = request.POST.get("act", "")
    if request.method == "POST":
        try:
            if act == "preview":
                preview = preview_filters(repository, **_filters(request))
            elif act == "webhook":
                _, secret = registration.enable_webhook(repository=repository, by=_user(request))
            else:
                messages.success(request, _change(request, repository, act))
                if act == "delete":
                    return redirect("repos:list")
                return redirect("repos:settings", slug=repository.slug)
        except Invalid as refusal:
            problem = refusal
    typed = request.POST if request.method == "POST" and act in ("preview", "filters") else None
    context = {
        "header": head,
        "repository": repository,
        "grants": grants.grants_of(repository),
        "levels": Level.choices,
        "visibilities": Visibility.choices,
        "schedules": Schedule.choices,
        "filters": [
            (name, words, help_, typed.get(name, "") if typed else "\n".join(getattr(repository, name)))
            for name, words, help_ in FILTER_FIELDS
        ],
        "offered": OFFERED,
        "preview": preview,
        "problem": problem,
        "problem_act": act if problem else "",
        "secret": secret,
        "hook_address": request.build_absolute_uri(f"/webhooks/{_provider(repository)}/{repository.hook_id}"),
    }
    # htmx shows only what succeeded; the fragment itself says what is wrong with the filters.
    status = problem.status if problem and not wants_fragment(request) else 200
    return answer(request, "repos/settings.html", context, status=status, fragment="repos/_preview.html")


FILTER_FIELDS = (
    ("only", "Only", "Globs from the root; empty takes all."),
    ("include", "Also", "Adds paths that no rule takes, or that an exclusion drops."),
    ("exclude", "Never", "Wins over the others."),
)


def _filters(request: HttpRequest) -> dict[str, list[str]]:
    return {name: _globs(request.POST.get(name, "")) for name, _, _ in FILTER_FIELDS}


def _provider(repository: Repository) -> str:
    host = repository.slug.partition("/")[0]
    return "gitlab" if "gitlab" in host else "gitea" if "gitea" in host or "codeberg" in host else "github"


def _change(request: HttpRequest, repository: Repository, act: str) -> str:
    """Do one act of the page and say what was done. Raises Invalid, Forbidden, NotFound."""
    by, post = _user(request), request.POST
    if act == "description":
        registration.change_repository(repository=repository, by=by, description=post.get("description", "").strip())
        return "The description is changed."
    if act == "relink":
        asked = request_link_symbols(repository=repository, by=by)
        return "Names are being linked anew already." if asked.deduplicated else "Names are being linked anew."
    if act == "schedule":
        registration.change_repository(
            repository=repository, by=by, schedule=post.get("schedule", ""), branch=post.get("branch", "").strip()
        )
        return "Branch and schedule are changed; they hold from the next sync on."
    if act == "filters":
        registration.change_repository(repository=repository, by=by, **_filters(request))
        return "The filters are changed; they hold from the next sync on. Sync now to see their effect."
    if act == "visibility":
        registration.change_visibility(repository=repository, visibility=post.get("visibility", ""), by=by)
        return "The visibility is changed."
    if act in GRANT_ACTS:
        return change_grants(repository, act, post, by=by)
    if act == "delete":
        if post.get("confirm", "") != repository.slug:
            raise Invalid(f"Type {repository.slug} to delete it.", field="confirm")
        registration.delete_repository(repository=repository, by=by)
        return f"{repository.slug} is deleted; nobody sees it any more, and its rows are being removed."
    raise Invalid("Choose what to change.", field="act")
