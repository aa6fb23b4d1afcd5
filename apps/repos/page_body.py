"""A stored document as the reader shows it: safe HTML with its links resolved, contents, notes for the reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from django.conf import settings
from django.urls import reverse

from apps.markup.parsing import parse
from apps.markup.rendering import render, render_source
from apps.markup.rendering.contents import RENDERED_CHARACTERS, TocEntry, contents
from apps.markup.rendering.kept import KeptPages
from apps.markup.rendering.resolved import Resolved
from apps.markup.values import Asset, Decoded, Limits, Link, Skipped
from apps.repos.models import LinkState, Repository, RepositoryDocument, RepositoryDocumentLink

Answers = tuple[tuple[tuple[str, str, bool], tuple[str | None, str, str]], ...]


@dataclass(frozen=True, slots=True)
class PageBody:
    """``html`` is safe HTML made by ``apps.markup.rendering`` and by nothing else."""

    html: str
    toc: Sequence[TocEntry]
    notes: Sequence[str]
    has_heading: bool
    """Whether the text brings a level-1 heading of its own; without one the page shows the title."""


_kept = KeptPages()


def page_body(document: RepositoryDocument, links: Iterable[RepositoryDocumentLink]) -> PageBody:
    """The body of a page. ``links`` are the rows of the document, with their target documents."""
    answers = _answers(document.repository, links)
    return PageBody(
        html=_html(document, answers),
        toc=contents(document.structure.get("headings", ())),
        notes=notes_of(document),
        has_heading=document.kind == "repo_doc"
        and any(row["level"] == 1 and not row.get("nested") for row in document.structure.get("headings", ())),
    )


def file_html(text: str, path: str, first: int = 1) -> str:
    """Any text line by line, with the ids ``L1``, ``L2``, …"""
    return render_source(text, path, first)


def _html(document: RepositoryDocument, answers: Answers) -> str:
    images = settings.COGRAPH.external_images
    key = (document.path, document.kind, document.content_hash, len(document.text), answers, images)
    page = _kept.get(key)
    if page is None:
        page = _rendered(document, dict(answers), images)
        _kept.put(key, page)
    return page


def _rendered(
    document: RepositoryDocument,
    answers: Mapping[tuple[str, str, bool], tuple[str | None, str, str]],
    images: Sequence[str],
) -> str:
    if document.kind != "repo_doc" or len(document.text) > RENDERED_CHARACTERS:
        return render_source(document.text, document.path)
    parsed = parse(Decoded(document.text, document.encoding), document.path, Limits())
    if isinstance(parsed, Skipped):
        return render_source(document.text, document.path)

    def resolve(link: Link | Asset) -> Resolved:
        kind = "" if isinstance(link, Asset) else link.link_type
        found = answers.get((kind, link.href, isinstance(link, Asset)))
        if found is None:
            return Resolved(None, "broken", "not in the index yet")
        address, state, reason = found
        return Resolved(address, state, reason)  # type: ignore[arg-type]  # one of the states below

    return render(parsed, resolve, images=images)


def _answers(repository: Repository, links: Iterable[RepositoryDocumentLink]) -> Answers:
    """(type, address as written, picture?) → (address, state, reason), in a fixed order."""
    found: dict[tuple[str, str, bool], tuple[str | None, str, str]] = {}
    for link in links:
        key = ("" if link.image else link.link_type, link.href, link.image)
        found[key] = link_answer(repository, link)
    return tuple(sorted(found.items(), key=lambda pair: pair[0]))


def link_answer(repository: Repository, link: RepositoryDocumentLink) -> tuple[str | None, str, str]:
    """Address, state and reason of a link as pages show it; its target document is fetched."""
    if link.state == LinkState.EXTERNAL:
        return link.href, "external", ""
    if link.target_document is not None:
        address = reverse("repos:reader", args=[repository.slug, link.target_document.slug])
        if link.image:
            return reverse("repos:image", args=[repository.slug, link.target_document.path]), "asset", ""
        if link.state == LinkState.ANCHOR_MISSING:
            near = f"; the nearest is {link.suggestion}" if link.suggestion else ""
            return address, "anchor missing", f"no such section on that page{near}"
        return address + (f"#{quote(link.anchor)}" if link.anchor else ""), "resolved", ""
    if link.state == LinkState.ASSET and link.target_path:
        name = "repos:image" if link.image else "repos:file"
        fragment = f"#{quote(link.fragment, safe='-')}" if link.fragment.startswith("L") else ""
        return reverse(name, args=[repository.slug, link.target_path]) + fragment, "asset", ""
    near = f"; did you mean {link.suggestion}?" if link.suggestion else ""
    return None, "broken", f"not found in this repository{near}"


def notes_of(document: RepositoryDocument) -> list[str]:
    """What a reader must know before reading: guessed encoding, cut parts, unread front matter, redaction, absence."""
    notes = []
    for row in document.warnings:
        message = str(row.get("message", "")) if isinstance(row, Mapping) else ""
        if message:
            notes.append(message if document.path in message else f"Line {row.get('line') or 1}: {message}")
    if document.redacted_count:
        notes.append(f"{document.redacted_count} secret-looking values of this file are shown as [redacted].")
    if document.absence:
        notes.append(f"This page is {document.get_absence_display()}.")
    return notes
