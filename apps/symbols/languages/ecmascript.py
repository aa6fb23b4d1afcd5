from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import ClassVar

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Node

from apps.symbols.languages.base import Grammar, text_of
from apps.symbols.languages.ecmascript_repairs import prepared, repaired
from apps.symbols.values import Import, SymbolKind

_FUNCTIONS = "[(arrow_function) (function_expression) (generator_function)]"

_SHARED = f"""
(function_declaration name: (identifier)) @def.function
(generator_function_declaration name: (identifier)) @def.function
(program (lexical_declaration (variable_declarator name: (identifier)) @def.variable))
(program (variable_declaration (variable_declarator name: (identifier)) @def.variable))
(export_statement (lexical_declaration (variable_declarator name: (identifier)) @def.variable))
(export_statement (variable_declaration (variable_declarator name: (identifier)) @def.variable))
(variable_declarator name: (identifier) value: {_FUNCTIONS}) @def.function
(assignment_expression
  left: (member_expression property: (property_identifier)) right: {_FUNCTIONS}) @def.function
(pair key: (property_identifier) value: {_FUNCTIONS}) @def.method
(method_definition name: [(property_identifier) (private_property_identifier)]) @def.method
(call_expression function: (_) @call)
(new_expression constructor: (_) @call)
(import_statement) @import
(export_statement source: (string)) @import
(lexical_declaration (variable_declarator value: (call_expression function: (identifier) @require
  (#eq? @require "require")))) @import
"""


class _EcmaScript(Grammar):
    strings = ("string", "template_string")

    def package(self, path: str, named: str) -> str:
        return path.rsplit(".", 1)[0].removesuffix(".d")

    def module_name(self, path: str, package: str) -> str:
        pure = PurePosixPath(package)
        return pure.parent.name if pure.name == "index" and pure.parent.name else pure.name

    def names(self, node: Node) -> list[Node]:
        name = node.child_by_field_name("name")
        if name is None:
            name = node.child_by_field_name("property") or node.child_by_field_name("key")
        if name is None and (left := node.child_by_field_name("left")) is not None:
            name = left.child_by_field_name("property")
        return [name] if name is not None else []

    def repaired(self, data: bytes) -> bytes:
        return repaired(data)

    def outer(self, node: Node, around: Mapping[int, Node]) -> Node:
        parent = node.parent
        if parent is not None and parent.type in {"lexical_declaration", "variable_declaration"}:
            node, parent = parent, parent.parent
        return parent if parent is not None and parent.type in {"export_statement", "ambient_declaration"} else node

    def refine(self, kind: SymbolKind, name: str, node: Node) -> SymbolKind:
        if kind == "method" and name == "constructor":
            return "constructor"
        if kind == "variable":
            declaration = node.parent
            keyword = declaration.child(0) if declaration is not None else None
            if keyword is not None and keyword.type == "const":
                return "constant"
        return kind

    def exported(self, name: str, node: Node, outer: Node) -> bool:
        if name.startswith("#"):
            return False
        if outer.type in {"export_statement", "ambient_declaration"}:
            return True
        if node.type in {
            "method_definition",
            "public_field_definition",
            "method_signature",
            "abstract_method_signature",
        }:
            return not any(text_of(child) in {"private", "protected"} for child in node.children[:2])
        return node.type in {"pair", "assignment_expression", "property_signature"}

    def body(self, node: Node) -> Node | None:
        value = node.child_by_field_name("value" if node.type != "assignment_expression" else "right")
        return (
            super().body(value)
            if value is not None and value.child_by_field_name("body") is not None
            else super().body(node)
        )

    def imports(self, node: Node) -> list[Import]:
        line = node.start_point[0] + 1
        if node.type == "lexical_declaration":
            return self._required(node, line)
        source = node.child_by_field_name("source")
        if source is None:
            return []
        module = text_of(source).strip("\"'`")
        found: list[Import] = []
        stack = list(reversed(node.named_children))
        while stack:
            child = stack.pop()
            if child.type in {"import_specifier", "export_specifier"}:
                name, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
                if name is not None:
                    found.append(Import(module, text_of(name), text_of(alias if alias is not None else name), line))
            elif child.type in {"namespace_import", "namespace_export"}:
                found.append(Import(module, "", text_of(child.named_children[-1]), line))
            elif child.type == "identifier":
                found.append(Import(module, "default", text_of(child), line))
            elif child.type in {"import_clause", "named_imports", "export_clause"}:
                stack.extend(reversed(child.named_children))
        return found or [Import(module, "*", "*", line)]

    def _required(self, node: Node, line: int) -> list[Import]:
        found: list[Import] = []
        for declarator in node.named_children:
            name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
            arguments = value.child_by_field_name("arguments") if value is not None else None
            if name is None or arguments is None or not arguments.named_children:
                continue
            module = text_of(arguments.named_children[0]).strip("\"'`")
            if name.type == "identifier":
                found.append(Import(module, "", text_of(name), line))
            elif name.type == "object_pattern":
                found += [
                    Import(module, text_of(part), text_of(part), line)
                    for part in name.named_children
                    if part.type == "shorthand_property_identifier_pattern"
                ]
        return found


class JavaScript(_EcmaScript):
    name = "javascript"
    extensions = (".js", ".jsx", ".mjs", ".cjs")
    query = (
        _SHARED
        + """
    (class_declaration name: (identifier)) @def.class
    (class name: (identifier)) @def.class
    (field_definition property: (property_identifier)) @def.field
    (class_heritage (_) @base)
    (jsx_opening_element name: (_) @call)
    (jsx_self_closing_element name: (_) @call)
    """
    )

    def load(self) -> Language:
        return Language(tree_sitter_javascript.language())


class TypeScript(_EcmaScript):
    name = "typescript"
    extensions: ClassVar[tuple[str, ...]] = (".ts", ".mts", ".cts")
    query = (
        _SHARED
        + """
    (class_declaration name: (type_identifier)) @def.class
    (abstract_class_declaration name: (type_identifier)) @def.class
    (interface_declaration name: (type_identifier)) @def.interface
    (type_alias_declaration name: (type_identifier)) @def.type
    (enum_declaration name: (identifier)) @def.enum
    (ambient_declaration (lexical_declaration (variable_declarator name: (identifier)) @def.variable))
    (ambient_declaration (variable_declaration (variable_declarator name: (identifier)) @def.variable))
    (internal_module name: (identifier)) @def.namespace
    (function_signature name: (identifier)) @def.function
    (public_field_definition name: (property_identifier)) @def.field
    (method_signature name: (property_identifier)) @def.method
    (abstract_method_signature name: (property_identifier)) @def.method
    (property_signature name: (property_identifier)) @def.field
    (extends_clause value: (_) @base)
    (implements_clause (_) @base)
    (extends_type_clause type: (_) @base)
    """
    )

    def load(self) -> Language:
        return Language(tree_sitter_typescript.language_typescript())

    def prepared(self, data: bytes) -> bytes:
        return prepared(data, has_tags=False)


class Tsx(TypeScript):
    extensions = (".tsx",)
    query = (
        TypeScript.query
        + """
    (jsx_opening_element name: (_) @call)
    (jsx_self_closing_element name: (_) @call)
    """
    )

    def load(self) -> Language:
        return Language(tree_sitter_typescript.language_tsx())

    def prepared(self, data: bytes) -> bytes:
        return prepared(data, has_tags=True)
