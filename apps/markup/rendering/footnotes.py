"""Footnotes: numbered by first use, gathered at the end of the page."""

from __future__ import annotations


class Footnotes:
    """Collects notes and the places that refer to them; no note is lost, used or not."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._uses: dict[str, int] = {}
        self._notes: dict[str, tuple[str, str]] = {}
        self._open: list[tuple[str, list[str], str]] = []

    def _number(self, label: str) -> int:
        return self._numbers.setdefault(label.casefold(), len(self._numbers) + 1)

    def reference(self, label: str) -> str:
        """The mark in the text."""
        key = label.casefold()
        number = self._number(label)
        use = self._uses[key] = self._uses.get(key, 0) + 1
        own = f"cg-fnref-{number}" if use == 1 else f"cg-fnref-{number}-{use}"
        return f'<sup class="footnote-ref"><a href="#cg-fn-{number}" id="{own}">{number}</a></sup>'

    def begin(self, label: str, outside: list[str], lines: str) -> None:
        """A definition opens: what follows is written apart from ``outside``."""
        self._open.append((label, outside, lines))

    def end(self, content: str) -> list[str]:
        """The definition is over; gives back the list that `begin` was given."""
        label, outside, lines = self._open.pop()
        self._notes.setdefault(label.casefold(), (content, lines))
        return outside

    def section(self) -> str:
        """All notes, in the order of their numbers, each with a way back to its first use."""
        if not self._notes:
            return ""
        for label in self._notes:
            self._number(label)
        items: list[str] = []
        for label, number in self._numbers.items():
            if label not in self._notes:
                continue
            content, lines = self._notes[label]
            back = (
                f'<a href="#cg-fnref-{number}" class="footnote-back" aria-label="Back to the text">↩</a>'
                if label in self._uses
                else ""
            )
            items.append(f'<li id="cg-fn-{number}"{lines}>{content}{back}</li>\n')
        return f'<section class="footnotes" aria-label="Footnotes"><ol>\n{"".join(items)}</ol></section>\n'
