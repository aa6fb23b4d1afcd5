"""From headings to sections, paths and titles (``markup.md`` 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from apps.markup.building import fast
from apps.markup.tree import HeadingDraft, Tree
from apps.markup.values import Heading, Section

_heading = fast(Heading)
_section = fast(Section)


def lay_out(tree: Tree, body_line: int, last_line: int, length: int) -> tuple[list[Heading], list[Section]]:
    """Headings with the end of their section, and the sections, all of which together cover the body.

    ``length`` is that of the text in bytes.
    """
    drafts, starts = tree.headings, tree.starts
    headings = [
        _heading(
            each.level, each.text, each.anchor, each.line or each.start_line, each.start_line, each.end_line, end,
            each.nested, each.start_byte, each.end_byte,
        )
        for each, end in zip(drafts, _section_ends(drafts, last_line), strict=True)
    ]  # fmt: skip
    opening = [number for number, each in enumerate(drafts) if each.text and not each.nested]
    lines = [drafts[number].start_line for number in opening]
    lines.append(last_line + 1)
    sections: list[Section] = []
    if tree.blocks and tree.blocks[0].start_line < lines[0]:
        stop = starts[lines[0] - 1] if opening else length
        sections.append(_section(None, (), 0, "", body_line, lines[0] - 1, starts[body_line - 1], stop, ()))
    levels: list[int] = []
    numbers: list[int] = []
    texts: list[str] = []
    for place, number in enumerate(opening, start=1):
        draft = drafts[number]
        level = draft.level
        while levels and levels[-1] >= level:
            levels.pop()
            numbers.pop()
            texts.pop()
        levels.append(level)
        numbers.append(number)
        texts.append(draft.text)
        line, following = draft.start_line, lines[place]
        stop = starts[following - 1] if following <= last_line else length
        sections.append(
            _section(
                number, tuple(texts), level, draft.anchor, line, following - 1, starts[line - 1], stop, tuple(numbers)
            )
        )
    return headings, sections


def first_title(drafts: Sequence[HeadingDraft]) -> str | None:
    """The first level-1 heading that opens a section."""
    return next((each.text for each in drafts if each.level == 1 and each.text and not each.nested), None)


def _section_ends(drafts: Sequence[HeadingDraft], last_line: int) -> list[int]:
    """For each heading the line before the next section of the same or a higher level. Linear: six levels."""
    following = [last_line + 1] * 7
    ends: list[int] = []
    for each in reversed(drafts):
        level = each.level
        ends.append(following[level] - 1)
        if each.text and not each.nested:
            following[level:] = [each.start_line] * (7 - level)
    ends.reverse()
    return ends
