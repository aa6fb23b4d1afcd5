"""From evidence to rows: classes, weights and order of the name stream (``retrieval.md`` 6.4 to 6.7). Pure."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from apps.indexing.analyzer import fold
from apps.indexing.name_reading import NOTHING, Reading
from apps.indexing.naming import (
    DECIMALS,
    LEAST_EVIDENCE,
    MAX_ROWS,
    SECTIONS_A_DOCUMENT,
    WEIGHTS,
    WELL_KNOWN_BEARERS,
    WRAPPER_HEADINGS,
    WRAPPER_SHARE,
    Asked,
    NameClass,
    Named,
    NameRow,
    Section,
    Source,
    name_terms,
    section_of,
    words,
)


class Judgement:
    """Documents against the query, in two steps, because how rare the other words of a name are is asked last: first
    ``refs`` of all sections that may become rows and the ``terms`` that decide it, then ``rows``.
    """

    def __init__(
        self,
        asked: Asked,
        documents: Sequence[Named],
        sources: Mapping[int, Source],
        own: Callable[[Sequence[int]], Mapping[int, Mapping[str, float]]] = lambda refs: {},
        headed: Callable[[Sequence[int]], Sequence[int]] = lambda refs: range(len(refs)),
    ) -> None:
        """``own`` gives, for refs of chunks, the weights of the query's terms in them: they order the sections inside a
        file that is named. ``headed`` gives the places of those whose headings may hold words of the query: few of
        thousands.
        """
        readings = {number: Reading(asked, sources[number]) for number in {one.number for one in documents}}
        self._judged = [_Judged(asked, document, readings[document.number]) for document in documents]
        _spell(asked, self._judged)
        _well_known(asked, self._judged)
        meant = [one for one in self._judged if one.is_meant]
        self._choose_inside([one for one in meant if one.is_named], own)
        self._choose_promising([one for one in meant if not one.is_named], headed)
        kept = [one for one in self._judged if one.kept]
        self.refs = [section.ref for one in kept for section in one.kept if section is not None]
        self.terms = frozenset[str]().union(*(one.undecided() for one in kept))

    @staticmethod
    def _choose_inside(
        named: Sequence[_Judged], own: Callable[[Sequence[int]], Mapping[int, Mapping[str, float]]]
    ) -> None:
        refs = [section[2] for one in named for section in one.document.sections]
        weights = own(refs) if refs else {}
        for one in named:
            one.choose_inside(weights)

    @staticmethod
    def _choose_promising(others: Sequence[_Judged], headed: Callable[[Sequence[int]], Sequence[int]]) -> None:
        refs = [section[2] for one in others for section in one.document.sections]
        places = headed(refs) if refs else ()
        begin = first = 0
        for one in others:
            end = begin + len(one.document.sections)
            last = bisect.bisect_left(places, end, first)
            one.choose_promising([place - begin for place in places[first:last]])
            begin, first = end, last

    def rows(self, idf: Callable[[str], float]) -> list[NameRow]:
        """Rows of the stream, best first."""
        rows = [row for one in self._judged if one.kept for row in one.rows(idf)]
        rows.sort(key=lambda row: (-row[0].weight, row[1]))
        return [row for row, _ in rows[:MAX_ROWS]]


class _Judged:
    """One document against the query."""

    def __init__(self, asked: Asked, document: Named, reading: Reading) -> None:
        self.asked, self.document, self.reading, self.source = asked, document, reading, reading.source
        self.wanted, self.label = reading.wanted, reading.label
        self.stem = document.stem
        self.names = name_terms(document, self.stem, reading.language, reading.label)
        self.named = NOTHING.union(*self.names)
        self._in_names = self.named & self.wanted
        self._in_folders = words(document.path.rpartition("/")[0], reading.language) & self.wanted
        self.share = self._best_share(asked.least)
        self.kept: list[Section | None] = []
        """Sections that may become rows."""
        self.name_class: NameClass | None = None
        self.full_path = False
        self.scale = 1.0
        """How well a bearer of a well-known name fits beside the one that fits best."""
        if asked.only_common_words:
            folded = fold(asked.text.strip())
            if folded in {fold(name) for name in self._told if name}:
                self.name_class = "exact_name"
        elif self.wanted and self.wanted in self.names:
            self.name_class = "exact_name"

    @property
    def is_meant(self) -> bool:
        """A side document only when it is spelled."""
        return not self.document.side or self.name_class in ("spelled", "same_name")

    @property
    def _told(self) -> tuple[str, ...]:
        return (self.stem, self.document.title, *self.document.aliases)

    def _best_share(self, idf: Callable[[str], float]) -> float:
        return max((self._share(name, idf) for name in self.names), default=0.0) if self._in_names else 0.0

    def _share(self, terms: frozenset[str], idf: Callable[[str], float]) -> float:
        held = terms & self.wanted
        if not held:
            return 0.0
        total = sum(map(idf, sorted(terms)))
        return sum(map(idf, sorted(held))) / total if total else 0.0

    def explained(self, in_heading: frozenset[str] = NOTHING) -> float:
        """``in_heading``: the words of the query that stand in a section's heading path."""
        return self.reading.explained(self._in_names, self._in_folders, in_heading)

    def _heading(self, section: Section) -> frozenset[str]:
        return self.reading.heading(section.heading)

    def evidence(self, section: Section | None, share: float, idf: Callable[[str], float]) -> float:
        """e = C · max(A, H)."""
        in_heading = self.reading.heard(section.heading_path) if section is not None else NOTHING
        if section is None or not in_heading:
            return round(self.explained() * share, DECIMALS)
        explained = self.explained(in_heading)
        return round(explained * max(share, self._share(self._heading(section), idf)), DECIMALS)

    def choose_inside(self, own: Mapping[int, Mapping[str, float]]) -> None:
        """Fills ``kept`` for a document that is named."""
        inside = self._inside(own)
        self.kept = [one for one in inside if self._may_be_row(one)][:SECTIONS_A_DOCUMENT]

    def choose_promising(self, headed: Sequence[int]) -> None:
        """Fills ``kept`` for a document that is not named, in file order. ``headed`` are the places of sections whose
        headings may hold words of the query. Where they explain too little of it, nothing else makes up for that. Of
        sections without any, which are all alike, the first ones.
        """
        sections = self.document.sections
        if not sections or self.asked.only_common_words or not self.wanted:
            every = map(section_of, sections) if sections else (None,)
            self.kept = [one for one in every if self._may_be_row(one)]
            return
        heard = self.reading.heard
        parts: dict[frozenset[str], float] = {NOTHING: self.explained()}
        held = {place: said for place in headed if (said := heard(sections[place][0]))}
        kept = []
        for place, said in held.items():
            explained = parts.get(said)
            if explained is None:
                explained = parts[said] = self.explained(said)
            if round(explained, DECIMALS) >= LEAST_EVIDENCE and self._is_enough(explained, sections[place][0][-1]):
                kept.append(place)
        if round(parts[NOTHING] * self.share, DECIMALS) >= LEAST_EVIDENCE:
            alike = (place for place in range(len(sections)) if place not in held)
            kept = sorted([*kept, *itertools.islice(alike, SECTIONS_A_DOCUMENT)])
        self.kept = [section_of(sections[place]) for place in kept]

    def _may_be_row(self, section: Section | None) -> bool:
        """With every unknown word as common as can be, evidence is at its largest."""
        if self.name_class is not None or (section is not None and self._is_exact(section)):
            return True
        return self.evidence(section, self.share, self.asked.least) >= LEAST_EVIDENCE

    def _is_enough(self, explained: float, heading: str) -> bool:
        """The same for a section of a document that is not named, which explains so much of the query."""
        if round(explained * self.share, DECIMALS) >= LEAST_EVIDENCE:
            return True
        terms = self.reading.heading(heading)
        if heading and terms == self.wanted:
            return True
        return round(explained * self._share(terms, self.asked.least), DECIMALS) >= LEAST_EVIDENCE

    def undecided(self) -> frozenset[str]:
        """Words beside those of the query, whose rarity its evidence depends on."""
        names = [name for name in self.names if name & self.wanted]
        headings = [self._heading(one) for one in self.kept if one is not None and self.reading.heard((one.heading,))]
        return NOTHING.union(*names, *headings) - self.wanted

    @property
    def is_named(self) -> bool:
        return self.name_class is not None or self.share >= 1.0

    def rows(self, idf: Callable[[str], float]) -> list[tuple[NameRow, tuple[object, ...]]]:
        found: list[NameRow] = []
        share = self._best_share(idf)
        document = self.document
        for section in self.kept:
            graded = self._graded(section, share, idf)
            if graded is not None and self.reading.may_be_option((*self._told, section.heading if section else "")):
                id_, ref = (section.chunk_id, section.ref) if section else (None, None)
                found.append(NameRow(id_, ref, UUID(document.document_id), document.number, document.path, *graded))
        if not self.is_named:
            found.sort(key=lambda row: (-row.weight, -row.evidence))
        # Bearers of a well-known name stand in the order in which they were chosen.
        chosen = -round(self.explained(), DECIMALS) if self.name_class == "well_known" else 0.0
        # As words `2.2.1` is `1.2.2`: of equal claims that of the name as it is written comes first.
        unlike = -self.reading.written_in(self._told)
        place = (not self.full_path, chosen, unlike, document.depth, document.path, self.source.label)
        return [(row, (*place, rank)) for rank, row in enumerate(found[:SECTIONS_A_DOCUMENT])]

    def _graded(
        self, section: Section | None, share: float, idf: Callable[[str], float]
    ) -> tuple[float, float, NameClass] | None:
        """Weight, evidence and class of one section's row; None for a row that says too little."""
        evidence = self.evidence(section, share, idf)
        found: list[tuple[float, float, NameClass]] = []
        if self.name_class is not None:
            found.append((WEIGHTS[self.name_class] * self.scale, evidence, self.name_class))
        if section is not None and self._is_exact(section):
            found.append((WEIGHTS["exact_heading"], evidence, "exact_heading"))
        if share >= 1.0 and evidence >= 1.0:
            found.append((WEIGHTS["complete"], evidence, "complete"))
        if evidence >= LEAST_EVIDENCE:
            found.append((evidence * evidence, evidence, "covered"))
        return max(found, key=lambda grade: grade[0]) if found else None

    def _is_exact(self, section: Section) -> bool:
        if not section.heading:
            return False
        if self.asked.only_common_words:
            return fold(section.heading) == fold(self.asked.text.strip())
        return self._heading(section) == self.wanted

    def _inside(self, own: Mapping[int, Mapping[str, float]]) -> list[Section | None]:
        """The sections of a named document in the order of their worth: covered headings, words, file order."""
        sections = self._shown()
        spelled = self.document.path if self.name_class in ("spelled", "same_name") else self.document.file_name
        asked = self.wanted - self.named - words(spelled, self.source.language)
        covered: list[bool] = []
        for section in sections:
            rest = words(section.heading, self.source.language) - self.label
            if asked:
                rest -= self.named
            covered.append(bool(rest) and rest <= self.wanted)
        weights = [{term: w for term, w in own.get(section.ref, {}).items() if term in asked} for section in sections]
        held = {term: sum(term in found for found in weights) for found in weights for term in found}
        scores = [
            round(sum(_idf(len(sections), held[term]) * 2.2 * w / (w + 1.2) for term, w in sorted(found.items())), 6)
            for found in weights
        ]
        order = sorted(range(len(sections)), key=lambda place: (not covered[place], -scores[place], place))
        return [sections[place] for place in order] or [None]

    def _shown(self) -> list[Section]:
        """Without wrappers: a heading over most of its file would stand for all of it."""
        sections = [section_of(section) for section in self.document.sections]
        if len(sections) < WRAPPER_HEADINGS:
            return sections
        last = max(section.end_line for section in sections)
        kept = [
            section
            for section in sections
            if not section.heading or section.end_line - section.start_line + 1 <= WRAPPER_SHARE * last
        ]
        return kept or sections


