"""The known name that was probably meant."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from apps.markup.nearest import NearestNames


def test_the_nearest_is_found_and_far_names_are_not() -> None:
    names = NearestNames(["guide.md", "guides.md", "setup.md", "installation.md"])
    assert names.find("guid.md") == "guide.md"
    assert names.find("Setup.md") == "setup.md"
    assert names.find("instalation.md") == "installation.md"
    assert names.find("zebra") is None
    assert names.find("") is None


def test_equals_are_decided_by_order_not_by_arrival() -> None:
    assert NearestNames(["ab1", "ab2"]).find("ab3") == NearestNames(["ab2", "ab1"]).find("ab3") == "ab1"


@given(
    st.lists(st.text(alphabet="abcd-", min_size=3, max_size=12), max_size=12), st.text(alphabet="abcd-", max_size=12)
)
def test_what_is_found_is_alike(names: list[str], wanted: str) -> None:
    found = NearestNames(names).find(wanted)
    if found is not None:
        assert difflib.SequenceMatcher(a=found, b=wanted, autojunk=False).ratio() >= 0.6
