"""Valid TypeScript and JavaScript that the grammars do not know is no syntax error, and its symbols are found."""

from __future__ import annotations

import pytest

from apps.symbols.languages.ecmascript_repairs import prepared, repaired
from apps.symbols.parsing import parse_code
from apps.symbols.values import ParsedCode

VALID = {
    "variance": ("export interface Cache<in out Key, out A = never> extends Pipeable {\n  size: number\n}\n", "Cache"),
    "variance after a comment": ("export type F<\n  /** why */\n  in A extends B,\n> = (a: A) => void\n", "F"),
    "const parameter": ("export function list<const T extends unknown[]>(of: T): T { return of }\n", "list"),
    "call signature after a member": (
        "export const of: {\n  (n: number): <A>(a: A) => B<A>\n  /** Both. */\n  <A>(a: A, n: number): Box<A>\n} = 1\n",
        "of",
    ),
    "call signature over lines": ("type M = {\n  (a: X<Y[A]>): Z<A>\n  <\n    B extends A\n  >(b: B): Z<B>\n}\n", "M"),
    "member called in": ('interface P {\n  name: string\n  in: "query" | "path"\n}\n', "P"),
    "tag with a type": ("export const rows = sql<{ id: string }>`SELECT id FROM ${table}`.pipe(run)\n", "rows"),
    "types of a module": ('export type * from "./a"\nexport const one = 1\n', "one"),
    "global in a module": (
        'declare module "a" {\n    global {\n        interface Buffer { a: 1 }\n    }\n}\n',
        "Buffer",
    ),
    "default export without body": ("export default function (): { a: string };\nexport declare const b: 1;\n", "b"),
    "alias that is a keyword": ("const _null = 1;\nexport { _null as null, _null as function };\n", "_null"),
    "imported type with arguments": ('export declare function s<T>(a: T): import("../O").O<T>;\n', "s"),
    "parameter called using": ("interface N {\n  make(using: U, all: R<O>): U;\n}\n", "make"),
}


@pytest.mark.parametrize("case", VALID)
def test_valid_code_is_read_without_error(case: str) -> None:
    text, name = VALID[case]
    code = parse_code(text, "a.ts")
    assert isinstance(code, ParsedCode)
    assert code.error_line is None
    assert name in {symbol.name for symbol in code.symbols}


def test_what_is_told_is_what_the_file_says() -> None:
    code = parse_code(
        "// Chunks in order, out of it, in time.\nexport interface Chunk<out A> extends Box<A> {}\n"
        "export default function (): void;\ninterface P { a: 1\n  in: 2\n}\n",
        "a.ts",
    )
    assert isinstance(code, ParsedCode)
    assert [symbol.name for symbol in code.symbols] == ["a", "Chunk", "P", "a", "in"]
    assert code.symbols[1].signature == "interface Chunk<out A> extends Box<A>"
    assert code.symbols[1].doc == "Chunks in order, out of it, in time."


def test_elements_are_no_call_signatures() -> None:
    text = "export const Page = () => (\n  <Box>\n    <A>one</A>\n    <B, of={1} />\n  </Box>\n)\n"
    code = parse_code(text.replace("<B,", "<B"), "a.tsx")
    assert isinstance(code, ParsedCode) and code.error_line is None


@pytest.mark.parametrize(
    "text",
    ["if (a\n    < b) {}\n", "const x = a\n  <b\n", "f(a, in_, out)\n", "for (const x of y, z) {}\n"],
)
def test_common_code_is_parsed_as_it_is(text: str) -> None:
    assert prepared(text.encode(), has_tags=False) == text.encode()


def test_errors_stay_errors_and_what_stands_around_them_is_read() -> None:
    code = parse_code("interface Cache<in out Key> {}\nlet x = (1;\n\nexport function good() {}\n", "a.ts")
    assert isinstance(code, ParsedCode)
    assert code.error_line == 2
    assert {"Cache", "good"} <= {symbol.name for symbol in code.symbols}


@pytest.mark.parametrize(
    "text", ["<in " * 20_000, "\n <A" * 20_000, ">`" * 50_000, "import('a')<" * 20_000, "/*" * 9_000]
)
def test_hostile_text_keeps_its_length(text: str) -> None:
    assert len(repaired(text.encode())) == len(text.encode())
    assert len(prepared(text.encode(), has_tags=False)) == len(text.encode())
