"""Admin pages of code: derived rows, to look at."""

from __future__ import annotations

from django.contrib import admin

from apps.access.admin_base import ReadOnlyAdmin
from apps.repos.models_code import (
    ChunkMention,
    ChunkNames,
    CodeChunk,
    CodeCoverage,
    CodeDeparture,
    CodeDocumentLink,
    CodeEdge,
    CodeFile,
    CodeNode,
    CodeState,
    CodeTriple,
)


@admin.register(CodeFile)
class CodeFileAdmin(ReadOnlyAdmin):
    list_display = ("path", "repository", "language", "state", "reason", "error_line", "line_count", "test", "side")
    list_filter = ("state", "reason", "language", "test", "side", "repository")
    search_fields = ("path",)
    list_select_related = ("repository",)
    show_full_result_count = False


@admin.register(CodeNode)
class CodeNodeAdmin(ReadOnlyAdmin):
    list_display = ("qualified_name", "kind", "language", "file", "start_line", "exported", "test", "repository")
    list_filter = ("kind", "language", "exported", "test", "repository")
    search_fields = ("=name", "qualified_name")
    list_select_related = ("repository", "file")
    exclude = ("search_keys", "key")
    view_on_site = True
    show_full_result_count = False


@admin.register(CodeEdge)
class CodeEdgeAdmin(ReadOnlyAdmin):
    list_display = ("written", "kind", "source", "target", "file", "line", "confidence")
    list_filter = ("kind", "confidence", "repository")
    search_fields = ("=name",)
    list_select_related = ("source", "target", "file")
    show_full_result_count = False


@admin.register(CodeDocumentLink)
class CodeDocumentLinkAdmin(ReadOnlyAdmin):
    list_display = ("written", "file", "line", "state", "target_document", "anchor")
    list_filter = ("state", "repository")
    search_fields = ("written",)
    list_select_related = ("file", "target_document")


@admin.register(CodeChunk)
class CodeChunkAdmin(ReadOnlyAdmin):
    list_display = ("id", "file", "heading_path", "chunk_index", "start_line", "end_line")
    list_filter = ("repository",)
    search_fields = ("file__path",)
    list_select_related = ("file",)
    show_full_result_count = False


@admin.register(ChunkNames)
class ChunkNamesAdmin(ReadOnlyAdmin):
    list_display = ("chunk", "document", "tails")
    list_filter = ("repository",)
    search_fields = ("document__path",)
    list_select_related = ("chunk", "document")
    show_full_result_count = False


@admin.register(ChunkMention)
class ChunkMentionAdmin(ReadOnlyAdmin):
    list_display = ("name", "document", "node", "form", "confidence", "count")
    list_filter = ("form", "confidence", "repository")
    search_fields = ("=name",)
    list_select_related = ("document", "node")
    show_full_result_count = False


@admin.register(CodeDeparture)
class CodeDepartureAdmin(ReadOnlyAdmin):
    list_display = ("qualified_name", "kind", "path", "commit", "survivor", "noticed_at", "repository")
    list_filter = ("kind", "repository")
    search_fields = ("=name", "qualified_name", "path")
    list_select_related = ("repository",)
    date_hierarchy = "noticed_at"


@admin.register(CodeCoverage)
class CodeCoverageAdmin(ReadOnlyAdmin):
    list_display = ("repository", "commit", "documented", "exported", "created_at")
    list_filter = ("repository",)
    search_fields = ("repository__slug", "commit")
    list_select_related = ("repository",)
    date_hierarchy = "created_at"


@admin.register(CodeState)
class CodeStateAdmin(ReadOnlyAdmin):
    list_display = ("repository", "commit", "is_resolved", "is_linked", "history_searched")
    list_filter = ("is_resolved", "is_linked", "repository")
    search_fields = ("repository__slug", "commit")
    list_select_related = ("repository",)


@admin.register(CodeTriple)
class CodeTripleAdmin(ReadOnlyAdmin):
    list_display = ("triple", "repository", "segment")
    list_filter = ("repository",)
    search_fields = ("=triple",)
    list_select_related = ("repository",)
    exclude = ("entries",)
    show_full_result_count = False
