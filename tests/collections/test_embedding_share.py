"""Vectors take hours where uploads take seconds: embedding never holds every worker (`access-and-jobs.md` 47)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from apps.access.models import User
from apps.collections.curation import create_collection
from apps.jobs.claims import claim
from apps.jobs.models import Job
from apps.jobs.queue import enqueue

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("workers", "at_once"), [(1, 1), (2, 1), (4, 3)])
def test_embedding_leaves_a_worker_to_what_people_wait_for(
    olga: User, settings: Any, workers: int, at_once: int
) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, jobs=dataclasses.replace(settings.COGRAPH.jobs, workers=workers)
    )
    sources = [create_collection(by=olga, name=f"Book {number}") for number in range(at_once + 1)]
    waiting = [enqueue("embed", source=source).job.pk for source in sources]
    assert [claim(pk) is not None for pk in waiting] == [True] * at_once + [False]
    assert Job.objects.get(pk=waiting[-1]).waiting_reason == f"{at_once} embedding"
    assert claim(enqueue("resolve_links", source=sources[0]).job.pk) is not None
