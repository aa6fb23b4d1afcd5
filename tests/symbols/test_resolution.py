"""References inside one repository: what resolves, and what must not."""

# ruff: noqa: E501 - each case is one line

from __future__ import annotations

import pytest

from apps.symbols.layout import CONFIGURATIONS, read_layout
from apps.symbols.modules import FileScope
from apps.symbols.parsing import parse_code
from apps.symbols.resolution import Edge, Known, SymbolIndex
from apps.symbols.values import ParsedCode


def edges(files: dict[str, str]) -> dict[tuple[str, str, str], str | None]:
    """(kind, source, name as written) -> target, for a small repository."""
    sources = {path: text for path, text in files.items() if path.rsplit("/", 1)[-1] not in CONFIGURATIONS}
    parsed = [code for path, text in sources.items() if isinstance(code := parse_code(text, path), ParsedCode)]
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
    index = SymbolIndex(
        known,
        layout=read_layout({path: text for path, text in files.items() if path.rsplit("/", 1)[-1] in CONFIGURATIONS}),
        bindings={code.path: code.imports for code in parsed},
        exports={code.path: dict(code.exports) for code in parsed},
    )
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


@pytest.mark.parametrize(
    "files",
    [
        {"pkg/__init__.py": "from .core import f\n", "pkg/core.py": "def f(): pass\n", "a.py": "from pkg import f\nf()\n"},
        {"pkg/__init__.py": "from .core import *\n", "pkg/core.py": "def f(): pass\n", "a.py": "import pkg\npkg.f()\n"},
        {
            "pkg/__init__.py": "from .mid import g as f\n",
            "pkg/mid.py": "from pkg.deep.core import h as g\n",
            "pkg/deep/core.py": "def h(): pass\n",
            "a.py": "from pkg import f as x\nx()\n",
        },
        {"pkg/sub/core.py": "def f(): pass\n", "a.py": "import pkg.sub.core\npkg.sub.core.f()\n"},
        {"pkg/__init__.py": "", "pkg/core.py": "def f(): pass\n", "a.py": "import pkg.other, pkg\npkg.core.f()\n"},
        {
            "back/app/__init__.py": "",
            "back/app/core.py": "def f(): pass\n",
            "back/app/in/__init__.py": "",
            "back/app/in/user.py": "from app.core import f\nf()\n",
        },
        {"lib/core.ts": "export function f() {}", "lib/index.ts": "export * from './core'", "a.ts": "import { f } from './lib'\nf()"},
        {"core.ts": "export function f() {}", "mid.ts": "export { f as g } from './core'", "a.ts": "import { g } from './mid'\ng()"},
        {"core.ts": "function f() {}\nexport { f as g }", "a.ts": "import { g as h } from './core'\nh()"},
        {"core.ts": "export default function f() {}", "a.ts": "import other from './core'\nother()"},
        {"core.ts": "function f() {}\nexport default f", "m.ts": "export { default as q } from './core'", "a.ts": "import {q} from './m'\nq()"},
        {"core.js": "function f() {}\nmodule.exports = { g: f }", "a.js": "const { g: h } = require('./core')\nh()"},
        {"core.js": "exports.f = () => 1", "a.js": "var c = require('./core.js')\nfunction z() { c.f() }"},
        {"core.ts": "export namespace N { export function f() {} }", "a.ts": "import { N } from './core'\nN.f()"},
        {"x.service.ts": "export function f() {}", "x.ts": "export const y = 1", "a.ts": "import { f } from './x.service'\nf()"},
        {"a/B.java": "package p; class B { static void f() {} }", "C.java": "package q; import static p.B.f; class C { void g() { f(); } }"},
        {"a/B.java": "package p; class B { static void f() {} }", "C.java": "package q; import static p.B.*; class C { void g() { f(); } }"},
        {"src/a.rs": "pub fn f() {}", "src/lib.rs": "pub use self::a::f as g;", "src/b.rs": "use crate::g;\nfn z() { g(); }"},
        {"src/a.rs": "pub fn f() {}", "src/b.rs": "fn z() { crate::a::f(); }"},
        {"c/one-two/src/lib.rs": "pub fn f() {}", "c/three/src/lib.rs": "pub fn f() {}\nfn h() { one_two::f(); }",
         "c/three/src/b.rs": "use one_two::f as g;\nfn z() { g(); }"},
    ],
)  # fmt: skip
def test_an_import_is_followed_to_where_the_symbol_is_defined(files: dict[str, str]) -> None:
    calls = [target for (kind, source, _), target in edges(files).items() if kind == "calls" and "require" not in _]
    assert calls
    assert all(target and target.rpartition(":")[2][-1] in "fh" for target in calls), calls


