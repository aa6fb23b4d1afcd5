"""Source text to symbols, references and imports, by one query over one syntax tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

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


@dataclass(slots=True)
class _Definition:
    kind: SymbolKind
    name: str
    node: Node
    outer: Node
    start: int
    end: int


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
    root = grammar.parser().parse(data).root_node
    return _Reader(grammar, path, text, data, root).read()


def _is_minified(text: str) -> bool:
    lines = text.count("\n") + 1
    if len(text) < 2_000 or len(text) / lines < MINIFIED_AVERAGE_CHARS:
        return False
    return max(map(len, text.split("\n"))) > 5_000


def _is_generated(beginning: str) -> bool:
    return "generated" in beginning.lower() and _GENERATED.search(beginning) is not None


class _Reader:
    def __init__(self, grammar: Grammar, path: str, text: str, data: bytes, root: Node) -> None:
        self.grammar = grammar
        self.path = path
        self.text = text
        self.places = Places(data)
        self.root = root
        self.definitions: dict[int, _Definition] = {}
        self.calls: list[Node] = []
        self.invocations: list[Node] = []
        self.bases: list[Node] = []
        self.import_nodes: list[Node] = []

    def read(self) -> ParsedCode:
        self._collect()
        package = self.grammar.package(self.path, self.root)
        symbols, spans = self._symbols(package)
        imports = [entry for node in self.import_nodes for entry in self.grammar.imports(node)]
        return ParsedCode(
            path=self.path,
            language=self.grammar.name,
            symbols=tuple(symbols),
            references=tuple(references(self.grammar, self.places, spans, self.calls, self.invocations, self.bases)),
            imports=tuple(dict.fromkeys(imports)),
            literals=tuple(literals(self.grammar, self.root, self.places, spans)),
            package=package,
            error_line=_first_error(self.root),
            generated=_is_generated(self.text[:2000]),
        )

    def _collect(self) -> None:
        plain = {
            "call": self.calls,
            "invocation": self.invocations,
            "base": self.bases,
            "import": self.import_nodes,
        }
        tags: dict[int, str] = {}
        for pattern, captures in self.grammar.matches(self.root):
            tag = tags.get(pattern)
            if tag is None:
                tag = next(capture for capture in captures if capture in plain or capture.startswith("def."))
                tags[pattern] = tag
            if tag in plain:
                plain[tag] += captures[tag]
                continue
            node = captures[tag][0]
            outer = self.grammar.outer(node)
            for name in self.grammar.names(node, captures["name"]):
                self._define(cast("SymbolKind", tag[4:]), text_of(name), node, outer, name.start_byte)

    def _define(self, kind: SymbolKind, name: str, node: Node, outer: Node, key: int) -> None:
        kind = self.grammar.refine(kind, name, node)
        known = self.definitions.get(key)
        # Two patterns may meet in one place (a variable that holds a function): the more telling kind stays.
        if known is not None and known.kind not in {"variable", "constant", "field"}:
            return
        self.definitions[key] = _Definition(kind, name, node, outer, *outer.byte_range)

    def _symbols(self, package: str) -> tuple[list[Symbol], list[tuple[int, int, int]]]:
        grammar = self.grammar
        module = grammar.module_name(self.path, package)
        lines = self.text.count("\n") + (0 if self.text.endswith("\n") or not self.text else 1)
        stem = self.path.rsplit("/", 1)[-1].split(".", 1)[0]
        symbols = [
            Symbol("module", module.rsplit(grammar.separator, 1)[-1] or stem, module or stem, "",
                   grammar.doc(self.root, self.root) if grammar.name == "python" else "", 1, max(lines, 1), 0,
                   self.root.end_byte, None, True, grammar.is_test_file(self.path))
        ]  # fmt: skip
        test_file = symbols[0].test
        spans: list[tuple[int, int, int]] = []
        stack: list[tuple[int, int, int]] = []  # end byte, index, start byte
        # Equal ranges: the definition found at the earlier place is the outer one.
        for definition in sorted(self.definitions.values(), key=lambda entry: (entry.start, -entry.end)):
            while stack and (stack[-1][0] <= definition.start or stack[-1][::2] == (definition.end, definition.start)):
                stack.pop()  # over, or a sibling of one declaration such as `const A, B = 1, 2`
            parent = stack[-1][1] if stack else 0
            holder = symbols[parent]
            kind = definition.kind
            owner = grammar.owner(definition.node)
            if kind == "function" and (owner or holder.kind in grammar.scopes):
                kind = "method"
            if kind in {"variable", "constant"} and holder.kind in {"function", "method", "constructor"}:
                continue
            prefix = (
                f"{module}{grammar.separator}{owner}"
                if owner and module
                else owner or (holder.qualified_name if parent or module else "")
            )
            name = definition.name
            exported = grammar.exported(name, definition.node, definition.outer) and (
                parent == 0 or (holder.exported and holder.kind not in {"function", "method", "constructor"})
            )
            spans.append((definition.start, definition.end, len(symbols)))
            stack.append((definition.end, len(symbols), definition.start))
            symbols.append(
                Symbol(
                    kind=kind,
                    name=name,
                    qualified_name=f"{prefix}{grammar.separator}{name}" if prefix else name,
                    signature=grammar.signature(definition.node),
                    doc=grammar.doc(definition.node, definition.outer),
                    start_line=self.places.line(definition.start),
                    end_line=self.places.line(max(definition.start, definition.end - 1)),
                    start_byte=definition.start,
                    end_byte=definition.end,
                    parent=parent,
                    exported=exported and not test_file,
                    test=test_file or name.startswith("test_"),
                )
            )
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
