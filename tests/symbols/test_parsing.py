"""Symbols of each language: kinds, names, signatures, doc comments, lines, references, imports."""

from __future__ import annotations

import pytest

from apps.symbols.languages import GRAMMARS, language_of
from apps.symbols.parsing import parse_code, units
from apps.symbols.values import NotParsed, ParsedCode, Symbol


def parse(text: str, path: str) -> ParsedCode:
    code = parse_code(text, path)
    assert isinstance(code, ParsedCode)
    return code


def by_name(code: ParsedCode) -> dict[str, Symbol]:
    return {symbol.qualified_name: symbol for symbol in code.symbols}


PYTHON = '''"""Money."""
import os.path as p
from . import rates
from .tax import vat as tax, levy

@register("x")
class Bill(Base, models.Model[int]):
    """A bill."""

    total: int = 0

    def pay(self, amount: int = 1) -> str:
        """Pays."""
        self.check()
        return tax(amount)

def _hidden():
    def inner(): pass

RATE = 3
'''


def test_python_symbols() -> None:
    code = parse(PYTHON, "src/pay/bill.py")
    symbols = by_name(code)
    assert [(symbol.kind, symbol.qualified_name) for symbol in code.symbols] == [
        ("module", "pay.bill"),
        ("class", "pay.bill.Bill"),
        ("field", "pay.bill.Bill.total"),
        ("method", "pay.bill.Bill.pay"),
        ("function", "pay.bill._hidden"),
        ("function", "pay.bill._hidden.inner"),
        ("constant", "pay.bill.RATE"),
    ]
    pay = symbols["pay.bill.Bill.pay"]
    assert (pay.signature, pay.doc, pay.start_line, pay.end_line) == (
        "def pay(self, amount: int = 1) -> str",
        "Pays.",
        12,
        15,
    )
    bill = symbols["pay.bill.Bill"]
    assert (bill.start_line, bill.doc) == (6, "A bill.")
    assert PYTHON.encode()[bill.start_byte : bill.end_byte].startswith(b"@register")
    assert pay.exported and bill.exported
    assert not symbols["pay.bill._hidden"].exported and not symbols["pay.bill._hidden.inner"].exported
    assert code.symbols[0].doc == "Money."
    references = {(entry.kind, entry.qualifier, entry.name, entry.line) for entry in code.references}
    assert {
        ("inherits", "", "Base", 7),
        ("inherits", "models", "Model", 7),
        ("calls", "self", "check", 14),
        ("calls", "", "tax", 15),
        ("calls", "", "register", 6),
    } <= references
    assert [(entry.module, entry.member, entry.local, entry.line) for entry in code.imports] == [
        ("os.path", "", "p", 2),
        (".", "rates", "rates", 3),
        (".tax", "vat", "tax", 4),
        (".tax", "levy", "levy", 4),
    ]


def test_typescript_symbols() -> None:
    text = (
        'import x, { y as z } from "./m";\n'
        "/** Makes a server. */\n"
        "export const createServer = async (port: number) => {\n  z.listen(port);\n};\n"
        "export default class Watcher<T> extends Emitter<T> implements Closable {\n"
        "  private stopped = false;\n"
        "  close(): void { this.stop(); }\n"
        "}\n"
        "export interface Options extends Base { root: string }\n"
        "export type Mode = 'a' | 'b';\n"
        "export enum Level { Low }\n"
        "declare namespace NS { function deep(): void }\n"
        "const { s } = require('q');\n"
    )
    code = parse(text, "packages/vite/server/index.ts")
    symbols = by_name(code)
    assert symbols["server.createServer"].kind == "function"
    assert symbols["server.createServer"].doc == "Makes a server."
    assert symbols["server.createServer"].signature == "createServer = async (port: number) =>"
    assert symbols["server.Watcher.close"].kind == "method"
    assert not symbols["server.Watcher.stopped"].exported
    assert [symbols[f"server.{name}"].kind for name in ("Options", "Mode", "Level", "NS", "NS.deep")] == [
        "interface",
        "type",
        "enum",
        "namespace",
        "function",
    ]
    assert {(entry.kind, entry.name) for entry in code.references} >= {
        ("inherits", "Emitter"),
        ("inherits", "Closable"),
        ("inherits", "Base"),
        ("calls", "listen"),
        ("calls", "stop"),
    }
    assert {(entry.module, entry.member, entry.local) for entry in code.imports} == {
        ("./m", "default", "x"),
        ("./m", "y", "z"),
        ("q", "s", "s"),
    }


