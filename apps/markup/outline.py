"""From headings to sections, paths and titles (``markup.md`` 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from apps.markup.building import fast
from apps.markup.events import HeadingDraft
from apps.markup.values import Heading, Section

_heading = fast(Heading)
_section = fast(Section)


def lay_out(
    drafts: Sequence[HeadingDraft], starts: Sequence[int], body_line: int, last_line: int, length: int, *, lead: bool
) -> tuple[list[Heading], list[Section]]:
    """Headings with the end of their section, and the sections themselves.

    ``lead``: there is something to read before the first section. ``length`` is that of the text in bytes.
    """
    ends = _section_ends(drafts, last_line)
    headings = [
        _heading(
            each.level, each.text, each.anchor, each.start_line, each.start_line, each.end_line, end, each.nested,
            each.start_byte, each.end_byte,
        )
        for each, end in zip(drafts, ends, strict=True)
    ]  # fmt: skip
    opening = [number for number, each in enumerate(drafts) if each.text and not each.nested]
    sections: list[Section] = []
    first_line = drafts[opening[0]].start_line if opening else last_line + 1
    if lead:
        stop = starts[first_line - 1] if opening else length
        sections.append(_section(None, (), 0, "", body_line, first_line - 1, starts[body_line - 1], stop, ()))
    stack: list[int] = []
    for place, number in enumerate(opening):
        draft = drafts[number]
        while stack and drafts[stack[-1]].level >= draft.level:
            stack.pop()
        stack.append(number)
        following = drafts[opening[place + 1]].start_line if place + 1 < len(opening) else 0
        last = following - 1 if following else last_line
        stop = starts[following - 1] if following else length
        path = tuple([drafts[each].text for each in stack])
        sections.append(
            _section(
                number, path, draft.level, draft.anchor, draft.start_line, last, starts[draft.start_line - 1], stop,
                tuple(stack),
            )
        )  # fmt: skip
    return headings, sections


def first_title(drafts: Sequence[HeadingDraft]) -> str | None:
    """The first level-1 heading that opens a section."""
    return next((each.text for each in drafts if each.level == 1 and each.text and not each.nested), None)


def _section_ends(drafts: Sequence[HeadingDraft], last_line: int) -> list[int]:
    """For each heading the line before the next section of the same or a higher level. Linear: six levels."""
    following = [last_line + 1] * 7
    ends: list[int] = []
    for each in reversed(drafts):
        ends.append(min(following[1 : each.level + 1]) - 1)
        if each.text and not each.nested:
            following[each.level] = each.start_line
    ends.reverse()
    return ends
