"""Symbols by name inside one reader's scope (``retrieval.md`` 5): classes, best first, then a total order.

Everything is looked up by the keys of ``apps.symbols.names`` through one index, so the answer does not depend on what
extensions the server has. SECURITY: what is asked reaches the database as bound arrays; no pattern is made of it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, F, FloatField, Func, IntegerField, Q, QuerySet, TextField, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Length

from apps.access.viewers import Viewer
from apps.repos.globs import matches_any
from apps.repos.models import Repository
from apps.repos.models_code import CodeNode
from apps.symbols.names import PREFIX, group_key, inner_trigrams, joined, segments, trigrams

MOST = 300
MOST_ASKED = 12
ALIKE = 0.3
SURE = 0.85
"""Classes from here on name the symbol; below they only resemble it."""
CLASSES = {1.0: "qualified name", 0.95: "name", 0.9: "ending", 0.85: "segments", 0.6: "prefix"}
_TOLD = ("class", "interface", "struct", "enum", "trait", "type", "function", "method", "constructor", "macro")
_TOKEN = re.compile(r"`([^`]+)`|([^\s`'\",;!?]+)")
_LOOKS_LIKE_CODE = re.compile(r"\w(?:[_.#]|::|->)\w|^_+\w|\w\(\)$|[a-z\d][A-Z]|[A-Z]{2,}[a-z]")


@dataclass(frozen=True, slots=True)
class Found:
    """A symbol that the query names. ``evidence`` is that of its class, 0 to 1; ``exact``: case agrees too."""

    node_id: uuid.UUID
    repository_id: uuid.UUID
    repository: str
    file_id: uuid.UUID
    kind: str
    language: str
    name: str
    qualified_name: str
    signature: str
    doc_line: str
    path: str
    start_line: int
    end_line: int
    exported: bool
    evidence: float
    matched: str
    """The class: qualified name, name, ending, segments, prefix, trigrams."""


def asked_for(query: str, *, small: Collection[str] = (), whole: bool | None = None) -> list[str]:
    """The names that a query asks the symbol stream for: tokens that look like code, and the whole query when at most
    three words are left without ``small`` (stop words). A natural question asks for nothing (5.1)."""
    tokens: list[str] = []
    marked: list[str] = []
    for match in _TOKEN.finditer(query):
        written = match[1] or match[2]
        token = written.strip("()[]{}<>:. ")
        if not token:
            continue
        tokens.append(token)
        if match[1] or _LOOKS_LIKE_CODE.search(written):
            marked.append(token)
    wanted = marked[:MOST_ASKED]
    words = [token for token in tokens if token.casefold() not in small]
    if whole if whole is not None else 0 < len(words) <= 3:
        wanted.append(" ".join(words or tokens))
    return list(dict.fromkeys(wanted))


def search(
    *,
    viewer: Viewer,
    query: str,
    repository: Repository | None = None,
    repositories: Collection[uuid.UUID] | None = None,
    kind: str = "",
    language: str = "",
    path: str = "",
    limit: int = MOST,
    small: Collection[str] = (),
    whole: bool | None = None,
) -> list[Found]:
    """The symbols that ``query`` names, at most ``limit`` (300), in a total order.

    ``path`` is a prefix, or a glob; ``whole`` asks for the whole query whatever its length. Never raises for input.
    """
    wanted = [name for name in asked_for(query[:2000].replace("\0", " "), small=small, whole=whole) if name]
    if not wanted:
        return []
    rows: QuerySet[CodeNode] = CodeNode.objects.visible_to(viewer)
    if repository is not None:
        rows = rows.filter(repository=repository)
    if repositories is not None:
        rows = rows.filter(repository__in=repositories)
    if kind:
        rows = rows.filter(kind=kind)
    if language:
        rows = rows.filter(language=language)
    if path and not _is_glob(path):
        rows = rows.filter(file__path__startswith=path)
    limit = min(limit, MOST)
    cut = MOST * 4 if _is_glob(path) else limit
    found = _named(rows, wanted, cut)
    if len(found) < limit and not any(one.evidence >= SURE for one in found):
        known = {one.node_id for one in found}
        found += [one for one in _alike(rows, wanted, cut) if one.node_id not in known]
    if _is_glob(path):
        found = [one for one in found if matches_any(one.path, [path])]
    return found[:limit]


def _is_glob(path: str) -> bool:
    return any(character in path for character in "*?[")


def _named(rows: QuerySet[CodeNode], wanted: Sequence[str], limit: int) -> list[Found]:
    """The classes above the trigrams, by one query."""
    qualified = [f"q{joined(name).casefold()}" for name in wanted]
    plain = [f"n{joined(name).casefold()}" for name in wanted]
    ending = [f"e{joined(name).casefold()}" for name in wanted if "." in joined(name)]
    groups = [group_key(words) for words in map(_words, wanted) if words]
    starts = [name.casefold() for name in wanted if len(name) >= PREFIX and " " not in name]
    begins = Q(pk__in=())
    for start in starts:
        # All that begin so hold the triples inside it too, which are rarer together than its first three letters.
        keys = [f"p{start[:PREFIX]}", *(f"t{triple}" for triple in inner_trigrams(start))]
        begins |= Q(search_keys__contains=keys) & (Q(name__istartswith=start) | Q(segments__contains=f" {start}"))
    classes = [(1.0, qualified), (0.95, plain), (0.9, ending), (0.85, groups)]
    evidence = Case(
        *(When(search_keys__overlap=keys, then=Value(value)) for value, keys in classes if keys),
        When(begins, then=Value(0.6)),
        default=Value(0.0),
        output_field=FloatField(),
    )
    named = Q(search_keys__overlap=[*qualified, *plain, *ending, *groups])
    return _rows(rows.filter(named | begins).annotate(evidence=evidence), wanted, limit)


def _words(name: str) -> list[str]:
    """The words of a name, or of several that stand apart."""
    last = joined(name).rsplit(".", 1)[-1] if " " not in name else name
    return [word for part in last.split() for word in segments(part)]


def _alike(rows: QuerySet[CodeNode], wanted: Sequence[str], limit: int) -> list[Found]:
    """Names whose letter triples resemble those of one that is asked for: typing errors."""
    found: dict[uuid.UUID, Found] = {}
    for name in wanted[:3]:
        triples = sorted(trigrams(joined(name).rsplit(".", 1)[-1]))
        if len(triples) < 3:
            continue
        keys = [f"t{triple}" for triple in triples]
        shared: Any = RawSQL(
            "(SELECT count(*) FROM unnest(code_nodes.search_keys) AS one WHERE one = ANY(%s))", [keys], IntegerField()
        )
        close = (
            rows.filter(search_keys__overlap=_rarest(keys))
            .annotate(shared=shared)
            .annotate(
                alike=Cast(F("shared"), FloatField())
                / Cast(F("trigrams") + Value(len(keys)) - F("shared"), FloatField())
            )
            .filter(alike__gte=ALIKE)
            .annotate(evidence=Value(0.5) * F("alike"))
        )
        for one in _rows(close, [name], limit):
            found.setdefault(one.node_id, one)
    return sorted(found.values(), key=lambda one: -one.evidence)


def _rarest(keys: Sequence[str]) -> list[str]:
    """Names that share 0.3 of all triples share one of any 0.71 of those asked for: the others need no look-up."""
    need = max(1, int(len(keys) * ALIKE + 0.999))
    return list(keys[: len(keys) - need + 1])


def _rows(rows: QuerySet[Any], wanted: Sequence[str], limit: int) -> list[Found]:
    lasts = sorted({joined(name).rsplit(".", 1)[-1] for name in wanted})
    ordered = rows.annotate(
        exact=Case(When(name__in=lasts, then=Value(0)), default=Value(1), output_field=IntegerField()),
        aside=Case(When(Q(test=True) | Q(side=True), then=Value(1)), default=Value(0), output_field=IntegerField()),
        told=Case(When(kind__in=_TOLD, then=Value(0)), default=Value(1), output_field=IntegerField()),
        length=Length("qualified_name"),
        doc_line=Func(F("doc"), Value("\n"), Value(1), function="split_part", output_field=TextField()),
    ).order_by("-evidence", "exact", "aside", "told", "length", "file__path", "start_line", "repository__slug", "id")
    values: Iterable[Any] = ordered.values_list(
        "id", "repository_id", "repository__slug", "file_id", "kind", "language", "name", "qualified_name", "signature",
        "doc_line", "file__path", "start_line", "end_line", "exported", "evidence",
    )[:limit]  # fmt: skip
    return [_found(row) for row in values]


def _found(row: Sequence[Any]) -> Found:
    evidence = round(row[-1], 6)
    values: tuple[Any, ...] = (*row[:-1], evidence, CLASSES.get(evidence, "trigrams"))
    return Found(*values)
