"""What took the place of a name in the commit that removed it: the same line, or the same body, under another name.

Pure; works on the lines of a diff, so it knows no language. Whether a candidate is still there the caller has to ask.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from apps.repos.git.diffs import Hunk
from apps.repos.git.removals import defined_in

SAME_LINE = 0.75
"""Least likeness of two lines without the names, for one to be the other with a new name."""
SAME_BODY = 0.7
BODY_LINES = 60
LONGEST_LINE = 200
MOST_COMPARED = 40
"""Lines of a hunk, or definitions that share lines with one, which are compared letter by letter."""
TELLING_LINE = 8
TELLING_BODY = 20
"""Letters of a line, and of a body, that is not like any other."""
_IDENTIFIER = re.compile(r"[^\W\d][\w$]*")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A name that stands where another one stood. ``likeness`` from 0 to 1; ``path`` is the file that has it now."""

    name: str
    path: str
    likeness: float


@dataclass(frozen=True, slots=True)
class _Definition:
    name: str
    path: str
    text: tuple[str, ...]
    """Its line and those below it that stand deeper, the name taken out."""


Spell = Callable[[str, str], Sequence[str]]
"""(line, path of its file) to the names of one kind that it spells."""


def identifiers(line: str, path: str) -> list[str]:
    return _IDENTIFIER.findall(line)


def renamed(hunks: Sequence[Hunk], names: Mapping[str, str], spell: Spell) -> dict[str, list[Candidate]]:
    """For names (with the file that held each) what the lines that replaced theirs spell instead, best first."""
    found: dict[str, dict[str, Candidate]] = defaultdict(dict)
    for hunk in hunks:
        if not hunk.added:
            continue
        old = [(line, set(spell(line, hunk.path))) for line in hunk.removed[:MOST_COMPARED]]
        before = {name for _, spelled in old for name in spelled}
        gone = before & names.keys()
        if not gone:
            continue
        new = [(line, set(spell(line, hunk.path)) - before) for line in hunk.added[:MOST_COMPARED]]
        for line, spelled in old:
            for name in sorted(spelled & gone):
                for candidate in _in_place_of(name, line, new, hunk.path):
                    _keep(found[name], candidate)
    return {name: _ranked(candidates) for name, candidates in found.items()}


def _in_place_of(name: str, line: str, new: Sequence[tuple[str, set[str]]], path: str) -> Iterator[Candidate]:
    bare = _without(line, name)
    for other, spelled in new:
        for candidate in spelled:
            likeness = _alike(bare, _without(other, candidate))
            if likeness >= SAME_LINE:
                yield Candidate(candidate, path, likeness)


def moved(hunks: Sequence[Hunk], names: Mapping[str, str]) -> dict[str, list[Candidate]]:
    """For symbols the definitions elsewhere in the commit that have the same body, whatever they are called."""
    new = list(_definitions(hunks, added=True))
    holding: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(new):
        for line in _telling(one):
            holding[line].append(place)
    found: dict[str, dict[str, Candidate]] = defaultdict(dict)
    for old in _definitions(hunks, added=False):
        if names.get(old.name) != old.path:
            continue
        shared: Counter[int] = Counter()
        for line in _telling(old):
            shared.update(holding.get(line, ()))
        for place, _ in shared.most_common(MOST_COMPARED):
            other = new[place]
            likeness = _alike(old.text, other.text)
            if likeness >= SAME_BODY:
                _keep(found[old.name], Candidate(other.name, other.path, likeness))
    return {name: _ranked(candidates) for name, candidates in found.items()}


def _definitions(hunks: Sequence[Hunk], *, added: bool) -> Iterator[_Definition]:
    for hunk in hunks:
        lines = hunk.added if added else hunk.removed
        for at, line in enumerate(lines):
            for name in defined_in(line):
                yield _Definition(name, hunk.path, tuple(_without(each, name) for each in _block(lines, at)))


def _block(lines: Sequence[str], at: int) -> Iterator[str]:
    """A definition with the lines below it that stand deeper."""
    depth = _indent(lines[at])
    yield lines[at]
    for line in lines[at + 1 : at + 1 + BODY_LINES]:
        if line.strip():
            if _indent(line) <= depth:
                return
            yield line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _telling(one: _Definition) -> set[str]:
    """The lines of a body by which it can be known again; none of a body that says next to nothing."""
    lines = {line for line in one.text[1:] if len(line) >= TELLING_LINE}
    return lines if sum(map(len, lines)) >= TELLING_BODY else set()


def _without(line: str, name: str) -> str:
    return line.strip()[:LONGEST_LINE].replace(name.removeprefix("--"), "\0")


def _alike(left: Sequence[str], right: Sequence[str]) -> float:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    least = SAME_BODY
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    return matcher.ratio()


def _keep(known: dict[str, Candidate], candidate: Candidate) -> None:
    before = known.get(candidate.name)
    if before is None or before.likeness < candidate.likeness:
        known[candidate.name] = candidate


def _ranked(candidates: Mapping[str, Candidate]) -> list[Candidate]:
    return sorted(candidates.values(), key=lambda one: (-one.likeness, one.path, one.name))