def test_go_symbols() -> None:
    text = (
        'package pool\n\nimport (\n\tf "fmt"\n\t"os"\n)\n\n// Pool keeps\n// connections.\n'
        "type Pool struct {\n\tBase\n\tsize int\n}\n\ntype Closer interface {\n\tClose(now bool) error\n}\n\n"
        "func (p *Pool) Acquire(n int) error { return f.Errorf(os.Args[0]) }\n\nfunc New() *Pool { return nil }\n\n"
        "const A, b = 1, 2\n"
    )
    symbols = by_name(parse(text, "internal/pool/pool.go"))
    assert symbols["pool.Pool"].doc == "Pool keeps\nconnections."
    assert symbols["pool.Pool.Acquire"].signature == "func (p *Pool) Acquire(n int) error"
    assert symbols["pool.Closer.Close"].kind == "method"
    assert symbols["pool.A"].exported and not symbols["pool.b"].exported
    assert parse(text, "pool_test.go").symbols[1].test


def test_rust_symbols() -> None:
    text = (
        "use crate::store::{Row, Table as T};\n/// A cache.\npub struct Cache<K> { size: usize }\n"
        "impl Store for Cache<u8> {\n    fn get(&self, key: u8) -> u8 { self.find(key) }\n}\n"
        "pub trait Store: Base { fn get(&self, key: u8) -> u8; }\n"
    )
    code = parse(text, "src/cache/mod.rs")
    symbols = by_name(code)
    assert symbols["cache::Cache"].doc == "A cache."
    assert symbols["cache::Cache::get"].kind == "method"
    assert symbols["cache::Cache::get"].exported
    assert ("inherits", "Store", "Cache") in {(entry.kind, entry.name, entry.subject) for entry in code.references}
    assert [(entry.module, entry.member, entry.local) for entry in code.imports] == [
        ("crate::store", "Row", "Row"),
        ("crate::store", "Table", "T"),
    ]


def test_java_symbols() -> None:
    text = (
        "package a.b;\nimport c.d.E;\n/** A shop. */\npublic class Shop extends Base implements Open {\n"
        "  private static final int MAX = 1;\n  public Shop(int n) {}\n"
        "  public String sell(int n) { return this.count(n); }\n}\n"
    )
    symbols = by_name(parse(text, "src/a/b/Shop.java"))
    assert symbols["a.b.Shop"].doc == "A shop."
    assert symbols["a.b.Shop.MAX"].kind == "constant"
    assert symbols["a.b.Shop.Shop"].kind == "constructor"
    assert symbols["a.b.Shop.sell"].signature == "public String sell(int n)"


def test_key_keeps_through_a_body_edit_and_changes_with_the_signature() -> None:
    def key(text: str) -> bytes:
        return by_name(parse(text, "a.py"))["a.f"].key("a.py")

    assert key("def f(a): return 1\n") == key("# moved down\n\ndef f(a):\n    return 2\n")
    assert key("def f(a): return 1\n") != key("def f(a, b): return 1\n")


@pytest.mark.parametrize(
    "name", ["a.pyi", "a.tsx", "a.mts", "a.cts", "a.jsx", "a.mjs", "a.cjs", "A.GO", "b.rs", "c.java"]
)
def test_every_extension_has_a_language(name: str) -> None:
    assert language_of(name)
    assert isinstance(parse_code("", name), ParsedCode)


