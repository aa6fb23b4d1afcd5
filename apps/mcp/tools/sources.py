"""Which repositories and collections there are."""

from __future__ import annotations

from typing import Any

from apps.collections import catalogue as collections
from apps.mcp.bounds import one_line
from apps.mcp.freshness import line_of
from apps.mcp.replies import Call, Reply, list_within
from apps.repos import catalogue as repos

DESCRIPTION_CHARS = 300


def repositories(call: Call) -> Reply:
    state = "" if call["state"] == "any" else call["state"]
    question = call.question(cursor=call["cursor"])

    def fetch(limit: int) -> tuple[list[Any], int, str | None]:
        page = repos.page_of(call.viewer, search=call["search"], state=state, question={**question, "limit": limit})
        symbols = repos.symbol_counts(page.items)
        for repository in page.items:
            repository.symbols_count = symbols.get(repository.pk, 0)
        return page.items, page.total, page.next_cursor

    def present(repository: Any) -> str:
        line = line_of(repository, call.now)
        facts = [
            f"branch {one_line(repository.synced_branch, 60)}" if repository.synced_branch else "no branch yet",
            str(repository.visibility),
            f"{repository.documents_count} documents",
            f"{repository.symbols_count} symbols",
        ]
        about = one_line(repository.description, DESCRIPTION_CHARS)
        return f"{line}\n{' · '.join(facts)}" + (f"\n{about}" if about else "")

    listed = list_within(call.room, call["limit"], fetch, present)
    return Reply(
        blocks=listed.blocks,
        closing=[_count(len(listed.items), listed.total, "repositories", call)],
        next_cursor=listed.next_cursor,
        meta={
            "returned": len(listed.items),
            "total": listed.total,
            "items": [
                {
                    "id": str(row.pk),
                    "slug": row.slug,
                    "commit": row.synced_commit,
                    "state": row.state,
                    "stale": row.is_stale,
                    "documents": row.documents_count,
                    "symbols": row.symbols_count,
                }
                for row in listed.items
            ],
        },
    )


def list_collections(call: Call) -> Reply:
    question = call.question(cursor=call["cursor"])

    def fetch(limit: int) -> tuple[list[Any], int, str | None]:
        page = collections.page_of(call.viewer, search=call["search"], question={**question, "limit": limit})
        return page.items, page.total, page.next_cursor

    def present(collection: Any) -> str:
        about = one_line(collection.description, DESCRIPTION_CHARS)
        facts = f"{collection.visibility} · {collection.documents_count} documents"
        return f"{line_of(collection, call.now)}\n{facts}" + (f"\n{about}" if about else "")

    listed = list_within(call.room, call["limit"], fetch, present)
    return Reply(
        blocks=listed.blocks,
        closing=[_count(len(listed.items), listed.total, "collections", call)],
        next_cursor=listed.next_cursor,
        meta={
            "returned": len(listed.items),
            "total": listed.total,
            "items": [
                {"id": str(row.pk), "name": one_line(row.name), "documents": row.documents_count}
                for row in listed.items
            ],
        },
    )


def _count(returned: int, total: int, noun: str, call: Call) -> str:
    if total:
        return f"{returned} of {total} {noun}."
    filtered = call["search"] or call.get("state") not in (None, "any")
    if filtered:
        return f"0 {noun}. reason: filters_too_narrow: nothing that you can read matches."
    return f"0 {noun}. reason: nothing_readable: there is nothing of this kind that you can read."
