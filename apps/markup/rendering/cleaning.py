"""The allow-list that every rendered page passes last (``markup.md`` 9.1)."""

from __future__ import annotations

import nh3

from apps.markup.rendering.raw_tags import TAGS
from apps.markup.rendering.resolved import SCHEMES

# `class`, `data-...` and ids are written by the renderer only: raw tags lose theirs before (`raw_tags`).
_EVERYWHERE = {"id", "class", "title", "lang", "dir", "align", "data-line", "data-end"}
_ATTRIBUTES = {
    "*": _EVERYWHERE,
    "a": {"href", "name", "rel", "aria-label"},
    "img": {"src", "alt", "width", "height"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "ol": {"start"},
    "details": {"open"},
    "pre": {"data-language"},
    "input": {"disabled", "checked", "aria-label"},
    "section": {"aria-label"},
}


# SECURITY: no script, style, frame, form, svg or math; no event or style attribute; no scheme that runs code.
def _cleaner(attributes: dict[str, set[str]]) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=set(TAGS) | {"input"},
        clean_content_tags={"script", "style", "iframe", "svg", "math", "template"},
        attributes=attributes,
        tag_attribute_values={"input": {"type": {"checkbox"}}},
        url_schemes=set(SCHEMES),
        link_rel=None,
        strip_comments=True,
    )


_CLEANER = _cleaner(_ATTRIBUTES)
# Within another page the ids and lines of a document would be taken for those of the page.
_OF_THE_PAGE = {"id", "name", "data-line", "data-end"}
_EMBEDDED_CLEANER = _cleaner({tag: names - _OF_THE_PAGE for tag, names in _ATTRIBUTES.items()})


def clean(html: str, *, embedded: bool = False) -> str:
    """Keep what is allowed and nothing else; what comes out is well formed. ``embedded``: without ids and lines."""
    return (_EMBEDDED_CLEANER if embedded else _CLEANER).clean(html)
