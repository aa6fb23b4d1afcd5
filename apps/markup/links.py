"""What a link address is, and which keys it may mean (``markup.md`` 5, ``collections.md`` 6.3)."""

from __future__ import annotations

import re
from typing import NamedTuple

from apps.markup.values import LinkType

MARKDOWN_ENDINGS = (".md", ".mdx", ".markdown")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class Parts(NamedTuple):
    """An address cut at its first ``#``, then at its first ``?``."""

    link_type: LinkType
    path: str
    query: str
    fragment: str


def split_href(href: str) -> Parts:
    """Type and parts of an address written outside double brackets."""
    path, fragment, query = href, "", ""
    if "#" in path:
        path, _, fragment = path.partition("#")
    if "?" in path:
        path, _, query = path.partition("?")
    kind: LinkType
    if href.startswith(("https:", "http:", "//")) or _SCHEME.match(href):
        kind = "absolute"
    elif href.startswith("#"):
        kind = "anchor"
    elif path.lower().endswith(MARKDOWN_ENDINGS):
        kind = "markdown"
    else:
        kind = "relative"
    return Parts(kind, path, query, fragment)
