"""Link fields of front matter: items in every way of writing them, all or none of each (``knowledge-graph.md`` 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from apps.knowledge_graph.naming import cross_source
from apps.knowledge_graph.reading.places import KeyPath, Places, short
from apps.knowledge_graph.values import RAW_CHARACTERS, CrossReference, Mode, Occurrence
from apps.knowledge_graph.vocabulary import EDGE_TYPES, LINK_FIELDS, Provenance, near, normal_word
from apps.markup.wikilinks import WikiLink, find_in_text

MAX_ITEMS = 1000
MAX_TARGET = 200
_NO_TARGET = re.compile(r'-|.*["$=<>{}\x00]', re.DOTALL)
_SEPARATORS = re.compile(r"[\s,]*")
_ITEM_KEYS = frozenset({"slug", "type", "weight"})


@dataclass(slots=True)
class LinkFields:
    """All link fields of one header."""

    owners: tuple[str, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()
    references: tuple[CrossReference, ...] = ()


@dataclass(frozen=True, slots=True)
class _Rule:
    """What holds for the items of one place: their type, where it was stated, and whether they may state one."""

    field: str
    stated: str | None
    provenance: Provenance
    mode: Mode = "name"
    weight: Decimal | None = None


@dataclass(slots=True)
class _Found:
    occurrences: list[Occurrence] = field(default_factory=list)
    references: list[CrossReference] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)


def read_link_fields(metadata: Mapping[str, object], keys: Mapping[str, str], places: Places) -> LinkFields:
    """Occurrences of all link fields in the order of the file; ``keys`` maps field names to keys as written."""
    everything = _Found()
    for name, written in sorted(keys.items(), key=lambda pair: places.at((pair[1],)).line):
        stated, provenance = LINK_FIELDS[name]
        reader = _FieldReader(_Rule(name, stated, provenance, "owner" if name == "owners" else "name"), places)
        reader.read(metadata[written], (written,))
        everything.occurrences += reader.found.occurrences
        everything.references += reader.found.references
        everything.owners += reader.found.owners
    return LinkFields(
        tuple(dict.fromkeys(everything.owners)), tuple(everything.occurrences), tuple(everything.references)
    )


class _FieldReader:
    def __init__(self, rule: _Rule, places: Places) -> None:
        self.rule, self.places = rule, places
        self.found = _Found()
        self._count = 0

    def read(self, value: Any, path: KeyPath) -> None:
        if value is not None:
            self._value(value, path, self.rule)

    def _value(self, value: Any, path: KeyPath, rule: _Rule) -> None:
        if isinstance(value, list):
            for number, item in enumerate(value):
                self._value(item, (*path, number), rule)
        elif isinstance(value, dict):
            self._map(value, path, rule)
        elif not isinstance(value, str):
            shown = self.places.at(path).source or "null"
            self.places.field_problem(path, f"{rule.field}: {short(shown)} is no page; put it in quotes", names=shown)
        elif self._count < MAX_ITEMS:
            self._count += 1
            self._text(value, path, rule)
        elif self._count == MAX_ITEMS:
            self._count += 1
            self.places.limit(path, f"{rule.field}: more than {MAX_ITEMS} items; the rest is ignored")

    def _map(self, value: dict[str, Any], path: KeyPath, rule: _Rule) -> None:
        keys = {normal_word(key): key for key in value}
        if "slug" in keys:
            self._item(value, keys, path, rule)
            return
        if rule.field != "related":
            self.places.field_problem(path, f"{rule.field}: a mapping without slug drops out", "write {slug: …}")
            return
        for normal, written in keys.items():
            inner = (*path, written)
            if normal in EDGE_TYPES:
                if normal != written:
                    self.places.normalised(inner, f"{short(written)!r} read as {normal!r}", names=written)
                if value[written] is not None:
                    self._value(value[written], inner, _Rule("related", normal, "frontmatter_typed"))
            elif meant := near(normal, EDGE_TYPES):
                self.places.near_miss(inner, written, meant, "edge type")
            else:
                self.places.field_problem(inner, f"related: {short(written)!r} is no edge type", names=written)

    def _item(self, value: dict[str, Any], keys: Mapping[str, str], path: KeyPath, rule: _Rule) -> None:
        stated, provenance = rule.stated, rule.provenance
        if "type" in keys:
            place = (*path, keys["type"])
            written = value[keys["type"]]
            normal = normal_word(written) if isinstance(written, str) else ""
            if rule.field != "related" or rule.stated is not None:
                self.places.field_problem(place, f"{rule.field}: type is allowed under related only; it is ignored")
            elif normal in EDGE_TYPES:
                stated, provenance = normal, "frontmatter_typed"
                if normal != written:
                    self.places.normalised(place, f"{short(written)!r} read as {normal!r}", names=written)
            elif meant := near(normal, EDGE_TYPES):
                self.places.near_miss(place, str(written), meant, "edge type")
                return
            else:
                message = f"{short(str(written))!r} is no edge type; the item drops out"
                self.places.field_problem(place, message, names=str(written))
                return
        weight = rule.weight
        if "weight" in keys:
            weight = self._weight(value[keys["weight"]], (*path, keys["weight"]))
        for normal, written in keys.items():
            if normal not in _ITEM_KEYS:
                self.places.field_problem((*path, written), f"{short(written)!r} means nothing here", names=written)
        inner = _Rule(rule.field, stated, provenance, rule.mode, weight)
        self._value(value[keys["slug"]], (*path, keys["slug"]), inner)

    def _weight(self, written: Any, path: KeyPath) -> Decimal | None:
        number: Decimal | None = None
        if isinstance(written, int | float | str) and not isinstance(written, bool):
            try:
                number = Decimal(str(written).strip()).quantize(Decimal("0.0001"))
            except InvalidOperation:
                number = None
        if number is None or not number.is_finite() or not 0 < number <= 1:
            message = "weight is no number above 0 and at most 1; the default of the type is used"
            self.places.field_problem(path, message, names=short(str(written)))
            return None
        if isinstance(written, str):
            self.places.normalised(path, f"weight read as {number.normalize()}", names=written)
        return number

    def _text(self, text: str, path: KeyPath, rule: _Rule) -> None:
        place = self.places.at(path)
        if "[[" in text:
            found: list[Occurrence | CrossReference] = []
            last = 0
            for link in find_in_text(text):
                if not _SEPARATORS.fullmatch(text[last : link.start]):
                    break
                read = self._wiki(link, text[link.start : link.end], path, rule)
                if read is None:
                    return
                found.append(read)
                last = link.end
            if not found or not _SEPARATORS.fullmatch(text[last:]):
                message = f"{rule.field}: {short(text)!r} is not only links; it drops out"
                self.places.field_problem(path, message, names=text)
                return
            self._keep(found, text, rule)
            return
        parts = [part.strip() for part in text.split(",")]
        if not all(parts) or any(_NO_TARGET.match(part) or len(part) > MAX_TARGET for part in parts):
            self.places.field_problem(path, f"{rule.field}: {short(text)!r} names no page; it drops out", names=text)
            return
        # Brackets without quotes reach us as lists in lists.
        bracketed = sum(isinstance(step, int) for step in path) >= 2
        mode: Mode = "owner" if rule.mode == "owner" and not bracketed else "name"
        plain: list[Occurrence | CrossReference] = []
        for part in parts:
            anchor = label = ""
            target = part
            if bracketed:
                target, _, label = target.partition("|")
                target, _, anchor = target.partition("#")
            if not target.strip():
                self.places.field_problem(
                    path, f"{rule.field}: {short(text)!r} names no page; it drops out", names=text
                )
                return
            crossing = cross_source(target) if mode == "name" else None
            if crossing:
                plain.append(self._crossing(crossing, part, path, rule, label.strip()))
                continue
            plain.append(
                Occurrence(
                    provenance=rule.provenance,
                    mode=mode,
                    target=target.strip(),
                    line=place.line,
                    column=place.column,
                    raw=part[:RAW_CHARACTERS],
                    stated=rule.stated,
                    field=rule.field,
                    anchor=anchor.strip(),
                    label=label.strip(),
                    weight=rule.weight,
                )
            )
        self._keep(plain, text, rule)

    def _keep(self, found: list[Occurrence | CrossReference], text: str, rule: _Rule) -> None:
        for each in found:
            if isinstance(each, Occurrence):
                self.found.occurrences.append(each)
                if rule.mode == "owner":
                    self.found.owners.append(each.label or each.target)
            else:
                self.found.references.append(each)

    def _crossing(
        self, crossing: tuple[str | None, str, str], raw: str, path: KeyPath, rule: _Rule, label: str
    ) -> CrossReference:
        kind, source, slug = crossing
        line = self.places.at(path).line
        return CrossReference(raw[:RAW_CHARACTERS], line, kind, source, slug, rule.stated, label, rule.field)

    def _wiki(self, link: WikiLink, raw: str, path: KeyPath, rule: _Rule) -> Occurrence | CrossReference | None:
        """One link in double brackets; None when it states a type that it may not state, which drops the whole item."""
        place = self.places.at(path)
        stated, provenance = rule.stated, rule.provenance
        word, target = split_type(link.rel_type, link.target)
        if word:
            normal = normal_word(word)
            if normal not in EDGE_TYPES:
                if meant := near(normal, EDGE_TYPES):
                    self.places.near_miss(path, word, meant, "edge type")
                else:
                    self.places.field_problem(path, f"{short(word)!r} is no edge type; it drops out", names=word)
                return None
            if rule.field == "related" and rule.stated is None:
                stated, provenance = normal, "frontmatter_typed"
            elif normal != rule.stated:
                message = f"{rule.field}: the type {normal} is allowed under related only; it drops out"
                self.places.field_problem(path, message, names=raw)
                return None
        if not target:
            self.places.field_problem(path, f"{rule.field}: {short(raw)!r} names no page", names=raw)
            return None
        if crossing := cross_source(target):
            inner = _Rule(rule.field, stated, provenance, rule.mode, rule.weight)
            return self._crossing(crossing, raw, path, inner, link.alias)
        return Occurrence(
            provenance=provenance,
            mode="name",
            target=target,
            line=place.line,
            column=place.column,
            raw=raw[:RAW_CHARACTERS],
            stated=stated,
            field=rule.field,
            anchor=link.heading,
            label=link.alias,
            embed=link.embed,
            weight=rule.weight,
        )


def split_type(rel_type: str, target: str) -> tuple[str, str]:
    """The word before ``::`` and the target; the finder knows only words in small letters."""
    if not rel_type and "::" in target:
        word, _, rest = target.partition("::")
        return word.strip(), rest.strip()
    return rel_type, target
