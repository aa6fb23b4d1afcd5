"""A pack as the context page shows it: bodies as rendered Markdown, places numbered alike in list and picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from apps.collections.models import Document as CollectionDocument
from apps.markup.parsing import parse
from apps.markup.rendering import render
from apps.markup.rendering.resolved import Resolved
from apps.markup.values import Asset, Decoded, Limits, Link, Skipped
from apps.repos.models import RepositoryDocument
from apps.retrieval.context_links import Answers, PackLinks
from apps.retrieval.packing import Pack, Part, Pointer

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

SAMPLES = 3
LOOKED_AT = 4 * SAMPLES
"""Of the longest documents of each kind of source."""
_VERSION = re.compile(r"\W*v?\d", re.IGNORECASE)
_HEADING = re.compile(r"(</?h)([1-6])\b")
_LOWER = {"1": "4", "2": "4", "3": "5", "4": "5", "5": "6", "6": "6"}

TIER_STYLES = {"seed": "accent", "graph": "info", "link": "ok", "code reference": "warn", "co-located": ""}


@dataclass(frozen=True, slots=True)
class PartLine:
    part: Part
    number: int
    """Of its document; the node in the picture bears the same."""
    is_first: bool
    html: str
    """Safe HTML made by ``apps.markup.rendering``, its headings lowered below those of the page; empty when the body
    is to be shown as it stands."""

    @property
    def style(self) -> str:
        return TIER_STYLES[self.part.tier]

    @property
    def heading(self) -> str:
        return " › ".join(self.part.heading_path) or self.part.title


@dataclass(frozen=True, slots=True)
class PointerLine:
    pointer: Pointer
    number: int | None
    is_first: bool

    @property
    def style(self) -> str:
        return TIER_STYLES[self.pointer.tier]


@dataclass(frozen=True, slots=True)
class PackBody:
    parts: Sequence[PartLine]
    pointers: Sequence[PointerLine]


def numbers_of(pack: Pack) -> dict[UUID, int]:
    """Documents of the pack, numbered from 1 in their order."""
    ids = [part.document_id for part in pack.parts] + [one.document_id for one in pack.pointers if one.document_id]
    return {id_: number for number, id_ in enumerate(dict.fromkeys(ids), start=1)}


def pack_body(pack: Pack, links: PackLinks) -> PackBody:
    numbers = numbers_of(pack)
    seen: set[UUID] = set()
    parts, pointers = [], []
    for part in pack.parts:
        html = _rendered(part, links.answers.get(part.document_id, {}))
        parts.append(PartLine(part, numbers[part.document_id], part.document_id not in seen, html))
        seen.add(part.document_id)
    for pointer in pack.pointers:
        id_ = pointer.document_id
        pointers.append(PointerLine(pointer, numbers[id_] if id_ else None, id_ is not None and id_ not in seen))
        if id_ is not None:
            seen.add(id_)
    return PackBody(tuple(parts), tuple(pointers))


def _rendered(part: Part, answers: Answers) -> str:
    if not part.path.lower().endswith((".md", ".mdx", ".markdown", ".rst")):
        return ""
    parsed = parse(Decoded(part.body, "utf-8"), part.path, Limits())
    if isinstance(parsed, Skipped):
        return ""

    def resolve(link: Link | Asset) -> Resolved:
        kind = "" if isinstance(link, Asset) else link.link_type
        address, state, reason = answers.get((kind, link.href), (None, "broken", "open the section to follow it"))
        return Resolved(address, state, reason)  # type: ignore[arg-type]  # one of its states

    html = render(parsed, resolve, embedded_at=part.url)
    # The renderer escapes ``<`` of texts, so what looks like a heading tag is one.
    return _HEADING.sub(lambda tag: tag[1] + _LOWER[tag[2]], html)


def sample_tasks(viewer: Viewer) -> list[str]:
    """Tasks to try, from headings of the longest documents that the viewer reads; none when there are none.

    Numbers of versions are no headings to ask about: the longest documents are often lists of changes.
    """
    own: Any = RepositoryDocument.objects.visible_to(viewer).filter(state="indexed", kind="repo_doc")
    rows: Any = CollectionDocument.objects.visible_to(viewer).filter(state="indexed")
    found = [
        (title, [row["text"] for row in headings or () if row.get("level") == 2 and not _VERSION.match(row["text"])])
        for title, headings in (
            *own.order_by("-chunk_count", "path", "pk").values_list("title", "structure__headings")[:LOOKED_AT],
            *rows.order_by("-chunk_count", "source_key", "pk").values_list("title", "parsed__heading_tree")[:LOOKED_AT],
        )
    ]
    found.sort(key=lambda pair: (not pair[1], bool(_VERSION.match(pair[0]))))
    forms = ("Change what {title} says about {part}", "Find out about {part} in {title}", "Explain {part}: {title}")
    return [
        form.format(title=title, part=f"“{headings[0]}”" if headings else "its beginning")
        for form, (title, headings) in zip(forms, found, strict=False)
    ]
