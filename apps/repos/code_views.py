"""Pages of code: the tree and search of symbols, and one symbol with everything around it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.access.errors import NotFound
from apps.access.pages import answer
from apps.access.viewers import viewer_of
from apps.repos import presentation
from apps.repos.api_code_values import SYMBOL_KINDS
from apps.repos.code.bodies import body_of
from apps.repos.code.browsing import level_of, outline_of
from apps.repos.code.neighbours import neighbours
from apps.repos.code.related import related_chunks
from apps.repos.code.searching import Found, search
from apps.repos.hosts import host_of
from apps.repos.lookup import repository_for
from apps.repos.models_code import CodeFile, CodeNode, EdgeKind
from apps.repos.page_body import file_html

SHOWN = 100
SHOWN_AROUND = 100
SHOWN_PASSAGES = 10
SHOWN_BODY_LINES = 2000


@require_safe
def code(request: HttpRequest, slug: str) -> HttpResponse:
    """Symbols that ``?q=`` names; the outline of ``?file=``; else what stands in ``?folder=``."""
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    text = request.GET.get("q", "").replace("\0", " ").strip()[:500]
    folder = request.GET.get("folder", "").replace("\0", "").strip("/")[:4096]
    path = request.GET.get("file", "").replace("\0", "")[:4096]
    kind = request.GET.get("kind", "")
    files = CodeFile.objects.visible_to(viewer).filter(repository=repository)
    context: dict[str, Any] = {
        "header": presentation.header(repository, "repos:code"),
        "q": text,
        "kind": kind,
        "kinds": SYMBOL_KINDS,
        "crumbs": _crumbs(path or folder),
    }
    if text:
        found = search(viewer=viewer, query=text, repository=repository, kind=kind, limit=SHOWN, whole=True)
        context |= {"found": found, "most": SHOWN, "groups": _with_overloads(found)}
    elif path:
        file = files.filter(path=path).first()
        if file is None:
            raise NotFound
        nodes = CodeNode.objects.visible_to(viewer).filter(file=file)
        context |= {"file": file, "outline": outline_of(nodes)}
    else:
        context["level"] = level_of(files, folder)
    return answer(request, "repos/code.html", context, fragment="repos/_code.html")


@require_safe
def node(request: HttpRequest, slug: str, node_id: uuid.UUID) -> HttpResponse:
    viewer = viewer_of(request)
    repository = repository_for(viewer, slug)
    rows = CodeNode.objects.visible_to(viewer).filter(repository=repository)
    found = rows.select_related("file", "parent").defer("search_keys").filter(pk=node_id).first()
    if found is None:
        raise NotFound
    body = body_of(found)
    cut = body is not None and body.end_line - body.start_line + 1 > SHOWN_BODY_LINES
    text = "\n".join(body.text.split("\n")[:SHOWN_BODY_LINES]) if body is not None else ""
    host = host_of(repository.git_url, repository.link_style, repository.link_template)
    context: dict[str, Any] = {
        "header": presentation.header(repository, "repos:code"),
        "node": found,
        "html": file_html(text, found.file.path, found.start_line) if text.strip() else "",
        "cut": cut,
        "shown_lines": SHOWN_BODY_LINES,
        "groups": _groups(found),
        "passages": related_chunks([found.pk], SHOWN_PASSAGES).get(found.pk, ()),
        "host_address": host.file(repository.synced_commit, found.file.path, found.start_line, found.end_line),
        "crumbs": _crumbs(found.file.path),
    }
    return answer(request, "repos/code_node.html", context)


def _with_overloads(found: Sequence[Found]) -> list[tuple[Found, list[Found]]]:
    """Each symbol with the further declarations of the same name in the same file that follow it."""
    groups = groupby(found, key=lambda one: (one.path, one.qualified_name, one.kind))
    return [(first, others) for _, (first, *others) in groups]


def _groups(found: CodeNode) -> list[tuple[str, list[Any], bool]]:
    """What stands around a symbol, in the words of the page; each symbol once in each group."""
    around = neighbours(found, limit=SHOWN_AROUND)
    nodes = {one.pk: one for one in around.nodes}
    words = (
        ("Called by", EdgeKind.CALLS, True),
        ("Calls", EdgeKind.CALLS, False),
        ("Inherits from", EdgeKind.INHERITS, False),
        ("Inherited by", EdgeKind.INHERITS, True),
        ("Members", EdgeKind.DECLARES, False),
        ("Imports", EdgeKind.IMPORTS, False),
        ("Imported by", EdgeKind.IMPORTS, True),
    )
    groups: list[tuple[str, list[Any], bool]] = []
    for title, kind, inward in words:
        ends: dict[Any, int] = {}
        for edge in around.edges:
            if edge.kind != kind:
                continue
            near, far = (edge.target, edge.source) if inward else (edge.source, edge.target)
            if near == found.pk and far in nodes:
                ends.setdefault(far, edge.line)
        if ends:
            groups.append((title, [(nodes[pk], line) for pk, line in ends.items()], around.truncated))
    return groups


def _crumbs(path: str) -> list[tuple[str, str]]:
    """(name, path so far) of every part of a path."""
    parts = path.split("/") if path else []
    return [(part, "/".join(parts[: at + 1])) for at, part in enumerate(parts)]
