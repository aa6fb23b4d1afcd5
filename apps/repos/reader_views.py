"""The three-column reader and the pages of files."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer, paged
from apps.access.viewers import Viewer, viewer_of
from apps.repos import presentation
from apps.repos.branches import above, branches, neighbours
from apps.repos.code.related import code_on_page, naming_literals
from apps.repos.hosts import host_of
from apps.repos.images import TYPES, image_of
from apps.repos.lookup import document_for, repository_for
from apps.repos.models import (
    FileState,
    Repository,
    RepositoryDocument,
    RepositoryFile,
)
from apps.repos.page_body import file_html, page_body
from apps.repos.pills import pills_of
from apps.repos.surroundings import backlinks_of

MAX_LINES = 10_000
RAW_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Content-Disposition": "inline",
}
IMAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""SECURITY: what a repository holds is never run in the portal's origin, whatever it claims to be."""


FOUND = 100


@require_safe
def docs(request: HttpRequest, slug: str) -> HttpResponse:
    """The tree, one folder of it opened by ``?folder=``, or the pages whose title or path holds ``?q=``."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    rows = RepositoryDocument.objects.visible_to(viewer).filter(repository=repository)
    folder, text = request.GET.get("folder", "").strip("/")[:4096], request.GET.get("q", "").strip()[:200]
    found = rows.filter(Q(title__icontains=text) | Q(path__icontains=text)).order_by("path", "id")
    context: dict[str, Any] = {
        "header": presentation.header(repository, "repos:docs"),
        "slug": repository.slug,
        "tree": branches(rows, above(f"{folder}/x") if folder else ()),
        "q": text,
        "found": list(found.only("title", "path", "slug")[:FOUND]) if text else [],
        "current": None,
    }
    return answer(request, "repos/docs.html", context, fragment="repos/_tree.html")


@require_safe
def reader(request: HttpRequest, slug: str, doc_slug: str) -> HttpResponse:
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    document = document_for(repository, doc_slug)
    if isinstance(document, str):
        return moved("repos:reader", repository, document)
    if request.GET.get("raw"):
        return _raw(document.text)
    rows = RepositoryDocument.objects.visible_to(viewer).filter(repository=repository)
    tree = branches(rows, above(document.path))
    beside = neighbours(rows, tree.docs, document.path, document.pk)
    context = {
        "header": presentation.header(repository, "repos:docs"),
        "tree": tree,
        "document": document,
        "body": page_body(document, document.links.select_related("target_document").order_by("id")),
        "pills": pills_of(repository, document),
        "host_links": _host_links(repository, document),
        "crumbs": _crumbs(document.path),
        "slug": repository.slug,
        "current": document.pk,
        "previous": beside.previous,
        "next": beside.next,
        "backlinks": backlinks_of(viewer, document),
        "code": code_on_page(document.pk),
        "literals": naming_literals([document.pk]).get(document.pk, ()),
        "frontmatter": sorted(document.frontmatter.items()) if isinstance(document.frontmatter, dict) else [],
    }
    return answer(request, "repos/reader.html", context)


def moved(view: str, repository: Repository, doc_slug: str, query: str = "") -> HttpResponse:
    """To the address of a page that moved."""
    response = redirect(
        reverse(view, args=[repository.slug, doc_slug]) + (f"?{query}" if query else ""), permanent=True
    )
    # It may move again, and the viewer may lose it: browsers must not keep the answer for ever.
    response["Cache-Control"] = "private, no-store"
    return response


def _host_links(repository: Repository, document: RepositoryDocument) -> list[tuple[str, str]]:
    """Where the page can be seen and changed at the git host, as far as the host has such pages."""
    host = host_of(repository.git_url, repository.link_style, repository.link_template)
    branch = repository.branch or repository.synced_branch
    found = (
        ("View at this commit", host.file(repository.synced_commit, document.path)),
        ("Edit at the host", host.file(branch, document.path) if branch else None),
    )
    return [(words, address) for words, address in found if address]


def _crumbs(path: str) -> list[str]:
    return path.split("/")


def _raw(text: str) -> HttpResponse:
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=RAW_HEADERS)


@require_safe
def files(request: HttpRequest, slug: str) -> HttpResponse:
    """Every path of the synced commit, with what became of it."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    state, text = request.GET.get("state", ""), request.GET.get("q", "").replace("\0", " ").strip()[:200]
    all_rows = RepositoryFile.objects.visible_to(viewer).filter(repository=repository)
    counts = dict(all_rows.values_list("state").annotate(n=Count("pk")).order_by())
    rows = all_rows.defer("text").order_by("path", "id")
    if state in FileState.values:
        rows = rows.filter(state=state)
    if text:
        rows = rows.filter(path__icontains=text)
    context = {
        "header": presentation.header(repository, "repos:files"),
        "page": paged(rows, request),
        "counts": [(value, words, counts[value]) for value, words in FileState.choices if value in counts],
        "total": sum(counts.values()),
        "state": state,
        "q": text,
    }
    return answer(request, "repos/files.html", context, fragment="repos/_files.html")


def _file(viewer: Viewer, repository: Repository, path: str) -> RepositoryFile:
    """The row of a path. SECURITY: paths are looked up in the table and never opened. Raises NotFound."""
    row: RepositoryFile | None = None
    if "\0" not in path and len(path) <= 4096:
        row = RepositoryFile.objects.visible_to(viewer).filter(repository=repository, path=path).first()
    if row is None:
        raise NotFound
    return row


@require_safe
def file(request: HttpRequest, slug: str, path: str) -> HttpResponse:
    """One file as text with line numbers, or the reason why its text is not here."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    row = _file(viewer, repository, path)
    document: RepositoryDocument | None = (
        RepositoryDocument.objects.visible_to(viewer).filter(repository=repository, path=path).first()
    )
    text = document.text if document is not None else row.text
    if request.GET.get("raw"):
        if text is None:
            raise NotFound
        return _raw(text)
    line_total = 0 if not text else text.count("\n") + (not text.endswith("\n"))
    shown = text or ""
    if line_total > MAX_LINES:
        shown = "\n".join(shown.split("\n", MAX_LINES)[:MAX_LINES])
    context = {
        "header": presentation.header(repository, "repos:files"),
        "file": row,
        "document": document,
        "html": file_html(shown, path) if shown else "",
        "line_total": line_total,
        "shown_lines": min(line_total, MAX_LINES),
        "cut": line_total > MAX_LINES,
        "has_text": text is not None,
        "is_image": text is None and row.path.lower().endswith(tuple(TYPES)),
        "host_address": host_of(repository.git_url, repository.link_style, repository.link_template).file(
            repository.synced_commit, path
        ),
        "crumbs": _crumbs(path),
    }
    return answer(request, "repos/file.html", context)


@require_safe
def image(request: HttpRequest, slug: str, path: str) -> HttpResponse:
    """A picture of the synced commit. SECURITY: sandboxed, without script, as the type that its name says."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    found = image_of(repository, _file(viewer, repository, path))
    if found is None:
        raise NotFound
    return HttpResponse(
        found.content,
        content_type=found.media_type,
        headers={"Content-Security-Policy": IMAGE_POLICY, "X-Content-Type-Options": "nosniff"},
    )
