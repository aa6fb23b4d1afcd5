"""From the bytes of a source file to all that is stored of it. Runs in the killable children of the parser pool.

No Django and no database here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from apps.markup.decoding import decode
from apps.markup.values import Chunk, Limits, Skipped
from apps.repos.code.cutting import cut
from apps.repos.code.spelling import env_names_in, flags_in
from apps.repos.discovery import Kind
from apps.repos.redaction import redact_file
from apps.symbols.languages import language_of
from apps.symbols.parsing import parse_code
from apps.symbols.values import NotParsed, ParsedCode

READ_CODE = "apps.repos.code.reading:read_code"
CODE_VERSION = "4"
"""Raised with every change of parsing or cutting: files of another version are read anew."""


@dataclass(frozen=True, slots=True)
class CodeRead:
    """A source file as it will be stored. ``code`` is None when only its text is kept, for ``reason``."""

    text: str | None
    language: str
    code: ParsedCode | None
    chunks: tuple[Chunk, ...]
    names: tuple[str, ...]
    flags: tuple[str, ...]
    env_names: tuple[str, ...]
    line_count: int
    reason: str
    message: str
    milliseconds: int


def read_code(raw: bytes, path: str, limits: Limits) -> CodeRead | Skipped:
    """Decode, redact, parse and cut one source file. Never raises for content."""
    started = time.perf_counter()
    decoded = decode(raw, limits)
    if isinstance(decoded, Skipped):
        return decoded
    # SECURITY: secrets go before parsing, so that no signature, literal or chunk ever holds one.
    text = redact_file(decoded.text, path, Kind.EXAMPLE).text
    text = text.encode("utf-8", "replace").decode("utf-8")
    code = parse_code(text, path)
    reason = message = ""
    parsed: ParsedCode | None = None
    if isinstance(code, NotParsed):
        reason, message = code.reason, f"{code.message[:1].upper()}{code.message[1:]}."
    else:
        parsed = code
        if code.error_line is not None:
            reason = "syntax_error"
            message = f"Line {code.error_line} is not valid {code.language}; what could be read around it is indexed."
        elif code.generated:
            reason, message = "generated", "Generated code: its symbols are indexed, its bodies are not."
    return CodeRead(
        text=text,
        language=language_of(path),
        code=parsed,
        chunks=cut(text, parsed.symbols) if parsed is not None and not parsed.generated else (),
        names=_names(parsed) if parsed is not None else (),
        flags=tuple(flags_in(text, language_of(path))) if parsed is not None else (),
        env_names=tuple(env_names_in(text)) if parsed is not None else (),
        line_count=text.count("\n") + (0 if text.endswith("\n") or not text else 1),
        reason=reason,
        message=message,
        milliseconds=round((time.perf_counter() - started) * 1000),
    )


def _names(code: ParsedCode) -> tuple[str, ...]:
    """Every name that resolving the references of the file looks at: it is resolved anew when one of them changes."""
    found: set[str] = set()
    for reference in code.references:
        found.add(reference.name)
        found.update(reference.qualifier.split("."))
    for entry in code.imports:
        found.update((entry.member, entry.local))
        found.update(entry.module.replace("::", ".").replace("/", ".").split("."))
    found -= {"", "?", "*"}
    return tuple(sorted(found))