def test_files_of_no_language_say_so() -> None:
    code = parse_code("x", "notes.txt")
    assert isinstance(code, NotParsed) and code.reason == "unknown_language"


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name + grammar.extensions[0])
@pytest.mark.parametrize("text", ["", "\n", "(" * 20_000, "}{" * 500, "é" * 100, '"' + "a" * 100_000, "\ufffd\u2028 x"])
def test_hostile_text_never_raises(grammar: object, text: str) -> None:
    extension = grammar.extensions[0]  # type: ignore[attr-defined]
    assert parse_code(text, f"a{extension}")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("class Bill:\n    def pay(self):", "a.py"),
        ("class Bill { pay(a: number", "a.ts"),
        ("class Bill { pay(a", "a.js"),
        ("package a\ntype Bill struct{}\nfunc (b Bill) pay(", "a.go"),
        ("struct Bill;\nimpl Bill { fn pay(", "a.rs"),
        ("class Bill { int pay(", "A.java"),
    ],
)
def test_code_that_ends_anywhere_never_raises(text: str, path: str) -> None:
    for end in range(len(text) + 1):
        assert isinstance(parse_code(text[:end], path), ParsedCode)


def test_a_syntax_error_costs_its_place_only() -> None:
    code = parse("def good(): pass\n\ndef bad(:\n\ndef also_good(): pass\n", "a.py")
    assert {"a.good", "a.also_good"} <= set(by_name(code))
    assert code.error_line == 3


def test_minified_code_is_passed_over_and_long_data_lines_are_not() -> None:
    minified = parse_code("function a(b){return b}" * 5000, "a.js")
    assert isinstance(minified, NotParsed) and minified.reason == "minified"
    assert isinstance(parse_code("x = 1\n" * 2000 + "y = '" + "a" * 8000 + "'\n", "a.py"), ParsedCode)


def test_generated_code_is_marked() -> None:
    assert parse("// Code generated by protoc. DO NOT EDIT.\npackage a\n", "a.go").generated


def test_units_are_top_level_symbols_with_members() -> None:
    tree = units(parse(PYTHON, "a.py"))
    assert [(unit.name, [child.name for child in unit.children]) for unit in tree] == [
        ("Bill", ["total", "pay"]),
        ("_hidden", ["inner"]),
        ("RATE", []),
    ]


@pytest.mark.parametrize(
    ("literal", "said"),
    [
        ('"""Plain."""', "Plain."),
        ("'''Single.'''", "Single."),
        ('"One line."', "One line."),
        ('"""An \\"escape\\" \\u00e4."""', 'An "escape" \u00e4.'),
        ('r"""Raw \\d."""', "Raw \\d."),
        ('b"""Bytes."""', ""),
        ('f"""Not {plain}."""', ""),
        ('"""Two""" " parts."', ""),
    ],
)
def test_python_docstrings_are_what_the_literal_says(literal: str, said: str) -> None:
    code = parse(f"# a comment\n\ndef run():\n    # another\n    {literal}\n", "a.py")
    assert by_name(code)["a.run"].doc == said


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("// One.\n//  Two.\n", "One.\n Two."),
        ("/** Only. **/\n", "Only."),
        ("/*\n * First.\n *   Second. */\n", "First.\n  Second."),
        ("/**\n\tno star\n */\n", "no star"),
        ("/*\n" + " * x\n" * 3_000 + " */\n", None),
    ],
)
def test_comments_lose_their_marks(comment: str, said: str | None) -> None:
    code = parse(f"{comment}export function run() {{}}\n", "a.ts")
    doc = by_name(code)["a.run"].doc
    assert doc == said if said is not None else len(doc) <= 2000


def test_a_signature_leaves_comments_out() -> None:
    code = parse("export const map: {\n  /** Maps. */\n  <A>(f: () => A): A\n} = dual(1)\n", "a.ts")
    assert by_name(code)["a.map"].signature == "map: { <A>(f: () => A): A }"
    code = parse('def match(pattern="/* or */"):\n    pass\n', "b.py")
    assert by_name(code)["b.match"].signature == 'def match(pattern="/* or */")'


def test_a_signature_over_several_lines_reads_as_if_on_one() -> None:
    code = parse("def run(\n    self,\n    names: dict[\n        str, int\n    ],\n) -> None:\n    pass\n", "a.py")
    assert by_name(code)["a.run"].signature == "def run(self, names: dict[str, int]) -> None"
