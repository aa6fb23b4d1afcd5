"""Source files to rows: parsed at sync, kept by stable key, incremental by blob id, equal without documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.jobs.models import Job
from apps.repos.models import Repository, RepositoryFile
from apps.repos.models_code import CodeChunk, CodeEdge, CodeFile, CodeNode

SHOP = {
    "README.md": "# Shop\n\nUse `add_tax` and `Bill`.\n",
    "src/shop/base.py": (
        'class Base:\n    """All."""\n    def save(self):\n        return 1\n\ndef add_tax(n):\n    return n\n'
    ),
    "src/shop/bill.py": (
        "from shop.base import Base, add_tax\nimport os\n\nRATE = 3\n\nclass Bill(Base):\n"
        '    """A bill."""\n    def pay(self, n: int) -> int:\n        self.save()\n        os.getcwd()\n'
        "        return add_tax(n)\n"
    ),
    "web/app.ts": "export function start(port: number): void {\n  listen(port)\n}\n",
}


def edges(repository: Repository) -> set[tuple[Any, ...]]:
    rows = CodeEdge.objects.filter(repository=repository).select_related("source", "target")
    return {
        (
            edge.kind,
            edge.source.qualified_name,
            edge.target.qualified_name if edge.target else edge.written,
            edge.line,
            edge.confidence,
        )
        for edge in rows
    }


def test_repo_docs_10_1_every_source_file_becomes_nodes_edges_chunks_and_text(portal: Any, upstream: Any) -> None:
    upstream.commit(SHOP)
    repository, job = portal.synced(upstream)
    assert job.status == "success"
    nodes = {node.qualified_name: node for node in CodeNode.objects.filter(repository=repository)}
    assert {"shop.base", "shop.base.Base", "shop.base.Base.save", "shop.bill.Bill.pay", "app.start"} <= set(nodes)
    pay = nodes["shop.bill.Bill.pay"]
    assert (pay.kind, pay.signature, pay.start_line, pay.end_line) == (
        "method",
        "def pay(self, n: int) -> int",
        8,
        11,
    )
    assert pay.parent == nodes["shop.bill.Bill"]
    found = edges(repository)
    assert ("calls", "shop.bill.Bill.pay", "shop.base.add_tax", 11, 95) in found
    assert ("inherits", "shop.bill.Bill", "shop.base.Base", 6, 95) in found
    assert ("imports", "shop.bill", "shop.base.Base", 1, 95) in found
    assert ("calls", "shop.bill.Bill.pay", "os.getcwd", 10, 0) in found
    assert ("declares", "shop.bill.Bill", "shop.bill.Bill.pay", 8, 100) in found
    chunk = CodeChunk.objects.get(section_anchor=str(pay.pk))
    assert chunk.heading_path == ["shop", "bill", "Bill", "pay"] and chunk.source.startswith("    def pay")
    text = SHOP["src/shop/bill.py"].encode()
    assert text[chunk.start_byte : chunk.end_byte].decode() == chunk.source
    stored = RepositoryFile.objects.get(repository=repository, path="src/shop/bill.py")
    assert stored.text == SHOP["src/shop/bill.py"]


def test_an_edit_of_a_body_keeps_the_row_and_reads_that_file_only(portal: Any, upstream: Any) -> None:
    upstream.commit(SHOP)
    repository, _ = portal.synced(upstream)
    before = dict(CodeNode.objects.filter(repository=repository).values_list("qualified_name", "pk"))
    chunks = dict(CodeChunk.objects.filter(repository=repository).values_list("pk", "source"))
    upstream.commit({"src/shop/base.py": SHOP["src/shop/base.py"].replace("return n", "n += 1\n    return n")})
    portal.sync(repository)
    after = dict(CodeNode.objects.filter(repository=repository).values_list("qualified_name", "pk"))
    assert after == before
    kept = dict(CodeChunk.objects.filter(repository=repository).values_list("pk", "source"))
    assert len(set(chunks) & set(kept)) == len(chunks) - 1
    assert ("calls", "shop.bill.Bill.pay", "shop.base.add_tax", 11, 95) in edges(repository)


def test_edges_of_other_files_follow_what_changed(portal: Any, upstream: Any) -> None:
    upstream.commit(SHOP)
    repository, _ = portal.synced(upstream)
    upstream.commit({"src/shop/base.py": SHOP["src/shop/base.py"].replace("add_tax", "add_vat")})
    portal.sync(repository)
    found = edges(repository)
    assert ("calls", "shop.bill.Bill.pay", "add_tax", 11, 0) in found
    upstream.commit({"src/shop/base.py": SHOP["src/shop/base.py"]})
    portal.sync(repository)
    assert ("calls", "shop.bill.Bill.pay", "shop.base.add_tax", 11, 95) in edges(repository)
    upstream.commit({"src/shop/base.py": None})
    portal.sync(repository)
    assert not CodeNode.objects.filter(qualified_name__startswith="shop.base").exists()
    assert not CodeFile.objects.filter(path="src/shop/base.py").exists()
    assert ("inherits", "shop.bill.Bill", "Base", 6, 0) in edges(repository)


def test_incremental_equals_a_fresh_clone(portal: Any, upstream: Any, new_upstream: Any) -> None:
    upstream.commit(SHOP)
    repository, _ = portal.synced(upstream)
    upstream.commit(
        {
            "src/shop/base.py": SHOP["src/shop/base.py"].replace("class Base", "class Root"),
            "src/shop/more.py": (
                "from .bill import Bill\n\nclass Base(Bill):\n    def pay(self, n): return Bill.pay(self, n)\n"
            ),
        }
    )
    portal.sync(repository)
    upstream.commit({"src/shop/bill.py": SHOP["src/shop/bill.py"].replace("shop.base", ".more")})
    portal.sync(repository)
    fresh, _ = portal.synced(new_upstream("fresh").__class__(upstream.path), name="fresh")
    assert edges(fresh) == edges(repository)


def test_retrieval_fact_116_edges_are_equal_with_documents_off(portal: Any, upstream: Any) -> None:
    upstream.commit(SHOP)
    repository, _ = portal.synced(upstream)
    bare, _ = portal.synced(upstream, name="bare", exclude=["**/*.md"])
    assert not bare.documents.exists() and repository.documents.exists()
    assert edges(bare) == edges(repository)


def test_files_that_say_little_are_told(portal: Any, upstream: Any, items: Callable[[Job], dict[str, Any]]) -> None:
    upstream.commit(
        {
            "a.md": "# A\n",
            "bad.py": "def good():\n    return 1\n\ndef bad(:\n    pass\n",
            "min.js": "var a=1;" * 4000,
            "gen.go": "// Code generated by protoc. DO NOT EDIT.\npackage gen\n\nfunc Made() {}\n",
            "node_modules/x/i.js": "function hidden() {}\n",
        }
    )
    repository, job = portal.synced(upstream)
    told = {path: (item.state, item.reason, item.line) for path, item in items(job).items()}
    assert told["bad.py"][:2] == ("created", "syntax_error") and told["bad.py"][2] in (3, 4)
    assert told["min.js"] == ("skipped", "minified", None)
    assert told["gen.go"] == ("created", "generated", None)
    names = set(CodeNode.objects.filter(repository=repository).values_list("name", flat=True))
    assert {"good", "Made"} <= names and "hidden" not in names
    assert not CodeChunk.objects.filter(file__path="gen.go").exists()
    assert job.warnings == 0 and job.counters["discovered_files"] == 1
    upstream.commit({"a.md": "# B\n"})
    again = portal.sync(repository)
    assert items(again)["min.js"].reason == "minified" and items(again)["bad.py"].state == "unchanged"


@pytest.mark.parametrize("path", ["src/keys.py"])
def test_secrets_in_code_are_never_stored(portal: Any, upstream: Any, path: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    upstream.commit({path: f'TOKEN = "{secret[:40]}"\n\ndef use():\n    return "{secret[:40]}"\n'})
    repository, _ = portal.synced(upstream)
    stored = RepositoryFile.objects.get(repository=repository, path=path).text
    assert secret[:40] not in stored and "[redacted]" in stored
    assert not CodeChunk.objects.filter(source__contains=secret[:40]).exists()


PACKAGES = {
    "pkg/__init__.py": "from .core import run\n",
    "pkg/core.py": "def run():\n    pass\n",
    "pkg/other.py": "def run():\n    pass\n\ndef start():\n    pass\n",
    "use.py": "from pkg import run\n\ndef main():\n    run()\n",
    "web/tsconfig.json": '{"compilerOptions": {"paths": {"@/*": ["./src/*"]}}}',
    "web/src/lib/core.ts": "export function start() {}\nexport default class Widget {}\n",
    "web/src/lib/index.ts": "export { start, default as Made } from './core'\n",
    "web/src/app.ts": "import { start, Made } from '@/lib'\nexport function main() { start(); new Made() }\n",
    "web/other/lib/index.ts": "export function start() {}\n",
    "kit/go.mod": "module example.com/kit\n",
    "kit/log/log.go": "package log\n\nfunc Print() {}\n",
    "kit/main.go": 'package main\n\nimport "example.com/kit/log"\n\nfunc main() { log.Print() }\n',
}


def test_what_files_hand_on_is_followed_when_files_in_between_change(
    portal: Any, upstream: Any, new_upstream: Any
) -> None:
    def called(repository: Repository, holder: str) -> dict[str, str]:
        rows = CodeEdge.objects.filter(repository=repository, source__qualified_name=holder, kind="calls")
        return {edge.written: edge.target.file.path if edge.target else "" for edge in rows}

    upstream.commit(PACKAGES)
    repository, _ = portal.synced(upstream)
    assert called(repository, "use.main") == {"run": "pkg/core.py"}
    assert called(repository, "app.main") == {"start": "web/src/lib/core.ts", "Made": "web/src/lib/core.ts"}
    assert called(repository, "main.main") == {"log.Print": "kit/log/log.go"}
    steps: list[tuple[dict[str, str | None], str, str, str]] = [
        ({"pkg/__init__.py": "from .other import run\n"}, "use.main", "run", "pkg/other.py"),
        ({"pkg/__init__.py": "from .other import start as run\n"}, "use.main", "run", "pkg/other.py"),
        ({"pkg/__init__.py": "from .core import *\n"}, "use.main", "run", "pkg/core.py"),
        ({"pkg/__init__.py": "from elsewhere import run\n"}, "use.main", "run", ""),
        ({"pkg/__init__.py": None}, "use.main", "run", ""),
        (
            {"web/src/lib/core.ts": "export function start() {}\nclass Other {}\nexport default Other\n"},
            "app.main",
            "Made",
            "web/src/lib/core.ts",
        ),
        (
            {"web/tsconfig.json": '{"compilerOptions": {"paths": {"@/*": ["./other/*"]}}}'},
            "app.main",
            "start",
            "web/other/lib/index.ts",
        ),
        ({"kit/go.mod": "module example.com/renamed\n"}, "main.main", "log.Print", ""),
    ]
    for number, (change, holder, written, path) in enumerate(steps):
        upstream.commit(change)
        portal.sync(repository)
        assert called(repository, holder)[written] == path, change
        if number in {1, 5, 7}:
            fresh, _ = portal.synced(new_upstream("fresh").__class__(upstream.path), name=f"fresh{number}")
            assert edges(repository) == edges(fresh)
