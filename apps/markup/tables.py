"""Cells of a GFM table row (``markup.md`` 3.6)."""

from __future__ import annotations

from bisect import bisect_right

from apps.markup.values import Warning_


def fit_cells(
    warnings: list[Warning_],
    cells: list[str],
    rows: list[tuple[str, ...]],
    raw: bytes,
    start: int,
    end: int,
    starts: list[int],
) -> tuple[str, ...]:
    """The cells of the row in ``raw[start:end]``, as many as the header has, with a warning when some were dropped.

    The parser fills up short rows and drops surplus cells without a word, so these are counted in the source.
    """
    if rows:
        written = _count(raw[start:end])
        if written > len(rows[0]):
            line = bisect_right(starts, start)
            message = f"{written} cells in a table of {len(rows[0])} columns; the surplus ones are not shown"
            warnings.append(Warning_("table_cells_dropped", line, 1, message))
    return tuple(cells)


def _count(row: bytes) -> int:
    row = row.strip()
    pipes = row.count(b"|") - row.count(b"\\|")
    return pipes + 1 - row.startswith(b"|") - (row.endswith(b"|") and not row.endswith(b"\\|") and len(row) > 1)
