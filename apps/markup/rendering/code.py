"""Code blocks, diagrams and files that are shown line by line."""

from __future__ import annotations

from html import escape
from posixpath import basename

from apps.markup.rendering.highlighting import Highlighter

DIAGRAM_CHARACTERS = 50_000
"""A longer diagram stays code."""


def code_block(
    code: str, info: str | None, first: int, last: int, highlighter: Highlighter, *, begin: int | None = None
) -> str:
    """A fence (``info`` is its info string) or indented code (None) between the lines ``first`` and ``last``.

    ``begin`` is the line of the first line of code, unless it follows from the kind.
    """
    words = (info or "").split(None, 1)
    language = words[0] if words else ""
    place = f' data-line="{first}" data-end="{last}"'
    if language.lower() == "mermaid" and len(code) <= DIAGRAM_CHARACTERS:
        return f'<pre class="mermaid"{place}><code>{escape(code, quote=False)}</code></pre>\n'
    lines, coloured = highlighter.lines(code.removesuffix("\n"), language=language)
    if begin is None:
        begin = first if info is None else first + 1
    classes = " ".join(([f"language-{escape(language)}"] if language else []) + (["highlight"] if coloured else []))
    body = numbered(lines, begin) if code else ""
    named = f' data-language="{escape(language)}"' if language else ""
    marked = f' class="{classes}"' if classes else ""
    return f"<pre{named}{place}><code{marked}>{body}</code></pre>\n"


def numbered(lines: list[str], first: int, *, anchors: bool = False) -> str:
    """Lines of code, each with its number in the file; ``anchors`` gives them the ids ``L1``, ``L2``, ..."""
    anchor = ' id="L{0}"' if anchors else ""
    opening = f'<span{anchor} class="line" data-line="{{0}}">'
    return "\n".join(f"{opening.format(number)}{line}</span>" for number, line in enumerate(lines, first))


def source_page(text: str, path: str, first: int = 1) -> str:
    """A file of no markup, or its lines from ``first`` on, line by line, highlighted by its name."""
    lines, coloured = Highlighter().lines(text.removesuffix("\n"), name=basename(path))
    marked = ' class="highlight"' if coloured else ""
    body = numbered(lines, first, anchors=True)
    place = f'data-line="{first}" data-end="{first + len(lines) - 1}"'
    return f'<pre class="source" {place}><code{marked}>{body}</code></pre>\n'
