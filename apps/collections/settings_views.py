"""What writers and owners do to a collection: trash, upkeep, name, profile, grants, deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from apps.access import grants
from apps.access.errors import Conflict, Invalid
from apps.access.grant_posts import GRANT_ACTS, change_grants
from apps.access.models import User
from apps.access.pages import answer, paged
from apps.access.rules import Level, Right
from apps.access.viewers import viewer_of
from apps.collections import curation, presentation, trash
from apps.collections.lookup import collection_for, document_for
from apps.collections.models import Document
from apps.collections.views import visibilities
from apps.indexing.analyzer import languages

if TYPE_CHECKING:
    from apps.access.viewers import Viewer
    from apps.collections.models import Collection

UPKEEP = {
    "re-embed": (
        curation.request_reembed,
        "Every chunk is being embedded anew; the present vectors answer until then.",
    ),
    "re-chunk": (curation.request_rechunk, "Every document is being cut anew; the present chunks answer until then."),
    "links": (curation.request_links, "All links are being resolved again."),
}


def _user(request: HttpRequest) -> User:
    return cast("User", request.user)


@require_http_methods(["GET", "HEAD", "POST"])
def trash_page(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    """Documents in the trash, for writers; removing for good is the owner's."""
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id, right=Right.WRITE)
    if request.method == "POST":
        _empty_or_restore(request, viewer, collection)
        return redirect("collections:trash", collection_id=collection.pk)
    rows = Document.objects.in_trash_of(viewer).filter(collection=collection).without_text()
    context = {
        "header": presentation.header(collection, "trash"),
        "collection": collection,
        "page": paged(rows.order_by("-trashed_at", "id"), request),
        "trash_days": settings.COGRAPH.collections.trash_days,
    }
    return answer(request, "collections/trash.html", context)


def _empty_or_restore(request: HttpRequest, viewer: Viewer, collection: Collection) -> None:
    try:
        document_id = UUID(request.POST.get("document", ""))
    except ValueError:
        return
    if request.POST.get("act") == "purge":
        collection_for(viewer, collection.pk, right=Right.MANAGE)
        held = Document.objects.in_trash_of(viewer).filter(collection=collection, pk=document_id).first()
        if held is not None and request.POST.get("confirm", "") != held.source_key:
            messages.error(request, f"Nothing is removed: type {held.source_key} to remove it for good.")
            return
        trash.purge_document(collection=collection, document_id=document_id, by=_user(request))
        messages.success(request, "The document is removed for good.")
    else:
        held = trash.restore_document(collection=collection, document_id=document_id, by=_user(request))
        messages.success(request, f"{held.source_key} is back, with the chunks and vectors that it had.")


@require_POST
def trash_one(request: HttpRequest, collection_id: UUID, document_id: UUID) -> HttpResponse:
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id, right=Right.WRITE)
    document = document_for(viewer, collection, document_id)
    trash.trash_document(document=document, by=_user(request))
    messages.success(request, f"{document.source_key} is in the trash; links to it are broken until it is restored.")
    return redirect("collections:collection", collection_id=collection.pk)


@require_POST
def upkeep(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    """Re-embed, re-chunk, resolve links: jobs that writers may ask for."""
    collection = collection_for(viewer_of(request), collection_id, right=Right.WRITE)
    chosen = UPKEEP.get(request.POST.get("act", ""))
    if chosen is None:
        messages.error(request, "Choose what to do.")
    else:
        act, words = chosen
        act(collection=collection, by=_user(request))
        messages.success(request, words)
    return redirect("collections:collection", collection_id=collection.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def settings_page(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    """The description and upkeep for writers, the rest for those who manage. What one may not change is not shown."""
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id, right=Right.WRITE)
    problem: Invalid | Conflict | None = None
    act = request.POST.get("act", "")
    if request.method == "POST":
        try:
            messages.success(request, _change(request, collection, act))
            if act == "delete":
                return redirect("collections:list")
            return redirect("collections:settings", collection_id=collection.pk)
        except (Invalid, Conflict) as refusal:
            problem = refusal
    typed = request.POST if problem else {}
    head = presentation.header(collection, "settings")
    context = {
        "header": head,
        "collection": collection,
        "grants": grants.grants_of(collection) if head.may_manage else [],
        "levels": Level.choices,
        "visibilities": visibilities(viewer),
        "languages": languages(),
        "values": {
            name: typed.get(name, getattr(collection, name))
            for name in ("name", "description", "language", "visibility", "max_chars", "min_chars", "max_chunks")
        },
        "problem": problem,
        "problem_act": act if problem else "",
    }
    return answer(request, "collections/settings.html", context, status=problem.status if problem else 200)


def _change(request: HttpRequest, collection: Collection, act: str) -> str:
    """Do one act of the page and say what was done. Raises Invalid, Conflict, Forbidden, NotFound."""
    by, post = _user(request), request.POST
    if act == "about":
        curation.update_collection(collection=collection, by=by, description=post.get("description", ""))
        return "The description is changed."
    if act == "name":
        curation.update_collection(collection=collection, by=by, name=post.get("name", ""))
        return "The name is changed."
    if act == "language":
        changed = curation.update_collection(collection=collection, by=by, language=post.get("language", ""))
        return f"The language is {changed.language}; every document is being indexed anew."
    if act == "visibility":
        curation.update_collection(collection=collection, by=by, visibility=post.get("visibility", ""))
        return "The visibility is changed."
    if act == "profile":
        curation.update_collection(collection=collection, by=by, profile=_profile(post))
        return "The chunking profile is changed; the present chunks answer until the new ones are stored."
    if act in GRANT_ACTS:
        return change_grants(collection, act, post, by=by)
    if act == "delete":
        if post.get("confirm", "") != collection.name:
            raise Invalid(f"Type {collection.name} to delete it.", field="confirm")
        curation.delete_collection(collection=collection, by=by)
        return f"{collection.name} is deleted; nobody sees it any more, and its rows are being removed."
    raise Invalid("Choose what to change.", field="act")


def _profile(post: Any) -> tuple[int, int, int]:
    found = []
    for name in ("max_chars", "min_chars", "max_chunks"):
        text = str(post.get(name, "")).strip()
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise Invalid(f"{name} is a whole number.", field=name)
        found.append(int(text))
    return found[0], found[1], found[2]
