"""The chunks of two versions of a document, set against each other. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apps.indexing import composition
from apps.markup.line_diff import Pair, longest_chain
from apps.markup.values import Chunk

State = Literal["same", "moved", "changed", "added", "gone"]


@dataclass(frozen=True, slots=True)
class CutText:
    """A version as cut: the title that is embedded with every chunk, and the chunks in order."""

    title: str
    chunks: Sequence[Chunk]


@dataclass(frozen=True, slots=True)
class ChunkChange:
    """``same``: text and heading path as before, in the order of before, wherever its lines stand now. ``moved``: the
    same text elsewhere in the order, or under other headings. ``changed``: another text under the same headings.

    ``embedded_anew``: no chunk of the old version has the string that is embedded for the new one.
    """

    state: State
    old: Chunk | None
    new: Chunk | None
    embedded_anew: bool = False


def compare_chunks(old: CutText, new: CutText) -> list[ChunkChange]:
    """In the order of the new version; what is gone stands where it was."""
    states: dict[int, tuple[State, int]] = {}
    pairs = _paired(old, new, states, [(chunk.text, chunk.heading_path) for chunk in (*old.chunks, *new.chunks)])
    chain = set(longest_chain(sorted(pairs)))
    states |= {second: ("same" if (first, second) in chain else "moved", first) for first, second in pairs}
    for state, keys in (
        ("moved", [chunk.text for chunk in (*old.chunks, *new.chunks)]),
        ("changed", [chunk.heading_path for chunk in (*old.chunks, *new.chunks)]),
    ):
        found = _paired(old, new, states, keys)
        states |= {second: (state, first) for first, second in found}  # type: ignore[misc]
    return _in_order(old, new, states)


def counts(changes: Sequence[ChunkChange]) -> dict[str, int]:
    """By state, and under ``embedded_anew`` how many strings a model has to read again."""
    found = Counter[str](change.state for change in changes)
    found["embedded_anew"] = sum(change.embedded_anew for change in changes)
    return dict(found)


def _paired(old: CutText, new: CutText, states: dict[int, tuple[State, int]], keys: Sequence[object]) -> list[Pair]:
    """Chunks without a partner that have equal keys, in order. ``keys``: of the old chunks, then of the new ones."""
    taken = {first for _, first in states.values()}
    waiting: defaultdict[object, deque[int]] = defaultdict(deque)
    for place in range(len(old.chunks)):
        if place not in taken:
            waiting[keys[place]].append(place)
    pairs = []
    for place in range(len(new.chunks)):
        same = waiting.get(keys[len(old.chunks) + place])
        if same and place not in states:
            pairs.append((same.popleft(), place))
    return pairs


def _in_order(old: CutText, new: CutText, states: dict[int, tuple[State, int]]) -> list[ChunkChange]:
    known = {_embedded(old, chunk) for chunk in old.chunks}
    partner = {first: second for second, (_, first) in states.items()}
    gone: defaultdict[int, list[ChunkChange]] = defaultdict(list)
    after = -1
    for place, chunk in enumerate(old.chunks):
        if place in partner:
            after = partner[place]
        else:
            gone[after].append(ChunkChange("gone", chunk, None))
    changes = gone[-1]
    for place, chunk in enumerate(new.chunks):
        state, first = states.get(place, ("added", -1))
        before = old.chunks[first] if first >= 0 else None
        changes.append(ChunkChange(state, before, chunk, _embedded(new, chunk) not in known))
        changes += gone[place]
    return changes


def _embedded(side: CutText, chunk: Chunk) -> bytes:
    return composition.embed_digest(composition.embedded("docs", side.title, chunk.heading_path, chunk.text))
