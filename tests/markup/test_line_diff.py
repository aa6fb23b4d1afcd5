"""Two texts line by line: whatever the input, the diff turns one into the other and costs little."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apps.markup import line_diff as module
from apps.markup.line_diff import as_patch, line_diff, longest_chain

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "- x", "@@"]), max_size=24)

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@PATIENT
@given(LINES, LINES)
@example([], ["a"])
@example(["a", "b"], ["b", "a"])
def test_the_whole_diff_holds_both_texts(old: list[str], new: list[str]) -> None:
    diff = line_diff(text(old), text(new), context=100)
    lines = [line for hunk in diff.hunks for line in hunk.lines]
    if old == new:
        assert (lines, diff.added, diff.removed) == ([], 0, 0)
        return
    assert [line.text for line in lines if line.old is not None] == old
    assert [line.text for line in lines if line.new is not None] == new
    assert [line.old for line in lines if line.old is not None] == list(range(1, len(old) + 1))
    assert [line.new for line in lines if line.new is not None] == list(range(1, len(new) + 1))
    assert all(old[line.old - 1] == new[line.new - 1] for line in lines if line.old and line.new)


@PATIENT
@given(st.lists(st.integers(0, 9), max_size=9, unique=True))
def test_the_longest_chain_is_longest(numbers: list[int]) -> None:
    chain = longest_chain(list(enumerate(numbers)))
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(chain))
    best = [1] * len(numbers)
    for place, number in enumerate(numbers):
        best[place] = 1 + max((best[at] for at in range(place) if numbers[at] < number), default=0)
    assert len(chain) == max(best, default=0)


def test_git_takes_the_patch(tmp_path: Path) -> None:
    old = text([f"line {n}" for n in range(40)])
    new = old.replace("line 7\n", "line seven\n").replace("line 30\n", "").replace("line 0\n", "first\nline 0\n")
    patch = as_patch(line_diff(old, new), "a/f.md", "b/f.md")
    assert patch.startswith("--- a/f.md\n+++ b/f.md\n@@ -1,3 +1,4 @@\n+first\n line 0\n")
    (tmp_path / "f.md").write_text(old)
    subprocess.run(["git", "apply", "-p1"], cwd=tmp_path, input=patch.encode(), check=True)
    assert (tmp_path / "f.md").read_text() == new
    assert as_patch(line_diff(old, old), "a", "b") == ""


@pytest.mark.parametrize(
    "turned", [lambda lines: lines[::-1], lambda lines: lines[1::2] + lines[::2], lambda _: ["y"] * 9]
)
def test_unlike_texts_are_not_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch, turned: object) -> None:
    seen = []
    real = module.SequenceMatcher

    def counted(junk: None, old: list[str], new: list[str], autojunk: bool) -> object:
        seen.append(len(old) * len(new))
        return real(junk, old, new, autojunk=autojunk)

    monkeypatch.setattr(module, "SequenceMatcher", counted)
    lines = [f"{n % 7000}" for n in range(20_000)]
    diff = line_diff(text(lines), text(turned(lines)))  # type: ignore[operator]
    assert diff.removed
    assert sum(seen) <= module.PAIRS_IN_ALL
