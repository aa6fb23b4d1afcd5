from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from django.db.models import Q

from apps.indexing import lexical
from apps.indexing.questions import ask
from apps.indexing.scoring import idf, reference_lengths
from tests.indexing.shelf import (
    CODE,
    STORE,
    a_shelf,
    a_user,
    cut,
    found,
    paths,
    put,
    scope_of,
    write,
)

pytestmark = pytest.mark.usefixtures("shelves")


def test_retrieval_fact_01_a_name_is_found_by_its_words_and_in_any_case():
    write(a_shelf(), one="call createServer now", other="nothing of the kind")
    for query in ("createServer", "create server", "createserver", "CREATESERVER"):
        assert paths(query) == ["one.md"], query


def test_retrieval_fact_03_identifiers_and_options():
    write(
        a_shelf(),
        one="See ADR-0042 and run --dry-run",
        two="See ADR-0041 and make a dry run of it",
        three="nothing of the kind, only 0042 apples",
    )
    for query in ("ADR-0042", '"--dry-run"', "--dry-run", "adr 0042"):
        assert paths(query)[0] == "one.md", query


def test_retrieval_fact_04_an_option_is_no_exclusion():
    write(a_shelf(), one="use -v to see more", **{f"other{n}": "nothing to see here" for n in range(5)})
    assert paths("-v") == ["one.md"]


def test_retrieval_fact_05_names_are_found_as_wholes():
    texts = {
        "version": "since v1.2.3 it works",
        "snake": "set snake_case_name first",
        "scope": "call a::b in turn",
        "plus": "written in C++ long ago",
        "sharp": "written in c# lately",
        "plain": "written in C before",
        "env": "put it into .env please",
    }
    write(a_shelf(), **texts)
    for query, name in (
        ("v1.2.3", "version"),
        ("snake_case_name", "snake"),
        ("a::b", "scope"),
        ("C++", "plus"),
        ("c#", "sharp"),
        (".env", "env"),
    ):
        assert paths(query)[0] == f"{name}.md", query
    assert paths("C++").index("plus.md") < paths("C++").index("plain.md")


def test_retrieval_fact_06_chinese_is_found_by_words_and_letters():
    write(a_shelf(), one="数据库备份每天凌晨执行", other="别的东西")
    assert paths("备份") == ["one.md"]
    assert paths("备") == ["one.md"]


def test_retrieval_fact_07_each_spelling_finds_both():
    for number, (one, other) in enumerate(
        [("città", "citta"), ("Straße", "strasse"), ("naïve", "naive"), ("ＡＰＩ", "api"), ("ﬁle", "file")]
    ):
        write(a_shelf(f"pair{number}"), **{f"a{number}": one, f"b{number}": other})
        for query in (one, other):
            assert paths(query) == [f"a{number}.md", f"b{number}.md"]


@pytest.mark.parametrize(
    "query",
    ["what's up?", "((", "a & | !b", ":*", "foo:bar", "'", "<x@y.z>", '"open', "a\x00b", "[" * 2000, "%s %(x)s", "\\"],
)
def test_retrieval_fact_08_any_query_is_taken_literally(query):
    write(a_shelf(), one="foo:bar", two="x@y.z")
    result = paths(query)
    assert result == {"foo:bar": ["one.md"], "<x@y.z>": ["two.md"]}.get(query, result)


def test_retrieval_fact_09_only_common_words():
    write(a_shelf(), one="what is the matter")
    assert paths("what is the") == []
    assert ask("what is the", ["english"]).only_common_words
    assert not ask("((", ["english"]).only_common_words


def test_retrieval_fact_10_terms_match_whole_and_plurals_match():
    write(a_shelf(), one="start", two="art", three="many plans")
    assert paths("art") == ["two.md"]
    assert paths("plan") == ["three.md"]


def test_retrieval_fact_11_each_source_in_its_language():
    write(a_shelf("it", language="italian"), uno="le giacenze di magazzino")
    write(a_shelf("en"), two="the giacenze of stock", three="plans of the house")
    assert paths("giacenza") == ["uno.md"]
    assert paths("plan") == ["three.md"]
    scope = scope_of()
    question = ask("giacenza", scope.languages)
    result = lexical.search(scope, question)
    assert result.df == {0: 1}
    assert result.chunks == 3


