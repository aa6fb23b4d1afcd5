"""What a link address is, and which keys it may mean (``markup.md`` 5, ``collections.md`` 6.3)."""

from __future__ import annotations

import re

from apps.markup.values import LinkType

MARKDOWN_ENDINGS = (".md", ".mdx", ".markdown")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def split_href(href: str) -> tuple[LinkType, str, str, str]:
    """Type, path, query, fragment of an address written outside double brackets, cut at its first # and then ?."""
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
    return kind, path, query, fragment
