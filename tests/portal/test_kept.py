"""Pieces of pages that are kept: what they show is all that decides which one is shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.template import Context, RequestContext, TemplateSyntaxError, engines
from django.test import RequestFactory
from django.utils.safestring import mark_safe

from apps.access.models import User
from cograph_site.templatetags import kept


def template(text: str) -> Any:
    return engines["django"].from_string(text).template


def test_a_piece_is_drawn_once_for_equal_values() -> None:
    page = template("{% kept number=n words=w %}<b>{{ number }} {{ words }}</b>{% endkept %}")
    node = page.nodelist[0]
    assert [page.render(Context({"n": 1, "w": word})) for word in ("a", "b", "a")] == [
        "<b>1 a</b>", "<b>1 b</b>", "<b>1 a</b>",
    ]  # fmt: skip
    assert len(node.pieces) == 2


def test_values_that_are_equal_and_look_otherwise_are_told_apart() -> None:
    page = template("{% kept value=v %}{{ value }}{% endkept %}")
    shown = [page.render(Context({"v": value})) for value in (1, True, 1.0, "<b>", mark_safe("<b>"), "<b>")]
    assert shown == ["1", "True", "1.0", "&lt;b&gt;", "<b>", "&lt;b&gt;"]


def test_a_piece_knows_nothing_but_its_values() -> None:
    """Whoever sees the page first, what is drawn for him alone is not in it."""
    page = template("{% kept name=n %}{{ name }}|{{ user.username }}|{{ request.path }}|{{ secret }}{% endkept %}")
    for user in (User(username="olga"), AnonymousUser()):
        request = RequestFactory().get("/a/secret")
        request.user = user
        assert page.render(RequestContext(request, {"n": "row", "user": user, "secret": "x"})) == "row|||"


def test_what_could_change_and_stay_equal_is_refused() -> None:
    page = template("{% kept who=u %}{{ who.username }}{% endkept %}")
    with pytest.raises(TypeError, match="who is a User"):
        page.render(Context({"u": User(username="olga")}))
    with pytest.raises(TemplateSyntaxError):
        template("{% kept %}x{% endkept %}")


def test_the_pieces_of_one_place_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_KEPT", 5)
    page = template("{% kept value=v %}{{ value }}{% endkept %}")
    assert [page.render(Context({"v": number})) for number in range(12)] == [str(number) for number in range(12)]
    assert len(page.nodelist[0].pieces) <= 5


def test_rows_are_drawn_as_a_loop_of_pieces_would_draw_them() -> None:
    class Row:
        def __init__(self, name: str, size: int | None) -> None:
            self.name, self.size, self.inner = name, size, {"key": f"k{size}"}

        def address(self) -> str:
            return f"/rows/{self.name}"

        def remove(self) -> str:
            raise AssertionError("a template called what alters data")

        remove.alters_data = True  # type: ignore[attr-defined]

    values = (
        "href=row.address name=row.name upper=row.name|upper size=row.size|default:'none' key=row.inner.key "
        "none=row.nowhere gone=row.remove other=title"
    )
    body = "<a href='{{ href }}'>{{ name }}{{ upper }}{{ size }}{{ key }}{{ none }}{{ gone }}{{ other }}</a>"
    loop = "{% for row in rows %}{% kept " + values + " %}" + body + "{% endkept %}{% endfor %}"
    rows = "{% kept_rows row in rows " + values + " %}" + body + "{% endkept_rows %}{{ row }}"
    context = {"rows": [Row("<a>", 1), Row("b", None), {"name": "c"}], "title": "<t>"}
    drawn = template(rows).render(Context(dict(context)))
    assert drawn == template(loop).render(Context(dict(context)))
    assert "<a href='/rows/&lt;a&gt;'>&lt;a&gt;&lt;A&gt;1k1&lt;t&gt;</a>" in drawn
    assert template(rows).render(Context({})) == ""


def test_rows_need_a_list_and_values() -> None:
    for wrong in ("row in rows", "row of rows name=row.name", "row in rows name"):
        with pytest.raises(TemplateSyntaxError):
            template("{% kept_rows " + wrong + " %}x{% endkept_rows %}")