def test_retrieval_fact_12_at_most_64_terms_the_rarest():
    words = [f"q{chr(97 + n % 26)}{chr(97 + n // 26)}k" for n in range(100)]
    shelf = a_shelf()
    write(shelf, **{f"d{n}": " ".join(words[n:]) for n in range(0, 100, 5)})
    scope = scope_of()
    question = lexical.backend().limit(scope, ask(" ".join(words), scope.languages))
    assert len(question.asked) == 64
    assert question.left_out == tuple(words[64:])
    assert lexical.search(scope, ask(" ".join(words), scope.languages)).hits


def test_retrieval_fact_13_the_score_by_hand():
    shelf = a_shelf()
    # Ten chunks whose heading fields hold one word and whose bodies hold two: both lengths are at the reference.
    for n in range(10):
        body = "rare rare" if n == 0 else "rare plain" if n == 1 else "plain plain"
        put(shelf, f"p{n}", cut(body, "rare" if n == 0 else "other"))
    scope = scope_of()
    result = lexical.search(scope, ask("rare", scope.languages))
    assert idf(10, 2) == pytest.approx(1.4816, abs=1e-4)
    assert max(hit.score for hit in result.hits) == pytest.approx(2.5073, abs=1e-4)
    assert result.df == {0: 2}


@pytest.mark.parametrize(("tf", "length", "factor"), [(1, 16, 1.0), (10, 16, 1.9643), (1, 64, 0.4490)])
def test_retrieval_fact_14_saturation_and_length(tf, length, factor):
    shelf = a_shelf()
    put(shelf, "one", cut("rare " * tf + "plain " * (length - tf)))
    # Neighbours that keep the average at 16 words.
    fill = 16 * 40 - length
    for n in range(39):
        put(shelf, f"n{n}", cut("other " * (fill // 39 + (n < fill % 39))))
    [(_, score)] = found("rare")
    assert score == pytest.approx(idf(40, 1) * factor, abs=2e-4)


def test_the_one_long_page_among_short_ones_is_found_by_its_rare_words():
    shelf = a_shelf()
    put(shelf, "long", cut("plain " * 300 + "boiler vented " + "plain " * 300))
    for n in range(40):
        put(shelf, f"n{n}", cut("other words " * 8 + "many " * (n < 4)))
    [(first, score), *others] = found("how many boiler vented")
    assert (first, len(others)) == ("long", 4)
    # Two words of one chunk in 41, counted as in a body of four average lengths.
    assert score == pytest.approx(2 * idf(41, 1) * 0.4490, abs=2e-4)


@pytest.mark.parametrize(
    ("average", "reference"), [(34.5, 32), (60, 64), (100, 90.5), (109.9, 128), (147.8, 128), (0, 1), (0.4, 1)]
)
def test_retrieval_fact_15_reference_lengths(average, reference):
    [found] = reference_lengths(np.array([round(average * 10)]), np.array([10]))
    assert found == pytest.approx(reference, abs=0.02)


def test_retrieval_fact_16_counts_are_summed_over_the_readable_sources():
    one, two = a_user(), a_user()
    first, second = (
        a_shelf("first", visibility="private", owner=one),
        a_shelf("second", visibility="private", owner=two),
    )
    for n in range(10):
        put(first, f"a{n}", cut("word" if n < 1 else "other"))
    put(second, "b", *(cut("word" if n < 40 else "other", str(n)) for n in range(90)))
    for viewer, n, df in ((one, 10, 1), (two, 90, 40), (a_user(is_superuser=True), 100, 41)):
        scope = scope_of(viewer)
        result = lexical.search(scope, ask("word", scope.languages))
        assert (result.chunks, result.df) == (n, {0: df})


def test_retrieval_fact_17_a_hidden_source_changes_nothing():
    write(a_shelf("open"), one="alpha beta", two="beta gamma", three="gamma delta delta")
    reader = a_user()

    def answer():
        scope = scope_of(reader)
        result = lexical.search(scope, ask("beta delta", scope.languages))
        return scope.sources, result.hits, result.chunks, result.df, result.idf

    before = answer()
    hidden = a_shelf("hidden", visibility="private", owner=a_user())
    put(hidden, "many", *(cut("beta delta " * 3, str(n)) for n in range(500)))
    assert answer() == before


def test_retrieval_fact_18_heading_before_body_before_path():
    shelf = a_shelf()
    put(shelf, "other/place.md", cut("plain words here", "Needle"))
    put(shelf, "more/things.md", cut("plain needle here", "Heading"))
    put(shelf, "needle/paper.md", cut("plain words here", "Heading"))
    assert paths("needle") == ["other/place.md", "more/things.md", "needle/paper.md"]


def test_retrieval_rule_7_8_weights_of_fields_are_settings(settings):
    shelf = a_shelf()
    put(shelf, "other/place.md", cut("plain words here", "Needle"))
    put(shelf, "more/things.md", cut("plain needle here", "Heading"))
    put(shelf, "needle/paper.md", cut("plain words here", "Heading"))
    chosen = dataclasses.replace(settings.COGRAPH.retrieval, heading_weight=0.1, path_weight=3.0)
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, retrieval=chosen)
    assert paths("needle") == ["needle/paper.md", "more/things.md", "other/place.md"]


def test_a_side_document_is_not_found_by_its_path():
    shelf = a_shelf()
    put(shelf, "fixtures/needle.md", cut("plain words"), side=True)
    assert paths("needle") == []
    assert paths("plain") == ["fixtures/needle.md"]


def test_conditions_narrow_before_the_cut_and_leave_statistics_alone():
    shelf = a_shelf()
    for n in range(30):
        put(shelf, f"other/{n}.md", cut("needle needle needle"))
    put(shelf, "docs/one.md", cut("a needle in much other text"))
    scope = scope_of(conditions={STORE.name: Q(document__path__startswith="docs/")})
    result = lexical.search(scope, ask("needle", scope.languages), limit=5)
    assert len(result.hits) == 1
    assert (result.chunks, result.df) == (31, {0: 31})


def test_all_rows_that_equal_the_last_one_are_given():
    shelf = a_shelf()
    for n in range(20):
        put(shelf, f"{n}.md", cut("the same needle"))
    scope = scope_of()
    assert len(lexical.search(scope, ask("needle", scope.languages), limit=3).hits) == 20


def test_code_is_found_by_its_last_two_names_and_apart_from_documents():
    shelf = a_shelf()
    put(shelf, "io.py", cut("def x(): pass", "package", "Writer", "flushAll"), store=CODE)
    put(shelf, "io.md", cut("how to flush all"))
    assert [path for path, _ in found("flush", store=CODE)] == ["io.py"]
    assert [path for path, _ in found("package", store=CODE)] == []
    assert paths("flush") == ["io.md"]


def test_heading_lines_count_in_the_heading_field_alone():
    shelf = a_shelf()
    put(shelf, "one.md", cut("## Needle\n\nplain words", "Guide", "Needle"))
    put(shelf, "two.md", cut("Needle\n------\n\nplain words", "Guide", "Needle"))
    put(shelf, "three.md", cut("plain words", "Guide", "Needle"))
    assert len({score for _, score in found("needle")}) == 1
    put(shelf, "four.md", cut("# Needle comment of a config\nkey: value"))
    scope = scope_of()
    result = lexical.search(scope, ask("needle", scope.languages))
    assert {hit.fields[0] for hit in result.hits} == {"h", "b"}


def test_a_scope_cannot_be_made_without_a_viewer():
    from apps.indexing.scope import Scope, visible

    with pytest.raises(TypeError):
        Scope("docs", ())
    with pytest.raises(TypeError):
        visible(None)  # type: ignore[arg-type]


def test_the_stream_costs_one_statement(django_assert_num_queries):
    for n in range(3):
        write(a_shelf(), **{f"d{n}": "needle in hay"})
    scope = scope_of()
    with django_assert_num_queries(1):
        lexical.search(scope, ask("needle hay", scope.languages))


def test_matched_terms_name_their_fields():
    shelf = a_shelf()
    put(shelf, "alpha/paper.md", cut("alpha beta", "Beta"))
    scope = scope_of()
    [hit] = lexical.search(scope, ask("alpha beta gamma", scope.languages)).hits
    assert hit.fields == {0: "bp", 1: "bh"}
    assert hit.score == round(hit.score, 6)
    assert math.isfinite(hit.score)
