from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

import tree_sitter_python
from tree_sitter import Language, Node

from apps.symbols.languages.base import MAX_DOC_CHARS, Grammar, dotted_path, text_of
from apps.symbols.values import Import, SymbolKind

MOST_COMMENTS = 1000
"""Above a docstring: each look at a child counts from the first one."""


_PATTERNS = frozenset({"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern"})
_BEFORE_DOC = frozenset(b"\"'#rRuUbBfF")
"""What the body of a documented function begins with: asked of the bytes, since most have no docstring."""


_SET = "(expression_statement (assignment left: [(identifier) (pattern_list) (tuple_pattern) (list_pattern)])"
_ALL = re.compile(rb"^__all__(?:[ \t]*:[^=\n]+)?[ \t]*\+?=[ \t]*[\[(]([^\])]*)[\])]", re.MULTILINE)
_ALL_NAMED = re.compile(rb"\b__all__\b")
_QUOTED = re.compile(rb"[\"']([^\"'\\\n]+)[\"']")
_TYPE_PARAMETERS = re.compile(rb"\b(?:type|def|class)[ \t]+\w+\[")
MOST_PARAMETER_BYTES = 800
MOST_LISTS = 20
"""Of exported names in a file: each is looked for to the end of the file."""


class Python(Grammar):
    name = "python"
    has_block_comments = False
    extensions = (".py", ".pyi")
    query = f"""
    (class_definition) @def.class
    (function_definition) @def.function
    (module {_SET} @def.variable))
    (module (if_statement (block {_SET} @def.variable))))
    (module (if_statement (_ (block {_SET} @def.variable)))))
    (module (try_statement (block {_SET} @def.variable))))
    (module (try_statement (_ (block {_SET} @def.variable)))))
    (class_definition body: (block {_SET} @def.field)))
    (class_definition body: (block (if_statement (block {_SET} @def.field)))))
    (class_definition body: (block (if_statement (_ (block {_SET} @def.field))))))
    (type_alias_statement left: (type [(identifier) (generic_type . (identifier))])) @def.type
    (call function: (_) @call)
    (decorated_definition) @outer
    (decorator [(identifier) (attribute)] @call)
    (class_definition superclasses: (argument_list [(identifier) (attribute) (subscript)] @base))
    (import_statement) @import
    (import_from_statement) @import
    """

    def load(self) -> Language:
        return Language(tree_sitter_python.language())

    def package(self, path: str, named: str) -> str:
        dotted = dotted_path(path)
        return dotted.removesuffix(".__init__") if dotted != "__init__" else ""

    def outer(self, node: Node, around: Mapping[int, Node]) -> Node:
        return around.get(node.id, node) if around else node

    def refine(self, kind: SymbolKind, name: str, node: Node) -> SymbolKind:
        return "constant" if kind == "variable" and name.isupper() else kind

    def exported(self, name: str, node: Node, outer: Node) -> bool:
        return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))

    def exports(self, nodes: Sequence[Node], data: bytes) -> tuple[dict[str, str], bool]:
        """What ``__all__`` says. When it is put together of other lists, what else is in it cannot be told."""
        if b"__all__" not in data:
            return {}, False
        named = len(_ALL_NAMED.findall(data))
        if named > MOST_LISTS:
            return {}, False
        lists = _ALL.findall(data)
        names = {name.decode("utf-8", "replace") for text in lists for name in _QUOTED.findall(text)}
        return {name: name for name in names}, bool(lists) and len(lists) == named

    def module_doc(self, root: Node, packages: Sequence[Node], data: bytes) -> str:
        return self.doc(root, root, root, data)

    def repaired(self, data: bytes) -> bytes:
        """Without the defaults of type parameters, which the grammar does not know: ``class A[T = int]``."""
        out = bytearray(data)
        for match in _TYPE_PARAMETERS.finditer(data):
            _blank_defaults(out, match.end())
        return bytes(out)

    def names(self, node: Node) -> list[Node]:
        name = node.child_by_field_name("name")
        if name is not None:
            return [name]
        left = node.child_by_field_name("left")
        if left is None:
            return []
        if left.type == "type":
            name = left.named_child(0)
            return [] if name is None else [name if name.type == "identifier" else name.named_children[0]]
        found: list[Node] = []
        set_by: Node | None = node
        while set_by is not None and set_by.type == "assignment":  # a = b = 1
            left = set_by.child_by_field_name("left")
            if left is not None:
                found += [left] if left.type == "identifier" else _identifiers(left)
            set_by = set_by.child_by_field_name("right")
        return found

    def body(self, node: Node) -> Node | None:
        body = node.child_by_field_name("body") or node.child_by_field_name("right")
        while body is not None and body.type == "assignment":
            body = body.child_by_field_name("right")
        return body

    def doc(self, node: Node, outer: Node, body: Node | None, data: bytes) -> str:
        if body is None:
            return ""
        # What is missing at the end of the file begins behind its last byte.
        if body is not node and (body.start_byte >= len(data) or data[body.start_byte] not in _BEFORE_DOC):
            return ""
        ahead = range(min(body.named_child_count, MOST_COMMENTS))
        first = next((child for child in map(body.named_child, ahead) if child and child.type != "comment"), None)
        string = first.named_child(0) if first and first.type == "expression_statement" else None
        if string is None or string.type != "string":
            return ""
        return _value(text_of(string)).strip()[:MAX_DOC_CHARS]

    def imports(self, node: Node) -> list[Import]:
        line = node.start_point[0] + 1
        found: list[Import] = []
        if node.type == "import_statement":
            for child in node.named_children:
                if child.type == "aliased_import":
                    name, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
                    if name is not None and alias is not None:
                        found.append(Import(text_of(name), "", text_of(alias), line))
                elif child.type == "dotted_name":
                    module = text_of(child)
                    found.append(Import(module, "", module, line))
            return found
        source = node.child_by_field_name("module_name")
        module = text_of(source).replace(" ", "") if source is not None else ""
        for child in node.children_by_field_name("name"):
            if child.type == "aliased_import":
                name, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
                if name is not None and alias is not None:
                    found.append(Import(module, text_of(name), text_of(alias), line))
            else:
                found.append(Import(module, text_of(child), text_of(child), line))
        if any(child.type == "wildcard_import" for child in node.named_children):
            found.append(Import(module, "*", "*", line))
        return found


def _identifiers(pattern: Node) -> list[Node]:
    """The names that a pattern binds: ``a, (b, *c)``."""
    found: list[Node] = []
    stack = [pattern]
    while stack:
        node = stack.pop()
        if node.type == "identifier":
            found.append(node)
        elif node.type in _PATTERNS:
            stack += reversed(node.named_children)
    return found


def _blank_defaults(out: bytearray, at: int) -> None:
    """Blank what stands between an equals sign and the end of its type parameter, from inside the bracket on."""
    depth, is_default = 1, False
    for place in range(at, min(len(out), at + MOST_PARAMETER_BYTES)):
        byte = out[place]
        depth += (byte in b"[({") - (byte in b"])}")
        if not depth:
            return
        if depth == 1 and byte in b"=,":
            is_default = byte == ord("=")
        if is_default and byte != ord("\n"):
            out[place] = ord(" ")


def _value(literal: str) -> str:
    """What a string literal says; empty for bytes and for what is no plain literal."""
    quotes = literal[:3]
    if quotes in {'"""', "'''"} and len(literal) >= 6 and literal.endswith(quotes) and "\\" not in literal:
        return literal[3:-3]
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError):
        return ""
    return value if isinstance(value, str) else ""
