from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import tree_sitter_rust
from tree_sitter import Language, Node

from apps.symbols.languages.base import LOOKED_BACK, Grammar, clean_comment, text_of
from apps.symbols.values import Import

MOST_COMMENTS = 1000
_IS_TEST = re.compile(r"^#\[\s*(?:[\w:]+::)?test\s*[\](]|^#\[\s*cfg\s*\(\s*(?:all\s*\(\s*)?test\b")


class Rust(Grammar):
    name = "rust"
    extensions = (".rs",)
    separator = "::"
    query = """
    (struct_item name: (type_identifier)) @def.struct
    (union_item name: (type_identifier)) @def.struct
    (enum_item name: (type_identifier)) @def.enum
    (trait_item name: (type_identifier)) @def.trait
    (type_item name: (type_identifier)) @def.type
    (mod_item name: (identifier) body: (_)) @def.namespace
    (macro_definition name: (identifier)) @def.macro
    (function_item name: (identifier)) @def.function
    (function_signature_item name: (identifier)) @def.function
    (const_item name: (identifier)) @def.constant
    (static_item name: (identifier)) @def.variable
    (struct_item body: (field_declaration_list (field_declaration name: (field_identifier)) @def.field))
    (union_item body: (field_declaration_list (field_declaration name: (field_identifier)) @def.field))
    (enum_variant name: (identifier)) @def.constant
    (call_expression function: (_) @call)
    (macro_invocation macro: (_) @call)
    (impl_item trait: (_) @base)
    (trait_item bounds: (trait_bounds (_) @base))
    (use_declaration) @import
    """
    strings = ("string_literal", "raw_string_literal")

    def load(self) -> Language:
        return Language(tree_sitter_rust.language())

    def package(self, path: str, named: str) -> str:
        parts = list(PurePosixPath(path).with_suffix("").parts)
        if "src" in parts:
            parts = parts[parts.index("src") + 1 :]
        while parts and parts[-1] in {"mod", "lib", "main"}:
            parts.pop()
        return "::".join(parts)

    def owner(self, node: Node) -> str:
        block = node.parent.parent if node.parent is not None else None
        return self._implemented(block) if block is not None and block.type == "impl_item" else ""

    def subject(self, node: Node) -> str:
        block = node.parent
        return self._implemented(block) if block is not None and block.type == "impl_item" else ""

    def _implemented(self, block: Node) -> str:
        of = block.child_by_field_name("type")
        return text_of(of).split("<", 1)[0].rsplit("::", 1)[-1] if of is not None else ""

    def module_doc(self, root: Node, packages: Sequence[Node], data: bytes) -> str:
        """The comments for the inside (``//!``) that a file begins with."""
        if not data.lstrip().startswith((b"//!", b"/*!")):
            return ""
        said = itertools.takewhile(lambda child: child.type in self.comment_types, root.named_children[:MOST_COMMENTS])
        texts = [text for text in map(text_of, said) if text.startswith(("//!", "/*!"))]
        return clean_comment("\n".join(text.rstrip("\n").replace("/*!", "/**", 1) for text in texts))

    def doc(self, node: Node, outer: Node, body: Node | None, data: bytes) -> str:
        """Attributes may stand between a definition and its comment."""
        attributes = self._attributes(outer, data)
        return super().doc(node, attributes[-1] if attributes else outer, body, data)

    def is_test(self, node: Node, data: bytes) -> bool:
        return any(_IS_TEST.search(text_of(attribute)) for attribute in self._attributes(node, data))

    def _attributes(self, node: Node, data: bytes) -> list[Node]:
        """The attributes right above, the nearest first. Asked of the bytes first: most definitions have none."""
        start = node.start_byte
        if not data[max(0, start - LOOKED_BACK) : start].rstrip().endswith(b"]"):
            return []
        found: list[Node] = []
        above = node.prev_sibling
        while above is not None and above.type == "attribute_item":
            found.append(above)
            above = above.prev_sibling
        return found

    def body(self, node: Node) -> Node | None:
        if node.type == "macro_definition":
            return next((child for child in node.children if child.type in {"(", "[", "{"}), None)
        return super().body(node)

    def exported(self, name: str, node: Node, outer: Node) -> bool:
        if node.type == "enum_variant":
            return True
        if any(child.type == "visibility_modifier" for child in node.children):
            return True
        block = node.parent.parent if node.parent is not None else None
        return block is not None and (
            block.type == "trait_item" or (block.type == "impl_item" and block.child_by_field_name("trait") is not None)
        )

    def imports(self, node: Node) -> list[Import]:
        argument = node.child_by_field_name("argument")
        if argument is None:
            return []
        line = node.start_point[0] + 1
        found: list[Import] = []
        stack: list[tuple[Node, str]] = [(argument, "")]
        while stack:
            item, prefix = stack.pop()
            joined = f"{prefix}::" if prefix else ""
            if item.type == "use_list":
                stack += [(child, prefix) for child in reversed(item.named_children)]
            elif item.type == "scoped_use_list":
                path, listed = item.child_by_field_name("path"), item.child_by_field_name("list")
                if listed is not None:
                    stack.append((listed, joined + text_of(path) if path is not None else prefix))
            elif item.type == "use_wildcard":
                found.append(Import(joined + text_of(item).removesuffix("::*"), "*", "*", line))
            elif item.type == "use_as_clause":
                path, alias = item.child_by_field_name("path"), item.child_by_field_name("alias")
                if path is not None and alias is not None:
                    whole = joined + text_of(path)
                    module, _, member = whole.rpartition("::")
                    found.append(Import(module, member, text_of(alias), line))
            elif item.type == "self":
                module, _, member = prefix.rpartition("::")
                found.append(Import(module, member, member, line))
            else:
                module, _, member = (joined + text_of(item)).rpartition("::")
                found.append(Import(module, member, member, line))
        return found
