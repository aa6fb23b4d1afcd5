"""Names in documents and the symbols they mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.jobs.queue import enqueue
from apps.jobs.worker import run_job
from apps.repos.code.mentions import CALL, CODE, DOTTED, ENV, FLAG, Place, by_chunk, names_in
from apps.repos.code.related import code_on_page, naming_literals, related_chunks
from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentChunk
from apps.repos.models_code import ChunkMention, CodeDocumentLink, CodeNode


def names(text: str, *, prose: bool = True, fences: list[tuple[int, int]] | None = None) -> set[tuple[str, int]]:
    return {(named.name, named.form) for named in names_in(text, fences or [], prose=prose)}


def mentions(repository: Repository) -> dict[tuple[str, str], tuple[str, int, int]]:
    """(document, symbol) -> (file, confidence, count)"""
    rows = ChunkMention.objects.filter(repository=repository).select_related("document", "node__file")
    return {
        (row.document.path, row.node.qualified_name): (row.node.file.path, row.confidence, row.count) for row in rows
    }


@given(st.lists(st.sampled_from(["`", "``", "one", " ", "two_three", "x" * 198, "é"]), max_size=30))
def test_inline_code_is_what_stands_between_like_marks(pieces: list[str]) -> None:
    """Against the rule read mark by mark: a run of one or two marks opens, the next run as long closes."""
    line = "".join(pieces)
    expected: list[tuple[str, int]] = []
    at = 0
    while (at := line.find("`", at)) >= 0:
        length = len(line[at:]) - len(line[at:].lstrip("`"))
        inside = line[at + length :].split("`", 1)[0]
        end = at + length + len(inside)
        closing = len(line[end:]) - len(line[end:].lstrip("`"))
        if length <= 2 and length == closing and 1 <= len(inside) <= 200:
            if inside.strip().isidentifier() and len(inside.strip()) >= 3:
                expected.append((inside.strip(), at + length))
            at = end + closing
        else:
            at += length
    assert [(one.name, one.at) for one in names_in(line, [], prose=True) if one.form == CODE] == expected


@given(
    st.lists(st.sampled_from(["`alpha`", "beta(x)", "gamma.delta", " ", "\n", "ü"]), max_size=40),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 80)), max_size=6),
)
def test_names_of_a_chunk_are_those_that_begin_in_it(pieces: list[str], ranges: list[tuple[int, int]]) -> None:
    text = " ".join(pieces)
    named = names_in(text, [], prose=True)
    chunks = [Place(number, 1, start, start + length) for number, (start, length) in enumerate(ranges)]
    found = dict(by_chunk(text, named, chunks))
    for chunk in chunks:
        inside = [one for one in named if chunk.start_byte <= len(text[: one.at].encode()) < chunk.end_byte]
        assert {name: (form, count) for name, form, count, _ in found[chunk.id]} == {
            name: (
                min(one.form for one in inside if one.name == name),
                sum(one.name == name for one in inside),
            )
            for name in {one.name for one in inside}
        }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Call `helper` or `a.b.C`.", {("helper", CODE), ("a.b.C", CODE)}),
        ("Call `x::y()`, `Bill#pay`.", {("x::y", CODE), ("Bill#pay", CODE)}),
        ("See country.Alpha2 and pkg.mod.name.", {("country.Alpha2", DOTTED), ("pkg.mod.name", DOTTED)}),
        ("Then run(x) and obj.go(1, (2)).", {("run", CALL), ("obj.go", CALL)}),
        ("not_closed(x", set()),
        ("e.g. i.e. the repo(s) and class(es)", set()),
        ("https://example.com/a.b/c.d me@mail.host.org docs/a.name src/app.py `ab`", set()),
        ("mail bob.smith@example.com, path a/b.ccc/d.eee", set()),
        ("``double`` and `two words`, `f(x)`", {("double", CODE), ("f", CALL)} - {("f", CALL)}),
        ("`with --dry-run` and `COGRAPH_DATA`", {("--dry-run", FLAG), ("COGRAPH_DATA", CODE), ("COGRAPH_DATA", ENV)}),
        ("`größe` `_private` `$scope`", {("größe", CODE), ("_private", CODE)}),
    ],
)  # fmt: skip
def test_repo_docs_8_1_forms(text: str, found: set[tuple[str, int]]) -> None:
    assert names(text) == found


def test_repo_docs_8_1_fences_hold_dotted_names_and_calls() -> None:
    text = "# T\n\n```py\nimport os.path\n`tick`\nstart(1)\nplain\n```\n"
    assert names(text, fences=[(3, 8)]) == {("os.path", DOTTED), ("start", CALL)}


def test_names_are_linear_in_hostile_text() -> None:
    for text in ("`" * 50_000, "a." * 50_000, "f(" * 50_000, "--a-" * 20_000, "A_" * 50_000):
        names(text)
        names(text, prose=False)


def test_repo_docs_fact_23_first_sync_makes_one_mention(portal: Any, upstream: Any) -> None:
    upstream.commit({"README.md": "# Demo\n\nUse `helper`.\n", "src/tool.py": "def helper():\n    pass\n"})
    repository, job = portal.synced(upstream)
    assert RepositoryDocument.objects.get(repository=repository).title == "Demo"
    assert mentions(repository) == {("README.md", "tool.helper"): ("src/tool.py", 70, 1)}
    counted = ("discovered_files", "indexed_documents", "indexed_chunks", "unchanged_documents", "deleted_documents")
    assert [job.counters[name] for name in counted] == [1, 1, 1, 0, 0]


def test_repo_docs_fact_39_qualified_nearest_and_once(portal: Any, upstream: Any) -> None:
    upstream.commit(
        {
            "docs/country.md": "# Country\n\n`country.Alpha2` or plain country.Alpha2 or Alpha2(x).\n",
            "src/country.py": "class Alpha2:\n    pass\n",
            "src/language.py": "class Alpha2:\n    pass\n",
            "pkg/a/notes.md": "# N\n\nParse() is here, as `Parse`.\n",
            "pkg/a/p.go": "package a\n\nfunc Parse() {}\n",
            "pkg/b/p.go": "package b\n\nfunc Parse() {}\n",
        }
    )
    repository, _ = portal.synced(upstream)
    found = mentions(repository)
    assert found["docs/country.md", "country.Alpha2"] == ("src/country.py", 100, 3)
    assert found["pkg/a/notes.md", "a.Parse"] == ("pkg/a/p.go", 50, 2)
    assert len(found) == 2


def test_repo_docs_fact_40_a_last_part_alone_links_nothing(portal: Any, upstream: Any) -> None:
    upstream.commit(
        {
            "README.md": "# R\n\n`os.path.join` and e.g. example.com or the repo(s).\n",
            "src/tool.py": "def join(): pass\n\ndef repo(): pass\n\ndef com(): pass\n",
        }
    )
    repository, _ = portal.synced(upstream)
    assert not mentions(repository)


def test_repo_docs_8_2_confidences(portal: Any, upstream: Any) -> None:
    upstream.commit(
        {
            "README.md": "# R\n\n`shop.bill.Bill` `Bill.pay` `bill.RATE2` `Bill::total` `only_one` `twice`\n",
            "src/shop/bill.py": "RATE2 = 1\n\nclass Bill:\n    def pay(self): pass\n    def total(self): pass\n",
            "src/one.py": "def only_one(): pass\n\ndef twice(): pass\n",
            "src/two.py": "def twice(): pass\n",
            "tests/test_one.py": "def only_one(): pass\n",
        }
    )
    repository, _ = portal.synced(upstream)
    found = {name: values[1] for (path, name), values in mentions(repository).items() if path == "README.md"}
    assert found == {
        "shop.bill.Bill": 100,
        "shop.bill.Bill.pay": 90,
        "shop.bill.RATE2": 90,
        "shop.bill.Bill.total": 90,
        "one.only_one": 70,
        "one.twice": 50,
    }


def test_repo_docs_fact_41_forced_link_follows_a_rename(portal: Any, upstream: Any) -> None:
    upstream.commit({"README.md": "# R\n\nUse `new_name`, once `old_name`.\n", "src/t.py": "def old_name(): pass\n"})
    repository, _ = portal.synced(upstream)
    assert set(mentions(repository)) == {("README.md", "t.old_name")}
    upstream.commit({"src/t.py": "def new_name(): pass\n"})
    job = portal.sync(repository)
    assert job.counters["indexed_documents"] == 0
    assert set(mentions(repository)) == {("README.md", "t.new_name")}
    before = list(RepositoryDocumentChunk.objects.values_list("pk", "ref"))
    ChunkMention.objects.all().delete()
    forced = run_job(enqueue("link_symbols", source=repository, by=portal.admin).job.pk)
    assert forced is not None and forced.status == "success" and forced.counters["mentions"] == 1
    assert set(mentions(repository)) == {("README.md", "t.new_name")}
    assert list(RepositoryDocumentChunk.objects.values_list("pk", "ref")) == before


def test_mentions_follow_documents_that_change_and_move(portal: Any, upstream: Any) -> None:
    upstream.commit(
        {
            "a/x.md": "# X\n\n`twice`\n",
            "a/t.py": "def twice(): pass\n",
            "b/t.py": "def twice(): pass\n",
        }
    )
    repository, _ = portal.synced(upstream)
    assert mentions(repository) == {("a/x.md", "a.t.twice"): ("a/t.py", 50, 1)}
    upstream.git("mv", "a/x.md", "b/x.md")
    upstream.commit()
    portal.sync(repository)
    assert mentions(repository) == {("b/x.md", "b.t.twice"): ("b/t.py", 50, 1)}
    upstream.commit({"b/x.md": "# X\n\nnothing\n"})
    portal.sync(repository)
    assert not mentions(repository)


def test_repo_docs_fact_42_three_related_chunks_one_of_each_document_first(portal: Any, upstream: Any) -> None:
    upstream.commit(
        {
            "docs/a.md": "# A\n\n`helper` `helper`\n\n## More\n\n`helper`\n",
            "docs/b.md": "# B\n\n`helper`\n",
            "docs/c.md": "# C\n\n`tool.helper`\n",
            "examples/use.py": "import tool\n\ntool.helper()\n",
            "src/tool.py": "def helper():\n    pass\n",
        }
    )
    repository, _ = portal.synced(upstream)
    node = CodeNode.objects.get(repository=repository, qualified_name="tool.helper")
    assert ChunkMention.objects.filter(node=node).count() == 5
    first = related_chunks([node.pk])[node.pk]
    assert [(chunk.path, chunk.confidence) for chunk in first] == [
        ("docs/c.md", 100),
        ("examples/use.py", 100),
        ("docs/a.md", 70),
    ]
    assert all(related_chunks([node.pk])[node.pk] == first for _ in range(3))
    every = related_chunks([node.pk], 10)[node.pk]
    assert [chunk.path for chunk in every] == ["docs/c.md", "examples/use.py", "docs/a.md", "docs/b.md", "docs/a.md"]
    assert every[2].address.endswith("/docs/a#a") and every[2].line == 3 and "`helper`" in every[2].snippet
    assert related_chunks([node.pk], 0) == {}
    symbols, rest = code_on_page(RepositoryDocument.objects.get(path="docs/a.md").pk)
    assert [(one.qualified_name, one.count) for one in symbols] == [("tool.helper", 3)] and rest == 0


def test_retrieval_facts_107_to_113_literals_name_documents(portal: Any, upstream: Any) -> None:
    files = {f"packages/p{number}/README.md": "# P\n" for number in range(3)}
    upstream.commit(
        {
            **files,
            "docs/guide.md": "# Guide\n\n## Install\n\ntext\n",
            "docs/rooted.md": "# Rooted\n",
            "pkg/notes.md": "# Notes\n\n## Top\n\ntext\n",
            "pkg/set up.md": "# Set up\n",
            "sub/b.mdx": "# B\n",
            "pkg/a.go": (
                'package pkg\n\nconst Guide = "../docs/guide.md#install"\n\nfunc Use() {\n'
                '\topen("/docs/rooted.md")\n\topen("./notes.md?raw=1#top")\n\topen("set%20up.md")\n'
                '\topen("docs\\\\rooted.md")\n\topen("../../../outside.md")\n\topen("https://example.com/remote.md")\n'
                '\topen("README.md")\n\topen("blog/*.md")\n\topen("sub/b.mdx")\n'
                '\topen("docs/guide.md docs/rooted.md")\n'
                '\topen("../docs/guide.md#gone")\n}\n'
            ),
        }
    )
    repository, _ = portal.synced(upstream)
    rows = CodeDocumentLink.objects.filter(repository=repository).select_related("target_document", "node")
    found = {
        (row.line, row.written): (
            row.node.name,
            row.target_document.path if row.target_document else None,
            row.anchor,
            row.state,
        )
        for row in rows
    }
    assert found[3, "../docs/guide.md#install"] == ("Guide", "docs/guide.md", "install", "resolved")
    assert found[6, "/docs/rooted.md"] == ("Use", "docs/rooted.md", "", "resolved")
    assert found[7, "./notes.md?raw=1#top"] == ("Use", "pkg/notes.md", "top", "resolved")
    assert found[8, "set%20up.md"][1] == "pkg/set up.md"
    assert {row[1] for key, row in found.items() if key[0] == 9} == {"docs/rooted.md"}
    assert {row[1] for key, row in found.items() if key[0] in (10, 11)} <= {None}
    assert found[12, "README.md"][1] is None
    assert rows.get(line=12).candidates == sorted(files)
    assert not [key for key in found if key[0] == 13]
    assert found[14, "sub/b.mdx"][1] == "sub/b.mdx"
    assert {row[1] for key, row in found.items() if key[0] == 15} == {"docs/guide.md", "docs/rooted.md"}
    assert found[16, "../docs/guide.md#gone"][3] == "anchor missing"
    guide = RepositoryDocument.objects.get(path="docs/guide.md")
    assert [literal.line for literal in naming_literals([guide.pk])[guide.pk]] == [3, 15, 16]
