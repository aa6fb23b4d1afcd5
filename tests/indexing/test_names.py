"""Who names a file or a heading gets it first: ``retrieval.md`` facts 30 to 47 at the stream's level."""

from __future__ import annotations

import random

import pytest
from django.db import transaction

from apps.indexing import chunks, names, naming
from apps.indexing.models import IndexedSource, NamedDocument
from apps.indexing.naming import spelled_tokens
from apps.indexing.questions import ask
from apps.indexing.scope import visible_blocks
from tests.indexing.shelf import STORE, Paper, PaperChunk, a_shelf, a_user, cut, put, scope_of

pytestmark = pytest.mark.usefixtures("shelves")

CONTRIBUTING = (
    "Reporting",
    "Style",
    "Tests",
    "Commits",
    "Reviews",
    "Releases",
    "Next point",
    "Cloning the repo on Windows",
    "Backlog",
)


def kit():
    """The documents of ``acme/kit``; each section stands on ten lines."""
    shelf = a_shelf("acme/kit")

    def document(path, title, headings, side=False, body="some words of text"):
        sections = []
        for place, heading in enumerate(headings):
            path_of = (title, heading) if heading != title else (title,)
            piece = cut(f"{body} {place}", *path_of)
            start = 1 + 10 * place
            sections.append(piece._replace(start_line=start, end_line=start + 9))
        return put(shelf, path, *sections, title=title, side=side)

    document("README.md", "Kit", ["Kit", "Install", "Use"])
    document("CONTRIBUTING.md", "Contributing to Kit", CONTRIBUTING)
    document("docs/setup.md", "Setting up", ["Before", "After"])
    document("x/setup.md", "Other things", ["First", "Second"])
    document("docs/troubleshooting.md", "When it fails", ["Logs", "Errors"])
    document("docs/settings.md", "Settings", ["Which value counts", "Names"])
    document("packages/widget/README.md", "Widget", ["Resizing"])
    document("test/fixtures/README.md", "Fixture", ["Fixture"], side=True)
    return shelf


def rows(query: str, **narrowing):
    scope = scope_of(**narrowing)
    question = ask(query, scope.languages)
    result = names.search(scope, question)
    headings = dict(PaperChunk.objects.values_list("id", "heading_path"))
    return [(row.path, (headings.get(row.chunk_id) or [""])[-1], row.name_class, row.weight) for row in result.rows]


def files(query: str) -> list[str]:
    return list(dict.fromkeys(path for path, *_ in rows(query)))


def test_retrieval_fact_30_a_guide_by_its_name():
    kit()
    found = rows("the contributing guide")
    assert found[0][0] == "CONTRIBUTING.md"
    assert [heading for _, heading, *_ in found[:3]] == ["Reporting", "Style", "Tests"]


def test_retrieval_fact_31_a_spelled_file_in_any_spelling():
    kit()
    answers = [rows(query) for query in ("CONTRIBUTING.md", "contributing.md", "./CONTRIBUTING.md")]
    assert answers[0] == answers[1] == answers[2]
    assert [row[0] for row in answers[0][:3]] == ["CONTRIBUTING.md"] * 3
    assert answers[0][0][2:] == ("spelled", 6.0)


def test_retrieval_fact_32_the_full_path_wins_and_others_of_the_name_follow():
    kit()
    found = rows("docs/setup.md")
    assert found[0][0] == "docs/setup.md"
    assert files("setup.md")[:2] == ["docs/setup.md", "x/setup.md"]


def test_retrieval_fact_33_readme():
    kit()
    assert files("readme")[:2] == ["README.md", "packages/widget/README.md"]
    assert "test/fixtures/README.md" not in files("readme")
    assert files("test/fixtures/README.md")[0] == "test/fixtures/README.md"
    assert files("README.md")[0] == "README.md"
    assert "test/fixtures/README.md" not in files("README.md")


def test_retrieval_fact_34_the_readme_of_a_package():
    kit()
    assert files("readme of the widget package")[:2] == ["packages/widget/README.md", "README.md"]


def test_retrieval_fact_37_a_file_by_its_stem():
    kit()
    assert files("troubleshooting")[0] == "docs/troubleshooting.md"
    assert files("setup")[0] == "docs/setup.md"


def test_retrieval_fact_38_the_section_that_the_rest_of_the_query_names():
    kit()
    found = rows("the contributing guide for windows")
    assert found[0][:2] == ("CONTRIBUTING.md", "Cloning the repo on Windows")


def test_retrieval_fact_39_sections_by_their_headings():
    kit()
    assert rows("cloning on windows")[0][1] == "Cloning the repo on Windows"
    assert rows("the contributing backlog")[0][1] == "Backlog"


def test_retrieval_fact_40_a_heading_of_common_words():
    kit()
    assert rows("next point")[0][1:3] == ("Next point", "exact_heading")


def test_retrieval_fact_09_a_title_of_common_words_only():
    shelf = kit()
    put(shelf, "docs/faq.md", cut("an answer", "What is the"), title="What is the")
    assert rows("what is the")[0][0] == "docs/faq.md"
    assert rows("how are the") == []


def test_retrieval_fact_41_nothing_but_the_file_name():
    kit()
    assert [heading for _, heading, *_ in rows("troubleshooting.md")] == ["Logs", "Errors"]


