"""Pieces of pages that are drawn once for the values that they show: rows of lists, which are the most of a list."""

from __future__ import annotations

from datetime import datetime
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
        values = [value.resolve(context) for value in self.values]
        # Types are in the key because 1 is True, and because text that was marked as safe equals the same unmarked.
        key = (get_language(), context.autoescape, *values, *map(type, values))
        found = self.pieces.get(key)
        if found is None:
            found = self._draw(context, values)
            if len(self.pieces) >= MOST_KEPT:
                self.pieces.clear()
            self.pieces[key] = found
        return found

    def _draw(self, context: Context, values: list[Any]) -> str:
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

    def render(self, context: Context) -> str:
        drawn = []
        with context.push():
            for row in self.rows.resolve(context) or ():
                context[self.row] = row
                drawn.append(self.kept.render(context))
        return "".join(drawn)
