"""How much a repository holds, counted for its page and for programs."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, IntegerField, OuterRef, Q, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from apps.repos import presentation
from apps.repos.models import Repository, RepositoryDocument, RepositoryFile


def document_count() -> Any:
    """An annotation of repositories: how many documents each has."""
    counts = RepositoryDocument.objects.filter(repository=OuterRef("pk")).order_by().values("repository")
    return Coalesce(Subquery(counts.annotate(n=Count("pk")).values("n"), output_field=IntegerField()), Value(0))


def counts(repository: Repository) -> dict[str, Any]:
    """Documents with their chunks and words, and files by state. The caller has scoped the repository."""
    documents = RepositoryDocument.objects.filter(repository=repository).aggregate(
        documents=Count("pk"),
        chunks=Sum("chunk_count", default=0),
        words=Sum("word_count", default=0),
        held_deletions=Count("pk", filter=Q(absence="held")),
    )
    files = RepositoryFile.objects.filter(repository=repository).values_list("state").annotate(n=Count("pk"))
    return {**documents, "files": dict(sorted(files.order_by()))}


def languages(repository: Repository) -> list[presentation.Share]:
    """Bytes by language, the largest ones and "other"."""
    sizes = (
        RepositoryFile.objects.filter(repository=repository)
        .exclude(size=None)
        .extra(select={"extension": "lower(substring(path from '[^./]+$'))"})
        .values_list("extension")
        .annotate(bytes=Sum("size"))
        .order_by()
    )
    return presentation.languages({extension: size for extension, size in sizes if extension})
