"""Names that left the code: symbols, paths, flags, environment variables, with the commit that removed them.

A document that still uses such a name has drifted (``repository-documents.md`` 10.2). Names that the code never had are
no drift, so what left is written down when a sync sees it go; what left before the first sync is looked for once, in
the history, for the names that documents use and the code does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from django.db import connection

from apps.jobs.running import JobRun
from apps.repos.code.mentions import CALL, CODE, ENV, FLAG
from apps.repos.code.storing import Changes
from apps.repos.code.survivors import ENDINGS, History, find_survivors, living_of, spelled
from apps.repos.discovery import Kind
from apps.repos.git.errors import GitFailure
from apps.repos.git.listing import is_ancestor
from apps.repos.git.removals import Removal, removed_names, removed_paths
from apps.repos.models import Repository, RepositoryDocument, RepositoryFile
from apps.repos.models_code import ChunkNames, CodeDeparture, CodeNode, CodeState, DepartureKind
from apps.symbols.languages.base import dotted_path
from apps.symbols.names import parts_of

MOST_DEPARTURES = 20_000
"""With more names than this gone at once the code was replaced: that is no drift of single names."""


def note_departures(
    run: JobRun,
    repository: Repository,
    changes: Changes,
    gone_paths: Mapping[str, str],
    *,
    mirror: Path,
    previous: str,
) -> int:
    """Write down what this sync saw go, take back what returned. ``gone_paths`` are paths with their last blob."""
    searched = CodeState.objects.filter(repository=repository, history_searched=True).exists()
    rows = _gone_symbols(repository, changes) + _gone_settings(repository, changes)
    rows += _gone_files(repository, gone_paths)
    commit = repository.synced_commit
    kinds = {(one.qualified_name, one.path): one.kind for one in changes.gone}
    if rows:
        history = _date(rows, repository, mirror, previous, run)
        find_survivors(repository, rows, history, kinds=kinds, blobs=gone_paths)
    if commit and not searched:
        rows += _search_history(repository, mirror, run)
    once = {(row.kind, row.qualified_name, row.path): row for row in rows}
    with run.batch():
        CodeDeparture.objects.bulk_create(
            once.values(),
            update_conflicts=True,
            unique_fields=["repository", "kind", "qualified_name", "path"],
            update_fields=["commit", "survivor", "noticed_at"],
            batch_size=2000,
        )
        _take_back(repository)
        _pass_on(repository, once.values())
        if commit and not searched:
            CodeState.objects.filter(repository=repository).update(history_searched=True)
    return len(rows)


def _gone_symbols(repository: Repository, changes: Changes) -> list[CodeDeparture]:
    if not changes.gone or len(changes.gone) > MOST_DEPARTURES:
        return []
    alive = set(
        CodeNode.objects.filter(
            repository=repository, qualified_name__in={gone.qualified_name for gone in changes.gone}
        ).values_list("qualified_name", flat=True)
    )
    gone = {one.qualified_name: one for one in changes.gone if one.qualified_name not in alive and one.kind != "module"}
    return [
        CodeDeparture(
            repository=repository,
            kind=DepartureKind.SYMBOL,
            name=one.name,
            qualified_name=qualified,
            path=one.path,
        )
        for qualified, one in gone.items()
    ]


def _gone_settings(repository: Repository, changes: Changes) -> list[CodeDeparture]:
    rows: list[CodeDeparture] = []
    for kind, old in ((DepartureKind.FLAG, changes.flags), (DepartureKind.ENV, changes.env_names)):
        alive = spelled(repository, kind) if old else set()
        rows += [
            CodeDeparture(repository=repository, kind=kind, name=name, qualified_name=name, path=path)
            for name, path in sorted(old.items())
            if name not in alive
        ]
    return rows


def _gone_files(repository: Repository, gone: Mapping[str, str]) -> list[CodeDeparture]:
    return [_path_row(repository, path) for path in gone] if len(gone) <= MOST_DEPARTURES else []


def _path_row(repository: Repository, path: str, commit: str = "") -> CodeDeparture:
    return CodeDeparture(
        repository=repository,
        kind=DepartureKind.PATH,
        name=path.rsplit("/", 1)[-1],
        qualified_name=path,
        path=path,
        commit=commit,
    )


def _date(rows: Iterable[CodeDeparture], repository: Repository, mirror: Path, previous: str, run: JobRun) -> History:
    """The commit that removed each name, between the last sync and this one; the synced one when git cannot tell."""
    commit = repository.synced_commit
    by_name: Mapping[str, Removal] = {}
    by_path: Mapping[str, str] = {}
    since = previous if previous and commit and is_ancestor(mirror, previous, commit) else ""
    if since:
        names = {row.name for row in rows if row.kind != DepartureKind.PATH}
        try:
            by_name = removed_names(mirror, commit, names, since=since, endings=ENDINGS, check=run.check)
            by_path = removed_paths(mirror, commit, since=since, check=run.check)
        except GitFailure:
            pass
    for row in rows:
        if row.kind == DepartureKind.PATH:
            row.commit = by_path.get(row.path, "") or commit
        else:
            removal = by_name.get(row.name)
            row.commit = removal.commit if removal is not None else commit
    return History(mirror, commit, since, run.check, by_path)


def _search_history(repository: Repository, mirror: Path, run: JobRun) -> list[CodeDeparture]:
    """Once, after the first sync: names that documents use, that the code does not have and once had."""
    wanted = _unknown_names(repository)
    paths = _unknown_paths(repository)
    if not wanted and not paths:
        return []
    commit = repository.synced_commit
    try:
        found = removed_names(mirror, commit, set(wanted), endings=ENDINGS, check=run.check)
        gone = removed_paths(mirror, commit, check=run.check) if paths else {}
    except GitFailure:
        return []
    rows: list[CodeDeparture] = []
    for name, removal in sorted(found.items()):
        kind = wanted[name]
        if kind == DepartureKind.SYMBOL and not removal.defined:
            continue  # used once, but never defined here: nobody's drift
        module = dotted_path(removal.path).replace("/", ".")
        rows.append(
            CodeDeparture(
                repository=repository,
                kind=kind,
                name=name,
                qualified_name=f"{module}.{name}" if kind == DepartureKind.SYMBOL else name,
                path=removal.path,
                commit=removal.commit,
            )
        )
    rows += [
        _path_row(repository, path, removed_in)
        for path, removed_in in sorted(gone.items())
        if path in paths or path.rsplit("/", 1)[-1] in paths
    ]
    find_survivors(repository, rows, History(mirror, commit, "", run.check, gone), kinds={}, blobs={})
    return rows


def _unknown_names(repository: Repository) -> dict[str, str]:
    """Names in documents without a meaning in the code, by the kind that they would have."""
    found: dict[str, str] = {}
    rows = ChunkNames.objects.filter(repository=repository, document__kind=Kind.REPO_DOC)
    for names in rows.values_list("names", flat=True).iterator(chunk_size=1000):
        for name, form, *_ in names:
            if form in (CODE, CALL):
                found.setdefault(parts_of(name)[-1], DepartureKind.SYMBOL)
            elif form == FLAG:
                found[name] = DepartureKind.FLAG
            elif form == ENV:
                found[name] = DepartureKind.ENV
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT name FROM code_nodes WHERE repository_id = %s", [repository.pk])
        known = {row[0] for row in cursor.fetchall()}
    known |= spelled(repository, DepartureKind.FLAG) | spelled(repository, DepartureKind.ENV)
    return {name: kind for name, kind in found.items() if name not in known}


def _unknown_paths(repository: Repository) -> set[str]:
    named = named_paths(repository)
    known = set(RepositoryFile.objects.filter(repository=repository).values_list("path", flat=True))
    bases = {path.rsplit("/", 1)[-1] for path in known}
    return {path for _, _, path, _ in named if path not in known and path.rsplit("/", 1)[-1] not in bases}


def named_paths(repository: Repository) -> list[tuple[object, str, str, int]]:
    """(document, its path, path as named, line) of every path in inline code."""
    rows = RepositoryDocument.objects.filter(repository=repository).values_list("pk", "path", "structure__code_refs")
    return [
        (pk, path, str(reference["path"]).removeprefix("./").lstrip("/"), int(reference["line"]))
        for pk, path, references in rows.iterator(chunk_size=1000)
        for reference in references or ()
        if reference.get("path")
    ]


def _pass_on(repository: Repository, rows: Iterable[CodeDeparture]) -> None:
    """Where a survivor of earlier departures has left as well, what is left of it survives instead."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE code_departures AS d SET survivor = n.survivor FROM unnest(%s::text[], %s::text[], %s::text[])"
            " AS n(kind, gone, survivor) WHERE d.repository_id = %s AND d.kind = n.kind AND d.survivor = n.gone"
            " AND d.qualified_name <> n.survivor",
            [
                [row.kind for row in rows],
                [row.qualified_name for row in rows],
                [row.survivor for row in rows],
                repository.pk,
            ],
        )


