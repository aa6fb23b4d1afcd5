"""Why a document is where it is, or is not there: `retrieval.md` fact 119."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from apps.access.errors import Invalid, NotFound
from apps.access.models import User
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.indexing.models import EmbeddingProfile
from apps.retrieval.explaining import Explanation, explain
from apps.retrieval.values import Filters, Question

pytestmark = pytest.mark.django_db
Fill = Callable[..., None]


@pytest.fixture
def why(olga: User) -> Callable[..., Explanation]:
    def ask(query: str, key: str, viewer: Any = None, **options: Any) -> Explanation:
        document = Document.objects.get(source_key=key)
        return explain(viewer=viewer or olga, question=Question(query, **options), document=document.pk)

    return ask


def test_retrieval_fact_119_ranks_and_the_rows_above(fill: Fill, why: Any) -> None:
    fill({f"n{n}.md": f"# Zebra {n}\n\n" + "zebra crossing " * (9 - n) + "text " * n * 5 for n in range(6)})
    found = why("zebra crossing", "n5.md")
    assert found.why_not is None
    assert found.row.rank == found.total == 6
    assert found.row.streams["lexical"].rank is not None
    assert found.row.streams["dense"].state in {"found", "not found"}
    assert [one.row.rank for one in found.above] == [3, 4, 5]
    assert all(one.row.final >= found.row.final for one in found.above)
    for one in found.above:
        assert sum(one.differences.values()) == pytest.approx(one.row.fused - found.row.fused, abs=2e-9)
    first = why("zebra crossing", "n0.md")
    assert (first.row.rank, first.above) == (1, ())


def test_retrieval_fact_119_the_first_reason(fill: Fill, why: Any, shelf: Collection, olga: User) -> None:
    text = "The quick courier carries every letter over the old bridge before the sun is up. " * 4
    fill({
        "a.md": f"# Courier\n\n{text}", "docs/b.md": f"# Courier\n\n{text}", "c.md": "# Cake\n\nFlour, eggs.",
        "meta.md": "---\ntitle: Only this\n---\n", "vendor/courier.md": "# Courier\n\ncourier",
    })  # fmt: skip

    def reason(*args: Any, **options: Any) -> tuple[str, Any]:
        told = why(*args, **options).why_not
        return told.reason, told

    assert reason("courier", "a.md", filters=Filters(path="docs/"))[0] == "filter"
    assert reason("courier", "a.md", filters=Filters(path="docs/"))[1].filter == "path"
    assert reason("courier", "a.md", filters=Filters(until=datetime.date(2001, 1, 1)))[1].filter == "until"
    assert reason("courier", "a.md", filters=Filters(kinds=frozenset({"doc"})))[0] == "kind"
    assert reason("courier", "a.md", mode="code")[0] == "mode"
    assert reason("courier", "meta.md")[0] == "no_text"
    assert why("only this", "meta.md").row.name_class == "exact_name"
    kept, copy = ("a.md", "docs/b.md")
    if why("courier letter", kept).row is None:
        kept, copy = copy, kept
    assert reason("courier letter", copy)[0] == "collapsed"
    assert kept in reason("courier letter", copy)[1].place
    EmbeddingProfile.objects.update(min_cosine=0.99)
    name, told = reason("courier bridge", "c.md")
    assert name == "under_min_cosine"
    assert set(told.words) == {"courier", "bridge"}
    assert reason("what is the", "a.md")[0] == "only_common_words"
    fill({"late.md": "# Late\n\nnothing of it"}, embed=False)
    assert reason("courier", "late.md")[0] == "no_vector"
    trash_document(document=Document.objects.get(source_key="c.md"), by=olga)
    assert reason("flour", "c.md")[0] == "removed"


def test_retrieval_fact_119_hidden_and_absent_alike(fill: Fill, why: Any, otto: User, olga: User) -> None:
    fill({"a.md": "# A\n\nalpha"})
    with pytest.raises(NotFound) as hidden:
        why("alpha", "a.md", viewer=otto)
    with pytest.raises(NotFound) as absent:
        explain(viewer=otto, question=Question("alpha"), document=uuid.uuid4())
    assert (hidden.value.status, hidden.value.code, hidden.value.message) == (
        absent.value.status, absent.value.code, absent.value.message,
    )  # fmt: skip
    with pytest.raises(Invalid):
        why("", "a.md")
