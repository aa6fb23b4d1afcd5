"""Bytes to text: encodings, line ends, characters that no store takes (``markup.md`` 1)."""

from __future__ import annotations

import codecs
import re

from apps.markup.values import Decoded, Limits, Skipped, Warning_

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SIGNATURES = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"%PDF-",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\x00",
    b"7z\xbc\xaf\x27\x1c",
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\x00asm",
    b"SQLite format 3\x00",
    b"wOFF",
    b"wOF2",
    b"OTTO\x00",
    b"\x00\x01\x00\x00\x00",
    b"ttcf\x00",
)
_CONTROL = bytes([*range(9), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])
_NOT_CONTROL = bytes(sorted(set(range(256)) - set(_CONTROL)))
_SAMPLE = 8192
# Well-formed sequences of two bytes and more (Unicode standard, table 3-7).
_MULTI_BYTE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)


def decode(raw: bytes, limits: Limits) -> Decoded | Skipped:
    """The text of a file, or why it has none. Never raises for content; a wrong guess is a warning on this one file."""
    if len(raw) > limits.max_file_bytes:
        return Skipped("too_large", f"{len(raw)} bytes; the limit is {limits.max_file_bytes}")
    encoding, mark = _marked(raw)
    if not encoding and (encoding := _utf16_without_mark(raw)):
        return _finish(raw, encoding, guessed=True)
    if encoding:
        return _finish(raw[mark:], encoding, guessed=False)
    if _binary(raw):
        return Skipped("binary", "binary content")
    return _finish(raw, "utf-8", guessed=False)


def line_count(text: str) -> int:
    """Number of LF, plus one when the last line is not empty."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _marked(raw: bytes) -> tuple[str, int]:
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return encoding, len(mark)
    return "", 0


def _utf16_without_mark(raw: bytes) -> str:
    """UTF-16 when 30 % of the bytes are zero and 98 % of these stand at odd (LE) or at even (BE) offsets."""
    if len(raw) % 2 or b"\0" not in raw:
        return ""
    zeros = raw.count(0)
    if zeros < 0.3 * len(raw) or _signed(raw):
        return ""
    odd = raw[1::2].count(0)
    encoding = "utf-16-le" if odd >= 0.98 * zeros else "utf-16-be" if zeros - odd >= 0.98 * zeros else ""
    if encoding:
        try:
            raw.decode(encoding)
        except UnicodeDecodeError:
            return ""
    return encoding


def _signed(raw: bytes) -> bool:
    if raw.startswith(_SIGNATURES) or (raw.startswith(b"RIFF") and raw[8:12] == b"WEBP"):
        return True
    # "MZ" alone begins a sentence now and then: a PE file also says where its header stands.
    if raw.startswith(b"MZ") and len(raw) >= 64:
        header = int.from_bytes(raw[60:64], "little")
        return raw[header : header + 4] == b"PE\x00\x00" or raw[:_SAMPLE].count(0) >= 8
    return False


def _binary(raw: bytes) -> bool:
    if _signed(raw):
        return True
    sample = raw[:_SAMPLE]
    control = len(sample.translate(None, _NOT_CONTROL))
    return control >= 8 and control > 0.05 * len(sample)


def _finish(raw: bytes, encoding: str, *, guessed: bool) -> Decoded:
    warnings: list[Warning_] = []
    replaced = 0
    try:
        text = raw.decode(encoding)
        # One character is looked for in a sixth of the time that the three bytes of a mark take.
        if encoding == "utf-8" and b"\r" not in raw and b"\0" not in raw and "\ufeff" not in text:
            return Decoded(text, encoding)  # as most files are
    except UnicodeDecodeError:
        if encoding == "utf-8":
            text, encoding, guessed, replaced = _repair(raw)
        else:
            text = raw.decode(encoding, errors="replace")
            replaced = max(1, text.count("\ufffd"))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\ufeff" in text:
        text = text.replace("\ufeff", "")
    if guessed:
        warnings.append(Warning_("encoding_guessed", 1, 1, f"not UTF-8; read as {encoding}"))
    elif replaced:
        line, column = _place(text, text.find("\ufffd"))
        message = f"{replaced} byte sequences are not {encoding} and were replaced, the first in line {line}"
        warnings.append(Warning_("replacement_characters", line, column, message))
    if "\x00" in text:
        line, column = _place(text, text.index("\x00"))
        message = f"{text.count(chr(0))} NUL characters were replaced, the first in line {line}"
        warnings.append(Warning_("nul_replaced", line, column, message))
        text = text.replace("\x00", "\ufffd")
    return Decoded(text, encoding, guessed, replaced, tuple(sorted(warnings, key=lambda each: each.line)))


def _repair(raw: bytes) -> tuple[str, str, bool, int]:
    """Text, encoding, guessed, replaced: UTF-8 when it has more good sequences than bad ones, else Windows-1252."""
    rest, good = _MULTI_BYTE.subn(b"", raw)
    text = raw.decode("utf-8", errors="replace")
    bad = max(1, text.count("\ufffd") - raw.count("\ufffd".encode()))
    if good > bad and rest != raw:
        return text, "utf-8", False, bad
    return raw.decode("cp1252", errors="replace"), "windows-1252", True, 0


def _place(text: str, offset: int) -> tuple[int, int]:
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1
