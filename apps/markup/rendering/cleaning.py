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
_CLEANER = nh3.Cleaner(
    tags=set(TAGS) | {"input"},
    clean_content_tags={"script", "style", "iframe", "svg", "math", "template"},
    attributes=_ATTRIBUTES,
    tag_attribute_values={"input": {"type": {"checkbox"}}},
    url_schemes=set(SCHEMES),
    link_rel=None,
    strip_comments=True,
)


def clean(html: str) -> str:
    """Keep what is allowed and nothing else; what comes out is well formed."""
    return _CLEANER.clean(html)
