"""One redactor for every text of git, HTTP and parsers that is stored, logged or shown."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "***"

_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"<>]*@")
_HEADER = re.compile(r"(?i)\b((?:proxy-)?authorization\s*[:=]\s*(?:basic|bearer|token)?\s*)[^\s'\",;]+")
_BEARER = re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}")
_OWN_TOKEN = re.compile(r"\bcgr_[A-Za-z0-9_-]{8,}")
_SHORTEST = 4


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without user information in addresses, authorization headers, API tokens and the given values.

    A value is also found in its percent-encoded and base64 forms. Values shorter than 4 characters are not looked
    for: they would blot out ordinary words.
    """
    for form in _forms(secrets):
        text = text.replace(form, MASK)
    text = _USERINFO.sub(rf"\g<1>{MASK}@", text)
    text = _HEADER.sub(rf"\g<1>{MASK}", text)
    text = _BEARER.sub(rf"\g<1>{MASK}", text)
    return _OWN_TOKEN.sub(MASK, text)


def _forms(secrets: Iterable[str]) -> list[str]:
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) < _SHORTEST:
            continue
        raw = secret.encode()
        forms |= {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
        forms |= {base64.b64encode(raw).decode().rstrip("="), base64.urlsafe_b64encode(raw).decode().rstrip("=")}
        forms |= {line.strip() for line in secret.splitlines() if len(line.strip()) >= 2 * _SHORTEST}
    return sorted(forms, key=len, reverse=True)
