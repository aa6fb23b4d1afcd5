"""What REST says of the documents and files of repositories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rest_framework import serializers

from apps.access.rest.schema import list_of
from apps.indexing.api_values import ChunkOutput
from apps.repos.api_code_values import (
    NamingLiteralOutput,
    RelatedCodeOutput,
    RelatedSymbolOutput,
    present_literal,
    present_symbol,
)
from apps.repos.api_values import FreshnessOutput, freshness
from apps.repos.code.related import NamingLiteral, RelatedSymbol
from apps.repos.models import RepositoryDocument, RepositoryDocumentLink, RepositoryFile
from apps.repos.page_body import PageBody
from apps.repos.pills import Pill
from apps.repos.surroundings import Surroundings
from apps.repos.tree import Entry, Folder, Tree


class RepoDocumentLine(serializers.Serializer[Any]):
    """A document in a list. ``absence`` is empty, or says that the latest commit does not hold it."""

    id = serializers.CharField()
    path = serializers.CharField()
    kind = serializers.CharField()
    title = serializers.CharField()
    slug = serializers.CharField()
    url = serializers.CharField()
    state = serializers.CharField()
    absence = serializers.CharField()
    size = serializers.IntegerField()
    words = serializers.IntegerField()
    lines = serializers.IntegerField()
    chunks = serializers.IntegerField()
    warnings = serializers.IntegerField()
    redacted = serializers.IntegerField()
    content_hash = serializers.CharField()
    commit = serializers.CharField()
    committed_at = serializers.DateTimeField(allow_null=True)
    updated_at = serializers.DateTimeField()


class RepoLinkOutput(serializers.Serializer[Any]):
    """A link of a document, resolved within the synced commit."""

    type = serializers.CharField()
    href = serializers.CharField()
    text = serializers.CharField()
    lines = serializers.ListField(child=serializers.IntegerField())
    state = serializers.CharField()
    reason = serializers.CharField()
    target = serializers.CharField(allow_null=True)
    target_path = serializers.CharField()
    anchor = serializers.CharField()
    suggestion = serializers.CharField()
    image = serializers.BooleanField()


class RepoDocumentOutput(RepoDocumentLine):
    """A document with its (redacted) text and what parsing found."""

    text = serializers.CharField()
    encoding = serializers.CharField()
    frontmatter = serializers.JSONField()
    structure = serializers.DictField()
    parse_warnings = serializers.ListField(child=serializers.DictField())
    links = RepoLinkOutput(many=True)
    repository = FreshnessOutput()


class TreeOutput(serializers.Serializer[Any]):
    """Nodes are pages with ``title``, ``slug`` and ``path``, or folders with ``title`` and ``children``."""

    docs = serializers.ListField(child=serializers.DictField())
    files = serializers.ListField(child=serializers.DictField())
    total = serializers.IntegerField()
    repository = FreshnessOutput()


class PageRefOutput(serializers.Serializer[Any]):
    """A page by its address."""

    title = serializers.CharField()
    slug = serializers.CharField()
    path = serializers.CharField()


class TocOutput(serializers.Serializer[Any]):
    """A heading of the table of contents."""

    level = serializers.IntegerField()
    text = serializers.CharField()
    anchor = serializers.CharField()
    line = serializers.IntegerField()


class PillOutput(serializers.Serializer[Any]):
    """A file that the page names in inline code."""

    text = serializers.CharField()
    path = serializers.CharField()
    start_line = serializers.IntegerField(allow_null=True)
    end_line = serializers.IntegerField(allow_null=True)
    url = serializers.CharField()


class BacklinkOutput(PageRefOutput):
    """A page that links here, with the lines that do."""

    lines = serializers.ListField(child=serializers.IntegerField())


class DocPageOutput(RepoDocumentLine):
    """A page as the reader shows it. ``html`` is safe to show."""

    html = serializers.CharField()
    markdown = serializers.CharField()
    toc = TocOutput(many=True)
    notes = serializers.ListField(child=serializers.CharField())
    previous = PageRefOutput(allow_null=True)
    next = PageRefOutput(allow_null=True)
    siblings = PageRefOutput(many=True)
    backlinks = BacklinkOutput(many=True)
    pills = PillOutput(many=True)
    related_code = RelatedCodeOutput()
    named_in_code = NamingLiteralOutput(many=True)
    repository = FreshnessOutput()


class FileOutput(serializers.Serializer[Any]):
    """A path of the synced commit and what became of it."""

    path = serializers.CharField()
    kind = serializers.CharField()
    size = serializers.IntegerField(allow_null=True)
    blob = serializers.CharField()
    mode = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    message = serializers.CharField()


class RangeOutput(serializers.Serializer[Any]):
    """Lines, verbatim and without their ends."""

    path = serializers.CharField()
    kind = serializers.CharField()
    start_line = serializers.IntegerField()
    end_line = serializers.IntegerField()
    total_lines = serializers.IntegerField()
    lines = serializers.ListField(child=serializers.CharField())
    commit = serializers.CharField()


class RepoChunkOutput(ChunkOutput):
    """A chunk with the symbols that it names, the surest first."""

    mentions = RelatedSymbolOutput(many=True)


class RepoDocumentPage(list_of(RepoDocumentLine)):  # type: ignore[misc]
    """Documents, and the state of the repository that they show."""

    repository = FreshnessOutput()


class FilePage(list_of(FileOutput)):  # type: ignore[misc]
    """Paths, and the state of the repository that they show."""

    repository = FreshnessOutput()


def present_line(repository: Any, document: Any) -> dict[str, Any]:
    count = getattr(document, "warning_count", None)
    return {
        "id": str(document.pk),
        "path": document.path,
        "kind": document.kind,
        "title": document.title,
        "slug": document.slug,
        "url": f"{repository.get_absolute_url()}/docs/{document.slug}",
        "state": document.state,
        "absence": document.absence,
        "size": document.size,
        "words": document.word_count,
        "lines": document.line_count,
        "chunks": document.chunk_count,
        "warnings": len(document.warnings) if count is None else count,
        "redacted": document.redacted_count,
        "content_hash": document.content_hash,
        "commit": document.commit,
        "committed_at": document.committed_at,
        "updated_at": document.updated_at,
    }


def present_document(
    repository: Any, document: RepositoryDocument, links: Iterable[RepositoryDocumentLink]
) -> dict[str, Any]:
    return {
        **present_line(repository, document),
        "text": document.text,
        "encoding": document.encoding,
        "frontmatter": document.frontmatter,
        "structure": document.structure,
        "parse_warnings": document.warnings,
        "links": [present_link(link) for link in links],
        "repository": freshness(repository),
    }


def present_link(link: RepositoryDocumentLink) -> dict[str, Any]:
    return {
        "type": link.link_type,
        "href": link.href,
        "text": link.text,
        "lines": link.lines,
        "state": link.state,
        "reason": link.reason,
        "target": str(link.target_document_id) if link.target_document_id else None,
        "target_path": link.target_path,
        "anchor": link.anchor,
        "suggestion": link.suggestion,
        "image": link.image,
    }


def present_tree(repository: Any, tree: Tree) -> dict[str, Any]:
    return {
        "docs": _nodes(tree.docs),
        "files": _nodes(tree.files),
        "total": tree.total,
        "repository": freshness(repository),
    }


def _nodes(folder: Folder) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = [
        {**present_ref(entry), "kind": entry.kind, "state": entry.state, "absence": entry.absence}
        for entry in folder.pages
    ]
    return pages + [{"title": inner.name, "children": _nodes(inner)} for inner in folder.folders]


def present_ref(entry: Entry) -> dict[str, Any]:
    return {"title": entry.title, "slug": entry.slug, "path": entry.path}


def present_page(
    repository: Any,
    document: RepositoryDocument,
    body: PageBody,
    near: Surroundings,
    pills: Sequence[Pill],
    code: tuple[Sequence[RelatedSymbol], int],
    literals: Sequence[NamingLiteral],
) -> dict[str, Any]:
    return {
        **present_line(repository, document),
        "html": body.html,
        "markdown": document.text,
        "toc": [
            {"level": entry.level, "text": entry.text, "anchor": entry.anchor, "line": entry.line} for entry in body.toc
        ],
        "notes": list(body.notes),
        "previous": present_ref(near.previous) if near.previous else None,
        "next": present_ref(near.following) if near.following else None,
        "siblings": [present_ref(entry) for entry in near.siblings],
        "backlinks": [
            {
                "title": link.document.title,
                "slug": link.document.slug,
                "path": link.document.path,
                "lines": link.lines,
            }
            for link in near.backlinks
        ],
        "pills": [
            {
                "text": pill.text,
                "path": pill.path,
                "start_line": pill.start,
                "end_line": pill.end,
                "url": pill.url,
            }
            for pill in pills
        ],
        "related_code": {"symbols": [present_symbol(symbol) for symbol in code[0]], "more": code[1]},
        "named_in_code": [present_literal(literal) for literal in literals],
        "repository": freshness(repository),
    }


def present_file(file: RepositoryFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind,
        "size": file.size,
        "blob": file.blob,
        "mode": f"{file.mode:06o}",
        "state": file.state,
        "reason": file.reason,
        "message": file.message,
    }
