"""Pages of collections: the list, one collection, its links. Documents, uploads and settings stand beside this file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from apps.access import rules
from apps.access.compiled import MARK_OF_ID, ReadableList, ReadableRows, ReadableValues
from apps.access.errors import Conflict, Invalid
from apps.access.pages import answer, paged, wants_fragment
from apps.access.rules import Visibility
from apps.access.viewers import Viewer, viewer_of
from apps.collections import curation, presentation
from apps.collections.catalogue import document_count
from apps.collections.coverage import coverage_of
from apps.collections.keys import DOCUMENT_ENDINGS
from apps.collections.lookup import collection_for, counted
from apps.collections.models import Collection, Document, DocumentLink, DocumentState, LinkState
from apps.collections.upload_views import upload_lines
from apps.indexing.analyzer import languages
from apps.jobs.models import Job
from apps.jobs.presentation import JobLine

if TYPE_CHECKING:
    from apps.access.models import User

LATEST_JOBS = 6
FAULTY = (LinkState.BROKEN, LinkState.ANCHOR_MISSING)
LINK_FILTERS = (
    ("broken", "lead nowhere"),
    ("pending", "not looked at yet"),
    ("resolved", "work"),
    ("external", "external"),
    ("all", "all"),
)


def filter_text(request: HttpRequest, name: str = "q") -> str:
    return request.GET.get(name, "").replace("\0", " ").strip()[:200]


_BY_NAME: ReadableList[Collection] = ReadableList(
    lambda viewer: (
        Collection.objects.visible_to(viewer).annotate(documents_count=document_count()).order_by(Lower("name"), "id")
    )
)
_SHOWN = ("collection", "source_key", "title", "state", "state_reason", "chunk_count", "size", "changed_at")
_BY_KEY: ReadableList[Document] = ReadableList(
    lambda viewer, id: (
        Document.objects.visible_to(viewer).filter(collection=id).only(*_SHOWN).order_by("source_key", "id")
    ),
    MARK_OF_ID,
)


_COUNTS: dict[str, Any] = {
    "total": Count("pk"),
    "chunks": Sum("chunk_count"),
    "words": Sum("word_count"),
    "warned": Count("pk", filter=~Q(warnings=[])),
    **{value: Count("pk", filter=Q(state=value)) for value in DocumentState.values},
}
_COUNTED = ReadableValues(
    lambda viewer, id: (
        Document.objects.visible_to(viewer)
        .filter(collection=id)
        .order_by()
        .values("collection")
        .annotate(**_COUNTS)
        .values_list(*_COUNTS)
    ),
    MARK_OF_ID,
)
_LATEST: ReadableRows[Job] = ReadableRows(
    lambda viewer, id: (
        Job.objects.visible_to(viewer)
        .of_source(Collection.kind, id)
        .unfolded()
        .select_related("requested_by")
        .order_by("-created_at", "id")[:LATEST_JOBS]
    ),
    MARK_OF_ID,
)
_BROKEN: ReadableList[DocumentLink] = ReadableList(
    lambda viewer, id: DocumentLink.objects.visible_to(viewer).filter(collection=id, state__in=FAULTY),
    MARK_OF_ID,
)


@require_http_methods(["GET", "HEAD", "POST"])
def collection_list(request: HttpRequest) -> HttpResponse:
    viewer = viewer_of(request)
    problem: Invalid | Conflict | None = None
    if request.method == "POST":
        try:
            made = curation.create_collection(
                by=cast("User", request.user),
                name=request.POST.get("name", ""),
                description=request.POST.get("description", ""),
                visibility=request.POST.get("visibility") or Visibility.PRIVATE,
                language=request.POST.get("language") or "english",
            )
            messages.success(request, f"The collection {made.name} is made. Drop documents on it to fill it.")
            return redirect(made)
        except (Invalid, Conflict) as refusal:
            problem = refusal
    text = filter_text(request)
    visible = Collection.objects.visible_to(viewer).matching(text)
    if text:
        page = paged(counted(visible).order_by(Lower("name"), "id"), request, total=visible.count())
    else:
        page = paged(_BY_NAME.of(viewer), request)
    context = {
        "page": page,
        "cards": presentation.cards(list(page.object_list), viewer),
        "q": text,
        "may_create": rules.is_signed_in(viewer),
        "visibilities": visibilities(viewer),
        "languages": languages(),
        "problem": problem,
        "typed": {name: request.POST.get(name, "") for name in ("name", "description", "visibility")}
        | {"language": request.POST.get("language") or "english"},
    }
    status = problem.status if problem else 200
    return answer(request, "collections/list.html", context, status=status, fragment="collections/_cards.html")


def visibilities(viewer: Viewer) -> list[tuple[str, str]]:
    """What the viewer may choose."""
    everything = [(str(value), str(words)) for value, words in Visibility.choices]
    return everything if rules.is_administrator(viewer) else everything[:2]


@require_safe
def collection_page(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    """Documents with filters; uploads with their results; how far the vectors are; the latest jobs."""
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    state, text = request.GET.get("state", ""), filter_text(request)
    counts: dict[str, Any] = dict.fromkeys(_COUNTS, 0)
    for row in _COUNTED.all(viewer, collection.pk):
        counts = dict(zip(_COUNTS, row, strict=True))
    rows: Any = _BY_KEY.of(viewer, collection.pk)
    total: int | None = counts["total"]
    if text or state == "warnings" or state in DocumentState.values:
        rows, total = _narrowed(viewer, collection, state, text), None if text else counts.get(state, counts["warned"])
    context: dict[str, Any] = {
        "header": presentation.header(collection, "documents", heading=True),
        "collection": collection,
        "page": paged(rows, request, total=total),
        "states": [(value, words, counts[value]) for value, words in DocumentState.choices if counts[value]],
        "counts": counts,
        "state": state,
        "q": text,
    }
    fresh = bool(request.GET.get("fresh"))
    if fresh or not wants_fragment(request):
        context |= _around(request, viewer, collection)
    fragment = "collections/_fresh.html" if fresh else "collections/_documents.html"
    return answer(request, "collections/collection.html", context, fragment=fragment)


def _narrowed(viewer: Viewer, collection: Collection, state: str, text: str) -> QuerySet[Any]:
    """The documents of a state, or with ``warnings``, whose path or title holds ``text``."""
    rows: QuerySet[Any] = Document.objects.visible_to(viewer).filter(collection=collection).without_text()
    if state == "warnings":
        rows = rows.exclude(warnings=[])
    elif state in DocumentState.values:
        rows = rows.filter(state=state)
    if text:
        rows = rows.filter(Q(source_key__icontains=text) | Q(title__icontains=text))
    return rows.order_by("source_key", "id")


def _around(request: HttpRequest, viewer: Viewer, collection: Collection) -> dict[str, Any]:
    jobs = [JobLine(job, collection) for job in _LATEST.all(viewer, collection.pk)]
    status = coverage_of(collection)
    uploads = upload_lines(viewer, collection, request.GET.getlist("upload"))
    shown = {one.line.job.pk for one in uploads}
    return {
        "jobs": jobs,
        "live": [line for line in jobs if line.job.is_live and line.job.pk not in shown],
        "uploads": uploads,
        "reloads": any(line.job.is_live for line in jobs),
        "embedding": status,
        "coverage": presentation.coverage(status),
        "broken": _BROKEN.of(viewer, collection.pk).count(),
        "accepted": ",".join((*DOCUMENT_ENDINGS, ".zip")),
    }


@require_safe
def links(request: HttpRequest, collection_id: UUID) -> HttpResponse:
    """Links that lead nowhere, with document, line, reason and suggestion; the others by filter."""
    viewer = viewer_of(request)
    collection = collection_for(viewer, collection_id)
    show, text = request.GET.get("show", "broken"), filter_text(request)
    every = DocumentLink.objects.visible_to(viewer).filter(collection=collection)
    counts = dict(every.values_list("state").annotate(n=Count("pk")).order_by())
    numbers = {
        "broken": sum(counts.get(state, 0) for state in FAULTY),
        "pending": counts.get(LinkState.PENDING, 0),
        "resolved": counts.get(LinkState.RESOLVED, 0) + counts.get(LinkState.ASSET, 0),
        "external": counts.get(LinkState.EXTERNAL, 0),
        "all": sum(counts.values()),
    }
    wanted = {
        "pending": [LinkState.PENDING],
        "resolved": [LinkState.RESOLVED, LinkState.ASSET],
        "external": [LinkState.EXTERNAL],
        "all": list(LinkState),
    }.get(show, list(FAULTY))
    rows = every.filter(state__in=wanted)
    total: int | None = numbers.get(show, numbers["broken"])
    if text:
        rows, total = rows.filter(Q(href__icontains=text) | Q(document__source_key__icontains=text)), None
    rows = rows.select_related("document", "target_document").in_order()
    page = paged(rows.only(*_LINK_FIELDS), request, total=total)
    context = {
        "header": presentation.header(collection, "links"),
        "collection": collection,
        "page": page,
        "lines": presentation.link_lines(page.object_list),
        "filters": [(value, words, numbers[value]) for value, words in LINK_FILTERS],
        "show": show if show in numbers else "broken",
        "broken": numbers["broken"],
        "all": numbers["all"],
        "q": text,
    }
    return answer(request, "collections/links.html", context, fragment="collections/_links.html")


_LINK_FIELDS = (
    "collection_id", "document__source_key", "document__collection_id", "href", "text", "lines", "link_type", "state",
    "reason", "anchor", "candidates", "suggestion", "target_asset_id", "target_document__source_key", "rel_type",
)  # fmt: skip
