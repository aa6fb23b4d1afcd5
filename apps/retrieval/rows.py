"""Candidates of one block as columns: hundreds to each search, of which a page is ever looked at one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, overload

from apps.retrieval.shelf_values import Candidate, Columns, made_candidate

if TYPE_CHECKING:
    from typing import Self

_FIELDS = {name: place for place, name in enumerate(Candidate._fields)}
_HEADINGS = _FIELDS["heading_path"]
_TIES = ("source_label", "store", "path", "chunk_index", "title")
"""Source, path, place: no part of an order depends on the ids of rows."""


def tie_break(candidate: Candidate) -> tuple[Any, ...]:
    return tuple(candidate[_FIELDS[name]] for name in _TIES)


class Rows(Sequence[Candidate]):
    """Rows ``places`` of ``columns``, which are the fields of a candidate, in this order."""

    def __init__(self, columns: Columns, places: Sequence[int] | None = None) -> None:
        self._columns = columns
        self._places: Sequence[int] = range(len(columns[0])) if places is None else places

    @classmethod
    def of(cls, rows: Iterable[Candidate]) -> Self:
        return cls(tuple(zip(*rows, strict=True)) or ((),) * len(_FIELDS))

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Self:
        """The rows of all parts, one after the other."""
        if len(parts) == 1:
            return cls(parts[0])
        return cls(tuple([value for part in parts for value in part[place]] for place in range(len(_FIELDS))))

    def column(self, name: str) -> Sequence[Any]:
        """One field of all rows."""
        values = self._columns[_FIELDS[name]]
        if isinstance(self._places, range):
            return values
        return self._picked(values) if len(self._places) > 1 else [values[place] for place in self._places]

    @cached_property
    def _picked(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        return itemgetter(*self._places)

    @property
    def ties(self) -> list[tuple[Any, ...]]:
        """What rows of equal worth are ordered by."""
        return list(zip(*map(self.column, _TIES), strict=True))

    def at(self, places: Iterable[int]) -> Self:
        """Those of the rows at ``places``, in this order."""
        return type(self)(self._columns, [self._places[place] for place in places])

    def and_(self, more: Iterable[Candidate]) -> Rows:
        """These rows and then others."""
        return Rows.of([*self, *more])

    @overload
    def __getitem__(self, at: int) -> Candidate: ...

    @overload
    def __getitem__(self, at: slice) -> list[Candidate]: ...

    def __getitem__(self, at: int | slice) -> Candidate | list[Candidate]:
        if isinstance(at, slice):
            return [self._made(place) for place in self._places[at]]
        return self._made(self._places[at])

    def _made(self, place: int) -> Candidate:
        values = [column[place] for column in self._columns]
        values[_HEADINGS] = tuple(values[_HEADINGS])
        return made_candidate(tuple(values))

    def __len__(self) -> int:
        return len(self._places)
