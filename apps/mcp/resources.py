"""Resources: a guide, who the caller is, and a short picture of each source. Lists and reads are scoped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from apps.access.errors import NotFound, Refusal
from apps.access.origin import current_origin
from apps.access.tokens import tokens_of as tokens_of_user
from apps.collections import catalogue as collections
from apps.indexing.outlines import Outlined
from apps.mcp.bounds import Room, fenced, one_line, slice_from, tokens_of
from apps.mcp.freshness import line_of
from apps.mcp.instructions import instructions
from apps.mcp.tools.outlines import Row, outline_rows
from apps.repos import catalogue as repos

if TYPE_CHECKING:
    from apps.access.models import User

GUIDE = "cograph://guide"
ME = "cograph://me"
REPO = "cograph://repo/"
COLLECTION = "cograph://collection/"
MOST_TOKENS = 3000
LEAD_CHARS = 1500
LISTED = 200


@dataclass(frozen=True, slots=True)
class Listed:
    uri: str
    name: str
    description: str
    mime_type: str = "text/markdown"


TEMPLATES = (
    Listed(
        REPO + "{host}/{owner}/{name}",
        "A repository",
        "Lead of the README, tree with token counts, freshness.",
    ),
    Listed(COLLECTION + "{id}", "A collection", "Lead, tree with token counts, freshness."),
)


def listed(viewer: User) -> list[Listed]:
    """The guide, the caller, and the first sources that he may read, in the order of their names."""
    found = [
        Listed(GUIDE, "Guide", "What this server covers and how to ask it."),
        Listed(ME, "Who you are", "Your account, scopes, and how much you can read.", "application/json"),
    ]
    found += [
        Listed(REPO + repository.slug, repository.slug, one_line(repository.description, 200))
        for repository in repos.listed(viewer).order_by("slug", "id")[:LISTED]
    ]
    found += [
        Listed(f"{COLLECTION}{shelf.pk}", one_line(shelf.name, 80), one_line(shelf.description, 200))
        for shelf in collections.listed(viewer).order_by("name", "id")[:LISTED]
    ]
    return found


def read(viewer: User, uri: str) -> tuple[str, str]:
    """Text and media type. Raises NotFound, for hidden and absent sources alike."""
    if uri == GUIDE:
        return instructions(), "text/markdown"
    if uri == ME:
        return _me(viewer), "application/json"
    try:
        if uri.startswith(REPO):
            return _repository(viewer, uri.removeprefix(REPO)), "text/markdown"
        if uri.startswith(COLLECTION):
            return _collection(viewer, uri.removeprefix(COLLECTION)), "text/markdown"
    except Refusal:
        raise NotFound from None
    raise NotFound


def _me(viewer: User) -> str:
    token = next((one for one in tokens_of_user(viewer) if str(one.pk) == current_origin().token_id), None)
    return json.dumps(
        {
            "user": viewer.get_username(),
            "scopes": list(token.scopes) if token else [],
            "readable": {
                "repositories": repos.listed(viewer).count(),
                "collections": collections.listed(viewer).count(),
            },
        },
        ensure_ascii=False,
    )


def _repository(viewer: User, slug: str) -> str:
    repository = repos.repository_at(viewer, slug)
    lead = ""
    try:
        readme = repos.readme_of(viewer, repository)
        lead = f"{one_line(readme.path)}\n{_lead(readme.text)}"
    except Refusal:
        lead = "no README"
    return _picture(repository, lead, repos.outlined(viewer, repository))


def _collection(viewer: User, id: str) -> str:
    collection = collections.collection_at(viewer, id)
    return _picture(collection, one_line(collection.description, LEAD_CHARS), collections.outlined(viewer, collection))


def _lead(text: str) -> str:
    return fenced(slice_from(text, 0, Room(LEAD_CHARS, MOST_TOKENS)).text, "markdown")


def _picture(source: Any, lead: str, found: list[Outlined]) -> str:
    """Freshness, lead, and as many lines of the tree as 3,000 tokens hold."""
    head = f"{line_of(source, timezone.now())}\n\n{lead}\n"
    rows = outline_rows(found, "", 2)
    lines: list[str] = []
    size = tokens_of(head) + 40
    for place, row in enumerate(rows):
        line = _line(row)
        size += tokens_of(line + "\n")
        if size > MOST_TOKENS:
            lines.append(f"+{len(rows) - place} more lines; read on with cograph_outline")
            break
        lines.append(line)
    return head + "\n" + "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    tokens = f" · {row.tokens} tokens" if row.tokens is not None else ""
    return "  " * row.depth + row.words + tokens
