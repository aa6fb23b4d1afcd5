"""Code that is written otherwise than the plain way: what must be found in it, and what must not."""

from __future__ import annotations

import pytest

from apps.symbols.parsing import parse_code
from apps.symbols.values import NotParsed, ParsedCode, Symbol


def parse(text: str, path: str) -> ParsedCode:
    code = parse_code(text, path)
    assert isinstance(code, ParsedCode)
    assert code.error_line is None
    return code


def told(text: str, path: str) -> dict[str, Symbol]:
    return {symbol.qualified_name: symbol for symbol in parse(text, path).symbols if symbol.kind != "module"}


PYTHON_NAMES = """\
type Plain = int
type Pair[A, B = str] = tuple[A, B]
class Box[T: int = bool, *Ts = *tuple[int], **P = [int]]: ...
A = B = 3
x, (y, *z) = 1, (2, 3)
if TYPE_CHECKING:
    from a import b
    IN_IF = 1
elif 1:
    IN_ELIF = 1
else:
    IN_ELSE = 2
try:
    FAST = True
except ImportError:
    SLOW = False
class K:
    a, b = 1, 2
    if 1:
        c = 3
    else:
        d = 4
def f():
    if 1:
        local = 1
for index in range(3):
    looped = 1
"""


def test_python_names_are_found_wherever_a_module_or_class_sets_them() -> None:
    symbols = told(PYTHON_NAMES, "m.py")
    wanted = "Plain Pair Box A B x y z IN_IF IN_ELIF IN_ELSE FAST SLOW K K.a K.b K.c K.d f"
    assert list(symbols) == [f"m.{name}" for name in wanted.split()]
    assert symbols["m.Pair"].signature == "type Pair[A, B = str]"
    assert symbols["m.Box"].signature == "class Box[T: int = bool, *Ts = *tuple[int], **P = [int]]"
    assert {symbols[f"m.{name}"].kind for name in ("Plain", "Pair")} == {"type"}
    assert symbols["m.B"].start_line == 4


@pytest.mark.parametrize(
    ("text", "exported"),
    [
        ("def a(): pass\ndef _b(): pass\n", {"a"}),
        ("__all__ = ['_b']\ndef a(): pass\ndef _b(): pass\n", {"_b"}),
        ("__all__: list[str] = [\n'a',  # 1\n]\n__all__ += ('_b',)\ndef a(): pass\ndef _b(): pass\nc=1\n", {"a", "_b"}),
        ("from x import *\n__all__ = ['_b', *x.__all__]\ndef a(): pass\ndef _b(): pass\n", {"a", "_b"}),
        ("__all__ = ['K']\nclass K:\n  def m(self): pass\n  def _n(self): pass\nclass L:\n  x = 1\n", {"K", "K.m"}),
    ],
)  # fmt: skip
def test_python_all_says_what_is_exported(text: str, exported: set[str]) -> None:
    found = {name.removeprefix("m.") for name, symbol in told(text, "m.py").items() if symbol.exported}
    assert found - {"__all__"} == exported


@pytest.mark.parametrize(
    ("path", "text", "signature"),
    [
        ("a.py", "class A:  # noqa: D101\n    x = 1\n", "class A"),
        ("a.py", 'def f(\n    a: str = "# no",  # a\n b=1,\n):\n  # first\n  pass\n', 'def f(a: str = "# no", b=1)'),
        ("a.go", "package a\nfunc F(\n\ta int, // first\n\tb string,\n) {\n}\n", "func F(a int, b string)"),
        ("a.ts", "function f(\n a = '//x', // the a\n b: number,\n) {}\n", "function f(a = '//x', b: number)"),
        ("a.rs", "fn f<'a>(\n    a: &'a str, // the a\n    b: u8,\n) {}\n", "fn f<'a>(a: &'a str, b: u8)"),
        ("a.rs", "macro_rules! m {\n    ($x:expr) => { $x };\n}\n", "macro_rules! m"),
        ("A.java", "enum A { B(1, 2) }\n", "enum A"),
        ("a.go", 'package a\ntype T struct {\n\tName string `json:"name"` // tag\n}\n', "T struct"),
    ],
)  # fmt: skip
def test_a_signature_holds_neither_comment_nor_body(path: str, text: str, signature: str) -> None:
    assert next(iter(told(text, path).values())).signature == signature


def test_a_comment_that_changes_keeps_the_keys() -> None:
    text = "class A:  # one\n    def m(  # two\n        self,\n    ):  # three\n        return 1\n"
    other = text.replace("one", "eins").replace("two", "zwei").replace("three", "drei")
    assert [one.key("a.py") for one in parse(text, "a.py").symbols] == [
        one.key("a.py") for one in parse(other, "a.py").symbols
    ]


