"""Snippets are exact slices opened at the match: `retrieval.md` facts 82 to 84."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from apps.indexing.analyzer import analyze
from apps.indexing.questions import ask
from apps.retrieval.marking import body_start, matches_in
from apps.retrieval.snippets import Match, Snippet, snip


def find(source: str, *terms: str) -> list[Match]:
    found = [Match(m.start(), m.end(), term) for term in terms for m in regex.finditer(regex.escape(term), source)]
    return sorted(found, key=lambda match: match.start)


WORDS = " ".join(f"word{n}" for n in range(200))


def check_slice(snippet: Snippet, source: str, chars: int) -> None:
    assert snippet.text == source[snippet.start : snippet.end]
    assert len(snippet.text) <= chars
    assert source.encode()[snippet.start_byte : snippet.end_byte].decode() == snippet.text
    assert "".join(piece for piece, _ in snippet.parts()) == snippet.text


def test_retrieval_fact_82_whole_middle_end_none() -> None:
    whole = snip("short text", find("short text", "text"), {"text": 1.0})
    assert (whole.text, whole.truncated, whole.anchored) == ("short text", False, True)

    middle = snip(WORDS, find(WORDS, "word100 "), {"word100 ": 1.0}, chars=100)
    assert middle.cut_before and middle.cut_after
    assert "word100" in middle.text
    check_slice(middle, WORDS, 100)

    end = snip(WORDS, find(WORDS, "word199"), {"word199": 1.0}, chars=100)
    assert end.cut_before and not end.cut_after
    assert end.text.endswith("word199")

    head = snip(WORDS, [], {}, chars=100)
    assert head.text.startswith("word0 word1") and not head.anchored and head.cut_after and not head.cut_before


@pytest.mark.parametrize("chars", [79, 4001])
def test_retrieval_fact_83_bounds_are_refused(chars: int) -> None:
    with pytest.raises(ValueError, match="allowed are 80 to 4000"):
        snip("text", [], {}, chars=chars)


@pytest.mark.parametrize(
    "source",
    [
        "Проверка кириллицы без единого пропуска. " * 20,
        "👩🏽‍💻" * 300,
        "数据库备份每天凌晨执行。" * 60,
        "line one\nline two\n" * 50,
    ],
)
def test_retrieval_fact_83_no_broken_character(source: str) -> None:
    middle = source[len(source) // 2 : len(source) // 2 + 4].strip() or "l"
    matches = find(source, middle)
    snippet = snip(source, matches, {match.term: 1.0 for match in matches}, chars=80, first_line=11)
    check_slice(snippet, source, 80)
    boundaries = {match.start() for match in regex.finditer(r"\X", source)} | {len(source)}
    assert snippet.start in boundaries and snippet.end in boundaries
    assert snippet.start_line == 11 + source[: snippet.start].count("\n")


def test_retrieval_fact_84_marks_split_and_never_paste() -> None:
    source = "<img src=x onerror=alert(1)> token"
    snippet = snip(source, find(source, "token"), {"token": 1.0})
    assert snippet.parts() == [("<img src=x onerror=alert(1)> ", False), ("token", True)]


def test_two_rare_words_together_beat_one_common_word_often() -> None:
    source = ("common " * 60) + ("filler " * 60) + "rare word and scarce word " + ("filler " * 60)
    matches = find(source, "common", "rare", "scarce")
    snippet = snip(source, matches, {"common": 1.0, "rare": 2.0, "scarce": 2.0}, chars=120)
    assert "rare word and scarce" in snippet.text


@given(st.text(alphabet="ab \n€é👍", min_size=1, max_size=600), st.integers(80, 200))
def test_any_text_gives_a_slice_that_holds_its_best_match(source: str, chars: int) -> None:
    matches = find(source, "a", "b")
    snippet = snip(source, matches, {"a": 1.0, "b": 3.0}, chars=chars)
    check_slice(snippet, source, chars)
    if "b" in source:
        assert "b" in snippet.text


PIECES = [
    *"ab \n.#", "é", "e\u0301", "\u0301", "กำ", "ที่", "👩🏽‍💻", "\r\n", "数", "据", "한", "\u200d", "\ufe0f", "नमस्ते",
    "क्ष", "🇩🇪", "\u1112\u1161\u11ab", " \u0308", "word", "C#",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(PIECES), min_size=60, max_size=300).map("".join),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join),
    st.integers(80, 160),
)
def test_retrieval_rule_9_1_no_window_is_cut_inside_a_grapheme(source: str, query: str, chars: int) -> None:
    matches = matches_in(ask(query, ["english"]), source, "english")
    snippet = snip(source, matches, {match.term: 1.0 for match in matches}, chars=chars)
    check_slice(snippet, source, chars)
    borders = {match.start() for match in regex.finditer(r"\X", source)} | {len(source)}
    assert snippet.start in borders and snippet.end in borders


def test_retrieval_rule_9_1_flags_are_not_parted_and_a_mark_is_no_word() -> None:
    flags = "x " + "🇩🇪" * 300
    tail = snip(flags + " token", find(flags + " token", "token"), {"token": 1.0}, chars=81)
    assert len(tail.text.removesuffix(" token")) % 2 == 0
    marked = "a" * 60 + " \u0308b token" + " c" * 30
    assert not snip(marked, find(marked, "token"), {"token": 1.0}, chars=80).text.startswith("\u0308")
    zalgo = "a" + "\u0301" * 500
    assert len(snip(zalgo, [], {}, chars=80).text) == 80


SAID = [
    "createServer", "create_server", "dying", "die", "lies", "tied", "skies", "sky", "v1.2.3", "--dry-run", "-v", "C++",
    "c#", ".env", "a::b", "don't", "user's", "install", "installing", "installs", "HTTPServerError", "import.meta.env",
    "running", "ran", "generously", "generic", "general", "ok", "x", "y2", "(die)",
]  # fmt: skip


@given(st.lists(st.sampled_from(SAID), min_size=1, max_size=4), st.lists(st.sampled_from(SAID), max_size=40), st.data())
def test_matches_are_those_of_the_whole_analysis(query: list[str], body: list[str], data: st.DataObject) -> None:
    text = "".join(word + data.draw(st.sampled_from([" ", "\n", "\t", ", ", ". "])) for word in body)
    terms = ask(" ".join(query), ["english"])
    asked = terms.terms["english"]
    found = (term for term in analyze(text, "english").terms if term.text in asked)
    whole = [(term.start, term.end, str(asked[term.text])) for term in found]
    assert [(one.start, one.end, one.term) for one in matches_in(terms, text, "english")] == whole


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("# A\n\nbody", "body"),
        ("# A\n\n## B\n\nbody", "body"),
        ("Title\n=====\n\nbody", "body"),
        ("=====\nTitle\n=====\n\n.. _x y:\n\n``Part``\n--------\n\nbody", "body"),
        ("body\n\nTitle\n=====\n", "body\n\nTitle\n=====\n"),
        ("- item\n---\nbody", "- item\n---\nbody"),
        ("====  ====\na  b\n====  ====\n", "====  ====\na  b\n====  ====\n"),
        (".. note::\n\n   body", ".. note::\n\n   body"),
        ("# only", "# only"),
    ],
)
def test_retrieval_9_3_the_body_begins_below_its_headings(text: str, body: str) -> None:
    assert text[body_start(text) :] == body


def opened(source: str, *words: str) -> tuple[str, bool]:
    matches = sorted(match for word in words for match in find(source, word))
    snippet = snip(source, matches, dict.fromkeys(words, 1.0), body_start=body_start(source))
    assert snippet.text == source
    return "".join(
        f"<{part}>" if is_marked else part for part, is_marked in snippet.opened_parts()
    ), snippet.opens_inside


def test_the_page_leaves_out_headings_where_a_match_stands_below() -> None:
    source = "Heron\n=====\n\nThe heron waits."
    assert opened(source, "Heron", "heron") == ("The <heron> waits.", False)
    assert opened(source, "Heron") == ("<Heron>\n=====\n\nThe heron waits.", False)


def test_the_page_opens_at_a_match_that_is_far_down() -> None:
    source = "# Bird\n\nOne.\nTwo.\nThree.\nAnd a heron.\nFour."
    assert opened(source, "heron") == ("And a <heron>.\nFour.", True)
    assert opened(source, "Three", "heron") == ("One.\nTwo.\n<Three>.\nAnd a <heron>.\nFour.", False)
