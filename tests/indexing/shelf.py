"""A source, its documents and their chunks, for tests of the index: tables that no room of the product has."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from typing import ClassVar

from django.contrib.auth.models import AnonymousUser
from django.db import connection, models

from apps.access.grants import GroupGrant, UserGrant
from apps.access.models import User
from apps.access.querysets import ScopedQuerySet
from apps.access.sources import Source, register_source
from apps.indexing import chunks, lexical
from apps.indexing.chunks import DocumentText
from apps.indexing.models import Chunk
from apps.indexing.questions import ask
from apps.indexing.scope import Scope, visible
from apps.indexing.stores import ChunkStore, register_store
from apps.markup.values import Chunk as CutChunk

LABEL = "indexing_tests"


class Shelf(Source):
    kind: ClassVar[str] = "shelf"
    slug = models.TextField()
    language = models.TextField(default="english")

    class Meta(Source.Meta):
        app_label = LABEL

    @property
    def label(self) -> str:
        return self.slug


class ShelfUserGrant(UserGrant):
    content_object = models.ForeignKey(Shelf, on_delete=models.CASCADE)

    class Meta(UserGrant.Meta):
        abstract = False
        app_label = LABEL


class ShelfGroupGrant(GroupGrant):
    content_object = models.ForeignKey(Shelf, on_delete=models.CASCADE)

    class Meta(GroupGrant.Meta):
        abstract = False
        app_label = LABEL


class Paper(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, db_constraint=False)
    path = models.TextField()

    class Meta:
        app_label = LABEL


class PaperChunkQuerySet(ScopedQuerySet["PaperChunk"]):
    scope = ("shelf",)


class PaperChunk(Chunk):
    document = models.ForeignKey(Paper, on_delete=models.CASCADE, db_constraint=False)
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, db_constraint=False, db_index=False)

    objects = PaperChunkQuerySet.as_manager()

    class Meta(Chunk.Meta):
        abstract = False
        app_label = LABEL


class CodeChunk(Chunk):
    document = models.ForeignKey(Paper, on_delete=models.CASCADE, db_constraint=False)
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, db_constraint=False, db_index=False)

    objects = PaperChunkQuerySet.as_manager()

    class Meta(Chunk.Meta):
        abstract = False
        app_label = LABEL


STORE = ChunkStore("shelf_papers", PaperChunk, "shelf", "shelf")
CODE = ChunkStore("shelf_code", CodeChunk, "shelf", "shelf", block="code")
MODELS = (Shelf, ShelfUserGrant, ShelfGroupGrant, Paper, PaperChunk, CodeChunk)


def make_tables() -> None:
    """Creates the tables and registers source and stores; the tables stand until the database of the run goes."""
    if "indexing_tests_shelf" not in connection.introspection.table_names():
        with connection.schema_editor() as editor:
            for model in MODELS:
                editor.create_model(model)
        with connection.cursor() as cursor:
            # Other tests empty the account tables, which PostgreSQL refuses while foreign keys point to them.
            cursor.execute(
                "SELECT conrelid::regclass::text, conname FROM pg_constraint "
                "WHERE contype = 'f' AND conrelid::regclass::text LIKE 'indexing_tests%'"
            )
            for table, name in cursor.fetchall():
                cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')


def register() -> None:
    register_source(Shelf, user_grants=ShelfUserGrant, group_grants=ShelfGroupGrant)
    register_store(STORE)
    register_store(CODE)


_names = itertools.count()


def a_user(**fields: object) -> User:
    return User.objects.create_user(f"reader-{uuid.uuid4()}", password=None, **fields)  # type: ignore[arg-type]


def a_shelf(
    slug: str = "", *, visibility: str = "public", owner: User | None = None, language: str = "english"
) -> Shelf:
    return Shelf.objects.create(
        slug=slug or f"shelf{next(_names)}", visibility=visibility, owner=owner, language=language
    )


def cut(text: str, *heading_path: str, index: int = 0) -> CutChunk:
    """A chunk as the chunkers give it."""
    return CutChunk(
        index, heading_path, len(heading_path), "-".join(heading_path).lower(), 1, 1, 0, len(text), text, text
    )


def put(
    shelf: Shelf, path: str, *sections: CutChunk, title: str = "", side: bool = False, store: ChunkStore = STORE
) -> Paper:
    """Stores a document, new or in place of the one at the path."""
    paper, _ = Paper.objects.get_or_create(shelf=shelf, path=path)
    chunks.store_documents(store, source_id=shelf.id, documents=[as_text(paper, sections, title, shelf.language, side)])
    return paper


def as_text(
    paper: Paper, sections: Sequence[CutChunk], title: str = "", language: str = "english", side: bool = False
) -> DocumentText:
    numbered = [
        CutChunk(place, c.heading_path, c.heading_level, c.section_anchor, c.start_line, c.end_line, c.start_byte,
                 c.end_byte, c.source, c.text, c.part, c.parts, c.flags)
        for place, c in enumerate(sections)
    ]  # fmt: skip
    return DocumentText(paper.id, title, paper.path, numbered, language, side)


def write(shelf: Shelf, **texts: str) -> dict[str, Paper]:
    """Documents of one chunk each, named by their keyword."""
    return {name: put(shelf, f"{name}.md", cut(text)) for name, text in texts.items()}


def scope_of(viewer: User | AnonymousUser | None = None, **narrowing: object) -> Scope:
    return visible(viewer or a_user(), **narrowing)  # type: ignore[arg-type]


def found(
    query: str, viewer: User | AnonymousUser | None = None, store: ChunkStore = STORE, **narrowing: object
) -> list[tuple[str, float]]:
    """Paths and scores of the lexical stream, best first, equal scores by path."""
    scope = scope_of(viewer, block=store.block, **narrowing)
    result = lexical.search(scope, ask(query, scope.languages))
    rows = dict(
        store.model._default_manager.filter(ref__in=[hit.ref for hit in result.hits]).values_list(
            "ref", "document__path"
        )
    )
    return sorted(((rows[hit.ref], hit.score) for hit in result.hits), key=lambda row: (-row[1], row[0]))


def paths(query: str, viewer: User | AnonymousUser | None = None, **narrowing: object) -> list[str]:
    return [path for path, _ in found(query, viewer, **narrowing)]
