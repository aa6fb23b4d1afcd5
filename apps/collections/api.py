"""REST: collections and their documents. Each endpoint looks up by scope, makes one call, shapes the answer."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db.models import Func, IntegerField, Q
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from apps.access.compiled import AFTER_ID, AFTER_TEXT, MARK_OF_ID, ReadablePages, ReadableRows
from apps.access.errors import Invalid, NotFound
from apps.access.models import TokenScope
from apps.access.rest.cursors import page_of_readable, page_of_rows
from apps.access.rest.etags import check_if_match, etag_of, not_modified, tagged
from apps.access.rest.parsers import BoundedJsonParser
from apps.access.rest.schema import list_of
from apps.access.rest.strict import ListQuery, read_body
from apps.access.rest.views import ApiView, Door
from apps.access.rules import Right
from apps.collections import api_values as shape
from apps.collections import catalogue, curation, trash, uploads
from apps.collections.models import Collection, Document, DocumentChunk
from apps.collections.uploads import Staged
from apps.indexing.api_values import ChunkOutput, present_chunk
from apps.indexing.chunk_states import vector_states

WRITE = TokenScope.WRITE


_AT_ID: ReadableRows[Collection] = ReadableRows(
    lambda viewer, id: catalogue.counted(Collection.objects.visible_to(viewer)).filter(pk=id), MARK_OF_ID
)


def _lines(rows: Any) -> Any:
    """Documents with what their lines in a list tell."""
    length = Func("warnings", function="jsonb_array_length", output_field=IntegerField())
    return rows.without_text().annotate(warning_count=length)


_DOCUMENTS: ReadablePages[Document] = ReadablePages(
    lambda viewer, id: _lines(Document.objects.visible_to(viewer).filter(collection=id)),
    MARK_OF_ID,
    order=("source_key", "id"),
    after=(AFTER_TEXT, AFTER_ID),
)


class InCollection(ApiView):
    """Below one collection: looked up by the caller's scope before anything else."""

    collection: Collection

    def authorize(self, **names: Any) -> None:
        if self.door.right == Right.READ:
            found: Any = _AT_ID.first(self.viewer, names["collection_id"])
            if found is None:
                raise NotFound
            self.collection = self.source = found
            return
        right = {"read": Right.READ, "write": Right.WRITE, "manage": Right.MANAGE}[self.door.right]
        rows: Any = catalogue.counted(Collection.objects.all())
        self.collection = self.source = rows.get_for(self.viewer, right, pk=names["collection_id"])


class CollectionsView(ApiView):
    doors = {
        "GET": Door(
            right="read",
            summary="Collections that the caller may read",
            query=shape.CollectionQuery,
            output=list_of(shape.CollectionOutput),
        ),
        "POST": Door(
            right="self",
            summary="Make a collection",
            scope=WRITE,
            input=shape.CollectionInput,
            output=shape.CollectionOutput,
            status=201,
            creates=True,
            codes={409: ("conflict",)},
        ),
    }

    def get(self, request: Any) -> Response:
        page = catalogue.page_of(self.viewer, search=self.query["q"], question=self.query)
        return Response(page.body(shape.present_collection))

    def post(self, request: Any) -> Response:
        made = curation.create_collection(by=self.user, **self.body())
        row = catalogue.counted(Collection.objects.all()).get(pk=made.pk)
        return Response(
            shape.present_collection(row), status=201, headers={"Location": f"/api/md-collections/{made.pk}"}
        )


class CollectionView(InCollection):
    doors = {
        "GET": Door(right="read", summary="One collection", output=shape.CollectionOutput, tagged=True),
        "PATCH": Door(
            right="write",
            summary="Change a collection",
            scope=WRITE,
            input=shape.CollectionChanges,
            output=shape.CollectionOutput,
            description="A description takes the right to write, all else the right to manage.",
            tagged=True,
            codes={409: ("conflict",)},
        ),
        "DELETE": Door(right="manage", summary="Delete a collection with everything in it", scope=WRITE, status=204),
    }

    def _etag(self) -> str:
        held = self.collection
        documents = held.documents_count  # type: ignore[attr-defined]
        return etag_of(held.pk, held.changed_at, held.visibility, held.owner, documents)

    def get(self, request: Any, collection_id: UUID) -> Any:
        etag = self._etag()
        return not_modified(request, etag) or tagged(Response(shape.present_collection(self.collection)), etag)

    def patch(self, request: Any, collection_id: UUID) -> Response:
        check_if_match(request, self._etag())
        curation.update_collection(collection=self.collection, by=self.user, **self.body())
        row: Any = catalogue.counted(Collection.objects.all()).get(pk=collection_id)
        return Response(shape.present_collection(row))

    def delete(self, request: Any, collection_id: UUID) -> Response:
        curation.delete_collection(collection=self.collection, by=self.user)
        return Response(status=204)


