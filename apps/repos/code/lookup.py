"""Symbols by id or by name, for those who were told a name. Inside one readable repository."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from apps.access.errors import NotFound
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode
from apps.symbols.names import joined

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

MOST = 50
LONGEST_NAME = 1000


def nodes_named(viewer: Viewer, repository: Repository, name: str) -> Sequence[CodeNode]:
    """The symbols that ``name`` means: the one with this id, else those with this qualified name, else those whose
    qualified name ends with it; in the order of path and line, at most 50. Raises NotFound when there is none."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or "\0" in name:
        raise NotFound
    rows = CodeNode.objects.visible_to(viewer).filter(repository=repository)
    rows = rows.select_related("file").defer("search_keys").order_by("file__path", "start_line", "id")
    try:
        by_id = list(rows.filter(pk=uuid.UUID(name)))
        if by_id:
            return by_id
    except ValueError:
        pass
    written = joined(name)
    last = written.rpartition(".")[2]
    candidates: list[Any] = list(rows.filter(search_keys__contains=[f"n{last.casefold()}"])[: MOST * 20])
    readings = [
        [node for node in candidates if node.qualified_name == name or joined(node.qualified_name) == written],
        [node for node in candidates if f".{joined(node.qualified_name)}".endswith(f".{written}")],
        [node for node in candidates if _folded(node).endswith(f".{written}".casefold())],
    ]
    for found in readings:
        if found:
            return found[:MOST]
    raise NotFound


def _folded(node: CodeNode) -> str:
    return f".{joined(node.qualified_name)}".casefold()