def test_retrieval_fact_44_a_wrapper_never_stands_for_its_file():
    shelf = a_shelf("other")

    def document(path, headings):
        pieces = []
        for place, heading in enumerate(headings):
            whole = place == 0
            piece = cut(f"text {place}", *(("Wrapper",) if whole else ("Wrapper", heading)))
            end = 10 * len(headings) if whole else 10 * place + 10
            pieces.append(piece._replace(start_line=10 * place + 1, end_line=end))
        put(shelf, path, *pieces, title="Wrapper")

    document("four.md", ["Wrapper", "One", "Two", "Three"])
    document("three.md", ["Wrapper", "One", "Two"])
    assert "Wrapper" not in [heading for path, heading, *_ in rows("four.md") if path == "four.md"]
    assert "Wrapper" in [heading for path, heading, *_ in rows("three.md") if path == "three.md"]


def test_retrieval_fact_46_a_vendored_file_only_with_its_folder():
    shelf = a_shelf("other")
    put(shelf, "guide.md", cut("text", "Guide"), title="Guide")
    put(shelf, "vendor/guide.md", cut("text", "Guide"), title="Guide", side=True)
    assert files("guide.md") == ["guide.md"]
    assert files("guide") == ["guide.md"]
    assert files("vendor/guide.md")[0] == "vendor/guide.md"


def test_retrieval_fact_47_a_named_file_without_text():
    shelf = a_shelf("other")
    put(shelf, "empty.md", title="Empty")
    scope = scope_of()
    [row] = names.search(scope, ask("empty.md", scope.languages)).rows
    assert (row.path, row.chunk_id, row.name_class) == ("empty.md", None, "spelled")


def test_words_of_the_source_name_name_nothing_inside_it():
    kit()
    assert files("kit install")[0] == "README.md"
    assert rows("kit install")[0][1] == "Install"


def test_names_are_scoped():
    kit()
    hidden = a_shelf("hidden", visibility="private", owner=a_user())
    before = rows("secret plans"), rows("contributing guide")
    put(hidden, "secret-plans.md", cut("text", "Secret plans"), title="Secret plans")
    assert (rows("secret plans"), rows("contributing guide")) == before


def test_removed_and_renamed_documents_leave_the_names():
    shelf = kit()
    paper = Paper.objects.get(path="docs/troubleshooting.md")
    Paper.objects.filter(pk=paper.pk).update(path="docs/mending.md")
    put(shelf, "docs/mending.md", cut("text", "Logs"), title="When it fails")
    assert files("troubleshooting") == []
    assert files("mending") == ["docs/mending.md"]
    chunks.remove_documents(STORE, source_id=shelf.id, document_ids=[paper.id])
    assert files("mending") == []
    assert not NamedDocument.objects.filter(document_id=paper.id).exists()
    entry = IndexedSource.objects.get(store=STORE.name + "#names", source_id=shelf.id)
    assert entry.chunks == NamedDocument.objects.filter(number=entry.number).count()


def test_names_cost_two_statements_beside_the_scope(django_assert_num_queries):
    kit()
    query, viewer = "the contributing guide for windows", a_user()
    with django_assert_num_queries(1):
        (scope,) = visible_blocks(viewer, blocks={"docs": None}, riders=names.riding(query))
    with django_assert_num_queries(2):
        assert names.search(scope, ask(query, scope.languages)).rows


@pytest.mark.parametrize(
    ("query", "tokens"),
    [
        ("see ./Docs/Setup.md#top please", ["docs/setup.md"]),
        (r"docs\setup.md", ["docs/setup.md"]),
        ("(README.md), and b.mdx?", ["readme.md", "b.mdx"]),
        ("and/or", ["and/or"]),
        ("/", []),
        ("x.mdy", []),
        ("plain words", []),
    ],
)
def test_spelled_tokens(query, tokens):
    assert spelled_tokens(query) == tokens


def test_a_version_names_its_own_notes_first():
    """As words 2.2.1 and 1.2.2 are the same."""
    shelf = a_shelf("acme/kit")
    for version in ("1.2", "1.2.2", "2.1.1", "2.1.2", "2.2.1", "2.2.1.1"):
        put(shelf, f"notes/{version}.md", cut("some words", f"Kit {version} notes"), title=f"Kit {version} notes")
    for query in ("2.2.1", "Kit 2.2.1 notes", "notes 2.2.1", "notes of 1.2"):
        assert files(query)[0] == f"notes/{'1.2' if '1.2' in query else '2.2.1'}.md", query


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("--database", {"cli.md"}),
        ("`--database`", {"cli.md"}),
        ("database", {"cli.md", "databases.md"}),
        ("--dry-run", {"dry-run.md"}),
        ("--dry-runs", set()),
    ],
)
def test_an_option_names_only_what_is_called_so(query, named):
    shelf = a_shelf("acme/kit")
    put(shelf, "databases.md", cut("some words", "Databases"), title="Databases")
    put(shelf, "dry-run.md", cut("some words", "What it would do"), title="What it would do")
    put(shelf, "cli.md", cut("some words", "Commands", "--database"), title="Commands")
    assert set(files(query)) == named


def test_of_many_documents_with_equal_claims_the_nearest_to_the_root_are_looked_at():
    """Whatever order they came in: the same ones after a rebuild."""
    shelf = a_shelf("tools")
    paths = [f"deep/{place % 7}/{'x/' * (place % 3)}n{place:03}.md" for place in range(300)]
    random.Random(7).shuffle(paths)
    for path in [*paths, "near.md"]:
        put(shelf, path, cut("some text", "Gears and levers"), title="Handling")
    found = rows("gears levers")
    assert len(found) == naming.MAX_ROWS
    assert found[0][0] == "near.md"
    nearest = sorted([*paths, "near.md"], key=lambda path: (path.count("/"), path))
    assert [path for path, *_ in found] == nearest[: naming.MAX_ROWS]
    with transaction.atomic():
        entry = chunks.lock_source(STORE, shelf.id)
        chunks.reindex(STORE, entry, language="english")
    assert rows("gears levers") == found
