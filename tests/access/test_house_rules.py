"""One rule, one file: nobody else decides who may see what (rules 6, 7 and 15)."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group

from apps.access.registry import source_entries
from apps.access.sources import Source

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {"apps/access/rules.py"}
FLAGS = {"is_superuser"}
# What lists or writes the flag of an account, without deciding about data by it.
FLAG_ALLOWED = ALLOWED | {"apps/access/accounts.py", "apps/access/admin.py"}


@functools.cache
def sources() -> tuple[tuple[str, ast.Module], ...]:
    """Every module of the project with its tree."""
    return tuple(_parsed())


def _parsed() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("apps", "cograph_site"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if "/migrations/" not in name:
                yield name, ast.parse(path.read_text(encoding="utf-8"), name)


def attribute_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def test_no_other_file_compares_a_visibility() -> None:
    offenders = []
    for name, tree in sources():
        if name in ALLOWED:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                named = any(attribute_of(side) == "visibility" for side in sides)
                fixed = any(isinstance(side, ast.Constant | ast.Tuple | ast.Set | ast.List) for side in sides)
                constant = any(attribute_of(side) in ("PUBLIC", "PRIVATE", "ADMIN_ONLY") for side in sides)
                if (named and fixed) or constant:
                    offenders.append(f"{name}:{node.lineno}")
            if isinstance(node, ast.keyword) and node.arg and re.fullmatch(r"(.*__)?visibility(__\w+)?", node.arg):
                value = node.value
                filters = isinstance(value, ast.Attribute) and value.attr in ("PUBLIC", "PRIVATE", "ADMIN_ONLY")
                if filters and is_filter(tree, node):
                    offenders.append(f"{name}:{value.lineno}")
    assert offenders == []


def is_filter(tree: ast.Module, wanted: ast.keyword) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and wanted in node.keywords:
            return attribute_of(node.func) in ("filter", "exclude", "get") or (
                isinstance(node.func, ast.Name) and node.func.id == "Q"
            )
    return False


def test_no_other_file_tests_the_flag_of_a_user() -> None:
    offenders = []
    for name, tree in sources():
        if name in FLAG_ALLOWED:
            continue
        offenders += [
            f"{name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in FLAGS and isinstance(node.ctx, ast.Load)
        ]
    assert offenders == []


def test_no_other_file_reads_a_grant_table() -> None:
    tables = {model.__name__ for entry in source_entries() for model in (entry.user_grants, entry.group_grants)}
    assert tables
    offenders = []
    for name, tree in sources():
        if name in ALLOWED:
            continue
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ("objects", "_default_manager", "_base_manager")
                and isinstance(node.value, ast.Name)
                and node.value.id in tables
            ):
                offenders.append(f"{name}:{node.lineno}")
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ("user_grants", "group_grants")
                and name != "apps/access/registry.py"
            ):
                offenders.append(f"{name}:{node.lineno}")
    assert offenders == []


def test_nobody_asks_guardian_or_djangos_permissions_for_rows() -> None:
    asked = re.compile(r"guardian\.shortcuts|get_objects_for_(user|group)|\.has_perms?\(|permission_required")
    offenders = [
        f"{path.relative_to(ROOT)}"
        for folder in ("apps", "cograph_site", "templates")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".html") and asked.search(path.read_text(encoding="utf-8"))
    ]
    assert offenders == []


def test_every_model_with_a_path_to_a_source_has_visible_to() -> None:
    grants = {model for entry in source_entries() for model in (entry.user_grants, entry.group_grants)}
    missing = []
    for model in apps.get_models():
        if not model.__module__.startswith("apps.") or model in grants or not leads_to_source(model):
            continue
        if not hasattr(model._default_manager.all(), "visible_to"):
            missing.append(model._meta.label)
    assert missing == []


def leads_to_source(model: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Whether a chain of foreign keys, or a (kind, id) pair of columns, leads from a row to a source."""
    if issubclass(model, Source):
        return True
    if model in seen or model is Group:
        return False
    names = {field.name for field in model._meta.concrete_fields}
    if {"source_kind", "source_id"} <= names:
        return True
    return any(
        leads_to_source(field.related_model, seen | {model})
        for field in model._meta.concrete_fields
        if field.is_relation and field.related_model is not None
    )


def test_every_source_model_keeps_its_two_grant_tables_and_permissions() -> None:
    assert source_entries()
    for entry in source_entries():
        assert {codename for codename, _ in entry.model._meta.permissions} >= {"read", "write"}
        for grants in (entry.user_grants, entry.group_grants):
            names = {field.name for field in grants._meta.fields}
            assert {"content_object", "permission", "granted_by", "granted_as_admin"} <= names
