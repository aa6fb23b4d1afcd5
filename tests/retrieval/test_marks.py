"""“Answers this” on result pages (`retrieval.md` 14.2, 15.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.access.models import User
from apps.access.visibility import set_visibility
from apps.collections.models import Collection
from apps.retrieval.evaluation.running import evaluate
from apps.retrieval.models import Door, QueryLogEntry
from apps.retrieval.models_evaluation import EvaluationQuery, EvaluationSet, Judgement
from tests.retrieval.library import repository_of

pytestmark = pytest.mark.django_db
Fill = Callable[..., None]
FILES = {"a.md": "# Heron\n\n## Nests\n\nA heron nests in trees.", "b.md": "# Egret\n\nAn egret beside a heron."}


@pytest.fixture
def own(db: None) -> EvaluationSet:
    return EvaluationSet.objects.create(name="Birds")


def forms(page: Any) -> list[dict[str, str]]:
    """The marks of a page: hidden values, the act, and where they go."""
    found = []
    for text in re.findall(r'<form class="mark".*?</form>', page.content.decode(), re.DOTALL):
        values = dict(re.findall(r'name="(set|row|act)" value="([^"]*)"', text))
        action = re.search(r'action="([^"]*)"', text)
        assert action is not None
        found.append({**values, "to": action[1].replace("&amp;", "&"), "pressed": 'aria-pressed="true"' in text})
    return found


def press(client: Client, form: dict[str, str], **more: Any) -> Any:
    return client.post(form["to"], {name: form[name] for name in ("set", "row", "act")}, **more)


def test_a_writer_marks_rows_and_a_run_counts_them(
    fill: Fill, own: EvaluationSet, olga: User, signed_in: Any, asking: Any
) -> None:
    fill(FILES)
    client = signed_in(olga)
    address = "/search?q=where+do+herons+nest&kind=collection"
    first, *others = forms(client.get(address))
    assert first["act"] == "give"
    answer = press(client, first)
    assert (answer.status_code, answer["Location"]) == (302, address)
    marked = forms(client.get(address))
    assert [one["pressed"] for one in marked] == [True, *(False for _ in others)]
    assert {(row.level, row.path, tuple(row.heading_path)) for row in Judgement.objects.all()} == {
        ("section", "a.md", ("Heron", "Nests")),
        ("page", "a.md", ()),
    }
    measured = evaluate(set_=own, viewer=olga)
    assert measured.metrics["section"]["mrr@10"] == measured.metrics["page"]["mrr@10"] == 1.0
    # said once, however often it is pressed
    press(client, first)
    assert Judgement.objects.count() == 2
    # the fragment for a page with script
    fragment = press(client, marked[0], headers={"HX-Request": "true"})
    assert 'aria-pressed="false"' in fragment.content.decode()
    assert not Judgement.objects.exists()
    assert not EvaluationQuery.objects.exists()


def test_who_cannot_write_marks_nothing(
    fill: Fill, own: EvaluationSet, shelf: Collection, olga: User, otto: User, signed_in: Any
) -> None:
    fill(FILES)
    (form, *_) = forms(signed_in(olga).get("/search?q=heron"))
    otto_sees = signed_in(otto)
    assert press(otto_sees, form).status_code == 404, "a hidden row is none"
    set_visibility(source=shelf, by=olga, visibility="public")
    assert forms(otto_sees.get("/search?q=heron")) == []
    assert press(otto_sees, form).status_code == 403
    assert press(Client(), form).status_code in (302, 403)
    assert not Judgement.objects.exists()
    press(signed_in(olga), form)
    # what stands in a source shows to its readers only
    set_visibility(source=shelf, by=olga, visibility="private")
    assert Judgement.objects.visible_to(olga).count() == 2
    assert Judgement.objects.visible_to(otto).count() == 0


def test_what_cannot_be_marked(fill: Fill, own: EvaluationSet, olga: User, signed_in: Any, shelf: Collection) -> None:
    fill(FILES)
    client = signed_in(olga)
    (form, *_) = forms(client.get("/search?q=heron"))
    for change in (
        {"set": "x"},
        {"set": str(shelf.pk)},
        {"row": "chunk:0"},
        {"row": "chunk:x"},
        {"row": "chunk:" + "9" * 5000},
        {"row": "node:x"},
        {"row": ""},
    ):
        assert press(client, {**form, **change}).status_code == 404, change
    assert press(client, {**form, "to": "/search/marks?q="}).status_code == 422
    assert client.get("/search/marks?q=heron").status_code == 405
    # without a set of marks, or with imported ones alone, nothing is offered
    EvaluationSet.objects.update(collection_id=shelf.pk)
    assert forms(client.get("/search?q=heron")) == []
    assert press(client, form).status_code == 404


def test_a_symbol_answers(own: EvaluationSet, tmp_path: Path, signed_in: Any) -> None:
    code = EvaluationSet.objects.create(name="Code", block="code")
    ada = User.objects.create_superuser("ada")
    repository_of(tmp_path / "acme" / "kit", {"src/widget.py": "def resize_widget(widget):\n    return widget\n"}, ada)
    client = signed_in(ada)
    (form,) = forms(client.get("/search?q=resize_widget"))
    assert form["set"] == str(code.pk)
    assert press(client, {**form, "set": str(own.pk)}).status_code == 422, "a set of documents takes no code"
    press(client, form)
    (marked,) = forms(client.get("/search?q=resize_widget"))
    assert marked["pressed"]
    measured = evaluate(set_=code, viewer=ada)
    assert (measured.metrics["section"]["mrr@10"], measured.stale) == (1.0, 0)


def test_administrators_own_sets_and_begin_at_the_query_log(signed_in: Any, olga: User) -> None:
    ada = User.objects.create_superuser("ada")
    client = signed_in(ada)
    client.post("/admin/retrieval/evaluationset/add/", {"name": "Own", "block": "docs"})
    made = EvaluationSet.objects.get(name="Own")
    assert made.owner == ada
    page = client.get(f"/admin/retrieval/evaluationset/{made.pk}/change/")
    assert page.status_code == 200
    EvaluationSet.objects.filter(pk=made.pk).update(collection_id=made.pk)
    assert 'name="_save"' not in client.get(f"/admin/retrieval/evaluationset/{made.pk}/change/").content.decode()
    olga.is_staff = True
    olga.save()
    assert signed_in(olga).get("/admin/retrieval/evaluationset/add/").status_code in (302, 403)
    QueryLogEntry.objects.create(
        user=olga, door=Door.PAGE, tool="search", query="where & how", outcome="empty", at=timezone.now()
    )
    log = client.get("/admin/retrieval/querylogentry/").content.decode()
    assert '<a href="/search?q=where+%26+how">make a test case</a>' in log
