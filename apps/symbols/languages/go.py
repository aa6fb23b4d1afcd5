from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import tree_sitter_go
from tree_sitter import Language, Node

from apps.symbols.languages.base import Grammar, text_of
from apps.symbols.values import Import

_SEVERAL = frozenset({"const_spec", "var_spec", "field_declaration"})
"""Definitions that may bring more than one name."""
_DIRECTIVE = re.compile(r"^(?:go:\w|nolint\b|\+build\b|line )")
_VERSION = re.compile(r"v\d+\Z")
_FUNCTIONS = frozenset({"function_declaration", "method_declaration"})


class Go(Grammar):
    name = "go"
    extensions = (".go",)
    query = """
    (type_spec name: (type_identifier) type: (struct_type)) @def.struct
    (type_spec name: (type_identifier) type: (interface_type)) @def.interface
    (type_spec name: (type_identifier)
      type: [(type_identifier) (qualified_type) (map_type) (slice_type) (array_type) (function_type) (pointer_type)
             (channel_type) (generic_type) (parenthesized_type)]) @def.type
    (type_spec type: (struct_type (field_declaration_list (field_declaration name: (field_identifier)) @def.field)))
    (type_alias name: (type_identifier)) @def.type
    (function_declaration name: (identifier)) @def.function
    (method_declaration name: (field_identifier)) @def.method
    (interface_type (method_elem name: (field_identifier)) @def.method)
    (source_file (const_declaration (const_spec name: (identifier)) @def.constant))
    (source_file (var_declaration (var_spec name: (identifier)) @def.variable))
    (source_file (var_declaration (var_spec_list (var_spec name: (identifier)) @def.variable)))
    (source_file (package_clause (_) @package))
    (call_expression function: (_) @call)
    (type_spec type: (struct_type (field_declaration_list (field_declaration !name type: (_) @base))))
    (type_spec type: (interface_type (type_elem . [(type_identifier) (qualified_type) (generic_type)] @base .)))
    (import_spec) @import
    """
    strings = ("interpreted_string_literal", "raw_string_literal")

    def load(self) -> Language:
        return Language(tree_sitter_go.language())

    def outer(self, node: Node, around: Mapping[int, Node]) -> Node:
        if node.type in _FUNCTIONS:
            return node
        parent = node.parent
        if parent is not None and parent.type in {"type_declaration", "const_declaration", "var_declaration"}:
            return parent if parent.named_child_count == 1 else node
        return node

    def names(self, node: Node) -> list[Node]:
        if node.type not in _SEVERAL:
            return super().names(node)
        return [child for child in node.children_by_field_name("name") if child.is_named]

    def body(self, node: Node) -> Node | None:
        if node.type in _FUNCTIONS:
            return node.child_by_field_name("body")
        if node.type == "field_declaration":
            return node.child_by_field_name("tag")
        of = node.child_by_field_name("type")
        if of is not None and of.type == "struct_type":
            return next((child for child in of.children if child.type == "field_declaration_list"), None)
        if of is not None and of.type == "interface_type":
            return next((child for child in of.children if child.type == "{"), None)
        return super().body(node)

    def owner(self, node: Node) -> str:
        receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
        if receiver is None:
            return ""
        text = text_of(receiver).strip("() ")
        return text.split("[", 1)[0].split()[-1].lstrip("*") if text else ""

    def doc(self, node: Node, outer: Node, body: Node | None, data: bytes) -> str:
        said = super().doc(node, outer, body, data)
        if "go:" in said or "nolint" in said or "+build" in said:
            said = "\n".join(line for line in said.split("\n") if not _DIRECTIVE.match(line)).strip()
        return said

    def module_doc(self, root: Node, packages: Sequence[Node], data: bytes) -> str:
        clause = packages[0].parent if packages else None
        return self.doc(clause, clause, None, data) if clause is not None else ""

    def exported(self, name: str, node: Node, outer: Node) -> bool:
        return name[:1].isupper()

    def is_test_file(self, path: str) -> bool:
        return path.endswith("_test.go") or super().is_test_file(path)

    def imports(self, node: Node) -> list[Import]:
        path = node.child_by_field_name("path")
        if path is None:
            return []
        module = text_of(path).strip('"`')
        name = node.child_by_field_name("name")
        local = text_of(name) if name is not None else package_of(module)
        return [Import(module, "*" if local == "." else "", local, node.start_point[0] + 1)]


def package_of(module: str) -> str:
    """What a package is called by those that import it without a name, as far as its path tells: versions are no part
    of it (``kit/v2``, ``yaml.v3``)."""
    parts = module.split("/")
    last = parts[-2] if len(parts) > 1 and _VERSION.match(parts[-1]) else parts[-1]
    stem, _, version = last.rpartition(".")
    return stem if stem and _VERSION.match(version) else last
