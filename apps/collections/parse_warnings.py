"""What parsing found odd, told to people: what happened, what it means for the document, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EFFECTS = {
    "front_matter_error": "Front matter is not valid YAML ({message}). The document is indexed without metadata."
    " {remedy}",
    "unclosed_fence": "Unclosed fence. The rest of the document counts as code. Close it with the same marks.",
    "encoding_guessed": "The text is {message}. Store it as UTF-8 if characters look wrong.",
}


def sentence(row: Mapping[str, Any]) -> str:
    """One warning of a document without its place: ``line`` and ``column`` of ``row`` say that."""
    message = str(row.get("message", ""))
    code = str(row.get("code", ""))
    if code == "front_matter_error":
        # The parser names path, line and column first.
        message = message.partition(f"column {row.get('column')}: ")[2] or message
    remedy = "Correct the header and upload it again."
    if "cannot start any token" in message:  # what the YAML parser says of a tab, of ``@`` and of a backtick
        remedy = "Replace a tab by spaces there; put a value that begins with @, ` or % into quotes."
    template = _EFFECTS.get(code)
    if template is not None:
        return template.format(message=message, remedy=remedy)
    return message[:1].upper() + message[1:] + ("" if message.endswith((".", "?")) else ".")


def with_place(row: Mapping[str, Any]) -> str:
    return f"Line {row.get('line') or 1}: {sentence(row)}"
