"""Findings about documents and code: names that left the code, public symbols that no document mentions.

Rules: ``repository-documents.md`` 10.2. A name is drift when the code of an earlier commit had it, a document still
uses it, and nothing in the code answers to it any more.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from apps.access.viewers import Viewer
from apps.indexing.findings import Finder, Finding, Rows, register_finder
from apps.indexing.statements import Fragment, fragment_of
from apps.repos.code.departures import named_paths
from apps.repos.code.mentions import CALL, ENV, FLAG
from apps.repos.code.naming import Resolver, Symbol
from apps.repos.code.stock import COVERAGE, PUBLIC, PackageCoverage
from apps.repos.discovery import Kind
from apps.repos.models import Repository, RepositoryFile
from apps.repos.models_code import ChunkNames, CodeDeparture, CodeNode, DepartureKind
from apps.symbols.names import parts_of

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.indexing.findings import Lists

DRIFT_SYMBOL, DRIFT_PATH, DRIFT_FLAG, DRIFT_ENV = "drift_symbol", "drift_path", "drift_flag", "drift_env"
UNDOCUMENTED = "undocumented"
RULES = (DRIFT_SYMBOL, DRIFT_PATH, DRIFT_FLAG, DRIFT_ENV, UNDOCUMENTED)
MOST_UNDOCUMENTED = 1000


def register() -> None:
    register_finder(Finder("code", RULES, find, frozenset({Repository.kind}), lists))


def lists(viewer: Viewer, source: Source) -> Lists:
    """Names that left the code, public symbols that no document mentions, coverage by package."""
    # SECURITY: what is read here reads by repository; a caller that took its source from elsewhere would show it to
    # anybody, so every part asks whether the viewer may read it.
    visible = fragment_of(Repository.objects.visible_to(viewer).filter(pk=source.pk).values("pk"))
    return (
        CodeDeparture.objects.visible_to(viewer)
        .filter(repository=source.pk)
        .order_by("kind", "name", "path")
        .values(*_DEPARTURE),
        *(
            Fragment(
                f"SELECT part.* FROM ({part}) part WHERE EXISTS ({visible.sql})",  # noqa: S608 - fixed and Django's own
                (source.pk, *visible.params),
            )
            for part in (_UNMENTIONED, COVERAGE)
        ),
    )


def find(viewer: Viewer, source: Source, rows: Rows) -> Iterator[Finding]:
    """All findings of a repository that ``viewer`` may read, from the rows of ``lists``."""
    departures, undocumented, coverage = rows
    repository = cast("Repository", source)
    gone: dict[str, dict[str, list[CodeDeparture]]] = {}
    for departure in (CodeDeparture(**row) for row in departures):
        gone.setdefault(departure.kind, {}).setdefault(departure.name, []).append(departure)
    yield from _names(repository, gone)
    yield from _paths(repository, gone.get(DepartureKind.PATH, {}))
    yield from _undocumented(undocumented, [PackageCoverage(**row) for row in coverage])


_DEPARTURE = ("kind", "name", "qualified_name", "path", "commit", "survivor")
_UNMENTIONED = f"""
    SELECT n.qualified_name, n.kind, f.path, n.start_line
    FROM code_nodes n JOIN code_files f ON f.id = n.file_id
    WHERE n.repository_id = %s AND {PUBLIC}
    AND NOT EXISTS (SELECT FROM repo_document_chunk_mentions m WHERE m.node_id = n.id)
    ORDER BY f.path COLLATE "C", n.start_line, n.id LIMIT {MOST_UNDOCUMENTED + 1}
