"""What is left of names that left the code: the nearest symbol, flag, variable or path of the same repository.

Best first: what took the name's place in the commit that removed it (``renames``), what bears the same name elsewhere,
what resembles it in the same file, what resembles it anywhere. Only what is in the synced commit is ever named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from apps.markup.nearest import ALIKE, NearestNames
from apps.repos.code.renames import Candidate, Spell, identifiers, moved, renamed
from apps.repos.code.spelling import env_names_in, flags_in
from apps.repos.git.diffs import hunks_of, renamed_paths
from apps.repos.git.errors import GitFailure
from apps.repos.git.removals import Removal, removed_names
from apps.repos.models import Repository, RepositoryFile
from apps.repos.models_code import CodeDeparture, CodeFile, CodeNode, DepartureKind
from apps.symbols.languages import GRAMMARS, language_of
from apps.symbols.names import parts_of

ENDINGS = tuple(ending for grammar in GRAMMARS for ending in grammar.extensions)
MOST_COMMITS = 100
"""Commits whose changes are looked at in one run."""
STEPS = 4
"""A name that was renamed again is followed so often."""


@dataclass(frozen=True, slots=True)
class History:
    """Where renames are looked for: the local copy, the synced commit, and the one before it (empty: all of them)."""

    mirror: Path
    commit: str
    since: str = ""
    check: Callable[[], None] | None = None
    gone_in: Mapping[str, str] = field(default_factory=dict)
    """The commit that removed each path, as far as it is known."""


def spelled(repository: Repository, kind: str) -> set[str]:
    """All flags or environment variables of the code."""
    column = "flags" if kind == DepartureKind.FLAG else "env_names"
    rows = CodeFile.objects.filter(repository=repository).values_list(column, flat=True)
    return {name for names in rows.iterator(chunk_size=2000) for name in names}


def living_of(repository: Repository, rows: Iterable[CodeDeparture]) -> set[tuple[str, str]]:
    """The survivors of ``rows`` that are in the code still, as (kind, name)."""
    found: set[tuple[str, str]] = set()
    wanted: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.survivor:
            wanted[row.kind].add(row.survivor)
    if names := wanted[DepartureKind.SYMBOL]:
        tails = {parts_of(name)[-1] for name in names if parts_of(name)}
        nodes = CodeNode.objects.filter(repository=repository, name__in=tails)
        found |= {(DepartureKind.SYMBOL.value, one) for one in nodes.values_list("qualified_name", flat=True)}
    if paths := wanted[DepartureKind.PATH]:
        files = RepositoryFile.objects.filter(repository=repository, path__in=paths)
        found |= {(DepartureKind.PATH.value, path) for path in files.values_list("path", flat=True)}
    for kind in (DepartureKind.FLAG, DepartureKind.ENV):
        if wanted[kind]:
            found |= {(kind.value, name) for name in spelled(repository, kind)}
    return found


def find_survivors(
    repository: Repository,
    rows: Sequence[CodeDeparture],
    history: History | None,
    *,
    kinds: Mapping[tuple[str, str], str],
    blobs: Mapping[str, str],
) -> None:
    """Fill in ``survivor`` of departures that know their commit. ``kinds`` of symbols by qualified name and path,
    ``blobs`` that paths had last, as far as they are known. Without ``history`` only names are compared."""
    of_kind: dict[str, list[CodeDeparture]] = defaultdict(list)
    for row in rows:
        of_kind[row.kind].append(row)
    if symbols := of_kind[DepartureKind.SYMBOL]:
        _symbols(repository, symbols, history, kinds)
    for kind in (DepartureKind.FLAG, DepartureKind.ENV):
        if of_kind[kind]:
            _settings(repository, of_kind[kind], kind, history)
    if paths := of_kind[DepartureKind.PATH]:
        _paths(repository, paths, history, blobs)


@dataclass(slots=True)
class _Trail:
    """A departure on the way to what is left of it: the name and place by which it is followed now."""

    row: CodeDeparture
    name: str
    path: str
    commit: str
    seen: set[str] = field(default_factory=set)


Survive = Callable[[Candidate], str]
"""What a candidate is called in the synced commit; empty when it is not there."""


def _follow(
    rows: Iterable[CodeDeparture], history: History | None, spell: Spell, survivors: Callable[[set[str]], Survive]
) -> None:
    """Names that were renamed in the commit that removed them, those renamed again included."""
    if history is None:
        return
    trails = [_Trail(row, row.name, row.path, row.commit, {row.name}) for row in rows if row.commit]
    for _ in range(STEPS):
        candidates = _candidates(trails, history, spell)
        survive = survivors({one.name for found in candidates.values() for one in found})
        left: dict[str, list[_Trail]] = defaultdict(list)
        for trail in trails:
            found = candidates.get((trail.commit, trail.name), ())
            living = [survive(one) for one in found]
            if not trail.row.survivor or (living and living[0]):
                trail.row.survivor = next(filter(None, living), "")
            if living and not living[0] and found[0].name not in trail.seen:
                left[found[0].name].append(trail)
        if not left:
            return
        trails = []
        for name, removal in _removals(history, set(left)).items():
            for trail in left[name]:
                if removal.commit != trail.commit and (removal.defined or spell is not identifiers):
                    trail.name, trail.path, trail.commit = name, removal.path, removal.commit
                    trail.seen.add(name)
                    trails.append(trail)


def _removals(history: History, names: set[str]) -> dict[str, Removal]:
    try:
        return removed_names(
            history.mirror, history.commit, names, since=history.since, endings=ENDINGS, check=history.check
        )
    except GitFailure:
        return {}


def _candidates(trails: Iterable[_Trail], history: History, spell: Spell) -> dict[tuple[str, str], Sequence[Candidate]]:
    by_commit: dict[str, dict[str, str]] = defaultdict(dict)
    for trail in trails:
        by_commit[trail.commit][trail.name] = trail.path
    found: dict[tuple[str, str], Sequence[Candidate]] = {}
    for commit in list(by_commit)[:MOST_COMMITS]:
        names = by_commit[commit]
        # A symbol that went to another file is known by its body; a flag or variable has but the line it stood in.
        symbols = spell is identifiers
        hunks = hunks_of(history.mirror, commit, endings=ENDINGS, renames=not symbols, check=history.check)
        in_place = renamed(hunks, names, spell)
        elsewhere = moved(hunks, names) if symbols else {}
        for name in names:
            # The same body says more than the same line; both together most.
            likeness: dict[str, float] = defaultdict(float)
            places: dict[str, Candidate] = {}
            for one in (*elsewhere.get(name, ()), *in_place.get(name, ())):
                likeness[one.name] += one.likeness
                places.setdefault(one.name, one)
            ranked = sorted(places.values(), key=lambda one: (-likeness[one.name] - alike(name, one.name), one.name))
            found[commit, name] = ranked
    return found


def alike(left: str, right: str) -> float:
    """From 0 to 1, case ignored."""
    return SequenceMatcher(None, left.casefold(), right.casefold(), autojunk=False).ratio()


def _symbols(
    repository: Repository,
    rows: Sequence[CodeDeparture],
    history: History | None,
    kinds: Mapping[tuple[str, str], str],
) -> None:
    nodes = CodeNode.objects.filter(repository=repository).exclude(kind="module")

    def survivors(names: set[str]) -> Survive:
        living: dict[str, list[tuple[str, str]]] = defaultdict(list)
        found = nodes.filter(name__in=names).values_list("name", "file__path", "qualified_name")
        for name, path, qualified in found:
            living[name].append((path, qualified))

        def survive(candidate: Candidate) -> str:
            near = living.get(candidate.name, ())
            order = sorted((path != candidate.path, len(qualified), qualified) for path, qualified in near)
            return order[0][2] if order else ""

        return survive

    _follow(rows, history, identifiers, survivors)
    left = [row for row in rows if not row.survivor]
    if left:
        _resembling_symbols(repository, left, kinds)


def _resembling_symbols(
    repository: Repository, rows: Sequence[CodeDeparture], kinds: Mapping[tuple[str, str], str]
) -> None:
    nodes = CodeNode.objects.filter(repository=repository).exclude(kind="module")
    beside: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for path, kind, name, qualified in nodes.filter(file__path__in={row.path for row in rows}).values_list(
        "file__path", "kind", "name", "qualified_name"
    ):
        beside[path].append((kind, name, qualified))
    same: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, kind, qualified in nodes.filter(name__in={row.name for row in rows}, test=False).values_list(
        "name", "kind", "qualified_name"
    ):
        same[name].append((kind, qualified))
    left: list[CodeDeparture] = []
    for row in rows:
        kind = kinds.get((row.qualified_name, row.path), "")
        bearing = {qualified for other, qualified in same[row.name] if kind in ("", other)}
        near = max(
            ((alike(row.name, name), qualified) for other, name, qualified in beside[row.path] if kind in ("", other)),
            default=(0.0, ""),
        )
        if len(bearing) == 1:
            row.survivor = bearing.pop()
        elif near[0] >= ALIKE:
            row.survivor = near[1]
        else:
            left.append(row)
    if left:
        nearest = NearestNames(nodes.filter(test=False).values_list("name", flat=True).distinct().iterator())
        found = {row.name: nearest.find(row.name) or "" for row in left}
        whole: dict[str, str] = {}
        wanted = nodes.filter(name__in=set(found.values()), test=False).values_list("name", "qualified_name")
        for name, qualified in sorted(wanted, key=lambda one: (len(one[1]), one[1])):
            whole.setdefault(name, qualified)
        for row in left:
            row.survivor = whole.get(found[row.name], "")


def _settings(repository: Repository, rows: Sequence[CodeDeparture], kind: str, history: History | None) -> None:
    alive = spelled(repository, kind)

    def spell(line: str, path: str) -> Sequence[str]:
        return flags_in(line, language_of(path)) if kind == DepartureKind.FLAG else env_names_in(line)

    _follow(rows, history, spell, lambda _: lambda one: one.name if one.name in alive else "")
    nearest: NearestNames | None = None
    for row in rows:
        if not row.survivor:
            nearest = nearest or NearestNames(alive)
            row.survivor = nearest.find(row.name) or ""


def _paths(
    repository: Repository, rows: Sequence[CodeDeparture], history: History | None, blobs: Mapping[str, str]
) -> None:
    tracked = RepositoryFile.objects.filter(repository=repository)
    unchanged: dict[str, str] = {}
    wanted = {blobs[row.path] for row in rows if row.path in blobs}
    for blob, path in tracked.filter(blob__in=wanted).order_by("path").values_list("blob", "path"):
        unchanged.setdefault(blob, path)
    renames = _Renames(history)
    living = set(tracked.values_list("path", flat=True))
    bases: dict[str, list[str]] = defaultdict(list)
    for path in living:
        bases[path.rsplit("/", 1)[-1]].append(path)
    nearest: NearestNames | None = None
    for row in rows:
        survivor = unchanged.get(blobs.get(row.path, ""), "") or renames.follow(row.path, row.commit, living)
        if not survivor and len(bases[row.name]) == 1:
            survivor = bases[row.name][0]
        if not survivor:
            nearest = nearest or NearestNames(living)
            survivor = nearest.find(row.path) or ""
        row.survivor = survivor


class _Renames:
    """The renames of commits, each commit asked once."""

    def __init__(self, history: History | None) -> None:
        self._history = history
        self._known: dict[str, Mapping[str, str]] = {}

    def follow(self, path: str, commit: str, living: set[str]) -> str:
        """Where the file of a path is now; empty when it was not renamed, or is gone since."""
        for _ in range(STEPS):
            path = self._of(commit).get(path, "")
            if not path or path in living or self._history is None:
                return path
            commit = self._history.gone_in.get(path, "")
        return ""

    def _of(self, commit: str) -> Mapping[str, str]:
        if commit not in self._known:
            if self._history is None or not commit or len(self._known) >= MOST_COMMITS:
                return {}
            try:
                self._known[commit] = renamed_paths(self._history.mirror, commit, check=self._history.check)
            except GitFailure:
                self._known[commit] = {}
        return self._known[commit]
