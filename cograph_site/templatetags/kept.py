"""Pieces of pages that are drawn once for the values that they show: rows of lists, which are the most of a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from django import template
from django.template.base import FilterExpression, NodeList, Parser, Token, token_kwargs
from django.template.context import Context
from django.utils.translation import get_language

register = template.Library()

MOST_KEPT = 2000
"""Pieces of one place in one template: some forty lists, a megabyte or two."""
_PLAIN = frozenset({bool, bytes, datetime, float, int, str, type(None), UUID})


@register.tag
def kept(parser: Parser, token: Token) -> Kept:
    """``{% kept title=row.title size=row.size %}<td>{{ title }}</td><td>{{ size|size }}</td>{% endkept %}``

    Inside there is nothing but the named values, which are plain ones; what is drawn is kept for equal values.
    """
    bits = token.split_contents()[1:]
    values = token_kwargs(bits, parser)
    if bits or not values:
        raise template.TemplateSyntaxError("kept takes name=value and nothing else")
    nodelist = parser.parse(("endkept",))
    parser.delete_first_token()
    return Kept(values, nodelist)


@register.tag
def kept_rows(parser: Parser, token: Token) -> KeptRows:
    """``{% kept_rows row in page.object_list title=row.title %}<tr><td>{{ title }}</td></tr>{% endkept_rows %}``

    A loop whose whole body is a kept piece; there is no ``forloop`` in it.
    """
    bits = token.split_contents()[1:]
    if len(bits) < 4 or bits[1] != "in":
        raise template.TemplateSyntaxError("kept_rows takes a name, in, a list and name=value for each value")
    row, _, rows, *rest = bits
    values = token_kwargs(rest, parser)
    if rest or not values:
        raise template.TemplateSyntaxError("kept_rows takes name=value and nothing else")
    nodelist = parser.parse(("endkept_rows",))
    parser.delete_first_token()
    return KeptRows(row, parser.compile_filter(rows), Kept(values, nodelist))


class Kept(template.Node):
    """SECURITY: what one person's page drew is shown to others. So the piece is drawn from its key alone: it sees no
    request and no user, and no object whose equality says less than its looks."""

    def __init__(self, values: dict[str, FilterExpression], nodelist: NodeList) -> None:
        self.names = tuple(values)
        self.values = tuple(values.values())
        self.nodelist = nodelist
        self.pieces: dict[tuple[Any, ...], str] = {}

    def render(self, context: Context) -> str:
        return self.piece(context, get_language(), [value.resolve(context) for value in self.values])

    def piece(self, context: Context, language: str | None, values: Sequence[Any]) -> str:
        """The piece for ``values``, drawn unless it was before."""
        # Types are in the key because 1 is True, and because text that was marked as safe equals the same unmarked.
        key = (language, context.autoescape, *values, *map(type, values))
        found = self.pieces.get(key)
        if found is None:
            found = self._draw(context, values)
            if len(self.pieces) >= MOST_KEPT:
                self.pieces.clear()
            self.pieces[key] = found
        return found

    def _draw(self, context: Context, values: Sequence[Any]) -> str:
        for name, value in zip(self.names, values, strict=True):
            if not _PLAIN.intersection(type(value).__mro__):
                raise TypeError(f"{name} is a {type(value).__name__}, whose looks its equality may not tell")
        inner = Context(dict(zip(self.names, values, strict=True)), autoescape=context.autoescape)
        with inner.bind_template(context.template):  # type: ignore[arg-type]
            return self.nodelist.render(inner)


class KeptRows(template.Node):
    """The pieces of all rows of a list, one after the other."""

    def __init__(self, row: str, rows: FilterExpression, kept: Kept) -> None:
        self.row, self.rows, self.kept = row, rows, kept
        self.nodelist = kept.nodelist
        self.readers = [_reader(value, row) for value in kept.values]

    def render(self, context: Context) -> str:
        readers, piece, language, drawn = self.readers, self.kept.piece, get_language(), []
        with context.push():
            for row in self.rows.resolve(context) or ():
                context[self.row] = row
                drawn.append(piece(context, language, [read(row, context) for read in readers]))
        return "".join(drawn)


_Reader = Callable[[Any, Context], Any]
_FLAGS = ("expects_localtime", "is_safe", "needs_autoescape")


def _reader(value: FilterExpression, row: str) -> _Reader:
    """What resolves ``value`` for a row. Attributes of the row and filters of theirs are the most of what lists show;
    to look for them in all the ways that a template has takes as long as all else that is done with the row.
    """

    def resolve(_: Any, context: Context) -> Any:
        return value.resolve(context)

    first, *path = getattr(value.var, "lookups", None) or [""]
    if first != row or not path:
        return resolve
    filters = [function for function, _ in value.filters]
    if any(given for _, given in value.filters) or any(
        getattr(function, flag, False) for function in filters for flag in _FLAGS
    ):
        return resolve
    attribute = attrgetter(".".join(path))

    def read(row: Any, context: Context) -> Any:
        try:
            found = attribute(row)
        except AttributeError:  # a key of a dict, a place in a list, or nothing
            return value.resolve(context)
        if callable(found):
            if getattr(found, "alters_data", False) or getattr(found, "do_not_call_in_templates", False):
                return value.resolve(context)
            found = found()
        for function in filters:
            found = function(found)
        return found

    return read