class DocumentsView(InCollection):
    parser_classes = [BoundedJsonParser, MultiPartParser]
    doors = {
        "GET": Door(
            right="read",
            summary="Documents of a collection",
            query=shape.DocumentQuery,
            output=list_of(shape.DocumentLine),
        ),
        "POST": Door(
            right="write",
            summary="Upload one document",
            description="JSON, or one file as multipart with the optional fields `source_key` and `title`. "
            "201 created; 200 replaced or unchanged.",
            scope=WRITE,
            input=shape.DocumentInput,
            output=shape.UploadOutput,
            status=201,
            also=(200,),
            creates=True,
            bucket="upload",
            body_limit=lambda: int(settings.COGRAPH.markup.max_file_bytes) * 6 + 65_536,
        ),
    }

    def get(self, request: Any, collection_id: UUID) -> Response:
        question = {**self.query, "collection": str(collection_id)}
        if not (self.query["q"] or self.query["state"]):
            page = page_of_readable(_DOCUMENTS, collection_id, viewer=self.viewer, question=question)
            return Response(page.body(shape.present_line))
        rows = _lines(Document.objects.visible_to(self.viewer).filter(collection=self.collection))
        if self.query["q"]:
            rows = rows.filter(Q(source_key__icontains=self.query["q"]) | Q(title__icontains=self.query["q"]))
        if self.query["state"]:
            rows = rows.filter(state=self.query["state"])
        page = page_of_rows(rows, order=("source_key", "id"), viewer=self.viewer, question=question)
        return Response(page.body(shape.present_line))

    def post(self, request: Any, collection_id: UUID) -> Response:
        key, raw, title = _one_document(request)
        done = uploads.upload_document(collection=self.collection, by=self.user, source_key=key, raw=raw, title=title)
        created = done.outcome.state == "created"
        location = f"/api/md-collections/{collection_id}/documents/{done.outcome.document_id}"
        return Response(
            shape.present_outcome(done.outcome, done.jobs),
            status=201 if created else 200,
            headers={"Location": location} if created else None,
        )


class BatchView(InCollection):
    parser_classes = [BoundedJsonParser, MultiPartParser]
    doors = {
        "POST": Door(
            right="write",
            summary="Upload several documents, or an archive",
            description='JSON `{"documents": [...]}` or a bare list; or multipart: several `files` with optional '
            "`paths`, or one zip archive as `archive`.",
            scope=WRITE,
            input=shape.BatchInput,
            output=shape.StagedOutput,
            status=202,
            creates=True,
            codes={429: ("too_many_jobs", "staging_full")},
            bucket="upload",
            body_limit=lambda: (
                max(int(settings.COGRAPH.upload.batch_bytes) * 2, int(settings.COGRAPH.upload.zip_bytes)) + 1_048_576
            ),
        )
    }

    def post(self, request: Any, collection_id: UUID) -> Response:
        staged = self._stage(request)
        answer = {"job": shape.present_job(staged.job), "files": staged.upload.entries.count()}
        return Response(answer, status=202, headers={"Location": f"/api/jobs/{staged.job.pk}"})

    def _stage(self, request: Any) -> Staged:
        archive = request.FILES.get("archive")
        if archive is not None:
            _only(request, {"archive"})
            return uploads.stage_archive(collection=self.collection, by=self.user, file=archive, size=archive.size or 0)
        if request.FILES:
            _only(request, {"files", "paths"})
            files = request.FILES.getlist("files")
            paths = _texts(request, "paths") or [file.name or "" for file in files]
            if len(paths) != len(files):
                raise Invalid(f"{len(files)} files need as many paths, not {len(paths)}.", field="paths")
            entries = [(path, file.read(), None) for path, file in zip(paths, files, strict=True)]
        else:
            data = {"documents": request.data} if isinstance(request.data, list) else request.data
            asked = read_body(_WithData(data), shape.BatchInput)  # type: ignore[arg-type]
            entries = [
                (entry["source_key"], _encoded(entry["content"]), entry.get("title")) for entry in asked["documents"]
            ]
        return uploads.stage_batch(collection=self.collection, by=self.user, entries=entries)