GO_MOD = "// the kit\nmodule example.com/acme/kit/v2 // here\n\ngo 1.22\n"


def test_go_imports_follow_the_module_of_the_repository() -> None:
    files = {
        "go.mod": GO_MOD,
        "kit.go": "package kit\nfunc Root() {}\n",
        "go-util/util.go": "package util\nfunc Do() {}\n",
        "log/log.go": "package log\nfunc Print() {}\n",
        "store/store.go": "package store\nfunc Open() {}\n",
        "other/store/store.go": "package store\nfunc Shut() {}\n",
        "cmd/x/main.go": (
            'package main\nimport (\n"log"\n"example.com/acme/kit/v2"\n"example.com/acme/kit/v2/go-util"\n'
            '"github.com/redis/store"\nown "example.com/acme/kit/v2/store"\n)\n'
            "func main() { kit.Root(); util.Do(); log.Print(); store.Open(); own.Open(); own.Shut() }\n"
        ),
    }
    main = "cmd/x/main.go:main.main"
    found = {name: target for (kind, source, name), target in edges(files).items() if (kind, source) == ("calls", main)}
    assert found == {
        "kit.Root": "kit.go:kit.Root",
        "util.Do": "go-util/util.go:util.Do",
        "log.Print": None,
        "store.Open": None,
        "own.Open": "store/store.go:store.Open",
        "own.Shut": None,
    }


def test_go_methods_are_adopted_by_the_type_of_their_own_folder() -> None:
    files = {
        "a/x.go": "package main\ntype T struct{}\n",
        "b/x.go": "package main\nfunc (t *T) Run() {}\nfunc main() { T.Run() }\n",
        "b/y.go": "package main\ntype T struct{}\n",
    }
    assert edges(files)["calls", "b/x.go:main.main", "T.Run"] == "b/x.go:main.T.Run"


TSCONFIG = """{
  // where names lead
  "extends": "./tsconfig.base.json",
  "compilerOptions": { "strict": true, },
}"""
BASE = (
    '{"compilerOptions": {"baseUrl": ".", "paths": {"@/*": ["src/*"], "exact": ["src/one.ts"], "@/gen/*": ["gen/*"]}}}'
)


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("@/deep/util", "web/src/deep/util.ts"),
        ("exact", "web/src/one.ts"),
        ("@/gen/made", "web/gen/made.ts"),
        ("src/one", "web/src/one.ts"),
        ("@acme/tool", "packages/tool/src/index.ts"),
        ("@acme/tool/sub", "packages/tool/src/sub.ts"),
        ("vite", None),
        ("@/nothing", None),
        ("./one.css", None),
        ("../web/src/one.js", "web/src/one.ts"),
    ],
)
def test_typescript_imports_follow_the_configuration(module: str, target: str | None) -> None:
    body = "export function f() {}\n"
    files = {
        "web/tsconfig.json": TSCONFIG,
        "web/tsconfig.base.json": BASE,
        "web/package.json": '{"name": "web", "dependencies": {"vite": "^5", "@acme/tool": "*"}}',
        "packages/tool/package.json": '{"name": "@acme/tool", "main": "dist/index.js"}',
        "packages/tool/src/index.ts": body,
        "packages/tool/src/sub.ts": body,
        "web/src/deep/util.ts": body,
        "web/gen/made.ts": body,
        "web/src/one.ts": body,
        "web/vite.ts": body,
        "web/a.ts": f"import {{ f }} from '{module}'\nf()\n",
    }
    found = edges(files)["calls", "web/a.ts:a", "f"]
    assert (found and found.partition(":")[0]) == target


