"""Front matter to the header of a page, and what kind of document it makes (``knowledge-graph.md`` 2)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from apps.knowledge_graph.naming import MAX_SLUG, is_slug
from apps.knowledge_graph.reading.items import read_link_fields
from apps.knowledge_graph.reading.places import Places, by_normal_key, short, storable
from apps.knowledge_graph.values import Header, Problem
from apps.knowledge_graph.vocabulary import (
    DEFAULT_PRIORITY,
    KNOWN_KEYS,
    LINK_FIELDS,
    NODE_TYPES,
    PLAIN_FIELDS,
    STATUSES,
    TYPE_ALIASES,
    near,
    normal_type,
    normal_word,
)
from apps.markup.values import MetadataValue, ParsedDocument, Warning_

MAX_TEXT_ITEMS = 1000
Verdict = Literal["page", "broken", "foreign", "plain"]
"""``page``: a known type and a valid slug. ``broken``: fatal; an older version of the page may lend its header.
``foreign``: broken only if the document was a page before, else passed over. ``plain``: no page, and nothing is wrong
(removed or foreign front matter)."""

_NAMES_A_KEY = re.compile(r"[ \t]*[\"']?(slug|type)[\"']?[ \t]*[:=]", re.IGNORECASE)
_MARK = re.compile(r"[ \t]*(?:-{3,}|\+{3,}|\.\.\.)[ \t]*$")
_HEADER_LINES = 100


@dataclass(frozen=True, slots=True)
class HeaderReading:
    """What one version of a document says about itself. ``fault`` is what is wrong with a broken one."""

    verdict: Verdict
    header: Header | None = None
    fault: Problem | None = None
    """KG101 in a document that is or was a page, and for what is broken in any case."""
    hint: Problem | None = None
    """KG114 in a document that never was a page."""


def has_our_keys(metadata: Mapping[str, object]) -> bool:
    """Whether front matter has a known type and any slug: enough to look closer where no page is known yet."""
    keys = by_normal_key(metadata)
    return "slug" in keys and "type" in keys and normal_type(str(metadata[keys["type"]])) in NODE_TYPES


def read_header(parsed: ParsedDocument) -> HeaderReading:
    """The header of one version. Never raises for content."""
    return read_front(parsed.text, parsed.frontmatter, parsed.frontmatter_values, parsed.warnings)


def read_front(
    text: str,
    metadata: Mapping[str, object],
    values: tuple[MetadataValue, ...],
    warnings: tuple[Warning_, ...],
) -> HeaderReading:
    for warning in warnings:
        if warning.code == "front_matter_error":
            message = warning.message.partition(": ")[2] or warning.message
            return HeaderReading("broken", fault=_fault(warning.line, warning.column, f"YAML: {message}"))
        if warning.code in ("front_matter_unclosed", "front_matter_near_miss"):
            return _almost(text, warning)
    if not metadata:
        return HeaderReading("plain")
    metadata = storable(metadata)
    places = Places(values, text)
    keys = by_normal_key(metadata)
    node_type, type_fault = _node_type(metadata, keys, places)
    slug, slug_fault = _slug(metadata, keys, places)
    if node_type and slug:
        return HeaderReading("page", header=_page(metadata, keys, places, node_type, slug))
    if node_type:
        fault = slug_fault or _fault(places.at((keys["type"],)).line, 1, "a type without a slug", "add slug: …")
        if "slug" in keys:
            return HeaderReading("broken", fault=fault)
        return HeaderReading("broken", fault=fault, hint=_as_hint(fault))
    if slug:
        return _foreign(metadata, keys, places, type_fault)
    if type_fault and slug_fault and any(places.at((keys[name],)).resolved != "str" for name in ("type", "slug")):
        # Both keys are there, with values that are no names: a slip, not a header of another tool.
        return HeaderReading("foreign", fault=type_fault)
    return HeaderReading("plain")


def _foreign(
    metadata: Mapping[str, object], keys: Mapping[str, str], places: Places, type_fault: Problem | None
) -> HeaderReading:
    """A valid slug beside a type that is missing or none of ours."""
    place = places.at((keys["slug"],))
    fault = type_fault or _fault(place.line, place.column, "a slug without a type", "add type: …")
    hint = None
    if "type" in keys:
        meant = near(normal_type(str(metadata[keys["type"]])), (*NODE_TYPES, *TYPE_ALIASES))
        if meant:
            hint = _as_hint(fault)
    else:
        slip = next((key for key in sorted(keys) if near(key, ("type",))), None)
        if slip:
            at = places.at((keys[slip],))
            message = f"key {short(keys[slip])!r} is not known; did you mean 'type'?"
            hint = Problem("KG114", "warning", at.line, at.column, message, "write type", slip)
    return HeaderReading("foreign", fault=fault, hint=hint)


def _almost(text: str, warning: Warning_) -> HeaderReading:
    """A block that is almost front matter counts only when it names one of our two keys."""
    for line in text.split("\n")[warning.line : warning.line + _HEADER_LINES]:
        if _MARK.match(line):
            break
        if _NAMES_A_KEY.match(line):
            fault = _fault(warning.line, warning.column, warning.message)
            return HeaderReading("foreign", fault=fault, hint=_as_hint(fault))
    return HeaderReading("plain")


def _fault(line: int, column: int, message: str, hint: str = "", names: str = "") -> Problem:
    return Problem("KG101", "error", line, column, message, hint, names)


def _as_hint(fault: Problem) -> Problem:
    return dataclasses.replace(fault, rule="KG114", severity="warning")


def _node_type(
    metadata: Mapping[str, object], keys: Mapping[str, str], places: Places
) -> tuple[str | None, Problem | None]:
    if "type" not in keys:
        return None, None
    place = places.at((keys["type"],))
    if place.resolved != "str":
        return None, _fault(place.line, place.column, "type is not a string, quote it")
    written = str(metadata[keys["type"]])
    normal = normal_type(written)
    if normal not in NODE_TYPES:
        meant = near(normal, (*NODE_TYPES, *TYPE_ALIASES))
        message = f"type {short(written)!r} is not known" + (f"; did you mean {meant!r}?" if meant else "")
        hint = f"write type: {meant}" if meant else f"known types: {', '.join(NODE_TYPES)}"
        fault = _fault(place.line, place.column, message, hint, written)
        if meant and places.stands((keys["type"],), written):
            fault = dataclasses.replace(fault, written=written, replacement=meant)
        return None, fault
    if written not in NODE_TYPES and written not in TYPE_ALIASES:
        places.normalised((keys["type"],), f"type {short(written)!r} read as {normal!r}", names=written)
    return normal, None


def _slug(metadata: Mapping[str, object], keys: Mapping[str, str], places: Places) -> tuple[str | None, Problem | None]:
    if "slug" not in keys:
        return None, None
    path = (keys["slug"],)
    place = places.at(path)
    if place.resolved != "str":
        return None, _fault(place.line, place.column, "slug is not a string, quote it", "put the slug in quotes")
    slug = str(metadata[keys["slug"]])
    if is_slug(slug):
        return slug, None
    if len(slug) > MAX_SLUG:
        message = f"the slug has {len(slug)} characters; {MAX_SLUG} are allowed"
    else:
        message = f"slug {short(slug)!r}: small letters, digits and inner hyphens only"
    return None, _fault(place.line, place.column, message, "write it as [a-z0-9-]", slug)


def _page(metadata: Mapping[str, object], keys: Mapping[str, str], places: Places, node_type: str, slug: str) -> Header:
    others: dict[str, object] = {}
    for normal, written in keys.items():
        if normal in KNOWN_KEYS:
            if written != normal:
                places.normalised((written,), f"key {short(written)!r} read as {normal!r}", names=written)
            continue
        others[written] = metadata[written]
        if meant := near(normal, KNOWN_KEYS):
            places.near_miss((written,), written, meant, "key")
    for written in metadata:
        normal = normal_word(written)
        if keys[normal] != written:
            places.field_problem((written,), f"{short(written)!r} says again what {keys[normal]!r} says; it is ignored")
    plain = {name: keys[name] for name in PLAIN_FIELDS if name in keys}
    links = read_link_fields(metadata, {name: keys[name] for name in LINK_FIELDS if name in keys}, places)
    _comments(metadata, places)
    return Header(
        uid=slug,
        node_type=node_type,
        status=_status(metadata, plain, places),
        priority=_priority(metadata, plain, places),
        title=_text(metadata, plain, "title", places),
        summary=_text(metadata, plain, "summary", places),
        aliases=_texts(metadata, plain, "aliases", places),
        owners=links.owners,
        tags=_texts(metadata, plain, "tags", places),
        identifier=_text(metadata, plain, "id", places),
        project=_text(metadata, plain, "project", places),
        others=others,
        occurrences=links.occurrences,
        references=links.references,
        problems=tuple(places.problems),
        project_line=places.at((plain["project"],)).line if "project" in plain else 0,
    )


def _status(metadata: Mapping[str, object], keys: Mapping[str, str], places: Places) -> str:
    written = metadata.get(keys.get("status", ""))
    if written is None or places.at((keys["status"],)).resolved == "null":
        places.normalised((keys.get("status") or keys["type"],), "no status: read as draft", "add status: …", "absent")
        return "draft"
    path = (keys["status"],)
    normal = normal_word(written) if isinstance(written, str) else ""
    if normal not in STATUSES:
        meant = near(normal, STATUSES)
        hint = f"write status: {meant}" if meant else f"known: {', '.join(STATUSES)}"
        fix = (str(written), meant) if meant else None
        message = f"status {short(str(written))!r} is not known; read as draft"
        places.field_problem(path, message, hint, str(written), fix=fix)
        return "draft"
    if normal != written:
        places.normalised(path, f"status {short(str(written))!r} read as {normal!r}", names=str(written))
    return normal


def _priority(metadata: Mapping[str, object], keys: Mapping[str, str], places: Places) -> int:
    written = metadata.get(keys.get("retrieval_priority", ""))
    if written is None:
        return DEFAULT_PRIORITY
    path = (keys["retrieval_priority"],)
    number: float | None = None
    if isinstance(written, str):
        try:
            number = float(written) if re.fullmatch(r"[-+]?[0-9.]+(?:[eE][0-9]{1,2})?", written.strip()) else None
        except ValueError:
            number = None
    elif isinstance(written, int | float) and not isinstance(written, bool):
        number = float(written) if abs(written) < 1e9 else -1
    if number is None or number != int(number) or not 0 <= number <= 100:
        message = f"retrieval_priority is no whole number from 0 to 100; read as {DEFAULT_PRIORITY}"
        places.field_problem(path, message, names=short(str(written)))
        return DEFAULT_PRIORITY
    if not isinstance(written, int):
        places.normalised(path, f"retrieval_priority read as {int(number)}", f"write {int(number)}", str(written))
    return int(number)


def _text(metadata: Mapping[str, object], keys: Mapping[str, str], name: str, places: Places) -> str:
    value = metadata.get(keys.get(name, ""))
    if value is None:
        return ""
    if isinstance(value, list | dict):
        places.field_problem((keys[name],), f"{name} is not text; it is ignored")
        return ""
    return " ".join((value if isinstance(value, str) else places.at((keys[name],)).source).split())


def _texts(metadata: Mapping[str, object], keys: Mapping[str, str], name: str, places: Places) -> tuple[str, ...]:
    value: Any = metadata.get(keys.get(name, ""))
    if value is None:
        return ()
    path: tuple[str | int, ...] = (keys[name],)
    listed = isinstance(value, list)
    found: list[str] = []
    for number, item in enumerate(value if listed else [value]):
        place = (*path, number) if listed else path
        if number >= MAX_TEXT_ITEMS:
            places.limit(place, f"{name}: more than {MAX_TEXT_ITEMS} items; the rest is ignored")
            break
        if isinstance(item, list | dict) or item is None:
            places.field_problem(place, f"{name}: an item that is no text drops out")
            continue
        text = " ".join((item if isinstance(item, str) else places.at(place).source).split())
        if text:
            found.append(text)
    return tuple(dict.fromkeys(found))


def _comments(metadata: Mapping[str, object], places: Places) -> None:
    """A ``#`` after a blank ends an unquoted value, which is easily meant otherwise: ``fix #12 now``."""
    for key, value in metadata.items():
        if not isinstance(value, str) or not value or not places.is_own((key,)):
            continue
        place = places.at((key,))
        if place.source[:1] in "\"'|>" or "\n" in place.source:
            continue
        rest = places.line(place.line)[place.column - 1 :]
        if rest.startswith(place.source) and re.match(r"[ \t]+#\S", rest[len(place.source) :]):
            message = f"{short(key)!r} ends before the #, which begins a comment"
            places.normalised((key,), message, "put the value in quotes", key)
