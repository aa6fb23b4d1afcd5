"""Code with Pygments classes, line by line, within a budget."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

BLOCK_CHARACTERS = 100_000
"""A longer block is shown plain."""
PAGE_CHARACTERS = 300_000
"""So are all blocks after this many on one page: Pygments does about a megabyte a second."""
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


@lru_cache(maxsize=256)
def _by_language(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def _by_name(name: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(name, stripnl=False)
    except ClassNotFound:
        return None


class Highlighter:
    """Highlights the code blocks of one page until its budget is used up."""

    def __init__(self) -> None:
        self._left = PAGE_CHARACTERS

    def lines(self, code: str, *, language: str = "", name: str = "") -> tuple[list[str], bool]:
        """Each line of the code as HTML without its line end, and whether it is highlighted."""
        lexer = _by_language(language.lower()) if language else _by_name(name) if name else None
        if lexer is None or len(code) > BLOCK_CHARACTERS or len(code) > self._left:
            return escape(code, quote=False).split("\n"), False
        self._left -= len(code)
        # The formatter closes its spans at each line end, so lines can be told apart afterwards.
        html = highlight(code, lexer, _FORMATTER)
        lines = html.split("\n")
        if len(lines) == code.count("\n") + 2 and not lines[-1]:
            lines.pop()
        if len(lines) != code.count("\n") + 1:
            return escape(code, quote=False).split("\n"), False
        return lines, True
