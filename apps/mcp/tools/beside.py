"""What stands beside ranked passages: pages near them in the graph, and approaches that were rejected."""

from __future__ import annotations

from typing import Any

from apps.mcp.bounds import one_line
from apps.retrieval.beside_values import PagePlace
from apps.retrieval.values import Answer

LABEL_CHARS = 120
LOCATION_CHARS = 300
WHY_CHARS = 300


def beside_blocks(answer: Answer) -> list[str]:
    """One block each, under a heading that says that these are no results; none where there is nothing."""
    blocks = []
    if answer.already_rejected:
        lines = ["already rejected (not results; do not propose these again without a new reason):"]
        for one in answer.already_rejected:
            instead = ", ".join(one_line(page.uid, 128) for page in one.successors)
            lines.append(f"- {_page(one.place)}" + (f" · instead: {instead}" if instead else ""))
        blocks.append("\n".join(lines))
    if answer.neighbours:
        lines = ["near these in the graph (not results):"]
        for near in answer.neighbours:
            why = "; ".join(part for part in (near.label, near.why) if part)
            lines.append(f"- {_page(near.place)} · {one_line(why, WHY_CHARS)}")
        blocks.append("\n".join(lines))
    return blocks


def beside_meta(answer: Answer) -> dict[str, Any]:
    """Nothing where there is nothing, so that a source without pages answers as if there were no graph."""
    found: dict[str, Any] = {}
    if answer.neighbours:
        found["neighbours"] = [{**_meta(one.place), "score": one.score} for one in answer.neighbours]
    if answer.already_rejected:
        found["already_rejected"] = [{**_meta(one.place), "cosine": one.cosine} for one in answer.already_rejected]
    return found


def _page(place: PagePlace) -> str:
    label = one_line(place.title, LABEL_CHARS)
    location = one_line(place.location, LOCATION_CHARS)
    return f"{label} ({place.node_type} {place.uid}, {place.status}) · {location} · {place.tokens} tokens"


def _meta(place: PagePlace) -> dict[str, Any]:
    return {"uid": place.uid, "document": str(place.document_id), "location": place.location}
