"""What is kept of chunks that went while their document stayed."""

from __future__ import annotations

import datetime

import pytest
from django.utils import timezone

from apps.indexing import chunks, tombstones
from apps.indexing.models import ChunkTombstone
from tests.indexing.shelf import STORE, Paper, PaperChunk, a_shelf, cut, put

pytestmark = pytest.mark.usefixtures("shelves")


def test_a_chunk_that_its_document_lost_is_remembered_until_the_document_goes() -> None:
    shelf = a_shelf()
    put(shelf, "a.md", cut("one", "A"), cut("two", "B"))
    before = {row.pk: row for row in PaperChunk.objects.filter(shelf=shelf)}
    put(shelf, "a.md", cut("one", "A"), cut("three", "B"))
    assert PaperChunk.objects.filter(shelf=shelf).count() == 2
    stone = ChunkTombstone.objects.get()
    gone = before[stone.chunk_id]
    assert not PaperChunk.objects.filter(pk=stone.chunk_id).exists()
    assert (stone.heading_path, stone.chunk_index) == (gone.heading_path, gone.chunk_index)
    assert (stone.source_id, stone.document_id) == (shelf.pk, gone.document_id)
    paper = Paper.objects.get(shelf=shelf)
    chunks.remove_documents(STORE, source_id=shelf.pk, document_ids=[paper.pk])
    assert not ChunkTombstone.objects.exists()


def test_retention_prunes_the_old_ones() -> None:
    shelf = a_shelf()
    put(shelf, "a.md", cut("one", "A"))
    put(shelf, "a.md", cut("two", "A"))
    now = timezone.now()
    assert tombstones.prune(now) == 0
    assert tombstones.prune(now + tombstones.KEPT + datetime.timedelta(minutes=1)) == 1
    assert not ChunkTombstone.objects.exists()


def test_a_removed_source_leaves_none() -> None:
    shelf = a_shelf()
    put(shelf, "a.md", cut("one", "A"))
    put(shelf, "a.md", cut("two", "A"))
    chunks.remove_source(STORE, source_id=shelf.pk)
    assert not ChunkTombstone.objects.exists()
