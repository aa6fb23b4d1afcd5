"""From evidence to rows: classes, weights and order of the name stream (``retrieval.md`` 6.4 to 6.7). Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

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
    words,
)


def rank(
    asked: Asked,
    documents: Sequence[Named],
    sources: Mapping[int, Source],
    own: Callable[[Sequence[int]], Mapping[int, Mapping[str, float]]] = lambda refs: {},
) -> list[NameRow]:
    """Rows of the stream. ``own`` gives, for refs of chunks, the weights of the query's terms in them: they order the
    sections inside a file that is named.
    """
    heard: dict[tuple[str, frozenset[str]], dict[str, frozenset[str]]] = {}
    judged = [_Judged(asked, document, sources[document.number], heard) for document in documents]
    _spell(asked, judged)
    _well_known(asked, judged)
    inside = [section.ref for one in judged if one.is_named for section in one.document.sections]
    weights = own(inside) if inside else {}
    rows = [row for one in judged for row in one.rows(weights)]
    rows.sort(key=lambda row: (-row[0].weight, row[1]))
    return [row for row, _ in rows[:MAX_ROWS]]


_NOTHING: frozenset[str] = frozenset()


class _Judged:
    """One document against the query."""

    def __init__(
        self,
        asked: Asked,
        document: Named,
        source: Source,
        heard: dict[tuple[str, frozenset[str]], dict[str, frozenset[str]]],
    ) -> None:
        self.asked, self.document, self.source = asked, document, source
        language = source.language
        label = words(source.label, language)
        self.wanted = less(words(asked.text, language), label)
        self.ordered = sorted(self.wanted)
        self._heard = heard.setdefault((language, self.wanted), {})
        self._plain: float | None = None
        self.label = label
        self.names = name_terms(document, source)
        self.named = frozenset().union(*self.names) if self.names else frozenset()
        folder = document.path.rpartition("/")[0]
        self.folders = words(folder, language)
        self.medium = words(MEDIUM, language)
        self.share = max((self._share(name) for name in self.names), default=0.0)
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

    def _share(self, terms: frozenset[str]) -> float:
        if not terms & self.wanted:
            return 0.0
        total = sum(self.asked.idf(term) for term in sorted(terms))
        return sum(self.asked.idf(term) for term in sorted(terms & self.wanted)) / total if total else 0.0

    def explained(self, in_heading: frozenset[str] = frozenset()) -> float:
        """C: the share of the query that names, headings and folders account for; ``in_heading`` are the words of the
        query that stand in a section's heading path.
        """
        total = got = 0.0
        for term in self.ordered:
            part = 1.0 if term in self.named or term in in_heading else 0.5 if term in self.folders else 0.0
            if not part and term in self.medium:
                continue
            total += self.asked.idf(term)
            got += part * self.asked.idf(term)
        return got / total if total else 0.0

    def heard(self, heading: str) -> frozenset[str]:
        """The words of the query that a heading holds."""
        found = self._heard.get(heading)
        if found is None:
            found = self._heard[heading] = words(heading, self.source.language) & self.wanted
        return found

    def in_headings(self, section: Section | None) -> frozenset[str]:
        found = _NOTHING
        for heading in section.heading_path if section is not None else ():
            if held := self.heard(heading):
                found |= held
        return found

    @property
    def plain(self) -> float:
        """Evidence of the sections whose headings hold none of the query's words: worked out once for all of them."""
        if self._plain is None:
            self._plain = round(self.explained() * self.share, DECIMALS)
        return self._plain

    def evidence(self, section: Section | None) -> float:
        """e = C · max(A, H)."""
        in_heading = self.in_headings(section)
        if section is None or not in_heading:
            return self.plain
        heading = less(words(section.heading, self.source.language), self.label)
        return round(self.explained(in_heading) * max(self.share, self._share(heading)), DECIMALS)

    @property
    def is_named(self) -> bool:
        return self.name_class is not None or self.share >= 1.0

    def rows(self, own: Mapping[int, Mapping[str, float]]) -> list[tuple[NameRow, tuple[object, ...]]]:
        if self.document.side and self.name_class not in ("spelled", "same_name"):
            return []
        found: list[NameRow] = []
        sections: Sequence[Section | None] = self._inside(own) if self.is_named else self._promising()
        for section in sections:
            graded = self._graded(section)
            if graded is not None:
                weight, evidence, name_class = graded
                document = self.document
                found.append(
                    NameRow(
                        section.chunk_id if section else None,
                        section.ref if section else None,
                        document.document_id,
                        document.number,
                        document.path,
                        weight,
                        evidence,
                        name_class,
                    )
                )
        if not self.is_named:
            found.sort(key=lambda row: (-row.weight, -row.evidence))
        # Bearers of a well-known name stand in the order in which they were chosen.
        chosen = -round(self.explained(), DECIMALS) if self.name_class == "well_known" else 0.0
        place = (not self.full_path, chosen, self.document.depth, self.document.path, self.source.label)
        return [(row, (*place, rank)) for rank, row in enumerate(found[:SECTIONS_A_DOCUMENT])]

    def _promising(self) -> Sequence[Section | None]:
        """Sections of a document that is not named: without words of the query in their headings, most say too little
        to be graded one by one.
        """
        sections = self.document.sections
        if not sections:
            return (None,)
        if self.asked.only_common_words or not self.wanted or self.plain >= LEAST_EVIDENCE:
            return sections
        return [section for section in sections if self.in_headings(section)]

    def _graded(self, section: Section | None) -> tuple[float, float, NameClass] | None:
        """Weight, evidence and class of one section's row; None for a row that says too little."""
        evidence = self.evidence(section)
        found: list[tuple[float, float, NameClass]] = []
        if self.name_class is not None:
            found.append((WEIGHTS[self.name_class] * self.scale, evidence, self.name_class))
        if section is not None and section.heading and self._is_heading(section.heading):
            found.append((WEIGHTS["exact_heading"], evidence, "exact_heading"))
        if self.share >= 1.0 and evidence >= 1.0:
            found.append((WEIGHTS["complete"], evidence, "complete"))
        if evidence >= LEAST_EVIDENCE:
            found.append((evidence * evidence, evidence, "covered"))
        return max(found, key=lambda grade: grade[0]) if found else None

    def _is_heading(self, heading: str) -> bool:
        if self.asked.only_common_words:
            return fold(heading) == fold(self.asked.text.strip())
        return less(words(heading, self.source.language), self.label) == self.wanted

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
        sections = self.document.sections
        if len(sections) < WRAPPER_HEADINGS:
            return list(sections)
        last = max(section.end_line for section in sections)
        kept = [
            section
            for section in sections
            if not section.heading or section.end_line - section.start_line + 1 <= WRAPPER_SHARE * last
        ]
        return kept or list(sections)


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