class DocumentView(InCollection):
    document: Document
    doors = {
        "GET": Door(
            right="read", summary="One document with its text and structure", output=shape.DocumentOutput, tagged=True
        ),
        "DELETE": Door(
            right="write",
            summary="Put a document into the trash; `purge=1` removes it for good",
            scope=WRITE,
            query=shape.PurgeQuery,
            status=204,
        ),
    }

    def authorize(self, **names: Any) -> None:
        super().authorize(**names)
        if self.request.method == "DELETE" and self.query["purge"]:
            return  # a document in the trash can be purged, and nobody sees it there
        self.document = Document.objects.get_for(self.viewer, pk=names["document_id"], collection=self.collection)

    def get(self, request: Any, collection_id: UUID, document_id: UUID) -> Any:
        held = self.document
        links = list(held.links.in_order())
        leads = [(link.pk, link.state, link.target_document_id, link.anchor, link.suggestion) for link in links]
        etag = etag_of(held.pk, bytes(held.content_hash).hex(), held.title, self.collection.changed_at, leads)
        fresh = not_modified(request, etag)
        if fresh is not None:
            return fresh
        return tagged(Response(shape.present_document(held, links)), etag)

    def delete(self, request: Any, collection_id: UUID, document_id: UUID) -> Response:
        if self.query["purge"]:
            trash.purge_document(collection=self.collection, document_id=document_id, by=self.user)
        else:
            trash.trash_document(document=self.document, by=self.user)
        return Response(status=204)


class RestoreView(InCollection):
    doors = {
        "POST": Door(right="write", summary="Take a document out of the trash", scope=WRITE, output=shape.DocumentLine)
    }

    def post(self, request: Any, collection_id: UUID, document_id: UUID) -> Response:
        held = trash.restore_document(collection=self.collection, document_id=document_id, by=self.user)
        return Response(shape.present_line(held))


class DocumentChunksView(DocumentView):
    doors = {
        "GET": Door(
            right="read",
            summary="The chunks of a document in order, with the state of their vectors",
            query=ListQuery,
            output=list_of(ChunkOutput),
        )
    }

    def get(self, request: Any, collection_id: UUID, document_id: UUID) -> Response:
        rows = DocumentChunk.objects.filter(document=self.document)
        question = {**self.query, "document": str(document_id), "version": self.document.version}
        page = page_of_rows(rows, order=("chunk_index", "id"), viewer=self.viewer, question=question)
        states = vector_states(page.items)
        return Response(page.body(lambda chunk: present_chunk(chunk, states[chunk.pk])))


class _WithData:
    """What ``read_body`` reads of a request, for a body that was a bare list."""

    def __init__(self, data: Any) -> None:
        self.data = data


def _one_document(request: Any) -> tuple[str, bytes, str | None]:
    file = request.FILES.get("file")
    if file is None:
        asked = read_body(request, shape.DocumentInput)
        return asked["source_key"], _encoded(asked["content"]), asked.get("title")
    _only(request, {"file", "source_key", "title"})
    if not isinstance(file, UploadedFile):
        raise Invalid("Send one file.", field="file")
    key, title = (next(iter(_texts(request, name)), None) for name in ("source_key", "title"))
    return key or file.name or "", file.read(), title


def _texts(request: Any, name: str) -> list[str]:
    """The values of one text field of a form with files. Raises Invalid for a file in its place."""
    values = request.data.getlist(name)
    if not all(isinstance(value, str) for value in values):
        raise Invalid("A string is wanted here, not a file.", field=name)
    return list(values)


def _only(request: Any, known: set[str]) -> None:
    unknown = sorted(set(request.data) - known)
    if unknown:
        raise Invalid(
            f"There is no `{unknown[0][:100]}` here; known are {', '.join(sorted(known))}.",
            code="unknown_field",
            field=unknown[0][:100],
        )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
