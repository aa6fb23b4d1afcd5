from __future__ import annotations

import ast
from collections.abc import Mapping

import tree_sitter_python
from tree_sitter import Language, Node

from apps.symbols.languages.base import MAX_DOC_CHARS, Grammar, dotted_path, text_of
from apps.symbols.values import Import, SymbolKind

MOST_COMMENTS = 1000
"""Above a docstring: each look at a child counts from the first one."""


_BEFORE_DOC = frozenset(b"\"'#rRuUbBfF")
"""What the body of a documented function begins with: asked of the bytes, since most have no docstring."""


class Python(Grammar):
    name = "python"
    has_block_comments = False
    extensions = (".py", ".pyi")
    query = """
    (class_definition) @def.class
    (function_definition) @def.function
    (module (expression_statement (assignment left: (identifier)) @def.variable))
    (class_definition body: (block (expression_statement (assignment left: (identifier)) @def.field)))
    (type_alias_statement left: (type (identifier))) @def.type
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

    def names(self, node: Node) -> list[Node]:
        name = node.child_by_field_name("name")
        if name is None:
            name = node.child_by_field_name("left")
            if name is not None and name.type == "type":
                name = name.named_child(0)
        return [name] if name is not None else []

    def body(self, node: Node) -> Node | None:
        return node.child_by_field_name("body") or node.child_by_field_name("right")

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
