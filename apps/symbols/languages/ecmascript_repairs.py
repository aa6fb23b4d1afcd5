"""Valid TypeScript and JavaScript that the grammars cannot read, rewritten as they can, byte for byte in place.

Each rewriting keeps every offset and line, so what the tree says holds for the file as it is; text is read from that.
Names that a rewriting makes up differ from the file and are no symbols. Pure, linear. What is common is rewritten
before a file is parsed, since to parse it twice costs more; the rest only where there are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

MOST_TYPE_BYTES = 800
MOST_TYPES = 1000
"""Of a file that are looked through byte by byte."""
MOST_INDENT = 80
_VARIANCE = re.compile(
    rb"([<,]\s*(?:/\*[^*]*\*+(?:[^*/][^*]*\*+)*/\s*)?)"
    rb"((?:(?:in|out|const)\s+){1,3})(?=[A-Za-z_$][\w$]*\s*(?:[,>=]|extends\b))"
)
_TYPE_OF_ALL = re.compile(rb"\b(export\s+)type(?=\s*\*)")
_GLOBAL = re.compile(rb"(?<!declare)[ \t]global \{")
_NAMELESS = re.compile(rb"\b(export )default function(?=\s*\()")
_RESERVED = (
    "break case catch class const continue debugger delete do else enum export extends false finally for function if"
    " import in instanceof new null return super switch this throw true try typeof var void while with"
)
_ALIAS = re.compile(rb"(\bas\s+)(" + b"|".join(_RESERVED.encode().split()) + rb")(?=\s*[,}])")
_PARAMETER = re.compile(rb"([(,]\s*)using(?=\s*[:,)?])")
_IMPORTED_TYPE = re.compile(rb"\bimport\(\s*[\"'][^\"'\n]{1,300}[\"']\s*\)[\w$.]*<")
_TAG = re.compile(rb">`")
_SIGNATURE = re.compile(rb"<(?:\n\s*)?(?:const\s+)?[A-Za-z_$][\w$]*(?:\s*[,>=]|\s+extends\b)")
_MEMBER = re.compile(rb"\n[ \t]*([ \t])(?:<(?=\s*[A-Za-z_$])|in(?:stanceof)?\??:)")
_MEMBER_END = re.compile(rb"[\w$>\])}\"'`]\Z")
_MODIFIED = (b"<in ", b"<out ", b"<const ", b", in ", b", out ", b", const ", b"  in ", b"  out ", b"<\n")


def prepared(data: bytes, *, has_tags: bool) -> bytes:
    """``data`` without modifiers of type parameters, and with call signatures set apart from the member before, except
    where ``has_tags`` makes of such a line the begin of an element. Looked for by plain text, ten times as fast as by
    a pattern: most files hold nothing of it."""
    out: bytearray | None = None
    for needle in _MODIFIED:
        for at in _places(data, needle):
            # What the needle begins with, or stands behind on an earlier line, opens or parts type parameters.
            start = at if needle[0] in b"<," else _before(data, at) - 1
            if start >= 0 and (match := _VARIANCE.match(data, start)):
                out = out or bytearray(data)
                out[match.start() : match.end()] = _blanked(match)
    if not has_tags:
        for at in _places(data, b" <"):
            is_first = data[max(0, at - MOST_INDENT) : at].rstrip(b" \t").endswith(b"\n")
            if is_first and _SIGNATURE.match(data, at + 1) and _ends_member(data, at):
                out = out or bytearray(data)
                out[at] = ord(";")
    return bytes(out) if out is not None else data


def _places(data: bytes, needle: bytes) -> Iterator[int]:
    at = data.find(needle)
    while at >= 0:
        yield at
        at = data.find(needle, at + 1)


def repaired(data: bytes) -> bytes:
    """``data`` with all that the grammars do not know made alike to what they know."""
    data = _VARIANCE.sub(_blanked, data)
    data = _TYPE_OF_ALL.sub(_blanked, data)  # `export type * from`
    data = _GLOBAL.sub(b"module _{", data)
    data = _NAMELESS.sub(rb"\1function _______", data)  # a default export without body, in declarations
    data = _ALIAS.sub(_renamed, data)  # `export { _null as null }`
    data = _PARAMETER.sub(rb"\1_____", data)
    out = bytearray(data)
    for match in islice(_IMPORTED_TYPE.finditer(data), MOST_TYPES):  # `import("./a").B<T>`
        _blank(out, match.end() - 1, _closing(data, match.end() - 1))
    for match in islice(_TAG.finditer(data), MOST_TYPES):  # sql<Row>`…`
        _blank(out, _opening(data, match.start()), match.start() + 1)
    return _separated(bytes(out))


def _separated(data: bytes) -> bytes:
    """With a semicolon before a member such as ``<A>(value: A): B`` that stands behind one without."""
    out = bytearray(data)
    for match in _MEMBER.finditer(data):
        if _ends_member(data, match.start()):
            out[match.start(1)] = ord(";")
    return bytes(out)


def _ends_member(data: bytes, at: int) -> bool:
    """Whether what stands before ``at`` may be the end of a member that has no semicolon."""
    end = _before(data, at)
    return _MEMBER_END.search(data, max(0, end - 1), end) is not None and data[max(0, end - 2) : end] != b"=>"


def _blanked(match: re.Match[bytes]) -> bytes:
    kept = match[1]
    return kept + re.sub(rb"\S", b" ", match.group()[len(kept) :])


def _renamed(match: re.Match[bytes]) -> bytes:
    return match[1] + b"_" * len(match[2])


def _blank(out: bytearray, start: int, end: int) -> None:
    if 0 <= start < end:
        out[start:end] = re.sub(rb"[^\n]", b" ", bytes(out[start:end]))


def _closing(data: bytes, at: int) -> int:
    """Behind the bracket that closes the one at ``at``; -1 without."""
    depth = 0
    for place in range(at, min(len(data), at + MOST_TYPE_BYTES)):
        byte = data[place]
        if byte == 60:  # <
            depth += 1
        elif byte == 62 and data[place - 1] != 61:  # >, but not =>
            depth -= 1
            if not depth:
                return place + 1
    return -1


def _opening(data: bytes, at: int) -> int:
    """The bracket that the one at ``at`` closes, when a name stands before it; -1 otherwise."""
    depth = 0
    for place in range(at, max(0, at - MOST_TYPE_BYTES), -1):
        byte = data[place]
        if byte == 62 and data[place - 1] != 61:
            depth += 1
        elif byte == 60:
            depth -= 1
            if not depth:
                named = data[place - 1 : place].isalnum() or data[place - 1 : place] in (b"_", b"$")
                return place if named else -1
    return -1


def _before(data: bytes, at: int) -> int:
    """The end of what stands before ``at``, blanks and comments left out."""
    while True:
        while at and data[at - 1] in b" \t\r\n":
            at -= 1
        if data[max(0, at - 2) : at] == b"*/":
            at = max(0, data.rfind(b"/*", 0, at))
            continue
        line = data.rfind(b"\n", 0, at) + 1
        if not data[line:at].lstrip().startswith(b"//"):
            return at
        at = line