@pytest.mark.parametrize(
    ("path", "text", "docs"),
    [
        ("a.go", "package a\nconst (\n\tA = 1 // of A\n\tB = 2\n\t// of C\n\tC = 3\n)\n", ["", "", "of C"]),
        ("a.go", "package a\n// Says F.\n//\n//go:noinline\n//nolint:all\nfunc F() {}\n", ["Says F."]),
        ("a.ts", "const a = 1; // of a\nfunction f() {}\n", ["", ""]),
        ("a.ts", "interface I { /** of a */ a: string; /** of b */ b: string }\n", ["", "of a", "of b"]),
        ("a.ts", "class A {\n  /** Says m. */\n  @On('x')\n  @Off\n  m() {}\n}\n", ["", "Says m."]),
        ("a.rs", "/// One.\n/// Two.\n#[derive(Debug)]\n#[serde(rename = \"x\")]\npub struct A;\n", ["One.\nTwo."]),
        ("a.rs", "fn a() {} // of a\nfn b() {}\n", ["", ""]),
    ],
)  # fmt: skip
def test_a_doc_comment_is_that_of_its_symbol(path: str, text: str, docs: list[str]) -> None:
    assert [symbol.doc for symbol in told(text, path).values()] == docs


@pytest.mark.parametrize(
    ("path", "text", "doc"),
    [
        ("a.go", "//go:build linux\n\n// Package a helps.\npackage a\n", "Package a helps."),
        ("a.go", "// Copyright\n\npackage a\n", ""),
        ("a.rs", "//! Helps.\n//! More.\nuse x::y;\n", "Helps.\nMore."),
        ("a.py", "# c\n'''Helps.'''\n", "Helps."),
    ],
)
def test_what_a_file_says_of_itself(path: str, text: str, doc: str) -> None:
    assert parse(text, path).symbols[0].doc == doc


GO = """\
package a
type (
	S struct {
		Base
		*pkg.Other
		Gen[int]
		Name, alias string
		hidden int
	}
	I interface {
		Do()
		Gen[int]
	}
	Same (S)
)
const _ = 1
var _ I = (*S)(nil)
func (s *S) _() {}
func (*S) Run() {}
"""


def test_go_fields_embedding_and_blank_names() -> None:
    code = parse(GO, "a.go")
    found = {symbol.qualified_name: (symbol.kind, symbol.exported) for symbol in code.symbols[1:]}
    assert found == {
        "a.S": ("struct", True),
        "a.S.Name": ("field", True),
        "a.S.alias": ("field", False),
        "a.S.hidden": ("field", False),
        "a.I": ("interface", True),
        "a.I.Do": ("method", True),
        "a.Same": ("type", True),
        "a.S.Run": ("method", True),
    }
    inherits = [one for one in code.references if one.kind == "inherits"]
    bases = [(one.qualifier, one.name, code.symbols[one.symbol].name) for one in inherits]
    assert bases == [("", "Base", "S"), ("pkg", "Other", "S"), ("", "Gen", "S"), ("", "Gen", "I")]


def test_go_imports_are_called_as_their_packages() -> None:
    code = parse('package a\nimport (\n\t"x.org/kit/v2"\n\t"gopkg.in/yaml.v3"\n\tv3 "x.org/v3"\n\t"a/b"\n)\n', "a.go")
    assert [entry.local for entry in code.imports] == ["kit", "yaml", "v3", "b"]


TYPESCRIPT = """\
const a = 1, b = () => 2, hidden = 3;
export { a as first, b };
class Widget { #secret = 1; own = 2 }
export default Widget;
export const { des, from: renamed, deep: { low = 1 }, ...rest } = make();
export const [head, ...tail] = make();
export enum Dir { Up = 1, Down }
export namespace N.Inner { export function nf() {} }
declare namespace Amb { function h(): void; interface Q { a: string } }
declare module 'foo' { export function df(): void; interface Opts { z: 1 } }
import fs = require('fs');
import './side';
"""