def mend_departures(repository: Repository) -> None:
    """Look again at what is noted: names that are back, survivors that are missing or have left. The caller is inside
    a batch."""
    _take_back(repository)
    rows = list(CodeDeparture.objects.filter(repository=repository))
    living = living_of(repository, rows)
    dead = [row for row in rows if (row.kind, row.survivor) not in living]
    for row in dead:
        row.survivor = ""
    find_survivors(repository, dead, None, kinds={}, blobs={})
    CodeDeparture.objects.bulk_update(dead, ["survivor"], batch_size=2000)


def _take_back(repository: Repository) -> None:
    """Names that are in the code again have not left."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM code_departures d WHERE d.repository_id = %s AND ("
            " (d.kind = 'symbol' AND EXISTS (SELECT FROM code_nodes n WHERE n.repository_id = d.repository_id"
            "   AND n.name = d.name AND n.qualified_name = d.qualified_name))"
            " OR (d.kind = 'path' AND EXISTS (SELECT FROM repo_files f WHERE f.repository_id = d.repository_id"
            "   AND f.path = d.path))"
            " OR (d.kind = 'flag' AND EXISTS (SELECT FROM code_files f WHERE f.repository_id = d.repository_id"
            "   AND d.name = ANY(f.flags)))"
            " OR (d.kind = 'env' AND EXISTS (SELECT FROM code_files f WHERE f.repository_id = d.repository_id"
            "   AND d.name = ANY(f.env_names))))",
            [repository.pk],
        )
