"""From evidence to rows: classes, weights and order of the name stream (``retrieval.md`` 6.4 to 6.7). Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence

from apps.indexing.analyzer import fold
from apps.indexing.naming import (
    DECIMALS,
    LEAST_EVIDENCE,
    MAX_ROWS,
    MEDIUM,
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
    less,
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
        headed: Callable[[Sequence[int]], Container[int]] = frozenset,
    ) -> None:
        """``own`` gives, for refs of chunks, the weights of the query's terms in them: they order the sections inside a
        file that is named. ``headed`` gives those whose headings may hold words of the query: thousands are looked at.
        """
        readings = {number: _Reading(asked, sources[number]) for number in {one.number for one in documents}}
        self._judged = [_Judged(asked, document, readings[document.number]) for document in documents]
        _spell(asked, self._judged)
        _well_known(asked, self._judged)
        inside = [section.ref for one in self._judged if one.is_named for section in one.sections]
        weights = own(inside) if inside else {}
        others = [section[2] for one in self._judged if not one.is_named for section in one.document.sections]
        may_hold = headed(others) if others else ()
        for one in self._judged:
            one.choose(weights, may_hold)
        kept = [one for one in self._judged if one.kept]
        self.refs = [section.ref for one in kept for section in one.kept if section is not None]
        self.terms = frozenset[str]().union(*(one.undecided() for one in kept))

    def rows(self, idf: Callable[[str], float]) -> list[NameRow]:
        """Rows of the stream, best first."""
        rows = [row for one in self._judged if one.kept for row in one.rows(idf)]
        rows.sort(key=lambda row: (-row[0].weight, row[1]))
        return [row for row, _ in rows[:MAX_ROWS]]


_NOTHING: frozenset[str] = frozenset()


class _Reading:
    """The query as one source reads it."""

    def __init__(self, asked: Asked, source: Source) -> None:
        self.source, self.language = source, source.language
        self.label = words(source.label, source.language)
        self.wanted = less(words(asked.text, source.language), self.label)
        self.ordered = sorted(self.wanted)
        self.medium = words(MEDIUM, source.language)
        self._headings: dict[str, frozenset[str]] = {}
        self._heard: dict[str, frozenset[str]] = {}

    def heading(self, text: str) -> frozenset[str]:
        """The words of a heading, without source words."""
        found = self._headings.get(text)
        if found is None:
            found = self._headings[text] = less(words(text, self.language), self.label)
        return found

    def heard(self, headings: Sequence[str]) -> frozenset[str]:
        """The words of the query that headings hold. Asked for thousands of headings, most of which hold none."""
        known, held = self._heard, _NOTHING
        for heading in headings:
            found = known.get(heading)
            if found is None:
                found = known[heading] = words(heading, self.language) & self.wanted
            if found:
                held = held | found if held else found
        return held


class _Judged:
    """One document against the query."""

    def __init__(self, asked: Asked, document: Named, reading: _Reading) -> None:
        self.asked, self.document, self.reading, self.source = asked, document, reading, reading.source
        self.wanted, self.label = reading.wanted, reading.label
        self.names = name_terms(document, self.source)
        self.named = _NOTHING.union(*self.names)
        self.folders = words(document.path.rpartition("/")[0], reading.language)
        self._explained: dict[frozenset[str], float] = {}
        self.share = self._best_share(asked.least)
        self.kept: list[Section | None] = []
        """Sections that may become rows."""
        self.name_class: NameClass | None = None
        self.full_path = False
        self.scale = 1.0
        """How well a bearer of a well-known name fits beside the one that fits best."""
        if asked.only_common_words:
            folded = fold(asked.text.strip())
            if folded in {fold(name) for name in (document.stem, document.title, *document.aliases) if name}:
                self.name_class = "exact_name"
        elif self.wanted and self.wanted in self.names:
            self.name_class = "exact_name"

    @property
    def sections(self) -> list[Section]:
        return [section_of(section) for section in self.document.sections]

    def _best_share(self, idf: Callable[[str], float]) -> float:
        return max((self._share(name, idf) for name in self.names), default=0.0)

    def _share(self, terms: frozenset[str], idf: Callable[[str], float]) -> float:
        held = terms & self.wanted
        if not held:
            return 0.0
        total = sum(idf(term) for term in sorted(terms))
        return sum(idf(term) for term in sorted(held)) / total if total else 0.0

    def explained(self, in_heading: frozenset[str] = _NOTHING) -> float:
        """C: the share of the query that names, headings and folders account for; ``in_heading`` are the words of the
        query that stand in a section's heading path.
        """
        found = self._explained.get(in_heading)
        if found is None:
            total = got = 0.0
            idf, medium = self.asked.idf, self.reading.medium
            for term in self.reading.ordered:
                part = 1.0 if term in self.named or term in in_heading else 0.5 if term in self.folders else 0.0
                if not part and term in medium:
                    continue
                total += idf(term)
                got += part * idf(term)
            found = self._explained[in_heading] = got / total if total else 0.0
        return found

    def _heading(self, section: Section) -> frozenset[str]:
        return self.reading.heading(section.heading)

    def evidence(self, section: Section | None, share: float, idf: Callable[[str], float]) -> float:
        """e = C · max(A, H)."""
        in_heading = self.reading.heard(section.heading_path) if section is not None else _NOTHING
        if section is None or not in_heading:
            return round(self.explained() * share, DECIMALS)
        explained = self.explained(in_heading)
        return round(explained * max(share, self._share(self._heading(section), idf)), DECIMALS)

    def choose(self, own: Mapping[int, Mapping[str, float]], headed: Container[int]) -> None:
        """Fills ``kept``: with every unknown word as common as can be, evidence is at its largest."""
        if self.document.side and self.name_class not in ("spelled", "same_name"):
            return
        if self.is_named:
            inside = self._inside(own)
            self.kept = [one for one in inside if self._may_be_row(one)][:SECTIONS_A_DOCUMENT]
        else:
            self.kept = [one for one in self._promising(headed) if self._may_be_row(one)]

    def _may_be_row(self, section: Section | None) -> bool:
        if self.name_class is not None or (section is not None and self._is_exact(section)):
            return True
        return self.evidence(section, self.share, self.asked.least) >= LEAST_EVIDENCE

    def undecided(self) -> frozenset[str]:
        """Words beside those of the query, whose rarity its evidence depends on."""
        names = [name for name in self.names if name & self.wanted]
        headings = [self._heading(one) for one in self.kept if one is not None and self.reading.heard((one.heading,))]
        return _NOTHING.union(*names, *headings) - self.wanted

    @property
    def is_named(self) -> bool:
        return self.name_class is not None or self.share >= 1.0

    def rows(self, idf: Callable[[str], float]) -> list[tuple[NameRow, tuple[object, ...]]]:
        found: list[NameRow] = []
        share = self._best_share(idf)
        document = self.document
        for section in self.kept:
            graded = self._graded(section, share, idf)
            if graded is not None:
                id_, ref = (section.chunk_id, section.ref) if section else (None, None)
                found.append(NameRow(id_, ref, document.document_id, document.number, document.path, *graded))
        if not self.is_named:
            found.sort(key=lambda row: (-row.weight, -row.evidence))
        # Bearers of a well-known name stand in the order in which they were chosen.
        chosen = -round(self.explained(), DECIMALS) if self.name_class == "well_known" else 0.0
        place = (not self.full_path, chosen, document.depth, document.path, self.source.label)
        return [(row, (*place, rank)) for rank, row in enumerate(found[:SECTIONS_A_DOCUMENT])]

    def _promising(self, headed: Container[int]) -> list[Section | None]:
        """Sections of a document that is not named, in file order. Where the words in its headings explain too little
        of the query, nothing else makes up for it. Of sections without any, which are all alike, the first ones.
        """
        sections = self.document.sections
        if not sections:
            return [None]
        if self.asked.only_common_words or not self.wanted:
            return list(self.sections)
        alike = SECTIONS_A_DOCUMENT if round(self.explained() * self.share, DECIMALS) >= LEAST_EVIDENCE else 0
        found: list[Section | None] = []
        heard = self.reading.heard
        for section in sections:
            held = heard(section[0]) if section[2] in headed else None
            if held:
                if round(self.explained(held), DECIMALS) >= LEAST_EVIDENCE:
                    found.append(section_of(section))
            elif alike:
                alike -= 1
                found.append(section_of(section))
        return found

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
        sections = self.sections
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
        stem = one.document.stem
        terms = words(stem, one.source.language)
        if not stem.isupper() or len(terms) != 1 or one.document.side:
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
