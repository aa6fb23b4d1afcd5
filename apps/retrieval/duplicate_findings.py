"""Findings about documents whose text stands in another source too: when it changes, one of them will be forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import CharField, F, Func, Value

from apps.collections.models import Document
from apps.indexing.document_findings import fingerprint_of
from apps.indexing.findings import Finder, Finding, Rows, register_finder
from apps.indexing.statements import Fragment, fragment_of, union
from apps.repos.models import RepositoryDocument

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.access.viewers import Viewer
    from apps.indexing.findings import Lists

DUPLICATE = "duplicate_document"
LEAST_BYTES = 200
"""Shorter texts are alike by chance, as in search."""
MOST_PAIRS = 2000


def register() -> None:
    register_finder(Finder("duplicates", (DUPLICATE,), find, lists=lists))


def lists(viewer: Viewer, source: Source) -> Lists:
    """(id, path, label of another source, path there) of each document with a copy.

    SECURITY: both sides come from what the viewer may read, so that nobody learns what a hidden source holds.
    """
    of_repositories = RepositoryDocument.objects.visible_to(viewer)
    of_collections = Document.objects.visible_to(viewer)
    digest = Func(F("content_hash"), Value("hex"), function="encode", output_field=CharField())
    texts = union(
        [
            _texts(of_repositories, "repository_id", "repository__slug", "path", F("content_hash")),
            _texts(of_collections, "collection_id", "collection__name", "source_key", digest),
        ]
    )
    sql = f"""
        WITH texts AS ({texts.sql}), own AS (SELECT * FROM texts WHERE of = %s)
        SELECT own.document, own.at AS path, twin.label, twin.at AS place
        FROM own JOIN texts twin ON twin.digest = own.digest AND twin.of <> own.of
        ORDER BY own.at, twin.label, twin.at LIMIT {MOST_PAIRS}
    """  # noqa: S608 - Django's SQL and a number
    return (Fragment(sql, (*texts.params, source.pk)),)


def _texts(documents: Any, source: str, label: str, place: str, digest: Any) -> Fragment:
    names = {"of": F(source), "label": F(label), "at": F(place), "document": F("id"), "digest": digest}
    return fragment_of(documents.filter(size__gte=LEAST_BYTES).values(**names))


def find(viewer: Viewer, source: Source, rows: Rows) -> Iterator[Finding]:
    """One finding for each document that stands in another readable source too."""
    for (document, path), pairs in groupby(rows[0], key=_own):
        first, *more = pairs
        others = f" and in {len(more)} more place{'s' * (len(more) > 1)}" if more else ""
        yield Finding(
            DUPLICATE,
            "info",
            f"The same text stands in {first['label']}: {first['place']}{others}.",
            path,
            hint="Keep one of them, and link to it from where the other was.",
            document_id=UUID(document),
            fingerprint=fingerprint_of(DUPLICATE, path),
        )


def _own(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["document"], row["path"]
