from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import ClassVar

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Node

from apps.symbols.languages.base import LOOKED_BACK, Grammar, text_of
from apps.symbols.languages.ecmascript_modules import assigned, bound, imports, listed, required_module
from apps.symbols.languages.ecmascript_repairs import prepared, repaired
from apps.symbols.values import Import, SymbolKind

_FUNCTIONS = "[(arrow_function) (function_expression) (generator_function)]"

_BOUND = "[(identifier) (object_pattern) (array_pattern)]"
_SHARED = f"""
(function_declaration name: (identifier)) @def.function
(generator_function_declaration name: (identifier)) @def.function
(program (lexical_declaration (variable_declarator name: {_BOUND}) @def.variable))
(program (variable_declaration (variable_declarator name: {_BOUND}) @def.variable))
(export_statement (lexical_declaration (variable_declarator name: {_BOUND}) @def.variable))
(export_statement (variable_declaration (variable_declarator name: {_BOUND}) @def.variable))
(program (expression_statement (assignment_expression
  left: (member_expression object: (_) @holder property: (property_identifier))) @def.constant)
  (#match? @holder "^(module[.])?exports$"))
(variable_declarator name: (identifier) value: {_FUNCTIONS}) @def.function
(assignment_expression
  left: (member_expression property: (property_identifier)) right: {_FUNCTIONS}) @def.function
(pair key: (property_identifier) value: {_FUNCTIONS}) @def.method
(method_definition name: [(property_identifier) (private_property_identifier)]) @def.method
(call_expression function: (_) @call)
(new_expression constructor: (_) @call)
(import_statement) @import
(export_statement source: (string)) @import
(export_statement !source (export_clause)) @export
(export_statement value: (_)) @export
(export_statement "default" value: [(function_expression !name) (generator_function !name) (arrow_function)])
  @def.function
(export_statement "default" value: (class !name)) @def.class
(export_statement "default" declaration: (_)) @export
(call_expression function: (import) arguments: (arguments . (string) @dynamic)) @import
(call_expression function: (identifier) @require arguments: (arguments . (string)) (#eq? @require "require")) @import
"""
_EVERYWHERE = frozenset({"exports", "module.exports", "this", "window", "globalThis", "self", "global"})
"""What is assigned to is no member of a symbol."""


_EXPORTED = frozenset(
    {
        "assignment_expression",
        "enum_assignment",
        "field_definition",
        "pair",
        "property_identifier",
        "property_signature",
    }
)
"""What is exported when what it belongs to is."""
_ELEMENTS = """
    (jsx_opening_element name: (_) @call (#match? @call "^[^a-z]|[.]"))
    (jsx_self_closing_element name: (_) @call (#match? @call "^[^a-z]|[.]"))
"""
"""Those in lower case are of the browser."""


class _EcmaScript(Grammar):
    strings = ("string", "template_string")

    def package(self, path: str, named: str) -> str:
        return path.rsplit(".", 1)[0].removesuffix(".d")

    def module_name(self, path: str, package: str) -> str:
        pure = PurePosixPath(package)
        return pure.parent.name if pure.name == "index" and pure.parent.name else pure.name

    def names(self, node: Node) -> list[Node]:
        if node.type == "property_identifier":
            return [node]
        if node.type == "export_statement":  # of what has no name
            return [child for child in node.children if child.type == "default"]
        name = node.child_by_field_name("name")
        if name is None:
            name = node.child_by_field_name("property") or node.child_by_field_name("key")
        if name is None and (left := node.child_by_field_name("left")) is not None:
            name = left.child_by_field_name("property")
        if name is None:
            return []
        if node.type != "variable_declarator":
            return [name]
        value = node.child_by_field_name("value")
        if value is not None and required_module(value) is not None:
            return []  # an import
        return [name] if name.type == "identifier" else bound(name)

    def owner(self, node: Node) -> str:
        """Of ``Shape.prototype.area = …`` and ``Shape.of = …`` the name before."""
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        holder = left.child_by_field_name("object") if left is not None else None
        if left is None or holder is None or holder.type not in {"identifier", "member_expression"}:
            return ""
        name = text_of(holder).removesuffix(".prototype")
        return "" if name in _EVERYWHERE or "." in name or text_of(left).startswith("module.") else name

    def exports(self, nodes: Sequence[Node], data: bytes) -> tuple[dict[str, str], bool]:
        return {**listed(nodes), **(assigned(data) if b"exports" in data else {})}, False

    def doc(self, node: Node, outer: Node, body: Node | None, data: bytes) -> str:
        """Decorators of a method stand beside it, below the comment."""
        if node.type == "method_definition":
            while data.rfind(b"@", max(0, outer.start_byte - LOOKED_BACK), outer.start_byte) >= 0:
                above = outer.prev_sibling
                if above is None or above.type != "decorator":
                    break
                outer = above
        return super().doc(node, outer, body, data)

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
        return node.type in _EXPORTED

    def body(self, node: Node) -> Node | None:
        value = node.child_by_field_name("value" if node.type != "assignment_expression" else "right")
        return (
            super().body(value)
            if value is not None and value.child_by_field_name("body") is not None
            else super().body(node)
        )

    def imports(self, node: Node) -> list[Import]:
        return imports(node)


class JavaScript(_EcmaScript):
    name = "javascript"
    extensions = (".js", ".jsx", ".mjs", ".cjs")
    query = (
        _SHARED
        + """
    (class_declaration name: (identifier)) @def.class
    (class name: (identifier)) @def.class
    (field_definition property: [(property_identifier) (private_property_identifier)]) @def.field
    (class_heritage (_) @base)
    """
        + _ELEMENTS
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
    (enum_body name: (property_identifier) @def.constant)
    (enum_assignment name: (property_identifier)) @def.constant
    (internal_module name: [(identifier) (nested_identifier)]) @def.namespace
    (ambient_declaration [(module) (internal_module) (statement_block)]) @ambient
    (export_statement "=" (identifier)) @export
    (function_signature name: (identifier)) @def.function
    (public_field_definition name: [(property_identifier) (private_property_identifier)]) @def.field
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
    query = TypeScript.query + _ELEMENTS

    def load(self) -> Language:
        return Language(tree_sitter_typescript.language_tsx())

    def prepared(self, data: bytes) -> bytes:
        return prepared(data, has_tags=True)
