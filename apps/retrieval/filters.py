"""Filters of a search as conditions on the chunks of each store. They narrow the candidates, never the answer."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from apps.access.errors import Invalid
from apps.indexing.stores import Block, ChunkStore
from apps.repos.discovery import Kind
from apps.repos.globs import BadPattern, check_pattern, database_pattern, is_glob
from apps.repos.models_code import CodeNode
from apps.retrieval.values import Filters

DOC_KINDS = {
    "doc": Kind.REPO_DOC,
    "example": Kind.EXAMPLE,
    "test": Kind.TEST,
    "config": Kind.CONFIG,
    "workflow": Kind.WORKFLOW,
}
KINDS = ("doc", "collection", "code", "example", "test", "config", "workflow")
CODE_KINDS = frozenset({"code", "test"})
_OF_DOCUMENTS = ("tag", "type", "status")
_OF_TEST_SYMBOLS = "section_anchor__in"


@dataclass(frozen=True, slots=True)
class Narrowing:
    """``conditions`` by store; ``source_kinds`` None for all, else the kinds of source that can match at all."""

    conditions: Mapping[str, Q]
    source_kinds: frozenset[str] | None


def narrow(filters: Filters, stores: tuple[ChunkStore, ...], block: Block = "docs") -> Narrowing:
    """One block's share of ``filters``: a language of code leaves nothing of the documents, and what only front matter
    can tell leaves nothing of the code."""
    kinds: set[str] | None = None
    if block == "code":
        if (filters.kinds and not filters.kinds & CODE_KINDS) or any(getattr(filters, name) for name in _OF_DOCUMENTS):
            kinds = set()
    else:
        if filters.kinds:
            kinds = set()
            if "collection" in filters.kinds:
                kinds.add("collection")
            if filters.kinds & DOC_KINDS.keys():
                kinds.add("repository")
        if filters.language:
            kinds = set()
    conditions: dict[str, Q] = {}
    for store in stores:
        condition = _of_code(filters) if block == "code" else _of_store(filters, store)
        if condition:
            conditions[store.name] = condition
    return Narrowing(conditions, frozenset(kinds) if kinds is not None else None)


def of_documents(condition: Q, store: ChunkStore) -> Q:
    """A condition of :func:`narrow` on the chunks of a store of documents as one on the documents themselves: all that
    is asked is theirs."""
    prefix = f"{store.document_field}__"
    return _rewritten(condition, lambda name, value: (name.removeprefix(prefix), value))


def of_symbols(condition: Q) -> Q:
    """A condition of :func:`narrow` on the chunks of code as one on symbols."""
    return _rewritten(condition, lambda name, value: ("test", True) if name == _OF_TEST_SYMBOLS else (name, value))


def _rewritten(condition: Q, change: Callable[[str, Any], tuple[str, Any]]) -> Q:
    made = Q(_connector=condition.connector, _negated=condition.negated)
    made.children += [
        _rewritten(child, change) if isinstance(child, Q) else change(*child)  # type: ignore[misc]
        for child in condition.children
    ]
    return made


def _of_path(path: str, field: str) -> Q:
    if not path:
        return Q()
    if is_glob(path):
        return Q(**{f"{field}__regex": _glob(path)})
    return Q(**{f"{field}__startswith": path.lstrip("/")})


def _of_code(filters: Filters) -> Q:
    condition = _of_path(filters.path, "file__path")
    if filters.language:
        condition &= Q(file__language=filters.language.lower())
    if len(filters.kinds & CODE_KINDS) == 1:
        condition &= _of_tests() if "test" in filters.kinds else ~_of_tests()
    # A file that no sync has dated yet is as old as the synced commit at most.
    for comparison, moment in _moments(filters):
        undated = Q(file__committed_at=None, **{f"repository__committed_at__{comparison}": moment})
        condition &= Q(**{f"file__committed_at__{comparison}": moment}) | undated
    return condition


def _of_tests() -> Q:
    """Tests are whole files, and symbols among others: a chunk bears the id of its symbol as its anchor."""
    symbols = CodeNode.objects.filter(test=True).annotate(anchor=Cast("pk", TextField()))
    return Q(file__test=True) | Q(**{_OF_TEST_SYMBOLS: symbols.values("anchor")})


def _of_store(filters: Filters, store: ChunkStore) -> Q:
    document = store.document_field
    condition = _of_path(filters.path, store.path_field)
    if filters.kinds and store.source_kind == "repository":
        wanted = [DOC_KINDS[kind].value for kind in sorted(filters.kinds) if kind in DOC_KINDS]
        condition &= Q(**{f"{document}__kind__in": wanted})
    for name in ("type", "status"):
        value = getattr(filters, name)
        if value:
            condition &= Q(**{f"{document}__frontmatter__{name}__iexact": value})
    if filters.tag:
        tags = f"{document}__frontmatter__tags"
        condition &= Q(**{f"{tags}__contains": [filters.tag]}) | Q(**{tags: filters.tag})
    written = f"{document}__committed_at" if store.source_kind == "repository" else f"{document}__changed_at"
    for comparison, moment in _moments(filters):
        condition &= Q(**{f"{written}__{comparison}": moment})
    return condition


def _moments(filters: Filters) -> Iterator[tuple[str, datetime.datetime]]:
    """The dates of ``filters`` as comparisons; the last day counts whole."""
    if filters.since:
        yield "gte", _midnight(filters.since)
    if filters.until and filters.until < datetime.date.max:  # no day follows that one
        yield "lt", _midnight(filters.until + datetime.timedelta(days=1))


def _glob(pattern: str) -> str:
    """The glob for the database. Raises Invalid for one that cannot be used."""
    try:
        check_pattern(pattern)
    except BadPattern as error:
        raise Invalid(f"The path filter cannot be used: {error}.", field="path") from None
    return database_pattern(pattern)


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)
