"""Findings that documents of every kind of source share: what parsing found odd, and links that lead nowhere."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, TextField, Value, When

from apps.indexing.findings import Finding, Patch, Severity

LINK_BROKEN, ANCHOR_MISSING, ORPHAN = "link_broken", "anchor_missing", "orphan_page"
OTHER = "parse_warning"

_PARSED: dict[str, tuple[str, Severity, str, str]] = {
    # code of the parser: rule, severity, message, what to do
    "unclosed_fence": (
        "fence_unclosed",
        "warning",
        "This code fence is never closed: the rest of the document counts as code.",
        "Close it with the same marks.",
    ),
    "encoding_guessed": (
        "encoding_guessed",
        "info",
        "The encoding was guessed: {message}.",
        "Store the file as UTF-8.",
    ),
    "front_matter_error": (
        "front_matter_error",
        "warning",
        "Front matter is not valid YAML ({message}). The document is indexed without metadata.",
        "Correct the header; a tab must be spaces, and a value that begins with @, ` or % needs quotes.",
    ),
    "front_matter_unclosed": (
        "front_matter_unclosed",
        "warning",
        "The front matter is never closed, so it counts as text.",
        "End it with a line of three hyphens.",
    ),
    "front_matter_near_miss": (
        "front_matter_near_miss",
        "info",
        "This looks like front matter but is none: {message}.",
        "Begin the file with a line of three hyphens.",
    ),
    "replacement_characters": (
        "characters_replaced",
        "info",
        "Some bytes are no text in this encoding and are shown as U+FFFD: {message}.",
        "Store the file as UTF-8.",
    ),
    "nul_replaced": ("characters_replaced", "info", "A NUL byte is shown as U+FFFD: {message}.", "Remove it."),
}
RULES = (LINK_BROKEN, ANCHOR_MISSING, ORPHAN, OTHER, *sorted({rule for rule, *_ in _PARSED.values()}))
"""All that this module gives."""


_ENTRIES = frozenset({"index", "_index", "overview", "home", "readme", "summary", "_sidebar"})
"""Stems of pages that are found without a link."""


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """One use of an address. ``near`` is the nearest path or ``#anchor``, ``moved_to`` the path that the target now
    has; ``line_text`` the line as it stands, if known."""

    document_id: UUID
    path: str
    line: int
    href: str
    anchor_only: bool
    why: str
    near: str = ""
    moved_to: str = ""
    line_text: str = ""


def unlinked(documents: QuerySet[Any], links: QuerySet[Any], own: Q) -> QuerySet[Any]:
    """Those of ``documents`` that no link of another document leads to; none where no link that is ``own`` to their
    source leads to a document, for then links are not how it is read."""
    leading = links.filter(target_document__isnull=False)
    to_it = leading.filter(target_document=OuterRef("pk")).exclude(document=OuterRef("pk"))
    return documents.filter(~Exists(to_it), Exists(leading.filter(own)))


def told_of(documents: QuerySet[Any], linking: Collection[UUID], path: str) -> QuerySet[Any, Any]:
    """(id, path, parse warnings, text) of the documents that have something to tell, by path; the text is that of
    ``linking``, whose links lead nowhere, and empty for the others."""
    return told_among(documents, linking).order_by(path).values_list("pk", path, "warnings", "told")


def told_among(documents: QuerySet[Any], linking: Collection[UUID] | QuerySet[Any, Any]) -> QuerySet[Any]:
    """The same documents, with the text as ``told``; ``linking`` may be a queryset of their ids."""
    text = Case(When(pk__in=linking, then="text"), default=Value(""), output_field=TextField())
    told: QuerySet[Any] = documents.filter(~Q(warnings=[]) | Q(pk__in=linking)).annotate(told=text)
    return told


def of_warning(row: Mapping[str, Any], path: str, document_id: UUID) -> Finding:
    """A stored parse warning: code, line, column, message."""
    code, message = str(row.get("code", "")), str(row.get("message", ""))
    line, column = int(row.get("line") or 1), int(row.get("column") or 1)
    # The parser of front matter names path, line and column first; they have columns of their own here.
    message = (message.partition(f"column {column}: ")[2] or message).rstrip(".")
    rule, severity, words, hint = _PARSED.get(code, (OTHER, "info", "{message}.", ""))
    words = words.replace("{message}", message)
    return Finding(
        rule,
        severity,
        words[:1].upper() + words[1:],
        path,
        line,
        column,
        hint,
        document_id,
        fingerprint_of(rule, path, code),
    )


def of_link(link: BrokenLink) -> Finding:
    """A link that leads nowhere, or to a page without the section that it names, with the nearest target."""
    rule = ANCHOR_MISSING if link.anchor_only else LINK_BROKEN
    message = f"The link “{link.href}” " + (
        "names a section that its page does not have." if link.anchor_only else f"leads nowhere: {link.why}."
    )
    target = _target(link)
    patch = None
    if target and link.href and link.href in link.line_text:
        patch = Patch(link.line_text, link.line_text.replace(link.href, target))
    hint = ""
    if link.moved_to:
        hint = f"Its target is now {link.moved_to}."
    elif link.near:
        hint = f"The nearest is {link.near}."
    if patch:
        hint += f" Write “{target}”."
    column = link.line_text.find(link.href) + 1 if link.href else 0
    return Finding(
        rule,
        "warning" if link.anchor_only else "error",
        message,
        link.path,
        link.line,
        column or None,
        hint,
        link.document_id,
        fingerprint_of(rule, link.path, link.href),
        patch,
    )


def orphans(unlinked: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """A finding for each page (id, path) that nothing leads to, but for those that are looked for by their names:
    entries of folders and hidden ones, and files written in capitals such as LICENSE."""
    for row in unlinked:
        path = str(row["path"])
        stem = posixpath.basename(path).partition(".")[0]
        if stem.casefold() in _ENTRIES or stem.isupper() or path.startswith(".") or "/." in path:
            continue
        yield Finding(
            ORPHAN,
            "info",
            "No other page leads here.",
            path,
            hint="Link it where readers will look for it, or delete it.",
            document_id=UUID(str(row["id"])),
            fingerprint=fingerprint_of(ORPHAN, path),
        )


def _target(link: BrokenLink) -> str:
    """The address that would work, written as the author wrote it: relative, or from the root."""
    before, hash_, fragment = link.href.partition("#")
    if link.anchor_only:
        return before + link.near if link.near.startswith("#") else ""
    to = link.moved_to or link.near
    if not to or to.startswith("#") or "://" in link.href or "[" in link.href:
        return ""
    if link.href.startswith("/"):
        return f"/{to}{hash_}{fragment}"
    return posixpath.relpath(to, posixpath.dirname(link.path) or ".") + hash_ + fragment


def fingerprint_of(*parts: str) -> str:
    """What a finding is known by from one look to the next, 32 characters: its rule first, then what it is about."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
