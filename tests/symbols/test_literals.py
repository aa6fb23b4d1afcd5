"""String literals that name documents: `retrieval.md` facts 107 to 114, as far as they need no repository."""

from __future__ import annotations

import pytest

from apps.symbols.literals import find_documents
from apps.symbols.parsing import parse_code
from apps.symbols.values import DocumentLiteral, ParsedCode


def find(literal: str, *, raw: bool = False) -> list[DocumentLiteral]:
    return list(find_documents(literal, 1, 1, 0, raw=raw))


@pytest.mark.parametrize(
    ("literal", "path", "fragment"),
    [
        ('"../docs/guide.md#install"', "../docs/guide.md", "install"),
        ('"/docs/rooted.md"', "/docs/rooted.md", ""),
        ('"./notes.md?raw=1#top"', "./notes.md", "top"),
        ('"set%20up.md"', "set up.md", ""),
        ('"broken%zz.md"', "broken%zz.md", ""),
        ('"sub/b.mdx"', "sub/b.mdx", ""),
        ('"c.markdown"', "c.markdown", ""),
        ('"manual.rst"', "manual.rst", ""),
        ('"docs/部署.md"', "docs/部署.md", ""),
    ],
)
def test_retrieval_fact_108_paths(literal: str, path: str, fragment: str) -> None:
    (found,) = find(literal)
    assert (found.path, found.fragment, found.url) == (path, fragment, "")


def test_retrieval_fact_108_backslashes_are_slashes() -> None:
    assert find(r'"docs\\x.md"')[0].path == "docs/x.md"
    assert find(r'r"docs\x.md"', raw=True)[0].path == "docs/x.md"
    assert [entry.path for entry in find(r'"see\nREADME.md"')] == ["README.md"]


def test_retrieval_fact_109_addresses_are_given_whole() -> None:
    (found,) = find('"see https://example.com/remote.md#part"')
    assert (found.path, found.url) == ("", "https://example.com/remote.md#part")
    assert find('"//host/remote.md"') == []


@pytest.mark.parametrize(
    "literal",
    [
        '"checksum.md5"',
        '"blog/*.md"',
        "`docs/${lang}/guide.md`",
        '"docs/{lang}.md"',
        '"%s.md"',
        '"*.md"',
        '".md"',
        '"x.mdown"',
    ],
)
def test_retrieval_fact_112_no_document(literal: str) -> None:
    assert find(literal) == []


def test_retrieval_fact_113_two_in_one_literal_have_their_own_columns() -> None:
    first, second = find('"read a.md and b/c.md"')
    assert (first.path, first.column) == ("a.md", 7)
    assert (second.path, second.column) == ("b/c.md", 16)


LANGUAGES = {
    "a.py": ["v = {}", "X = {}", "f({})", "def g(a={}): pass", "class C:\n    a = {}"],
    "a.go": [
        "package a\nvar v = {}",
        "package a\nconst X = {}",
        "package a\nvar q = f({})",
        "package a\nfunc g() string {{ return {} }}",
        "package a\nvar s = S{{A: {}}}",
    ],
    "a.ts": ["let v = {}", "const X = {}", "f({})", "function g(a = {}) {{}}", "class C {{ a = {} }}"],
    "a.tsx": ["let v = {}", "const X = {}", "f({})", "function g(a = {}) {{}}", "const e = <A href={} />"],
    "a.js": ["let v = {}", "const X = {}", "f({})", "function g(a = {}) {{}}", "class C {{ a = {} }}"],
    "a.rs": [
        "static V: &str = {};",
        "const X: &str = {};",
        "fn g() {{ f({}) }}",
        "fn g() {{ let a = {}; }}",
        "fn g() {{ S {{ a: {} }} }}",
    ],
    "A.java": [
        "class A {{ String v = {}; }}",
        "class A {{ static final String X = {}; }}",
        "class A {{ void g() {{ f({}); }} }}",
        "class A {{ String g() {{ return {}; }} }}",
        "class A {{ void g() {{ String a = {}; }} }}",
    ],
}


@pytest.mark.parametrize(("path", "form"), [(path, form) for path, forms in LANGUAGES.items() for form in forms])
def test_retrieval_fact_114_every_language_and_position(path: str, form: str) -> None:
    text = form.format('"../docs/guide.md#install"')
    code = parse_code(text, path)
    assert isinstance(code, ParsedCode)
    (found,) = code.literals
    assert (found.path, found.fragment) == ("../docs/guide.md", "install")
    line = text.split("\n")[found.line - 1]
    assert line[found.column - 1 :].startswith("../docs/guide.md")


def test_the_enclosing_symbol_holds_the_literal() -> None:
    code = parse_code('class A:\n    def f(self):\n        return "é a.md"\n', "m.py")
    assert isinstance(code, ParsedCode)
    (found,) = code.literals
    assert code.symbols[found.symbol].qualified_name == "m.A.f"
    assert found.column == 19
