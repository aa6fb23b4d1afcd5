"""Symbols by name inside one reader's scope (``retrieval.md`` 5): classes, best first, then a total order.

Everything is looked up by the keys of ``apps.symbols.names`` through one index, and typing errors by letter triples
(``alike``), so the answer does not depend on what extensions the server has. SECURITY: what is asked reaches the
database as bound values; no pattern is made of it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from apps.access.compiled import readable_ids
from apps.access.viewers import Viewer
from apps.indexing.statements import Fragment, fetch, numbers_text
from apps.repos.code.alike import MOST_ALIKE, Alike, alike
from apps.repos.globs import database_pattern, is_glob
from apps.repos.models import Repository
from apps.symbols.names import PREFIX, group_key, inner_trigrams, joined, segments

MOST = 300
MOST_ASKED = 12
LAST_CHARACTER = "\U0010ffff"
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
    scope = Fragment(*readable_ids(Repository, viewer))
    if repository is not None:
        repositories = {repository.pk} if repositories is None or repository.pk in repositories else ()
    if repositories is not None:
        # SECURITY: what is asked for only narrows what may be read.
        scope = Fragment(
            f"SELECT r.id FROM ({scope.sql}) AS r (id) WHERE r.id = ANY(%s::uuid[])",  # noqa: S608 - Django's own SQL
            (*scope.params, list(repositories)),
        )
    where = Where.of(scope, kind=kind, language=language, path=path)
    limit = min(limit, MOST)
    found = _found(named(where, wanted, limit))
    if len(found) < limit and not any(one.evidence >= SURE for one in found):
        known = {one.node_id for one in found}
        found += [one for one in _resembling(where, wanted, limit) if one.node_id not in known]
    return found[:limit]


@dataclass(frozen=True, slots=True)
class Where:
    """The rows that may be found at all. SECURITY: every statement here joins its conditions to this one."""

    repositories: Fragment
    condition: Fragment

    @classmethod
    def of(
        cls,
        repositories: Fragment,
        among: Fragment | None = None,
        *,
        kind: str = "",
        language: str = "",
        path: str = "",
    ) -> Where:
        """``repositories`` and ``among`` are SELECTs of ids, of repositories and of symbols; ``path`` is a prefix, or a
        glob."""
        sql, params = f"n.repository_id IN ({repositories.sql})", repositories.params
        if kind:
            sql, params = f"{sql} AND n.kind = %s::text", (*params, kind)
        if language:
            sql, params = f"{sql} AND n.language = %s::text", (*params, language)
        if is_glob(path):
            sql, params = f"{sql} AND f.path ~ %s::text", (*params, database_pattern(path))
        elif path:
            sql, params = f"{sql} AND starts_with(f.path, %s::text)", (*params, path)
        if among is not None:
            sql, params = f"{sql} AND n.id IN ({among.sql})", (*params, *among.params)
        return cls(repositories, Fragment(sql, params))


def named(where: Where, wanted: Sequence[str], limit: int) -> Fragment:
    """The classes above the trigrams: a SELECT of the columns of ``Found``, best first."""
    folded = [joined(name).casefold() for name in wanted]
    groups = [group_key(words) for words in map(_words, wanted) if words]
    classes = {
        1.0: [f"q{name}" for name in folded],
        0.95: [f"n{name}" for name in folded],
        0.9: [f"e{name}" for name in folded if "." in name],
        0.85: groups,
    }
    begins, begun = ["false"], []
    for start in [name.casefold() for name in wanted if len(name) >= PREFIX and " " not in name]:
        if start.isalnum():
            # All that begin so hold the triples inside it too, which are rarer together than its first three letters.
            keys = [f"p{start[:PREFIX]}", *(f"t{triple}" for triple in inner_trigrams(start))]
            begins.append(
                "(n.search_keys @> %s::text[]"
                " AND (starts_with(upper(n.name), upper(%s::text)) OR strpos(n.segments, %s::text) > 0))"
            )
            begun += [keys, start, f" {start}"]
        else:  # no word begins so, only a whole name
            begins.append("(upper(n.name) >= upper(%s::text) AND upper(n.name) < upper(%s::text) || %s::text)")
            begun += [start, start, LAST_CHARACTER]
    cases = [(value, keys) for value, keys in classes.items() if keys]
    whens = " ".join(f"WHEN n.search_keys && %s::text[] THEN {value}" for value, _ in cases)
    return _ranked(
        where,
        wanted,
        limit,
        evidence=Fragment(f"(CASE {whens} ELSE 0.6 END)::float8", tuple(keys for _, keys in cases)),
        condition=Fragment(
            f"(n.search_keys && %s::text[] OR {' OR '.join(begins)})",
            ([key for _, keys in cases for key in keys], *begun),
        ),
    )


def _words(name: str) -> list[str]:
    """The words of a name, or of several that stand apart."""
    last = joined(name).rsplit(".", 1)[-1] if " " not in name else name
    return [word for part in last.split() for word in segments(part)]


def _resembling(where: Where, wanted: Sequence[str], limit: int) -> list[Found]:
    """Names whose letter triples resemble those of one that is asked for: typing errors."""
    found: dict[uuid.UUID, Found] = {}
    for name in wanted[:3]:
        # Filters and symbols that are gone may leave too few of the best: then all that resemble the name are asked.
        for most in (limit, MOST_ALIKE):
            close = alike(where.repositories, name, most)
            here = _found(resembling(where, name, close, limit))
            if len(here) >= limit or len(close) < most:
                break
        for one in here:
            found.setdefault(one.node_id, one)
    return sorted(found.values(), key=lambda one: -one.evidence)


def resembling(where: Where, name: str, close: Sequence[Alike], limit: int) -> Fragment:
    """The symbols ``close`` to ``name``: a SELECT of the columns of ``Found``, best first."""
    places = {key: place for place, key in enumerate(dict.fromkeys(one.repository_id for one in close), 1)}
    return _ranked(
        where,
        [name],
        limit,
        evidence=Fragment("0.5 * close.similarity"),
        table=Fragment(
            "unnest(%s::int4[], %s::int4[], %s::float8[]) AS close (place, number, similarity)"
            " JOIN code_nodes n ON n.repository_id = (%s::uuid[])[close.place] AND n.number = close.number",
            (
                numbers_text(places[one.repository_id] for one in close),
                numbers_text(one.number for one in close),
                numbers_text(one.similarity for one in close),
                list(places),
            ),
        ),
    )


def _ranked(
    where: Where,
    wanted: Sequence[str],
    limit: int,
    *,
    evidence: Fragment,
    table: Fragment = Fragment("code_nodes n"),  # noqa: B008 - frozen
    condition: Fragment = Fragment("true"),  # noqa: B008
) -> Fragment:
    """The best rows in the order of 5.2. Written out: what is asked differs in its bound values only."""
    lasts = sorted({joined(name).rsplit(".", 1)[-1] for name in wanted})
    # Files and repositories are joined to what is left of a first cut: what begins with three letters may be thousands.
    # TIES: equal so far are all kept, since paths decide between them.
    order = "evidence DESC, n.name <> ALL(%s::text[]), n.test OR n.side, n.kind <> ALL(%s::text[])"
    order = f"{order}, length(n.qualified_name)"
    ordered = (lasts, list(_TOLD))
    condition_of = where.condition
    files = " JOIN code_files f ON f.id = n.file_id" if "f.path" in condition_of.sql else ""
    return Fragment(
        "SELECT n.id, n.repository_id, r.slug, n.file_id, n.kind, n.language, n.name, n.qualified_name,"  # noqa: S608
        " n.signature, split_part(n.doc, E'\\n', 1), f.path, n.start_line, n.end_line, n.exported, n.evidence"
        f" FROM (SELECT n.*, {evidence.sql} AS evidence FROM {table.sql}{files}"
        f" WHERE {condition_of.sql} AND {condition.sql} ORDER BY {order} FETCH FIRST (%s::int4) ROWS WITH TIES) AS n"
        " JOIN code_files f ON f.id = n.file_id JOIN repositories r ON r.id = n.repository_id"
        f" ORDER BY {order}, f.path, n.start_line, r.slug, n.id LIMIT %s::int4",
        (
            *evidence.params,
            *table.params,
            *condition_of.params,
            *condition.params,
            *ordered,
            limit,
            *ordered,
            limit,
        ),
    )


def _found(rows: Fragment) -> list[Found]:
    return [_of(row) for row in fetch(rows, prepare=True)]


def _of(row: Sequence[Any]) -> Found:
    evidence = round(row[-1], 6)
    values: tuple[Any, ...] = (*row[:-1], evidence, CLASSES.get(evidence, "trigrams"))
    return Found(*values)
