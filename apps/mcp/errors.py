"""What a tool says when it cannot answer: one line ``code: message`` that the model reads and can act on."""

from __future__ import annotations

from apps.access.errors import NotFound, Refusal

LONGEST = 2000
"""Characters of an error line (``api-and-mcp.md`` 18)."""

KEPT_CODES = frozenset(
    {
        "invalid_argument",
        "out_of_range",
        "not_found",
        "ambiguous",
        "not_indexed",
        "gone",
        "stale_cursor",
        "throttled",
        "unavailable",
    }
)


class ToolError(Exception):
    """Ends a call with an error result."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(self.line)

    @property
    def line(self) -> str:
        text = " ".join(f"{self.code}: {self.message}".split())
        return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def not_found() -> ToolError:
    """One text for hidden and absent alike; it repeats nothing of the request."""
    return ToolError("not_found", NotFound.default_message)


def of_refusal(refusal: Refusal) -> ToolError:
    """A room's refusal in the words of this door."""
    code = refusal.code
    if code not in KEPT_CODES:
        code = {404: "not_found", 410: "gone", 429: "throttled", 503: "unavailable"}.get(
            refusal.status, "invalid_argument"
        )
    if code == "not_found":
        return not_found()
    field = refusal.field
    prefix = f"{field}: " if field and field not in refusal.message else ""
    return ToolError(code, prefix + refusal.message)
