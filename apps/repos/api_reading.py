"""REST: what a repository holds: documents, the docs tree and its pages, files and their lines."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Func, IntegerField, Q
from django.http import HttpResponse
from rest_framework.response import Response

from apps.access.compiled import AFTER_ID, AFTER_NUMBER, AFTER_TEXT, MARK_OF_ID, ReadablePages
from apps.access.errors import BadRequest
from apps.access.rest.cursors import Page, page_of_readable, page_of_rows
from apps.access.rest.etags import etag_of, not_modified, tagged
from apps.access.rest.schema import list_of
from apps.access.rest.strict import ListQuery
from apps.access.rest.views import Door
from apps.indexing.api_values import present_chunk
from apps.indexing.chunk_states import vector_states
from apps.repos import api_inputs as take
from apps.repos import api_reading_values as shape
from apps.repos.api import InRepository
from apps.repos.api_code_values import present_symbol
from apps.repos.api_values import freshness
from apps.repos.catalogue import links_of
from apps.repos.code.related import code_on_page, naming_literals, related_symbols
from apps.repos.lookup import document_for
from apps.repos.models import Absence, RepositoryDocument, RepositoryDocumentChunk, RepositoryFile
from apps.repos.page_body import page_body
from apps.repos.pills import pills_of
from apps.repos.ranges import read_range
from apps.repos.surroundings import around, tree_of

WIDE = ("text", "structure", "frontmatter", "anchors", "warnings", "raw_path")
MOST_MENTIONS = 50
"""Symbols that are told of each chunk."""


def _commit_tag(repository: Any, *parts: object) -> str:
    """Answers below a repository also tell how fresh it is, so its state is part of their tag."""
    return etag_of(*parts, *(str(value) for value in freshness(repository).values()))


def _lines(rows: Any) -> Any:
    """Documents with what their lines in a list tell."""
    length = Func("warnings", function="jsonb_array_length", output_field=IntegerField())
    return rows.defer(*WIDE).annotate(warning_count=length)


_DOCUMENTS: ReadablePages[RepositoryDocument] = ReadablePages(
    lambda viewer, id: _lines(RepositoryDocument.objects.visible_to(viewer).filter(repository=id)),
    MARK_OF_ID,
    order=("path", "id"),
    after=(AFTER_TEXT, AFTER_ID),
)
_FILES: ReadablePages[RepositoryFile] = ReadablePages(
    lambda viewer, id: RepositoryFile.objects.visible_to(viewer).filter(repository=id).defer("text"),
    MARK_OF_ID,
    order=("path", "id"),
    after=(AFTER_TEXT, AFTER_NUMBER),
)


class RepositoryDocumentsView(InRepository):
    doors = {
        "GET": Door(
            right="read",
            summary="Documents of a repository, by path",
            query=take.DocumentQuery,
            output=shape.RepoDocumentPage,
        )
    }

    def get(self, request: Any, **names: Any) -> Response:
        asked = self.query
        if not any(asked.get(name) for name in ("path", "kind", "state", "q")):
            page = page_of_readable(_DOCUMENTS, self.repository.pk, viewer=self.viewer, question=self.question())
            return self._answered(page)
        rows = _lines(RepositoryDocument.objects.visible_to(self.viewer).filter(repository=self.repository))
        rows = rows.below(asked["path"])
        if asked.get("kind"):
            rows = rows.filter(kind=asked["kind"])
        if asked.get("state"):
            field = "absence" if asked["state"] in (Absence.HELD, Absence.KEPT) else "state"
            rows = rows.filter(**{field: asked["state"]})
        if asked["q"]:
            rows = rows.filter(Q(path__icontains=asked["q"]) | Q(title__icontains=asked["q"]))
        return self._answered(page_of_rows(rows, order=("path", "id"), viewer=self.viewer, question=self.question()))

    def _answered(self, page: Page[Any]) -> Response:
        body = page.body(lambda document: shape.present_line(self.repository, document))
        return Response({**body, "repository": freshness(self.repository)})


class InDocument(InRepository):
    """Below one document of the repository; under another repository it is as absent as a hidden one."""

    document: RepositoryDocument

    def authorize(self, **names: Any) -> None:
        super().authorize(**names)
        rows = RepositoryDocument.objects.filter(repository=self.repository)
        self.document = rows.get_for(self.viewer, pk=names["document_id"])


class RepositoryDocumentView(InDocument):
    doors = {
        "GET": Door(
            right="read",
            summary="One document with its text, structure and links",
            output=shape.RepoDocumentOutput,
            tagged=True,
        )
    }

    def get(self, request: Any, document_id: UUID, **names: Any) -> Any:
        held = self.document
        etag = _commit_tag(
            self.repository, held.pk, held.content_hash, held.updated_at, held.path, held.slug, held.absence,
            self.repository.linked_with,
        )  # fmt: skip
        fresh = not_modified(request, etag)
        if fresh is not None:
            return fresh
        return tagged(Response(shape.present_document(self.repository, held, links_of(held))), etag)


class RepositoryDocumentChunksView(InDocument):
    doors = {
        "GET": Door(
            right="read",
            summary="The chunks of a document in order, with the state of their vectors and the symbols that they name",
            query=ListQuery,
            output=list_of(shape.RepoChunkOutput),
        )
    }

    def get(self, request: Any, document_id: UUID, **names: Any) -> Response:
        rows = RepositoryDocumentChunk.objects.filter(document=self.document)
        question = self.question(version=self.document.content_hash, profile=self.document.chunk_profile)
        page = page_of_rows(rows, order=("chunk_index", "id"), viewer=self.viewer, question=question)
        states = vector_states(page.items)
        named = related_symbols([chunk.pk for chunk in page.items], MOST_MENTIONS)
        return Response(
            page.body(
                lambda chunk: {
                    **present_chunk(chunk, states[chunk.pk]),
                    "mentions": [present_symbol(symbol) for symbol in named.get(chunk.pk, ())],
                }
            )
        )


class DocsView(InRepository):
    doors = {"GET": Door(right="read", summary="The tree of the documents", output=shape.TreeOutput)}

    def get(self, request: Any, **names: Any) -> Response:
        return Response(shape.present_tree(self.repository, tree_of(self.viewer, self.repository)))


class DocPageView(InRepository):
    doors = {
        "GET": Door(
            right="read",
            summary="A page as HTML and Markdown with everything around it",
            description="An address that the page once had answers 301, that of a removed page 410 with the commit.",
            output=shape.DocPageOutput,
            tagged=True,
            also=(301,),
            codes={410: ("gone",)},
        )
    }

    def get(self, request: Any, doc_slug: str, **names: Any) -> Any:
        found = document_for(self.repository, doc_slug)
        if isinstance(found, str):
            # A moved page may move again, and the caller may lose it: the answer is not to be kept.
            headers = {
                "Location": f"/api/repos/{self.repository.slug}/docs/{found}",
                "Cache-Control": "private, no-store",
            }
            return HttpResponse(status=301, headers=headers)
        near = around(self.viewer, tree_of(self.viewer, self.repository), found)
        body = page_body(found, found.links.select_related("target_document").order_by("id"))
        code, literals = code_on_page(found.pk), naming_literals([found.pk]).get(found.pk, ())
        answer = shape.present_page(
            self.repository, found, body, near, pills_of(self.repository, found), code, literals
        )
        etag = etag_of(repr(answer))
        return not_modified(request, etag) or tagged(Response(answer), etag)


class FilesView(InRepository):
    doors = {
        "GET": Door(
            right="read",
            summary="Every path of the synced commit, with what became of it",
            query=take.FileQuery,
            output=shape.FilePage,
        )
    }

    def get(self, request: Any, **names: Any) -> Response:
        asked = self.query
        if not any(asked.get(name) for name in ("path", "kind", "state", "q")):
            page = page_of_readable(_FILES, self.repository.pk, viewer=self.viewer, question=self.question())
            return self._answered(page)
        rows = RepositoryFile.objects.visible_to(self.viewer).filter(repository=self.repository).defer("text")
        if asked["path"]:
            rows = rows.filter(path__startswith=asked["path"])
        if asked["q"]:
            rows = rows.filter(path__icontains=asked["q"])
        for name in ("kind", "state"):
            if asked.get(name):
                rows = rows.filter(**{name: asked[name]})
        return self._answered(page_of_rows(rows, order=("path", "id"), viewer=self.viewer, question=self.question()))

    def _answered(self, page: Page[Any]) -> Response:
        return Response({**page.body(shape.present_file), "repository": freshness(self.repository)})


class FileRangeView(InRepository):
    doors = {
        "GET": Door(
            right="read",
            summary="Lines of a file at the synced commit, verbatim",
            description="Any text whose path is tracked and whose text is stored. Secret-looking values are redacted.",
            query=take.RangeQuery,
            output=shape.RangeOutput,
            tagged=True,
            codes={400: ("required",), 409: ("not_indexed",)},
        )
    }

    def get(self, request: Any, **names: Any) -> Any:
        if not self.query["path"]:
            raise BadRequest("Name the file.", code="required", field="path")
        start = self.query["start_line"]
        end = self.query.get("end_line", start + take.DEFAULT_LINES - 1)
        found = read_range(self.repository, self.query["path"], start, end)
        answer = {
            "path": found.path,
            "kind": found.kind,
            "start_line": found.start_line,
            "end_line": found.end_line,
            "total_lines": found.total_lines,
            "lines": list(found.lines),
            "commit": found.commit,
        }
        etag = etag_of(repr(answer))
        return not_modified(request, etag) or tagged(Response(answer), etag)
