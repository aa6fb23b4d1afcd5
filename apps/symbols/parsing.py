"""Source text to symbols, references and imports, by one query over one syntax tree."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

from tree_sitter import Node

from apps.symbols.languages import grammar_for
from apps.symbols.languages.base import Grammar, text_of
from apps.symbols.references import Places, literals, references
from apps.symbols.values import NotParsed, ParsedCode, Symbol, SymbolKind, Unit

MAX_CODE_BYTES = 8_388_608
MINIFIED_AVERAGE_CHARS = 400
_GENERATED = re.compile(
    r"^[ \t]*(?://|#|/\*|\*|--).{0,80}?"
    r"(?:@generated\b|code generated .{0,80}do not edit|auto-?generated.{0,60}do not (?:edit|modify))",
    re.IGNORECASE | re.MULTILINE,
)


_VALUES = frozenset({"variable", "constant"})
_RUN = frozenset({"function", "method", "constructor"})
_SOFT = _VALUES | {"field"}
"""Where two patterns meet in one place (a variable that holds a function) the more telling kind stays."""


_symbol: Callable[[tuple[SymbolKind, str, str, str, str, int, int, int, int, int | None, bool, bool]], Symbol] = (
    partial(tuple.__new__, Symbol)
)
"""As ``Symbol(...)`` at a third of its price."""


class _Definition(NamedTuple):
    start: int
    backwards: int
    """Minus the end: what encloses others comes before them."""
    name_start: int
    kind: SymbolKind
    name: str
    node: Node
    outer: Node


def parse_code(text: str, path: str) -> ParsedCode | NotParsed:
    """The symbols of one file. ``text`` has LF line ends. Never raises for content.

    A file with syntax errors is indexed as far as the grammar recovers; ``error_line`` names the first error.
    """
    grammar = grammar_for(path)
    if grammar is None:
        return NotParsed("unknown_language", "no grammar for this file name")
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_CODE_BYTES:
        return NotParsed("too_large", f"{len(data)} bytes; symbols are read up to {MAX_CODE_BYTES}")
    if _is_minified(text):
        return NotParsed("minified", "very long lines: minified code has no symbols worth finding")
    root, parsed = _tree(grammar, data)
    return _Reader(grammar, path, text, data, parsed, root).read()


def _tree(grammar: Grammar, data: bytes) -> tuple[Node, bytes]:
    """The syntax tree with the fewest errors, and the bytes that it was made of: ``data``, prepared or repaired."""
    parser = grammar.parser()
    parsed = grammar.prepared(data)
    root = parser.parse(parsed).root_node
    if root.has_error:
        for other in (grammar.repaired(data), data):
            if other != parsed and root.has_error:
                better = parser.parse(other).root_node
                if grammar.errors(better) < grammar.errors(root):
                    root, parsed = better, other
    return root, parsed


def _is_minified(text: str) -> bool:
    lines = text.count("\n") + 1
    if len(text) < 2_000 or len(text) / lines < MINIFIED_AVERAGE_CHARS:
        return False
    return max(map(len, text.split("\n"))) > 5_000


def _is_generated(beginning: str) -> bool:
    return "generated" in beginning.lower() and _GENERATED.search(beginning) is not None


def _place(node: Node) -> int:
    return node.start_byte


class _Reader:
    def __init__(self, grammar: Grammar, path: str, text: str, data: bytes, parsed: bytes, root: Node) -> None:
        self.grammar = grammar
        self.path = path
        self.text = text
        self.data = data
        self.parsed = parsed
        self.places = Places(data)
        self.root = root
        self.packages: Sequence[Node] = ()
        self.exports: dict[str, str] = {}
        self.only_listed = False

    def read(self) -> ParsedCode:
        grammar = self.grammar
        captures = grammar.captures(self.root)
        of = captures.get
        self.packages = of("package", ())
        package = grammar.package(self.path, text_of(self.packages[0]) if self.packages else "")
        self.exports, self.only_listed = grammar.exports(of("export", ()), self.data)
        ambient = [node.byte_range for node in of("ambient", ())]
        symbols, spans = self._symbols(package, self._definitions(captures), ambient)
        imports = [entry for node in sorted(of("import", ()), key=_place) for entry in grammar.imports(node)]
        found = references(grammar, self.places, spans, of("call", ()), of("invocation", ()), of("base", ()))
        return ParsedCode(
            path=self.path,
            language=grammar.name,
            symbols=tuple(symbols),
            references=tuple(found),
            imports=tuple(dict.fromkeys(imports)),
            literals=tuple(literals(grammar, self.root, self.places, spans)),
            package=package,
            exports=tuple(sorted(one for one in self.exports.items() if one[0] != one[1])),
            error_line=_first_error(self.root),
            generated=_is_generated(self.text[:2000]),
        )

    def _definitions(self, captures: Mapping[str, Sequence[Node]]) -> list[_Definition]:
        """In the order of the text, what encloses others before them."""
        grammar, data = self.grammar, self.data
        is_repaired = self.parsed != data
        around: dict[int, Node] = {}
        for node in captures.get("outer", ()):
            if (inner := node.child_by_field_name("definition")) is not None:
                around[inner.id] = node
        kinds = [tag[4:] for tag in captures if tag.startswith("def.")]
        found: dict[int, _Definition] = {}
        for kind in sorted(kinds, key=lambda kind: kind not in _SOFT):
            for node in captures[f"def.{kind}"]:
                outer = grammar.outer(node, around)
                start, end = outer.byte_range
                for name_node in grammar.names(node):
                    at, name_end = name_node.byte_range
                    raw = data[at:name_end]
                    if is_repaired and raw != self.parsed[at:name_end]:
                        continue  # made up
                    name = raw.decode("utf-8", "replace")
                    if name == "_":
                        continue  # a place where a name could stand
                    known = found.get(at)
                    if known is None or known.kind in _SOFT:
                        refined = grammar.refine(cast("SymbolKind", kind), name, node)
                        found[at] = _Definition(start, -end, at, refined, name, node, outer)
        return sorted(found.values())

    def _symbols(
        self, package: str, definitions: Sequence[_Definition], ambient: Sequence[tuple[int, int]]
    ) -> tuple[list[Symbol], list[tuple[int, int, int]]]:
        """``ambient``: stretches in which everything is exported."""
        grammar = self.grammar
        module = grammar.module_name(self.path, package)
        lines = self.text.count("\n") + (0 if self.text.endswith("\n") or not self.text else 1)
        stem = self.path.rsplit("/", 1)[-1].split(".", 1)[0]
        doc = grammar.module_doc(self.root, self.packages, self.data)
        symbols = [
            Symbol("module", module.rsplit(grammar.separator, 1)[-1] or stem, module or stem, "", doc, 1,
                   max(lines, 1), 0, self.root.end_byte, None, True, grammar.is_test_file(self.path))
        ]  # fmt: skip
        test_file = symbols[0].test
        spans: list[tuple[int, int, int]] = []
        stack: list[tuple[int, int, int]] = []  # end byte, index, start byte
        module_prefix = f"{module}{grammar.separator}" if module else ""
        line_starts, data = self.places.starts, self.data
        is_all = self.only_listed
        listed = frozenset(self.exports.values())
        for start, backwards, _, kind, name, node, outer in definitions:
            end = -backwards
            while stack and (stack[-1][0] <= start or stack[-1][::2] == (end, start)):
                stack.pop()  # over, or a sibling of one declaration such as `const A, B = 1, 2`
            parent = stack[-1][1] if stack else 0
            holder = symbols[parent]
            owner = grammar.owner(node)
            if kind == "function" and (owner or holder.kind in grammar.scopes):
                kind = "method"
            if kind in _VALUES and holder.kind in _RUN:
                continue
            if owner:
                prefix = f"{module_prefix}{owner}{grammar.separator}"
            else:
                prefix = f"{holder.qualified_name}{grammar.separator}" if parent else module_prefix
            qualified = prefix + name
            if kind == "namespace":
                name = name.rsplit(grammar.separator, 1)[-1]
            test = test_file or holder.test or name.startswith("test_") or grammar.is_test(node, data)
            exported = (
                not (test_file or holder.test)
                and (parent == 0 or (holder.exported and holder.kind not in _RUN))
                and (
                    grammar.exported(name, node, outer)
                    or (parent == 0 and name in listed)
                    or any(first <= start < last for first, last in ambient)
                )
                and not (is_all and parent == 0 and not owner and name not in listed and not name.startswith("__"))
            )
            body = grammar.body(node)
            spans.append((start, end, len(symbols)))
            stack.append((end, len(symbols), start))
            symbols.append(
                _symbol(
                    (
                        kind, name, qualified, grammar.signature(node, body, data),
                        grammar.doc(node, outer, body, data), bisect_right(line_starts, start),
                        bisect_right(line_starts, max(start, end - 1)), start, end, parent, exported,
                        test,
                    )
                )
            )  # fmt: skip
        return symbols, spans


def _first_error(root: Node) -> int | None:
    """Line of the first place that the grammar could not read."""
    if not root.has_error:
        return None
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            return node.start_point[0] + 1
        stack.extend(child for child in reversed(node.children) if child.has_error or child.is_missing)
    return None


def units(code: ParsedCode) -> tuple[Unit, ...]:
    """Top-level symbols with their members, as line spans, for the chunker of code files."""
    children: dict[int, list[int]] = {}
    for index, symbol in enumerate(code.symbols):
        if symbol.parent is not None:
            children.setdefault(symbol.parent, []).append(index)

    def unit(index: int, depth: int) -> Unit:
        symbol = code.symbols[index]
        below = tuple(unit(child, depth + 1) for child in children.get(index, ())) if depth < 2 else ()
        return Unit(symbol.name, symbol.start_line, symbol.end_line, below)

    return tuple(unit(index, 1) for index in children.get(0, ()))
