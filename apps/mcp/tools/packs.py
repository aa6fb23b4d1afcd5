"""One budgeted pack for a task."""

from __future__ import annotations

from typing import Any

from apps.mcp.replies import Call, Reply
from apps.mcp.tools.searching import freshness_of
from apps.retrieval.context import context


def context_pack(call: Call) -> Reply:
    named: list[Any] = []
    if call["repository"]:
        named.append(call.repository())
    if call["collection"]:
        named.append(call.collection())
    ids = {source.kind: source.pk for source in named}
    pack = context(
        viewer=call.viewer,
        task=call["task"],
        max_tokens=call["max_tokens"],
        repository=ids.get("repository"),
        collection=ids.get("collection"),
    )
    closing = [] if not pack.reason else [f"0 parts. reason: {pack.reason}: {pack.empty}"]
    return Reply(
        freshness=freshness_of(call, named, pack.sources),
        # The pack is the same text on every door; its bodies are fenced already.
        blocks=[pack.text.rstrip("\n")],
        closing=closing,
        sources=[(part.source.kind, part.source.id) for part in pack.parts],
        meta={
            "returned": len(pack.parts),
            "total": len(pack.parts) + len(pack.cut),
            "tokens": pack.tokens,
            "max_tokens": pack.max_tokens,
            "reason": pack.reason,
            "items": [
                {
                    "tier": part.tier,
                    "document": str(part.document_id),
                    "location": part.location,
                    "source": {"kind": part.source.kind, "id": str(part.source.id)},
                    "tokens": part.tokens,
                }
                for part in pack.parts
            ],
            "pointers": [pointer.location for pointer in pack.pointers if pointer.location],
            "already_rejected": [one.place.uid for one in pack.rejected],
            "cut": [{"location": one.location, "tokens": one.tokens} for one in pack.cut],
        },
    )
