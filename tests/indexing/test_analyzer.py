from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.indexing import tokens
from apps.indexing.analyzer import Lexicon, analyze, fold, languages, query_terms, stem, stop_words

TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from("aBcXyZ019 _-./\\:#@+'’>$\n\t()é"),
        st.characters(exclude_categories=["Cs"], max_codepoint=0x30FF),
    ),
    max_size=60,
)


def words(text: str, language: str = "english") -> list[str]:
    return [term.text for term in analyze(text, language).terms if term.kind == "word"]


def wholes(text: str) -> list[str]:
    return [term.text for term in analyze(text).terms if term.kind == "whole"]


def test_retrieval_fact_02_compounds_are_peeled():
    assert words("import.meta.env.VITE_X") == ["import", "meta", "env", "vite", "x"]
    assert wholes("import.meta.env.VITE_X") == ["import.meta.env.vite_x", "vite_x"]
    assert words("HTTPServerError") == ["http", "server", "error"]
    assert wholes("HTTPServerError") == [stem("httpservererror", "english")]
    assert words("docs/guide/api-plugin.md") == ["doc", "guid", "api", "plugin", "md"]
    assert set(wholes("docs/guide/api-plugin.md")) == {"docs/guide/api-plugin.md", "api-plugin.md", "api-plugin"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ADR-0042", ["adr-0042"]),
        ("run --dry-run now", ["--dry-run", "dry-run"]),
        ("-v", ["-v"]),
        ("v1.2.3", ["v1.2.3", "v1"]),
        ("snake_case_name", ["snake_case_name"]),
        ("a::b", ["a::b"]),
        ("C++", ["c++"]),
        ("c#", ["c#"]),
        (".env", [".env"]),
        ("@scope/name $HOME", ["@scope/name", "scope/name", "$home"]),
        ("ptr->field", ["ptr->field"]),
    ],
)
def test_retrieval_fact_05_names_are_kept_whole(text, expected):
    assert wholes(text) == expected


def test_a_possessive_goes_and_an_acronym_keeps_its_plural():
    assert words("The worker's URLs, the APIs’ limits") == ["worker", "url", "api", "limit"]


def test_wholes_do_not_count_in_the_length_and_share_the_place_of_their_first_word():
    found = analyze("see docs/api-plugin.md twice")
    assert found.length == 6
    places = {term.text: term.position for term in found.terms}
    assert places["docs/api-plugin.md"] == places["doc"] == 1
    assert places["api-plugin.md"] == places["api"] == 2
    assert places["twice"] == 5


def test_stop_words_go_as_words_and_stay_in_wholes():
    found = analyze("to be or not to-do")
    assert [term.text for term in found.terms] == ["to-do"]
    assert found.stopped
    assert "the" in stop_words("english")
    assert stop_words("none") == frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("città", "citta"),
        ("Straße", "strasse"),
        ("naïve", "naive"),
        ("ＡＰＩ", "api"),
        ("ﬁle", "file"),
        ("Ёлка", "елка"),
        ("ΆΝΕΜΟΣ", "ανεμος"),
        ("smørrebrød", "smorrebrod"),
        ("cœur", "coeur"),
    ],
)
def test_retrieval_fact_07_spellings_fold_to_one(one, other):
    assert words(one) == words(other)


def test_folding_leaves_other_scripts_alone():
    assert fold("Йод") == "йод"
    assert fold("हिन्दी") == unicodedata.normalize("NFC", "हिन्दी")


def test_retrieval_fact_06_scripts_without_spaces_give_pairs_and_letters():
    found = analyze("数据库备份")
    assert [term.text for term in found.terms if term.kind == "word"] == ["数据", "据库", "库备", "备份"]
    assert {term.text for term in found.terms if term.kind == "letter"} == set("数据库备份")
    assert [term.text for term in query_terms("备份").terms] == ["备份"]
    assert [term.text for term in query_terms("备").terms] == ["备"]
    assert [term.text for term in query_terms("API备份v2").terms] == ["api", "备份", "v2", "v", "2"]


def test_the_scheme_of_an_address_is_no_word():
    found = analyze("See https://acme.example/https and http://x.y; HTTPS needs a key")
    words = [(term.text, term.start) for term in found.terms if term.kind == "word"]
    assert [word for word, _ in words] == ["see", "acm", "exampl", "https", "x", "y", "https", "need", "key"]
    assert [start for word, start in words if word == "https"] == [25, 47]


def test_a_digest_stays_one_word():
    digest = "a3f5b0c9d8e7f6a5b4c3d2e1f0a9b8c7"
    assert words(digest) == [digest]


def test_offsets_point_into_the_text_as_given():
    text = "Das ﬁle heißt Cafe\u0301-Liste."
    cut = {term.text: text[term.start : term.end] for term in analyze(text, "none").terms}
    assert cut["file"] == "ﬁle"
    assert cut["heisst"] == "heißt"
    assert cut["cafe"] == "Cafe\u0301"
    assert cut["cafe-liste"] == "Cafe\u0301-Liste"


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_any_text_is_safe_and_bulk_work_gives_the_same_terms(text):
    found = analyze(text)
    assert all(0 <= term.start < term.end <= len(text) for term in found.terms)
    assert all(term.text and "\x00" not in term.text for term in found.terms)
    assert [term.start for term in found.terms] == sorted(term.start for term in found.terms)
    lexicon = Lexicon("english")
    codes = lexicon.encode(tokens.normalise(text))
    bulk = [lexicon.names[n] for code in codes for n in lexicon.flat[lexicon.starts[code] : lexicon.starts[code + 1]]]
    if unicodedata.is_normalized("NFKC", text):
        assert sorted(bulk) == sorted(term.text for term in found.terms)
        assert sum(lexicon.words[code] for code in codes) == found.length


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=60))
@settings(max_examples=200, deadline=None)
def test_the_fast_pattern_finds_what_the_general_one_finds(text):
    general = [match.group() for match in tokens._UNICODE.finditer(text)]
    assert tokens.find(text) == general


@pytest.mark.parametrize("language", languages())
def test_every_language_works(language):
    assert analyze("Words and 3 numbers", language).length == 4
    assert stem("running", "none") == "running"
