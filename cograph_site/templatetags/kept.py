"""Pieces of pages that are drawn once for the values that they show: rows of lists, which are the most of a list."""

from __future__ import annotations

from collections.abc import Sequence
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
    """The pieces of all rows of a list, one after the other.

    Attributes of the row and filters of theirs are the most of what lists show. They are read at once: to look for them
    in all the ways that a template has takes longer than all else that is done with the row.
    """

    def __init__(self, row: str, rows: FilterExpression, kept: Kept) -> None:
        self.row, self.rows, self.kept = row, rows, kept
        self.nodelist = kept.nodelist
        paths = [_attribute(value, row) for value in kept.values]
        # Every instance has its module: it stands where no attribute does, and makes a list of a single one.
        self.attributes = attrgetter(*[path or "__module__" for path in paths], "__module__")
        self.resolved = [(place, kept.values[place]) for place, path in enumerate(paths) if not path]
        self.filtered = [
            (place, [function for function, _ in value.filters])
            for place, value in enumerate(kept.values)
            if paths[place] and value.filters
        ]

    def render(self, context: Context) -> str:
        piece, language, drawn = self.kept.piece, get_language(), []
        with context.push():
            for row in self.rows.resolve(context) or ():
                context[self.row] = row
                drawn.append(piece(context, language, self._values(row, context)))
        return "".join(drawn)

    def _values(self, row: Any, context: Context) -> list[Any]:
        try:
            values = list(self.attributes(row)[:-1])
        except AttributeError:  # a key of a dict, a place in a list, or nothing
            return self._resolve(context)
        for place, value in enumerate(values):
            if callable(value):
                if _is_left_alone(value):
                    return self._resolve(context)
                values[place] = value()
        for place, filters in self.filtered:
            for function in filters:
                values[place] = function(values[place])
        for place, expression in self.resolved:
            values[place] = expression.resolve(context)
        return values

    def _resolve(self, context: Context) -> list[Any]:
        return [value.resolve(context) for value in self.kept.values]


_FLAGS = ("expects_localtime", "is_safe", "needs_autoescape")


def _attribute(value: FilterExpression, row: str) -> str:
    """The attribute of the row that ``value`` is or is made from by plain filters; empty for any other expression."""
    first, *path = getattr(value.var, "lookups", None) or [""]
    plain = all(not given and not any(getattr(one, flag, False) for flag in _FLAGS) for one, given in value.filters)
    return ".".join(path) if first == row and plain else ""


def _is_left_alone(found: Any) -> bool:
    """What a template does not call."""
    return bool(getattr(found, "alters_data", False) or getattr(found, "do_not_call_in_templates", False))