def test_typescript_exports_members_and_namespaces() -> None:
    code = parse(TYPESCRIPT, "m.ts")
    exported = {symbol.qualified_name.removeprefix("m."): symbol.exported for symbol in code.symbols[1:]}
    assert exported == {
        "a": True, "b": True, "hidden": False, "Widget": True, "Widget.#secret": False, "Widget.own": True, "des": True,
        "renamed": True, "low": True, "rest": True, "head": True, "tail": True, "Dir": True, "Dir.Up": True,
        "Dir.Down": True, "N.Inner": True, "N.Inner.nf": True, "Amb": True, "Amb.h": True, "Amb.Q": True,
        "Amb.Q.a": True, "df": True, "Opts": True, "Opts.z": True,
    }  # fmt: skip
    assert code.exports == (("default", "Widget"), ("first", "a"))
    assert [symbol.name for symbol in code.symbols if symbol.kind == "namespace"] == ["Inner", "Amb"]
    assert [entry.local for entry in code.imports] == ["fs", ""]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("export default function () { return 1 }", ["function m.default"]),
        ("export default () => 1", ["function m.default"]),
        ("export default class { run() {} }", ["class m.default", "method m.default.run"]),
        ("export default function named() {}", ["function m.named"]),
        ("exports.LIMIT = 5; exports.run = () => 1;", ["constant m.LIMIT", "function m.run"]),
        ("function Shape() {}\nShape.prototype.area = function () {}\nShape.of = () => 1",
         ["function m.Shape", "method m.Shape.area", "method m.Shape.of"]),
        ("const a = require('./a'), { b, c: d } = require('./b'); var e = require('e').f;", []),
    ],
)  # fmt: skip
def test_javascript_definitions_by_export_and_assignment(text: str, names: list[str]) -> None:
    assert [f"{symbol.kind} {symbol.qualified_name}" for symbol in told(text, "m.js").values()] == names


def test_commonjs_exports_and_imports() -> None:
    code = parse(
        "const a = require('./a'), { b, c: d } = require('./b');\nvar e = require('e').f;\nrequire('./side');\n"
        "function shown() {}\nfunction inner() {}\nclass K {}\nfunction hidden() {}\n"
        "module.exports = { shown, other: inner };\nexports.K = K;\nimport('./late');\n",
        "m.js",
    )
    assert [(one.module, one.member, one.local) for one in code.imports] == [
        ("./a", "", "a"), ("./b", "b", "b"), ("./b", "c", "d"), ("e", "f", "e"), ("./side", "", ""), ("./late", "", ""),
    ]  # fmt: skip
    exported = {symbol.name for symbol in code.symbols[1:] if symbol.exported}
    assert exported == {"shown", "inner", "K"}
    assert "import" not in {reference.name for reference in code.references}


def test_elements_of_the_browser_are_no_calls() -> None:
    code = parse("export const A = () => <div><Panel.Head/><Child/></div>;\n", "a.tsx")
    assert [(one.qualifier, one.name) for one in code.references] == [("Panel", "Head"), ("", "Child")]


def test_a_generic_call_that_is_awaited_or_turned_keeps_its_name() -> None:
    code = parse("async function f() { await load<string>(1) }\n", "a.ts")
    assert [(one.qualifier, one.name) for one in code.references] == [("", "load")]
    code = parse("fn f() { Vec::<Option<u8>>::new(); parse::<u8>(); }\n", "a.rs")
    assert [(one.qualifier, one.name) for one in code.references] == [("Vec", "new"), ("", "parse")]


def test_rust_fields_variants_and_tests() -> None:
    text = (
        "pub struct S { pub a: u8, b: u8 }\npub enum E { A, B(u8), C { x: u8 } }\n"
        "#[cfg(test)]\nmod checks { fn helper() {} #[test] fn works() {} }\n"
        "#[tokio::test]\nasync fn waits() {}\nfn plain() {}\n"
    )
    symbols = told(text, "src/m.rs")
    assert {name: symbol.exported for name, symbol in symbols.items()} == {
        "m::S": True, "m::S::a": True, "m::S::b": False, "m::E": True, "m::E::A": True, "m::E::B": True,
        "m::E::C": True, "m::checks": False, "m::checks::helper": False, "m::checks::works": False, "m::waits": False,
        "m::plain": False,
    }  # fmt: skip
    tests = {name for name, symbol in symbols.items() if symbol.test}
    assert tests == {"m::checks", "m::checks::helper", "m::checks::works", "m::waits"}


def test_java_constants_of_enums_interfaces_and_annotations() -> None:
    text = (
        "package p;\npublic enum E { A, B(1) { void m() {} } }\npublic interface I { int K = 1; void a(); }\n"
        'public @interface N { String value() default "x"; }\n'
    )
    symbols = told(text, "p/E.java")
    assert [name for name, symbol in symbols.items() if symbol.exported] == [
        "p.E", "p.E.A", "p.E.B", "p.I", "p.I.K", "p.I.a", "p.N", "p.N.value",
    ]  # fmt: skip
    assert symbols["p.E.B"].signature == "B"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "__all__ = [\n" * 20_000),
        ("a.py", "def f(" + '"' * 1_000_000),
        ("a.js", "exports = {" + "\n" * 300_000),
        ("a.js", "module.exports = {\n\n" * 10_000),
        ("a.ts", "function f(a = '" + "\\'" * 500_000),
        ("a.rs", "fn f() { " + "a::<" * 200_000),
        ("a.rs", "#[a]\n" * 10_000 + "fn f() {}"),
    ],
)
def test_hostile_text_is_read_to_its_end(path: str, text: str) -> None:
    """Quadratic work would take minutes."""
    assert isinstance(parse_code(text, path), ParsedCode | NotParsed)
