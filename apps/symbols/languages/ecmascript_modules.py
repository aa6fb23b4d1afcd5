"""What JavaScript and TypeScript files bring in and hand out: statements, ``require``, assignments to ``exports``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from apps.symbols.languages.base import text_of
from apps.symbols.values import Import

_ASSIGNED = re.compile(
    rb"^(?:module\.)?exports(?:\.[\w$]+)?[ \t]*=[ \t]*(?:class[ \t]+)?([A-Za-z_$][\w$]*)", re.MULTILINE
)
_ASSIGNED_ALL = re.compile(rb"^(?:module\.)?exports[ \t]*=[ \t]*\{([^}]{0,4000})", re.MULTILINE)
_ENTRY = re.compile(rb"([A-Za-z_$][\w$]*)\s*(?::\s*([A-Za-z_$][\w$]*))?")


def listed(nodes: Sequence[Node]) -> dict[str, str]:
    """Of ``export`` statements without a module: the name for others, with the name here."""
    found: dict[str, str] = {}
    for node in nodes:
        for child in node.named_children:
            if child.type == "export_clause":
                for one in child.named_children:
                    name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
                    if name is not None:
                        found[text_of(alias if alias is not None else name)] = text_of(name)
            elif child.type == "identifier":
                found["default"] = text_of(child)
            elif (name := child.child_by_field_name("name")) is not None:
                found["default"] = text_of(name)
    return found


def assigned(data: bytes) -> dict[str, str]:
    """The same of assignments at the left margin: ``module.exports = { a, b: c }``, ``exports.K = K``."""
    found: dict[str, str] = {}
    for match in _ASSIGNED_ALL.finditer(data):
        for part in match[1].split(b","):
            if entry := _ENTRY.fullmatch(part.strip()):
                found[entry[1].decode()] = (entry[2] or entry[1]).decode()
    for match in _ASSIGNED.finditer(data):
        found.setdefault(match[1].decode(), match[1].decode())
    return found


def imports(node: Node) -> list[Import]:
    """Of an import or export statement, a call of ``require`` or of ``import``."""
    line = node.start_point[0] + 1
    if node.type == "call_expression":
        return _of_call(node, line)
    source = node.child_by_field_name("source")
    if source is None:
        clause = next((child for child in node.named_children if child.type == "import_require_clause"), None)
        source = clause.child_by_field_name("source") if clause is not None else None
        if clause is None or source is None:
            return []
        return [Import(text_of(source).strip("\"'`"), "", text_of(clause.named_children[0]), line)]
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
    if found:
        return found
    return [Import(module, "*", "*", line) if node.type == "export_statement" else Import(module, "", "", line)]


def _of_call(call: Node, line: int) -> list[Import]:
    """``require("./a")`` with what it is bound to, and ``import("./a")``."""
    arguments = call.child_by_field_name("arguments")
    if arguments is None or not arguments.named_children:
        return []
    module = text_of(arguments.named_children[0]).strip("\"'`")
    member = ""
    holder = call.parent
    if holder is not None and holder.type == "member_expression":
        taken = holder.child_by_field_name("property")
        member = text_of(taken) if taken is not None else ""
        holder = holder.parent
    name = holder.child_by_field_name("name") if holder is not None and holder.type == "variable_declarator" else None
    if name is None:
        return [Import(module, "", "", line)]
    if name.type == "identifier":
        return [Import(module, member, text_of(name), line)]
    found: list[Import] = []
    for part in name.named_children if not member else ():
        key, value = part.child_by_field_name("key"), part.child_by_field_name("value")
        if part.type == "shorthand_property_identifier_pattern":
            found.append(Import(module, text_of(part), text_of(part), line))
        elif key is not None and value is not None and value.type == "identifier":
            found.append(Import(module, text_of(key), text_of(value), line))
    return found or [Import(module, "", "", line)]


def required_module(value: Node) -> Node | None:
    """The call of ``require`` that a value is, or is a member of."""
    if value.type == "member_expression":
        held = value.child_by_field_name("object")
        value = held if held is not None else value
    function = value.child_by_field_name("function") if value.type == "call_expression" else None
    return value if function is not None and text_of(function) == "require" else None


def bound(pattern: Node) -> list[Node]:
    """The names that a pattern binds: ``{ a, b: c, ...d }``, ``[e]``."""
    found: list[Node] = []
    stack = [pattern]
    while stack:
        node = stack.pop()
        if node.type in {"identifier", "shorthand_property_identifier_pattern"}:
            found.append(node)
        elif node.type == "pair_pattern":
            stack += [part for part in [node.child_by_field_name("value")] if part is not None]
        elif node.type in {"object_assignment_pattern", "assignment_pattern"}:
            stack += [part for part in [node.child_by_field_name("left")] if part is not None]
        elif node.type in {"object_pattern", "array_pattern", "rest_pattern"}:
            stack += reversed(node.named_children)
    return found
