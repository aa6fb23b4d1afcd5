from __future__ import annotations

import tree_sitter_java
from tree_sitter import Language, Node

from apps.symbols.languages.base import LONGEST_CHAIN, Grammar, chain, text_of
from apps.symbols.values import Import, SymbolKind

_DECLARATIONS = frozenset({"field_declaration", "constant_declaration"})
_PUBLIC = frozenset({"interface_body", "annotation_type_body"})
"""Where everything is public without saying so."""


class Java(Grammar):
    name = "java"
    extensions = (".java",)
    query = """
    (class_declaration name: (identifier)) @def.class
    (record_declaration name: (identifier)) @def.class
    (interface_declaration name: (identifier)) @def.interface
    (annotation_type_declaration name: (identifier)) @def.interface
    (enum_declaration name: (identifier)) @def.enum
    (method_declaration name: (identifier)) @def.method
    (constructor_declaration name: (identifier)) @def.constructor
    (field_declaration declarator: (variable_declarator name: (identifier))) @def.field
    (constant_declaration declarator: (variable_declarator name: (identifier))) @def.constant
    (enum_constant name: (identifier)) @def.constant
    (annotation_type_element_declaration name: (identifier)) @def.method
    (method_invocation name: (identifier)) @invocation
    (object_creation_expression type: (_) @call)
    (superclass (_) @base)
    (super_interfaces (type_list (_) @base))
    (extends_interfaces (type_list (_) @base))
    (program (package_declaration [(identifier) (scoped_identifier)] @package))
    (import_declaration) @import
    """
    strings = ("string_literal",)

    def load(self) -> Language:
        return Language(tree_sitter_java.language())

    def names(self, node: Node) -> list[Node]:
        if node.type not in _DECLARATIONS:
            return super().names(node)
        names = [child.child_by_field_name("name") for child in node.children_by_field_name("declarator")]
        return [name for name in names if name is not None and name.type == "identifier"]

    def refine(self, kind: SymbolKind, name: str, node: Node) -> SymbolKind:
        return "constant" if kind == "field" and name.isupper() and "static" in text_of(node).split("=")[0] else kind

    def body(self, node: Node) -> Node | None:
        if node.type == "enum_constant":
            return node.child_by_field_name("arguments") or node.child_by_field_name("body")
        if node.type in _DECLARATIONS:
            declarator = node.child_by_field_name("declarator")
            return declarator.child_by_field_name("value") if declarator is not None else None
        return super().body(node)

    def exported(self, name: str, node: Node, outer: Node) -> bool:
        parent = node.parent
        if node.type == "enum_constant" or (parent is not None and parent.type in _PUBLIC):
            return True
        return any(child.type == "modifiers" and "public" in text_of(child) for child in node.children)

    def is_test_file(self, path: str) -> bool:
        return path.endswith(("Test.java", "Tests.java", "IT.java")) or super().is_test_file(path)

    def invocation(self, node: Node) -> tuple[str, str] | None:
        holder, name = node.child_by_field_name("object"), node.child_by_field_name("name")
        if name is None:
            return None
        if holder is None:
            return "", text_of(name)
        before = chain(text_of(holder)) if holder.end_byte - holder.start_byte <= LONGEST_CHAIN else None
        return ".".join(part for part in before if part) if before else "?", text_of(name)

    def imports(self, node: Node) -> list[Import]:
        line = node.start_point[0] + 1
        names = [child for child in node.named_children if child.type in {"scoped_identifier", "identifier"}]
        if not names:
            return []
        whole = text_of(names[0])
        if any(child.type == "asterisk" for child in node.named_children):
            return [Import(whole, "*", "*", line)]
        module, _, member = whole.rpartition(".")
        return [Import(module, member, member, line)]