"""  # noqa: S608 - joined of fixed texts


def _names(repository: Repository, gone: dict[str, dict[str, list[CodeDeparture]]]) -> Iterator[Finding]:
    symbols = gone.get(DepartureKind.SYMBOL, {})
    flags, variables = gone.get(DepartureKind.FLAG, {}), gone.get(DepartureKind.ENV, {})
    tails = [*symbols, *flags, *variables]
    if not tails:
        return
    living = _living(repository, symbols)
    ghosts = Resolver(
        Symbol(departure, "function", name, departure.qualified_name, departure.path, 0, False)
        for name, departures in symbols.items()
        for departure in departures
    )
    rows = (
        ChunkNames.objects.filter(repository=repository, document__kind=Kind.REPO_DOC, tails__overlap=tails)
        .order_by("document__path", "chunk__start_line", "chunk_id")
        .values_list("document_id", "document__path", "chunk__start_line", "names")
    )
    seen: set[tuple[object, str, int]] = set()
    for document, path, start, names in rows.iterator(chunk_size=1000):
        for name, form, count, line in names:
            departure: CodeDeparture | None = None
            rule = DRIFT_SYMBOL
            if form <= CALL:
                tail = parts_of(name)[-1]
                if tail in symbols and living.resolve(name, path) is None:
                    found = ghosts.resolve(name, path)
                    departure = cast("CodeDeparture", found[0]) if found is not None else None
            elif form == FLAG and name in flags:
                rule, departure = DRIFT_FLAG, flags[name][0]
            elif form == ENV and name in variables:
                rule, departure = DRIFT_ENV, variables[name][0]
            at = start + line
            if departure is None or (document, name, at) in seen:
                continue
            seen.add((document, name, at))
            yield _drift(rule, departure, name, path, at, document, count)


def _living(repository: Repository, names: dict[str, list[CodeDeparture]]) -> Resolver:
    rows = CodeNode.objects.filter(repository=repository, name__in=list(names)).values_list(
        "id", "kind", "name", "qualified_name", "file__path", "start_line", "test"
    )
    return Resolver(Symbol(*row) for row in rows)


WORDS = {
    DRIFT_SYMBOL: "symbol",
    DRIFT_PATH: "path",
    DRIFT_FLAG: "flag",
    DRIFT_ENV: "environment variable",
}


def _drift(
    rule: str, departure: CodeDeparture, name: str, path: str, line: int, document: object, count: int = 1
) -> Finding:
    where = f" from {departure.path}" if departure.path and rule != DRIFT_PATH else ""
    when = f" by commit {departure.commit[:10]}" if departure.commit else ""
    times = f" ({count} times in this passage)" if count > 1 else ""
    near = f"The nearest {WORDS[rule]} that is left is `{departure.survivor}`."
    hint = near if departure.survivor else f"No {WORDS[rule]} that is left resembles it."
    return Finding(
        rule=rule,
        severity="warning",
        message=f"`{name}` is named here{times}; this {WORDS[rule]} was removed{where}{when}.",
        path=path,
        line=line,
        hint=hint,
        document_id=document,  # type: ignore[arg-type]
        fingerprint=f"{rule}:{path}:{name}",
    )


def _paths(repository: Repository, gone: dict[str, list[CodeDeparture]]) -> Iterator[Finding]:
    if not gone:
        return
    by_path = {departure.path: departure for departures in gone.values() for departure in departures}
    named = [row for row in named_paths(repository) if row[2].rsplit("/", 1)[-1] in gone]
    if not named:
        return
    tracked = set(RepositoryFile.objects.filter(repository=repository).values_list("path", flat=True))
    bases = {path.rsplit("/", 1)[-1] for path in tracked}
    for document, path, written, line in named:
        places = (posixpath.normpath(posixpath.join(posixpath.dirname(path), written)), posixpath.normpath(written))
        if any(place in tracked for place in places):
            continue
        if "/" not in written and written in bases:
            continue
        departure = next((by_path[place] for place in places if place in by_path), None)
        if departure is None:
            alike = [one for one in gone[written.rsplit("/", 1)[-1]] if one.path.endswith(f"/{written}")]
            departure = alike[0] if len(alike) == 1 else None
        if departure is not None:
            yield _drift(DRIFT_PATH, departure, written, path, line, document)


def _undocumented(rows: Sequence[Mapping[str, Any]], coverage: Sequence[PackageCoverage]) -> Iterator[Finding]:
    """Public symbols without a mention, the packages with their coverage in each message."""
    packages = {package.package: package for package in coverage}
    for row in rows[:MOST_UNDOCUMENTED]:
        path = row["path"]
        package = packages.get(posixpath.dirname(path))
        covered = ""
        if package is not None:
            share = f"{package.documented} of {package.exported}"
            covered = f" {share} public symbols of {package.package or 'the root'} are mentioned."
        yield Finding(
            rule=UNDOCUMENTED,
            severity="info",
            message=f"No document mentions the public {row['kind']} `{row['qualified_name']}`.{covered}",
            path=path,
            line=row["start_line"],
            fingerprint=f"{UNDOCUMENTED}:{path}:{row['qualified_name']}",
        )
    if len(rows) > MOST_UNDOCUMENTED:
        total = sum(package.exported - package.documented for package in packages.values())
        exported = sum(package.exported for package in packages.values())
        yield Finding(
            rule=UNDOCUMENTED,
            severity="info",
            message=f"{total:,} of {exported:,} public symbols are mentioned in no document; the first"
            f" {MOST_UNDOCUMENTED:,} are listed.",
            fingerprint=f"{UNDOCUMENTED}:all",
        )
