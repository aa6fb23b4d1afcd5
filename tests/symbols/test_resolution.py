"""References inside one repository: what resolves, and what must not."""

from __future__ import annotations

from apps.symbols.parsing import parse_code
from apps.symbols.resolution import Edge, FileScope, Known, SymbolIndex
from apps.symbols.values import ParsedCode


def edges(files: dict[str, str]) -> dict[tuple[str, str, str], str | None]:
    """(kind, source, name as written) -> target, for a small repository."""
    parsed = [code for path, text in files.items() if isinstance(code := parse_code(text, path), ParsedCode)]
    known = [
        Known(
            key=(code.path, symbol.qualified_name),
            kind=symbol.kind,
            name=symbol.name,
            qualified_name=symbol.qualified_name,
            path=code.path,
            language=code.language,
            package=code.package,
            parent=(code.path, code.symbols[symbol.parent].qualified_name) if symbol.parent is not None else None,
            test=symbol.test,
        )
        for code in parsed
        for symbol in code.symbols
    ]
    index = SymbolIndex(known)
    found: list[Edge] = []
    for code in parsed:
        scope = FileScope(code.path, code.language, code.package, code.imports)
        held = [((code.path, code.symbols[entry.symbol].qualified_name), entry) for entry in code.references]
        found += [*index.resolve(scope, held), *index.imports(scope)]

    def show(key: object) -> str:
        path, qualified = key  # type: ignore[misc]
        return f"{path}:{qualified}"

    return {
        (edge.kind, show(edge.source), edge.name): show(edge.target) if edge.target is not None else None
        for edge in found
    }


def test_python_calls_imports_and_bases() -> None:
    found = edges(
        {
            "src/shop/base.py": "class Base:\n    def save(self): pass\ndef total(n): return n\n",
            "src/shop/bill.py": (
                "from .base import Base, total as add\nfrom shop import base\nimport os\n\n"
                "class Bill(Base):\n    def pay(self):\n        self.check()\n        add(1)\n        base.total(2)\n"
                "        os.getcwd()\n    def check(self): pass\n"
            ),
        }
    )
    pay = "src/shop/bill.py:shop.bill.Bill.pay"
    assert found["calls", pay, "self.check"] == "src/shop/bill.py:shop.bill.Bill.check"
    assert found["calls", pay, "add"] == "src/shop/base.py:shop.base.total"
    assert found["calls", pay, "base.total"] == "src/shop/base.py:shop.base.total"
    assert found["calls", pay, "os.getcwd"] is None
    assert found["inherits", "src/shop/bill.py:shop.bill.Bill", "Base"] == "src/shop/base.py:shop.base.Base"
    assert found["imports", "src/shop/bill.py:shop.bill", ".base.total"] == "src/shop/base.py:shop.base.total"
    assert found["imports", "src/shop/bill.py:shop.bill", "os"] is None


def test_retrieval_fact_115_an_external_package_is_no_local_name() -> None:
    found = edges(
        {
            "src/vite.ts": "export const vite = 1\nexport function helper() {}\n",
            "src/a.ts": "import x from 'vite'\nimport { helper } from 'vite'\nhelper(); x()\n",
        }
    )
    assert found["calls", "src/a.ts:a", "helper"] is None
    assert found["imports", "src/a.ts:a", "vite.helper"] is None
    assert found["calls", "src/a.ts:a", "x"] is None


def test_typescript_relative_imports_and_index_files() -> None:
    found = edges(
        {
            "src/server/index.ts": "export function createServer() {}\n",
            "src/cli.ts": "import { createServer } from './server'\nimport * as s from './server/index.js'\n"
            "export function run() { createServer(); s.createServer() }\n",
        }
    )
    target = "src/server/index.ts:server.createServer"
    assert found["calls", "src/cli.ts:cli.run", "createServer"] == target
    assert found["calls", "src/cli.ts:cli.run", "s.createServer"] == target


def test_go_packages() -> None:
    found = edges(
        {
            "internal/pool/pool.go": "package pool\nfunc New() {}\nfunc use() { other() }\n",
            "internal/pool/other.go": "package pool\nfunc other() {}\n",
            "main.go": 'package main\nimport "example.com/x/internal/pool"\nimport "fmt"\n'
            "func main() { pool.New(); fmt.New() }\n",
        }
    )
    assert found["calls", "internal/pool/pool.go:pool.use", "other"] == "internal/pool/other.go:pool.other"
    assert found["calls", "main.go:main.main", "pool.New"] == "internal/pool/pool.go:pool.New"
    assert found["calls", "main.go:main.main", "fmt.New"] is None


def test_rust_and_java_imports() -> None:
    found = edges(
        {
            "src/store.rs": "pub struct Row;\npub fn open() {}\n",
            "src/cache/mod.rs": "use crate::store::open;\nfn warm() { open(); }\n",
            "a/b/Shop.java": "package a.b;\npublic class Shop { public void sell() {} }\n",
            "a/c/Till.java": "package a.c;\nimport a.b.Shop;\nclass Till extends Shop { void go() { new Shop(); } }\n",
        }
    )
    assert found["calls", "src/cache/mod.rs:cache::warm", "open"] == "src/store.rs:store::open"
    assert found["inherits", "a/c/Till.java:a.c.Till", "Shop"] == "a/b/Shop.java:a.b.Shop"
    assert found["calls", "a/c/Till.java:a.c.Till.go", "Shop"] == "a/b/Shop.java:a.b.Shop"


def test_a_name_that_two_files_bear_stays_unresolved() -> None:
    found = edges(
        {
            "a.py": "def twice(): pass\n",
            "b.py": "def twice(): pass\n",
            "c.py": "def f(x):\n    twice()\n    x.twice()\n",
        }
    )
    assert found["calls", "c.py:c.f", "twice"] is None
    assert found["calls", "c.py:c.f", "x.twice"] is None


def test_go_methods_belong_to_their_type_and_are_no_functions_of_the_package() -> None:
    found = edges(
        {
            "log/log.go": "package log\ntype Part struct{}\nfunc (p *Part) Print() { p.Print() }\n",
            "log/other.go": "package log\nfunc (p *Part) More() {}\nfunc Print() {}\n",
            "log/third.go": "package log\nfunc Use() { Part.More(); More() }\n",
            "main.go": 'package main\nimport "x/log"\nfunc main() { log.Print() }\n',
        }
    )
    assert found["calls", "main.go:main.main", "log.Print"] == "log/other.go:log.Print"
    assert found["calls", "log/third.go:log.Use", "Part.More"] == "log/other.go:log.Part.More"
    assert found["calls", "log/third.go:log.Use", "More"] is None


def test_a_bare_name_without_declaration_or_import_is_local() -> None:
    found = edges(
        {
            "src/delay.ts": "export function delay() {}\n",
            "src/repeat.ts": "import { x } from './x'\nexport function repeat(o) { const { delay } = o; delay() }\n",
            "a/tool.py": "def helper(): pass\n",
            "a/user.py": "def use(helper): helper()\n",
        }
    )
    assert found["calls", "src/repeat.ts:repeat.repeat", "delay"] is None
    assert found["calls", "a/user.py:a.user.use", "helper"] is None