def _idf(total: int, held: int) -> float:
    return math.log(1 + (total - held + 0.5) / (held + 0.5))


def _spell(asked: Asked, judged: Sequence[_Judged]) -> None:
    """The file that the query spells: the full path wins, then the nearest to the root; others are of the same name."""
    for token in asked.spelled:
        equal = [one for one in judged if one.document.path.lower() == token]
        ending = [one for one in judged if one.document.path.lower().endswith("/" + token)]
        # A side document is meant only when its folder is spelled too.
        folder = "/" in token
        ending = [one for one in ending if folder or not one.document.side]
        equal = [one for one in equal if folder or not one.document.side]
        best = equal or [one for one in ending if one.document.depth == min(o.document.depth for o in ending)]
        for one in (*equal, *ending):
            if one in best:
                one.name_class, one.full_path = "spelled", one in equal
            elif one.name_class != "spelled":
                one.name_class = "same_name"


def _well_known(asked: Asked, judged: Sequence[_Judged]) -> None:
    """Files written in capitals, such as README, when their word is rare enough in texts to mean the file."""
    bearers: dict[str, list[_Judged]] = {}
    for one in judged:
        if not one.stem.isupper() or one.document.side:
            continue
        terms = words(one.stem, one.source.language)
        if len(terms) != 1:
            continue
        [term] = terms
        if term in one.wanted and asked.rare(term):
            bearers.setdefault(term, []).append(one)
    for found in bearers.values():
        found.sort(key=lambda one: (-one.explained(), one.document.depth, one.document.path))
        best = found[0].explained() or 1.0
        for one in found[:WELL_KNOWN_BEARERS]:
            if one.name_class is None:
                one.name_class = "well_known"
                # A file with several sections gets several rows and their page boost: without this, the root's README
                # would stand above the one of the package that was asked for.
                one.scale = one.explained() / best