@pytest.mark.parametrize(
    "files",
    [
        {"src/app/redis.py": "def f(): pass\n", "src/app/main.py": "import redis\nredis.f()\n"},
        {"lib/json.py": "def f(): pass\n", "a.py": "import json\njson.f()\nfrom json import f\nf()\n"},
        {"a.py": "class K:\n    def join(self, x): pass\n", "b.py": "def g(x):\n    ', '.join(x)\n    x.join(1)\n"},
        {"a.ts": "export class K { parse() {} log() {} }", "b.ts": "export function g() { JSON.parse('1'); console.log(1) }"},
        {"A.java": "package p; class A { int max() { return 1; } }", "B.java": "package q; class B { void g() { Math.max(1); } }"},
        {"src/serde.rs": "pub fn f() {}", "src/b.rs": "use serde::f;\nfn z() { f(); }"},
        {"a/src/util.rs": "pub fn f() {}", "b/src/c.rs": "use crate::util::f;\nfn z() { f(); }"},
        {"style.ts": "export function f() {}", "a.ts": "import { f } from './style.css'\nf()"},
        {"x.ts": "export function f() {}", "a.ts": "import { f } from './x.service'\nf()"},
        {"a.ts": "import { f } from './b'\nf()", "b.ts": "export { f } from './a'"},
        {"a.py": "from b import f\nf()\n", "b.py": "from a import *\n"},
        {"net/http/h.go": "package http\nfunc F() {}\n", "m.go": 'package main\nimport "net/http"\nfunc main() { http.F() }\n'},
    ],
)  # fmt: skip
def test_what_leads_out_of_the_repository_is_no_local_symbol(files: dict[str, str]) -> None:
    found = edges(files)
    assert {target for (kind, _, _), target in found.items() if kind == "calls"} == {None}, found


def test_a_member_may_be_inherited_and_super_is_above() -> None:
    found = edges(
        {
            "base.py": "class Base:\n    def save(self): pass\n    def load(self): pass\n",
            "own.py": (
                "from base import Base\nclass Mid(Base):\n    pass\nclass Own(Mid):\n    def save(self):\n"
                "        super().save()\n        self.load()\n        self.save()\n        self.nothing()\n"
            ),
            "a.ts": "class A { run() {} }\nclass B extends A { run() { super.run(); this.run() } }",
        }
    )
    save = "own.py:own.Own.save"
    assert found["calls", save, "super.save"] == "base.py:base.Base.save"
    assert found["calls", save, "self.load"] == "base.py:base.Base.load"
    assert found["calls", save, "self.save"] == save
    assert found["calls", save, "self.nothing"] is None
    assert found["calls", "a.ts:a.B.run", "super.run"] == "a.ts:a.A.run"
    assert found["calls", "a.ts:a.B.run", "this.run"] == "a.ts:a.B.run"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", '{"compilerOptions": {"paths": [1]}}', '{"name": 1, "main": []}', "{" * 5000]
)
def test_a_configuration_that_cannot_be_read_says_nothing(text: str) -> None:
    files = {f"{folder}{name}": text for folder in ("", "web/") for name in CONFIGURATIONS}
    layout = read_layout({**files, "web/tsconfig.json": '{"extends": "./tsconfig.json"}'})
    assert list(layout.targets("web/a.ts", "x")) == []


@pytest.mark.parametrize(
    "text", ["/*" * 100_000, '"' + '\\"' * 100_000, "\n" * 200_000, "," + " " * 200_000, "[" * 200_000]
)
def test_a_hostile_configuration_says_nothing(text: str) -> None:
    """Quadratic work would take minutes."""
    layout = read_layout({"go.mod": text, "tsconfig.json": text, "package.json": text})
    assert layout.go == layout.aliases == ()
