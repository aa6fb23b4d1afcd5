"""From headings to sections, paths and titles (``markup.md`` 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from apps.markup.tree import HeadingDraft, Tree
from apps.markup.values import Heading, Section

_new = tuple.__new__


def lay_out(tree: Tree, body_line: int, last_line: int, length: int) -> tuple[list[Heading], list[Section]]:
    """Headings with the end of their section, and the sections, all of which together cover the body.

    ``length`` is that of the text in bytes.
    """
    starts = tree.starts
    headings = _with_ends(tree.headings, last_line)
    opening = [number for number, each in enumerate(headings) if each.text and not each.nested]
    lines = [headings[number].start_line for number in opening]
    lines.append(last_line + 1)
    sections: list[Section] = []
    if tree.blocks and tree.blocks[0].start_line < lines[0]:
        stop = starts[lines[0] - 1] if opening else length
        sections.append(Section(None, (), 0, "", body_line, lines[0] - 1, starts[body_line - 1], stop))
    ancestors: list[tuple[int, tuple[str, ...], tuple[int, ...]]] = [(0, (), ())]
    """Level, path and headings of the open sections, below the whole document."""
    line = lines[0]
    for number, following in zip(opening, lines[1:], strict=True):
        level, text, anchor = headings[number][:3]
        while ancestors[-1][0] >= level:
            ancestors.pop()
        _, path, numbers = ancestors[-1]
        path, numbers = (*path, text), (*numbers, number)
        ancestors.append((level, path, numbers))
        stop = starts[following - 1] if following <= last_line else length
        sections.append(
            _new(Section, (number, path, level, anchor, line, following - 1, starts[line - 1], stop, numbers))
        )
        line = following
    return headings, sections


def first_title(drafts: Sequence[HeadingDraft]) -> str | None:
    """The first level-1 heading that opens a section."""
    return next((each.text for each in drafts if each.level == 1 and each.text and not each.nested), None)


def _with_ends(drafts: Sequence[HeadingDraft], last_line: int) -> list[Heading]:
    """Each section ends before the next one of the same or a higher level: found from the last heading upwards."""
    following = [last_line + 1] * 7
    """For each level the line of the next section that ends one of that level."""
    headings: list[Heading] = []
    for level, text, anchor, first, last, start, end, nested, line in reversed(drafts):
        headings.append(
            _new(Heading, (level, text, anchor, line or first, first, last, following[level] - 1, nested, start, end))
        )
        if text and not nested:
            following[level:] = [first] * (7 - level)
    headings.reverse()
    return headings
