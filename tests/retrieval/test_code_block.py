"""Code beside documents: `retrieval.md` facts 35, 36, 57, 70 to 73."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.access.models import User
from apps.repos.models import Repository
from apps.repos.models_code import CodeFile
from apps.retrieval.context import context
from apps.retrieval.search import retrieve, search
from apps.retrieval.values import Answer, Filters, Question
from tests.retrieval.library import STAMP, repository_of

pytestmark = pytest.mark.django_db

SERVER = '''"""A server."""

LIMIT = 7


class Server:
    """Serves the quagga."""

    def close(self) -> None:
        """End it."""
        for connection in self.connections:
            connection.drop_softly()


def createServer(port: int) -> Server:
    server = Server()
    server.listen(port)
    return server
'''
FILES = {
    "README.md": "# Kit\n\nA kit of small parts, with a flamingo.\n\n## Install\n\nAdd it.\n",
    "docs/settings.md": (
        "# Settings\n\nEvery option.\n\n## Which value counts\n\n"
        "When a setting is given in two places, the one nearer to the command counts.\n"
    ),
    "docs/glob.md": "# Features\n\n## Glob Import\n\nUse `import.meta.glob` to import many modules.\n",
    "packages/widget/README.md": "# Widget\n\nA box on the screen.\n",
    "src/widget.py": "def resize_widget(widget, width):\n    widget.width = width\n    return widget\n",
    "src/alarm.py": "def quiet_alarm(one):\n    return one + 1\n",
    "src/server.py": SERVER,
    "src/plugins/importMetaGlob.ts": (
        "export function parseImportGlob(code: string): string[] {\n"
        "  // finds import.meta.glob in the code\n  return code.split('import.meta.glob')\n}\n"
    ),
}


@pytest.fixture
def kit(tmp_path: Path, settings: Any) -> Callable[..., Callable[..., Answer]]:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
        data_dir=str(tmp_path / "var"),
    )

    def build(files: dict[str, str] = FILES, name: str = "kit") -> Callable[..., Answer]:
        admin = User.objects.filter(username="ada").first() or User.objects.create_superuser("ada")
        made = repository_of(tmp_path / "acme" / name, files, admin)
        made.visibility = "public"
        made.save()

        def ask(query: str, *, merged: bool = False, **options: Any) -> Answer:
            question = Question(query, sources=(("repository", made.pk),), **options)
            return (search if merged else retrieve)(viewer=admin, question=question)

        return ask

    return build


def in_block(answer: Answer, block: str) -> list[Any]:
    return [hit for hit in answer.hits if hit.block == block]


def test_retrieval_facts_35_36_57_and_73_blocks(kit: Any) -> None:
    ask = kit()
    answer = ask("how do i resize a widget")
    assert [block.name for block in answer.blocks] == ["code", "docs"]
    assert answer.hits[0].title == "widget.resize_widget"
    assert "packages/widget/README.md" in [hit.path for hit in in_block(answer, "docs")]
    # one list: the better block's best row is first as well
    assert ask("how do i resize a widget", merged=True).hits[0].title == "widget.resize_widget"

    answer = ask("which of two settings counts when both are given")
    assert answer.blocks[0].name == "docs"
    assert answer.hits[0].path == "docs/settings.md"
    assert answer.hits[0].heading_path[-1] == "Which value counts"

    answer = ask("import.meta.glob")
    assert in_block(answer, "code")[0].path == "src/plugins/importMetaGlob.ts"
    assert "docs/glob.md" in [hit.path for hit in in_block(answer, "docs")][:3]
    assert all(hit.path.endswith(".md") for hit in in_block(answer, "docs"))
    assert not any(hit.path.endswith(".md") for hit in in_block(answer, "code"))

    for query, matched in (
        ("createServer", "name"),
        ("create server", "segments"),
        ("server.createServer", "ending"),
        ("creatServer", "trigrams"),
    ):
        first = in_block(ask(query), "code")[0]
        assert first.symbol is not None
        assert first.symbol.name == "createServer", query
        assert first.streams["symbol"].rank == 1
        assert first.name_class in {matched, "qualified name"}, query


def test_retrieval_facts_70_and_71_one_row_a_symbol(kit: Any) -> None:
    ask = kit()
    rows = [hit for hit in ask("Server drop softly connection", mode="code").hits if hit.title.endswith("close")]
    assert [hit.layer for hit in rows] == ["code"]
    titles = [hit.title for hit in ask("createServer", mode="code").hits]
    assert len(titles) == len(set(titles))
    (named,) = [hit for hit in ask("quiet_alarm", mode="code").hits if hit.title.endswith("quiet_alarm")]
    assert named.layer == "signature"
    assert named.url.endswith(str(named.symbol.id))
    # a word that only a README holds is in no row of code
    assert in_block(ask("flamingo"), "code") == []
    assert ask("flamingo symbols", mode="code").total == 0


def test_retrieval_fact_72_documents_change_no_byte_of_the_code_block(kit: Any) -> None:
    code = {path: text for path, text in FILES.items() if not path.endswith(".md")}
    more = {
        f"docs/n{n}.md": f"# Server {n}\n\ncreate a server, resize a widget, import a glob {n}\n" for n in range(30)
    }
    alone, beside = kit(code, "one"), kit(code | more, "two")

    def told(answer: Answer) -> list[Any]:
        return [(hit.title, hit.path, hit.fused, hit.final, hit.snippet, hit.layer) for hit in in_block(answer, "code")]

    for query in ("createServer", "resize a widget", "listen on a port", "how is the code split"):
        assert told(alone(query)) == told(beside(query))


def test_modes_filters_and_related_passages(kit: Any) -> None:
    more = {
        "docs/api.md": "# API\n\nCall `createServer` first.\n",
        "tests/test_server.py": "def test_createServer():\n    pass\n",
    }
    ask = kit(FILES | more)
    assert {hit.layer for hit in ask("createServer", mode="docs").hits} == {"repo_doc"}
    assert {hit.path for hit in ask("createServer", filters=Filters(language="python")).hits} <= {
        "src/server.py", "tests/test_server.py", "src/widget.py",
    }  # fmt: skip
    assert {hit.kind for hit in ask("createServer", filters=Filters(kinds=frozenset({"test"}))).hits} == {"test"}
    assert not in_block(ask("createServer", filters=Filters(tag="x")), "code")
    below = ask("createServer", mode="code", filters=Filters(path="src/")).hits
    assert {hit.path for hit in below} >= {"src/server.py"}
    assert all(hit.path.startswith("src/") for hit in below)
    (first, *_) = ask("createServer", mode="code", related=3).hits
    assert [one.path for one in first.related] == ["docs/api.md"]
    pages = [ask("server", limit=1)]
    while pages[-1].next_cursor:
        pages.append(ask("server", limit=1, cursor=pages[-1].next_cursor))
    seen = [(hit.block, hit.title, hit.path, hit.start_line) for page in pages for hit in page.hits]
    assert len(seen) == len(set(seen)) == pages[0].total


def test_retrieval_12_3_packs_point_to_code(kit: Any) -> None:
    kit(
        {
            **FILES,
            "docs/beast.md": (
                "# Quagga manual\n\nThe quagga manual: call `createServer` and read [the alarm](../src/alarm.py).\n"
            ),
            "src/guide.py": "def shelf():\n    return '../docs/beast.md'\n",
        }
    )
    olga = User.objects.create_user("olga")
    found = context(viewer=olga, task="quagga manual")
    code = {(one.title.rpartition(".")[2], one.location, one.why) for one in found.pointers if "code" in one.tier}
    assert code == {
        ("Server", "src/server.py:6-7", "matches the task"),
        ("createServer", "src/server.py:15-18", "named in docs/beast.md"),
        ("shelf", "src/guide.py:2-2", "names docs/beast.md"),
        ("py", "src/alarm.py", "linked from docs/beast.md"),
    }
    assert "resize_widget" not in found.text
    assert [part.path for part in found.parts] == ["docs/beast.md"]
    Repository.objects.update(visibility="private")
    assert context(viewer=olga, task="quagga manual").reason == "nothing_readable"


def test_retrieval_fact_75_code_is_as_old_as_the_commit_that_changed_it(kit: Any, tmp_path: Path) -> None:
    ask = kit()
    (dated,) = set(CodeFile.objects.values_list("committed_at", flat=True))
    assert dated == datetime.datetime.fromtimestamp(int(STAMP.partition(" ")[0]), datetime.UTC)
    day = dated.date()

    def found(**filters: Any) -> list[str]:
        return [hit.title for hit in in_block(ask("resize_widget", filters=Filters(**filters)), "code")]

    assert found(since=day, until=day)[0] == "widget.resize_widget"
    assert found(since=day + datetime.timedelta(days=1)) == []
    assert found(until=day - datetime.timedelta(days=1)) == []
    hit = in_block(ask("resize_widget"), "code")[0]
    assert hit.text_time == dated
    CodeFile.objects.filter(path="src/widget.py").update(committed_at=dated + datetime.timedelta(days=40))
    assert found(since=day + datetime.timedelta(days=30)) == ["widget.resize_widget"]
    assert "widget.resize_widget" not in found(until=day)


def test_retrieval_10_1_filters_narrow_symbols_before_the_cut(kit: Any) -> None:
    many = "".join(f"def handle_{number:03}(): ...\n" for number in range(320))
    ask = kit({"src/many.py": many, "src/old.py": "def handle_parts_of_old_times(): ...\n"})
    CodeFile.objects.filter(path="src/many.py").update(committed_at=datetime.datetime(2026, 5, 4, tzinfo=datetime.UTC))

    def named(query: str, **filters: Any) -> list[str]:
        hits = in_block(ask(query, mode="code", filters=Filters(**filters)), "code")
        return [hit.symbol.name for hit in hits if hit.streams["symbol"].rank]

    assert len(named("handle", since=datetime.date(2026, 5, 4))) == 10
    # Three hundred names are shorter, so the one that is left came after the cut.
    assert "handle_parts_of_old_times" not in named("handle")
    old = datetime.date(2025, 1, 1)
    assert named("handle", until=old) == ["handle_parts_of_old_times"]
    assert named("handle_prats_of_old", until=old) == ["handle_parts_of_old_times"]
    assert named("handle", path="**/o*.py") == ["handle_parts_of_old_times"]


@pytest.mark.parametrize("query", ["createServer", "create server", "creatServer", "creatServer resiz_widget", "what"])
def test_retrieval_1_8_four_statements_whatever_is_named(kit: Any, query: str) -> None:
    ask = kit()
    ask(query)
    with CaptureQueriesContext(connection) as asked:
        ask(query, mode="mixed")
    # A savepoint is there because the test is a transaction.
    statements = [one["sql"] for one in asked if "SAVEPOINT" not in one["sql"]]
    assert len(statements) <= 4


def test_retrieval_10_1_kind_test_is_what_hits_call_so(kit: Any) -> None:
    ask = kit({"src/wall.py": "def test_wall(): ...\n\n\ndef wall(): ...\n", "tests/wall.py": "def walled(): ...\n"})

    def found(**filters: Any) -> set[tuple[str, str]]:
        hits = ask("wall", mode="code", filters=Filters(**filters)).hits
        return {(hit.symbol.name, hit.kind) for hit in hits if hit.symbol}

    both = found()
    assert {("test_wall", "test"), ("wall", "code"), ("walled", "test")} <= both
    assert found(kinds=frozenset({"test"})) == {one for one in both if one[1] == "test"}
    assert found(kinds=frozenset({"code"})) == {one for one in both if one[1] == "code"}
    assert found(kinds=frozenset({"code", "test"})) == both


def test_retrieval_8_2_hits_bring_what_is_around_them(kit: Any, tmp_path: Path, signed_in: Any) -> None:
    files = {
        "docs/beast.md": "# Quagga\n\nThe quagga is served by `Server` and by `resize_widget`.\n",
        "docs/other.md": "# Other\n\nNothing is named.\n",
        "src/server.py": SERVER,
        "src/widget.py": FILES["src/widget.py"],
        "src/guide.py": "def shelf():\n    return '../docs/beast.md#quagga'\n",
    }
    ask = kit(files)
    ada = User.objects.get(username="ada")
    with CaptureQueriesContext(connection) as few:
        ask("nothing is named at all here", mode="docs")
    with CaptureQueriesContext(connection) as asked:
        (hit, *_) = ask("quagga", mode="docs").hits
    assert len(asked) == len(few), "by no statement of its own"
    assert [(one.qualified_name, one.path) for one in hit.code] == [
        ("server.Server", "src/server.py"),
        ("widget.resize_widget", "src/widget.py"),
    ]
    assert [(one.qualified_name, one.line, one.anchor) for one in hit.literals] == [("guide.shelf", 2, "quagga")]
    code = in_block(ask("resize_widget"), "code")[0]
    assert [one.path for one in code.related] == ["docs/beast.md"]
    assert in_block(ask("resize_widget", related=0), "code")[0].related == ()

    client = signed_in(ada)
    found = client.post("/api/search", {"query": "quagga", "kinds": ["doc"]}, content_type="application/json").json()
    (item,) = found["items"]
    assert [one["qualified_name"] for one in item["related_symbols"]] == ["server.Server", "widget.resize_widget"]
    assert [one["written"] for one in item["named_in_code"]] == ["../docs/beast.md#quagga"]
    assert client.get(item["related_symbols"][0]["url"]).status_code == 200
    page = client.get("/search?q=quagga&kind=doc").content.decode()
    assert f'<a href="{item["related_symbols"][0]["url"]}"><code>server.Server</code></a>' in page
    assert "<code>guide.shelf</code></a> (src/guide.py:2)" in page
    page = client.get("/search?q=resize_widget&kind=code").content.decode()
    assert "docs/beast.md" in page


def test_an_option_is_no_name_of_a_symbol(kit: Any) -> None:
    files = {
        "cli.md": f"# Commands\n\n{'Words about other things. ' * 40}\n\nGive `--database` a name.\n",
        **{f"more/{n}.md": f"# Part {n}\n\nNothing of the kind, {n} times.\n" for n in range(9)},
        "src/store.py": 'class Database:\n    """Of rows."""\n\n    def close(self) -> None:\n        """End it."""\n',
    }
    ask = kit(files)
    assert ask("--database", merged=True).hits[0].path == "cli.md"
    assert ask("Database", merged=True).hits[0].path == "src/store.py"
