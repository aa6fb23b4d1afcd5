"""Source text to symbols, references and imports, by one query over one syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar, cast

from tree_sitter import Node

from apps.symbols.languages import grammar_for
from apps.symbols.languages.base import Grammar, chain, text_of
from apps.symbols.literals import find_documents
from apps.symbols.values import (
    DocumentLiteral,
    NotParsed,
    ParsedCode,
    Reference,
    ReferenceKind,
    Symbol,
    SymbolKind,
    Unit,
)

N = TypeVar("N")

MAX_CODE_BYTES = 8_388_608
MINIFIED_AVERAGE_CHARS = 400
_GENERATED = re.compile(
    r"^[ \t]*(?://|#|/\*|\*|--).{0,80}?"
    r"(?:@generated\b|code generated .{0,80}do not edit|auto-?generated.{0,60}do not (?:edit|modify))",
    re.IGNORECASE | re.MULTILINE,
)
_RAW_PREFIX = re.compile(r"[A-Za-z]*r[A-Za-z]*[\"'#]|`", re.IGNORECASE)


@dataclass(slots=True)
class _Definition:
    kind: SymbolKind
    name: str
    node: Node
    start: int
    end: int
    first_line: int
    last_line: int


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


class _Reader:
    def __init__(self, grammar: Grammar, path: str, text: str, data: bytes, root: Node) -> None:
        self.grammar = grammar
        self.path = path
        self.text = text
        self.data = data
        self.lines = data.split(b"\n")
        self.root = root
        self.definitions: dict[int, _Definition] = {}
        self.calls: list[tuple[int, Node, ReferenceKind]] = []
        self.import_nodes: list[Node] = []
        self.strings: list[Node] = []

    def read(self) -> ParsedCode:
        self._collect()
        package = self.grammar.package(self.path, self.root)
        symbols, places = self._symbols(package)
        imports = [entry for node in self.import_nodes for entry in self.grammar.imports(node)]
        return ParsedCode(
            path=self.path,
            language=self.grammar.name,
            symbols=tuple(symbols),
            references=tuple(self._references(places)),
            imports=tuple(dict.fromkeys(imports)),
            literals=tuple(self._literals(places)),
            package=package,
            error_line=_first_error(self.root),
            generated=bool(_GENERATED.search(self.text[:2000])),
        )

    def _collect(self) -> None:
        for _, captures in self.grammar.matches(self.root):
            for capture, nodes in captures.items():
                if capture.startswith("def."):
                    node = nodes[0]
                    outer = self.grammar.outer(node)
                    for name in self.grammar.names(node, captures["name"]):
                        self._define(cast("SymbolKind", capture[4:]), text_of(name), node, outer, name.start_byte)
                elif capture == "call":
                    self.calls += [(node.start_byte, node, "calls") for node in nodes]
                elif capture == "base":
                    self.calls += [(node.start_byte, node, "inherits") for node in nodes]
                elif capture == "import":
                    self.import_nodes += nodes
                elif capture == "string":
                    self.strings += nodes

    def _define(self, kind: SymbolKind, name: str, node: Node, outer: Node, key: int) -> None:
        kind = self.grammar.refine(kind, name, node)
        known = self.definitions.get(key)
        # Two patterns may meet in one place (a variable that holds a function): the more telling kind stays.
        if known is not None and known.kind not in {"variable", "constant", "field"}:
            return
        last = outer.end_point[0] + (1 if outer.end_point[1] or outer.end_byte == outer.start_byte else 0)
        self.definitions[key] = _Definition(
            kind, name, node, outer.start_byte, outer.end_byte, outer.start_point[0] + 1, last
        )

    def _symbols(self, package: str) -> tuple[list[Symbol], list[tuple[int, int, int]]]:
        grammar = self.grammar
        module = grammar.module_name(self.path, package)
        lines = self.text.count("\n") + (0 if self.text.endswith("\n") or not self.text else 1)
        stem = self.path.rsplit("/", 1)[-1].split(".", 1)[0]
        symbols = [
            Symbol("module", module.rsplit(grammar.separator, 1)[-1] or stem, module or stem, "",
                   grammar.doc(self.root) if grammar.name == "python" else "", 1, max(lines, 1), 0,
                   self.root.end_byte, None, True, grammar.is_test_file(self.path))
        ]  # fmt: skip
        test_file = symbols[0].test
        places: list[tuple[int, int, int]] = []
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
            exported = grammar.exported(name, definition.node) and (
                parent == 0 or (holder.exported and holder.kind not in {"function", "method", "constructor"})
            )
            places.append((definition.start, definition.end, len(symbols)))
            stack.append((definition.end, len(symbols), definition.start))
            symbols.append(
                Symbol(
                    kind=kind,
                    name=name,
                    qualified_name=f"{prefix}{grammar.separator}{name}" if prefix else name,
                    signature=grammar.signature(definition.node),
                    doc=grammar.doc(definition.node),
                    start_line=definition.first_line,
                    end_line=max(definition.first_line, definition.last_line),
                    start_byte=definition.start,
                    end_byte=definition.end,
                    parent=parent,
                    exported=exported and not test_file,
                    test=test_file or name.startswith("test_"),
                )
            )
        return symbols, places

    def _references(self, places: list[tuple[int, int, int]]) -> list[Reference]:
        found: list[Reference] = []
        for node, kind, symbol in _inside(sorted(self.calls, key=lambda entry: entry[0]), places):
            target = node
            if node.type == "method_invocation":  # Java: object and name are apart
                holder, name = node.child_by_field_name("object"), node.child_by_field_name("name")
                written = (chain(holder) if holder is not None else None), text_of(name) if name is not None else ""
                if written[1]:
                    before = written[0]
                    qualifier = ".".join(part for part in before if part) if before else ("?" if holder else "")
                    found.append(
                        Reference(kind, written[1], qualifier, node.start_point[0] + 1, symbol, "", self._column(node))
                    )
                continue
            pair = chain(target)
            if pair is not None:
                subject = self.grammar.subject(target) if kind == "inherits" else ""
                found.append(
                    Reference(kind, pair[1], pair[0], target.end_point[0] + 1, symbol, subject, self._column(target))
                )
        return found

    def _column(self, node: Node) -> int:
        """Column of the node's first character, from 1; tree-sitter counts bytes."""
        row, column = node.start_point
        return len(self.lines[row][:column].decode("utf-8", "replace")) + 1

    def _literals(self, places: list[tuple[int, int, int]]) -> list[DocumentLiteral]:
        found: list[DocumentLiteral] = []
        likely = [
            node
            for node in self.strings
            if b".m" in (node.text or b"").lower() or b".rst" in (node.text or b"").lower()
        ]
        ordered = sorted(((node.start_byte, node, "string") for node in likely), key=lambda entry: entry[0])
        for node, _, symbol in _inside(ordered, places):
            text = text_of(node)
            found += find_documents(
                text, node.start_point[0] + 1, self._column(node), symbol, raw=bool(_RAW_PREFIX.match(text))
            )
        return list(dict.fromkeys(found))


def _inside(
    entries: Iterable[tuple[int, Node, N]], places: list[tuple[int, int, int]]
) -> Iterator[tuple[Node, N, int]]:
    """Each entry with the index of the innermost symbol around it: one sweep over both, in source order."""
    stack: list[tuple[int, int]] = []
    upcoming = 0
    for start, node, tag in entries:
        while upcoming < len(places) and places[upcoming][0] <= start:
            while stack and stack[-1][0] <= places[upcoming][0]:
                stack.pop()
            stack.append(places[upcoming][1:])
            upcoming += 1
        while stack and stack[-1][0] <= start:
            stack.pop()
        yield node, tag, stack[-1][1] if stack else 0


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
