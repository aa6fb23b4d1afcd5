"""“Why not …?”: where a named document stands in the answer to a query, or why it took no part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.access.errors import Invalid, NotFound
from apps.access.pages import answer
from apps.access.viewers import viewer_of
from apps.collections.models import Document
from apps.repos.models import RepositoryDocument, RepositoryDocumentRedirect
from apps.retrieval import presentation
from apps.retrieval.asking import question_of
from apps.retrieval.chunk_reading import read_chunk
from apps.retrieval.explaining import Explanation, explain

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer

MOST_CHOICES = 10
LONGEST_NAME = 1000
UNKNOWN = "There is no such document among those that you can read."
_READER = re.compile(r"/repos/([^/]+/[^/]+/[^/]+)/docs/([^/]+)/?$")
_FILE = re.compile(r"/repos/([^/]+/[^/]+/[^/]+)/files/(.+)$")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DOCUMENT = re.compile(rf"/docs/{_UUID}/documents/({_UUID})")
_CHUNK = re.compile(r"/chunks/(\d{1,19})/?$")


@dataclass(frozen=True, slots=True)
class Choice:
    id: UUID
    title: str
    path: str
    source: str
    key: tuple[str, UUID]
    """Kind and id of its source."""


@require_safe
def why_not(request: HttpRequest) -> HttpResponse:
    """The query and its filters as the search page has them, and ``document``: an address, a path, a title or an id."""
    viewer = viewer_of(request)
    params = request.GET
    named = params.get("document", "").strip()[:LONGEST_NAME]
    found: Explanation | None = None
    choices: Sequence[Choice] = ()
    problem = ""
    if named and params.get("q", "").strip():
        choices = named_documents(viewer, named)
        try:
            question = question_of(params, viewer)
            # Who asks in one source means the document there, though another source has one of that name too.
            choices = [one for one in choices if one.key in question.sources] or choices
            if not choices:
                problem = removed_document(viewer, named) or UNKNOWN
            elif len(choices) == 1:
                found = explain(viewer=viewer, question=question, document=choices[0].id)
        except NotFound:
            problem = UNKNOWN
        except Invalid as refusal:
            problem = refusal.message
    elif params.get("document") is not None:
        problem = "Name a document, and the query that you expected to find it."
    context = {
        "query": params.get("q", "").strip(),
        "kept": presentation.kept(params),
        "kinds": params.getlist("kind"),
        "named": named,
        "found": found,
        "above": [(one.row, _words(one.differences)) for one in found.above] if found else [],
        "streams": presentation.stream_lines(found.row.streams) if found and found.row else [],
        "choices": choices if found is None and len(choices) > 1 else [],
        "problem": problem,
        "back": presentation.address(params, document=None),
        "again": presentation.address(params, document=None),
    }
    return answer(request, "retrieval/why_not.html", context, fragment="retrieval/_why_not.html")


def _words(differences: Any) -> str:
    """``words +0.004, meaning −0.001``: by how much each stream adds more to the row above."""
    parts = [
        f"{presentation.STREAM_WORDS[name]} {'+' if value > 0 else '−'}{abs(value):.4f}"
        for name, value in differences.items()
        if abs(value) >= 0.00005
    ]
    return ", ".join(parts) or "the same in every stream"


def named_documents(viewer: Viewer, name: str) -> list[Choice]:
    """The readable documents that ``name`` means: one for an address or an exact path, several for a title.

    SECURITY: looked up in the viewer's scope only, so hidden and absent documents give the same nothing.
    """
    own: Any = RepositoryDocument.objects.visible_to(viewer).select_related("repository")
    rows: Any = Document.objects.visible_to(viewer).select_related("collection")
    path = _path_of(name)
    if path:
        if match := _DOCUMENT.search(path):
            return _choices((), rows.filter(pk=match[1]))
        if match := _READER.search(path):
            return _choices(own.filter(repository__slug__iexact=match[1], slug=match[2]), ())
        if match := _FILE.search(path):
            return _choices(own.filter(repository__slug__iexact=match[1], path=match[2]), ())
        if match := _CHUNK.search(path):
            try:
                view = read_chunk(viewer, int(match[1]))
            except (NotFound, Invalid):
                return []
            return [_choice(view.document, view.path, view.source)]
    try:
        number = UUID(name)
    except ValueError:
        pass
    else:
        return _choices(own.filter(pk=number), rows.filter(pk=number))
    for own_way, way in (
        ({"path": name}, {"source_key": name}),
        ({"title__iexact": name}, {"title__iexact": name}),
        ({"path__icontains": name}, {"source_key__icontains": name}),
        ({"title__icontains": name}, {"title__icontains": name}),
    ):
        found = _choices(own.filter(**own_way).order_by("path"), rows.filter(**way).order_by("source_key"))
        if found:
            return found
    return []


def removed_document(viewer: Viewer, name: str) -> str:
    """What became of a page of a readable repository that had this address or path; empty for what never was one."""
    rows: Any = RepositoryDocumentRedirect.objects.visible_to(viewer).filter(document=None)
    if match := _READER.search(_path_of(name)):
        rows = rows.filter(repository__slug__iexact=match[1], slug=match[2])
    elif match := _FILE.search(_path_of(name)):
        rows = rows.filter(repository__slug__iexact=match[1], path=match[2])
    else:
        rows = rows.filter(path=name)
    gone = rows.select_related("repository").order_by("-created_at", "pk").first()
    if gone is None:
        return ""
    by = f" by commit {gone.commit[:12]}" if gone.commit else ""
    return f"{gone.path} was removed from {gone.repository.slug}{by}, so nothing of it can be found."


def _path_of(name: str) -> str:
    """The path of an address; empty for what is none."""
    try:
        return unquote(urlsplit(name).path).replace("\0", "") if "/" in name else ""
    except ValueError:  # brackets where an address has its host
        return ""


def _choices(own: Any, rows: Any) -> list[Choice]:
    found = [
        _choice(row, row.path, row.repository)
        for row in (own.only("title", "path", "repository__slug")[:MOST_CHOICES] if own != () else ())
    ]
    found += [
        _choice(row, row.source_key, row.collection)
        for row in (rows.only("title", "source_key", "collection__name")[:MOST_CHOICES] if rows != () else ())
    ]
    return found[:MOST_CHOICES]


def _choice(document: Any, path: str, source: Source) -> Choice:
    return Choice(document.pk, document.title, path, source.label, (source.kind, source.pk))
