"""Names of pages and what a written target may mean (``knowledge-graph.md`` 5). Pure.

A *name* is a string ``kind:text`` that leads to pages: ``slug:``, ``alias:``, ``path:``, ``stem:`` and ``label:``. A
page bears names; an occurrence wants names, in the order in which they are tried. A page is projected again when a
name that it wants leads elsewhere than before.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from apps.markup.links import candidates, joined
from apps.markup.page_names import name_key

MAX_SLUG = 128
PAGE_ENDINGS = (".md", ".markdown", ".mdx")
_SLUG = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_CROSS = re.compile(r"(?:(repo|collection)/)?([A-Za-z0-9][A-Za-z0-9._~/-]*):([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)")


def is_slug(text: str) -> bool:
    return len(text) <= MAX_SLUG and _SLUG.fullmatch(text) is not None


def last_segment(text: str) -> str:
    return text.rstrip("/").rpartition("/")[2]


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def page_names(*, uid: str, aliases: Iterable[str], path: str, label: str) -> tuple[str, ...]:
    """Every name that leads to a page."""
    names = [("slug", uid), ("path", path), ("stem", name_key(last_segment(path))), ("label", name_key(label))]
    names += [("alias", name_key(alias)) for alias in aliases]
    return _written(names)


def wanted_by_name(target: str, page_path: str) -> tuple[str, ...]:
    """What a wiki target or a front matter item may mean, first to try first."""
    target = unicodedata.normalize("NFC", target).strip()
    whole = name_key(target)
    names = [("slug", target), ("slug", whole), ("alias", whole)]
    last = whole
    if "/" in target:
        names += [("path", path) for path in _paths(target, page_path)]
        last = name_key(last_segment(target))
        names.append(("slug", last))
    return _written([*names, ("stem", last), ("label", whole), ("label", last)])


def wanted_by_owner(target: str) -> tuple[str, ...]:
    """An owner without brackets is a page only by its slug or an alias; any other name is that of a team."""
    target = target.strip()
    whole = name_key(target)
    return _written([("slug", target), ("slug", whole), ("alias", whole)])


def wanted_by_address(href: str, page_path: str) -> tuple[str, ...]:
    """The files that a relative markdown link may reach; none for what cannot be a page."""
    found: dict[str, None] = {}
    for group in candidates(href, page_path).groups():
        if group.match != "exact":
            break
        for path in group.keys:
            if path.lower().endswith(PAGE_ENDINGS):
                found.setdefault(f"path:{path}")
    return tuple(found)


def dangling_uid(target: str) -> str | None:
    """The uid under which a target that leads nowhere is kept; None when it is no possible slug."""
    uid = name_key(last_segment(target) if "/" in target else target)
    return uid if is_slug(uid) and not uid.isdigit() else None


def cross_source(target: str) -> tuple[str | None, str, str] | None:
    """(kind, source, slug) of ``[[source:slug]]``; None when the colon belongs to the target."""
    match = _CROSS.fullmatch(target.strip())
    if match is None or not is_slug(match[3]):
        return None
    return match[1], match[2].strip("/"), match[3]


def _written(names: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{kind}:{text}" for kind, text in names if text))


def _paths(target: str, page_path: str) -> list[str]:
    places = []
    for folder in (folder_of(page_path), ""):
        if target.startswith("/") and folder:
            continue
        path = joined(folder, target)
        if path:
            places.append(path)
    paths: dict[str, None] = {}
    for path in places:
        endings = ("",) if path.lower().endswith(PAGE_ENDINGS) else PAGE_ENDINGS
        for ending in endings:
            paths.setdefault(path + ending)
    return list(paths)
