"""An operator's reranker: `retrieval.md` 7.9 and fact 74."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.retrieval import reranking
from apps.retrieval.context import context
from apps.retrieval.reranking import Passage
from apps.retrieval.values import Answer

pytestmark = pytest.mark.django_db
Ask = Callable[..., Answer]
Fill = Callable[..., None]
FILES = {f"{name}.md": f"# Heron {name}\n\nA heron, told {'again ' * n}here.\n" for n, name in enumerate("abcd")}

seen: list[tuple[str, list[Passage]]] = []
release = threading.Event()


def backwards(query: str, passages: Sequence[Passage]) -> Sequence[int]:
    seen.append((query, list(passages)))
    return range(len(passages) - 1, -1, -1)


def dropping(query: str, passages: Sequence[Passage]) -> Sequence[int]:
    return range(len(passages) - 1)


def repeating(query: str, passages: Sequence[Passage]) -> Sequence[int]:
    return [0] * len(passages)


def inventing(query: str, passages: Sequence[Passage]) -> Sequence[int]:
    return range(1, len(passages) + 1)


def breaking(query: str, passages: Sequence[Passage]) -> Sequence[int]:
    raise RuntimeError("no model")


def waiting(query: str, passages: Sequence[Passage]) -> Sequence[int]:
    release.wait(30)
    return range(len(passages))


@pytest.fixture
def reranker(settings: Any) -> Callable[[str], None]:
    def choose(name: str) -> None:
        path = f"{__name__}.{name}" if name else ""
        area = dataclasses.replace(settings.COGRAPH.retrieval, reranker=path)
        settings.COGRAPH = dataclasses.replace(settings.COGRAPH, retrieval=area)

    return choose


def order(answer: Answer) -> list[str]:
    return [hit.path for hit in answer.hits]


def test_a_reranker_orders_the_first_rows(fill: Fill, asking: Ask, reranker: Any, olga: Any) -> None:
    fill(FILES)
    with CaptureQueriesContext(connection) as without:
        plain = asking("heron")
    scores = [hit.final for hit in plain.hits]
    reranker("backwards")
    seen.clear()
    with CaptureQueriesContext(connection) as used:
        turned = asking("heron")
    assert order(turned) == order(plain)[::-1]
    assert [hit.final for hit in turned.hits] == scores
    assert turned.degraded == ()
    ((query, passages),) = seen
    assert query == "heron"
    assert {(one.path, one.text) for one in passages} == {(path, text.rstrip("\n")) for path, text in FILES.items()}
    assert len(used) <= len(without) + 1
    assert order(asking("heron", limit=1)) == order(turned)[:1]
    assert context(viewer=olga, task="heron").parts[0].path == order(turned)[0]


@pytest.mark.parametrize("name", ["dropping", "repeating", "inventing", "breaking", "absent"])
def test_retrieval_fact_74_an_order_that_cannot_be_used(fill: Fill, asking: Ask, reranker: Any, name: str) -> None:
    fill(FILES)
    plain = asking("heron")
    reranker(name)
    answer = asking("heron")
    assert [(hit.path, hit.final) for hit in answer.hits] == [(hit.path, hit.final) for hit in plain.hits]
    assert [one.stream for one in answer.degraded] == ["reranker"]


def test_retrieval_fact_74_a_slow_one_is_left_behind(
    fill: Fill, asking: Ask, reranker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(FILES)
    plain = order(asking("heron"))
    reranker("waiting")
    monkeypatch.setattr(reranking, "SECONDS", 0.05)
    release.clear()
    try:
        reasons = []
        for _ in range(reranking.MOST_LATE + 1):
            answer = asking("heron")
            assert order(answer) == plain
            reasons.append(answer.degraded[0].reason)
        assert "longer than" in reasons[0]
        assert "have not ended" in reasons[-1], "no more threads than a few wait for it"
    finally:
        release.set()
    for thread in threading.enumerate():
        if thread.name == "reranker":
            thread.join(10)
    assert asking("heron").degraded == ()
