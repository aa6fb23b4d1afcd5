"""Source keys: the path or name under which a document is known in its collection (``collections.md`` 2.1)."""

from __future__ import annotations

import re
import unicodedata

MAX_KEY_CHARS = 1024
MAX_KEY_BYTES = 2500
"""Longer keys (only those of scripts with three bytes a character) do not fit into the index of a unique constraint."""
DOCUMENT_ENDINGS = (".md", ".mdx", ".markdown", ".rst", ".txt")
ASSET_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
}
_DRIVE = re.compile(r"[A-Za-z]:")


class BadKey(ValueError):
    """A key that cannot be used; the text says why and what to do."""


def normalise_key(raw: str) -> str:
    """Trimmed, ``\\`` as ``/``, without leading ``./`` and ``/`` and empty segments. Raises BadKey.

    A key that came out of here stays as it is.

    SECURITY: a key is compared and shown, never opened as a path; climbing keys are refused all the same, because
    exports and links treat keys as paths.
    """
    key = raw.strip().replace("\\", "/")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in key):
        raise BadKey("The key holds a control character. Use plain text.")
    if _DRIVE.match(key):
        raise BadKey("The key begins with a drive letter. Give a path inside the collection.")
    segments = [segment for segment in key.split("/") if segment not in {"", "."}]
    if ".." in segments:
        raise BadKey("The key climbs out of the collection with `..`. Give a path inside the collection.")
    key = "/".join(segments)
    if not key:
        raise BadKey("The key is empty. Give a path or name.")
    if len(key) > MAX_KEY_CHARS:
        raise BadKey(f"The key has {len(key)} characters; at most {MAX_KEY_CHARS} are allowed.")
    if (size := len(key.encode())) > MAX_KEY_BYTES:
        raise BadKey(f"The key has {size} bytes; at most {MAX_KEY_BYTES} are allowed.")
    # SECURITY: what was taken off may have hidden a drive letter (`./C:/x`), an absolute or a climbing key.
    return key if key == raw else normalise_key(key)


def ending(key: str) -> str:
    """The last extension in lower case with its dot, or nothing."""
    name = key.rsplit("/", 1)[-1]
    return f".{name.rsplit('.', 1)[1].lower()}" if "." in name.lstrip(".") else ""


def is_document(key: str) -> bool:
    return ending(key) in DOCUMENT_ENDINGS
