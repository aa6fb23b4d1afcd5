"""The tree beside a page: the folders on the way to it are open, every other one is a name with a number.

A repository of ten thousand documents costs hardly more than one of ten: the database counts what stays closed, and
only what is shown is fetched (``portal.md`` 51).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, Case, CharField, Count, F, Func, QuerySet, Value, When
from django.db.models.functions import Substr

from apps.repos.discovery import Kind
from apps.repos.tree import Entry, build, natural, page_key

FIELDS = ("id", "path", "title", "slug", "kind", "state", "absence")


@dataclass(frozen=True, slots=True)
class Branch:
    """A folder. A closed one has neither pages nor folders, only its ``total``."""

    name: str
    path: str
    total: int
    is_open: bool
    pages: Sequence[Entry] = ()
    folders: Sequence[Branch] = ()


@dataclass(frozen=True, slots=True)
class Branches:
    docs: Branch
    files: Branch
    """Documents of the other kinds."""

    @property
    def total(self) -> int:
        return self.docs.total + self.files.total


def above(path: str) -> list[str]:
    """The folders on the way to ``path``, the outermost first, each with its final slash."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: at + 1]) + "/" for at in range(len(parts))]


def branches(rows: QuerySet[Any], open_folders: Iterable[str] = ()) -> Branches:
    """The tree of ``rows``, the documents of one repository in scope. Two queries, whatever their number."""
    prefixes = ["", *open_folders]
    is_doc = Case(When(kind=Kind.REPO_DOC, then=True), default=False, output_field=BooleanField())
    folder = Func(F("path"), Value("[^/]*$"), Value(""), function="regexp_replace", output_field=CharField())
    pages = [
        Entry(*values)
        for values in rows.order_by().annotate(folder=folder).filter(folder__in=prefixes).values_list(*FIELDS)
    ]
    counted: Any = None
    for prefix in prefixes:
        rest = Func(
            Substr("path", len(prefix) + 1), Value("/"), Value(1), function="split_part", output_field=CharField()
        )
        part = (
            rows.order_by()
            .filter(path__startswith=prefix)
            .annotate(rest=Substr("path", len(prefix) + 1))
            .filter(rest__contains="/")
            .annotate(prefix=Value(prefix), name=rest, is_doc=is_doc)
            .values_list("prefix", "name", "is_doc")
            .annotate(number=Count("pk"))
        )
        counted = part if counted is None else counted.union(part, all=True)
    return _assembled(pages, list(counted), set(prefixes))


def _assembled(
    pages: Sequence[Entry], counted: Sequence[tuple[str, str, bool, int]], open_folders: set[str]
) -> Branches:
    by_folder: dict[tuple[bool, str], list[Entry]] = {}
    for entry in pages:
        place = (entry.kind == Kind.REPO_DOC, f"{entry.folder}/" if entry.folder else "")
        by_folder.setdefault(place, []).append(entry)
    inner: dict[tuple[bool, str], list[tuple[str, int]]] = {}
    for prefix, name, is_doc, number in counted:
        inner.setdefault((is_doc, prefix), []).append((name, number))

    def made(is_doc: bool, name: str, path: str, total: int) -> Branch:
        if path not in open_folders:
            return Branch(name, path.rstrip("/"), total, False)
        below = sorted(inner.get((is_doc, path), ()), key=lambda pair: (natural(pair[0]), pair[0]))
        return Branch(
            name,
            path.rstrip("/"),
            total,
            True,
            tuple(sorted(by_folder.get((is_doc, path), ()), key=page_key)),
            tuple(made(is_doc, child, f"{path}{child}/", number) for child, number in below),
        )

    def whole(is_doc: bool) -> Branch:
        total = len(by_folder.get((is_doc, ""), ())) + sum(number for _, number in inner.get((is_doc, ""), ()))
        return made(is_doc, "", "", total)

    return Branches(whole(True), whole(False))


@dataclass(frozen=True, slots=True)
class Neighbours:
    previous: Entry | None
    next: Entry | None
    siblings: Sequence[Entry]


def neighbours(rows: QuerySet[Any], tree: Branch, path: str, document_id: UUID) -> Neighbours:
    """The pages before and after a document in the order of the tree. At most one query in each direction."""
    way = [tree]
    for prefix in above(path):
        inner = next((one for one in way[-1].folders if f"{one.path}/" == prefix), None)
        if inner is None:
            break
        way.append(inner)
    here = way[-1]
    at = next((place for place, page in enumerate(here.pages) if page.id == document_id), None)
    if at is None:
        return Neighbours(None, None, ())
    before = here.pages[at - 1] if at else _before(rows, way)
    after = here.pages[at + 1] if at + 1 < len(here.pages) else _after(rows, way)
    return Neighbours(before, after, here.pages)


def _before(rows: QuerySet[Any], way: Sequence[Branch]) -> Entry | None:
    """The page before the first one of the innermost folder."""
    for place in range(len(way) - 1, 0, -1):
        parent = way[place - 1]
        at = next(number for number, one in enumerate(parent.folders) if one.path == way[place].path)
        if at:
            found = _inside(rows, parent.folders[at - 1])
            return found[-1] if found else None
        if parent.pages:
            return parent.pages[-1]
    return None


def _after(rows: QuerySet[Any], way: Sequence[Branch]) -> Entry | None:
    """The page after the last one of the innermost folder."""
    here = way[-1]
    if here.folders:
        found = _inside(rows, here.folders[0])
        return found[0] if found else None
    for place in range(len(way) - 1, 0, -1):
        parent = way[place - 1]
        at = next(number for number, one in enumerate(parent.folders) if one.path == way[place].path)
        if at + 1 < len(parent.folders):
            found = _inside(rows, parent.folders[at + 1])
            return found[0] if found else None
    return None


def _inside(rows: QuerySet[Any], folder: Branch) -> Sequence[Entry]:
    inside = rows.order_by().filter(kind=Kind.REPO_DOC, path__startswith=f"{folder.path}/").values_list(*FIELDS)
    return build(Entry(*values) for values in inside).order
