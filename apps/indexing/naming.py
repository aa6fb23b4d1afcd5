"""Who is named by a query: evidence, classes and order of the name stream (``retrieval.md`` 6). Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import UUID

from apps.indexing import tokens
from apps.indexing.analyzer import analyze, fold

NameClass = Literal["spelled", "same_name", "exact_name", "exact_heading", "complete", "well_known", "covered"]

WEIGHTS: Mapping[NameClass, float] = {
    "spelled": 6.0,
    "same_name": 1.0,
    "exact_name": 4.0,
    "exact_heading": 2.0,
    "complete": 2.0,
    "well_known": 2.0,
}
LEAST_EVIDENCE = 0.4
SECTIONS_A_DOCUMENT = 3
MAX_ROWS = 100
WELL_KNOWN_BEARERS = 3
MOST_ALIASES = 20
LONGEST_ALIAS = 200
WRAPPER_SHARE = 0.6
WRAPPER_HEADINGS = 4
DECIMALS = 9
MEDIUM = "doc docs documentation document page file markdown"
"""Words for the medium say little about what is meant: unmatched ones do not count against a name."""
NEVER_ALONE = frozenset({"index", "_index", "overview"})
EXTENSIONS = ("md", "mdx", "markdown", "rst", "txt")
_CHARACTERS = r"[^\s\"'`<>()\[\]{},;]"
_FILE = rf"{_CHARACTERS}+\.(?:{'|'.join(EXTENSIONS)})(?!\w)(?:#{_CHARACTERS}*)?"
_SPELLED = re.compile(rf"(?i){_FILE}|{_CHARACTERS}*[/\\]{_CHARACTERS}+")


class Section(NamedTuple):
    """A section that has text of its own; ``end_line`` is that of its last sub-section."""

    heading_path: tuple[str, ...]
    chunk_id: int
    ref: int
    start_line: int
    end_line: int

    @property
    def heading(self) -> str:
        return self.heading_path[-1] if self.heading_path else ""


def section_of(stored: Sequence[Any]) -> Section:
    """A section as it is stored, or one that was made already."""
    return stored if isinstance(stored, Section) else Section(tuple(stored[0]), *stored[1:])


class Named(NamedTuple):
    """A document that may be meant. ``owns_stem``: no other file of its source with that stem is nearer to the root."""

    number: int
    document_id: str
    """As it is stored: few of them become rows."""
    path: str
    title: str
    aliases: tuple[str, ...]
    side: bool
    sections: Sequence[Sequence[Any]]
    """As they are stored: few of them are ever looked at (``section_of``)."""
    owns_stem: bool = True

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def file_name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return stem_of(self.path)


@dataclass(frozen=True, slots=True)
class Source:
    """What a source contributes: its language and the words of its own name, which name nothing inside it."""

    language: str
    label: str


@dataclass(frozen=True, slots=True)
class NameRow:
    """One row of the stream, best first. ``chunk_id`` and ``ref`` are None for a named document without text."""

    chunk_id: int | None
    ref: int | None
    document_id: UUID
    number: int
    path: str
    weight: float
    evidence: float
    name_class: NameClass


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as this stream reads it. ``rare`` tells which terms stand in at most 1 % of the chunk bodies; ``least``
    is idf, and for words beside those of the query the least that it can be.
    """

    text: str
    idf: Callable[[str], float]
    least: Callable[[str], float]
    rare: Callable[[str], bool]
    only_common_words: bool = False

    @property
    def spelled(self) -> list[str]:
        return spelled_tokens(self.text)

    @property
    def option(self) -> str:
        return option_of(self.text)


def aliases_of(frontmatter: Mapping[str, Any]) -> tuple[str, ...]:
    """Other names that a document gives itself: ``aliases`` of its front matter, a text or a list of texts."""
    value = frontmatter.get("aliases")
    written = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    found = (one.replace("\0", "").strip()[:LONGEST_ALIAS] for one in written if isinstance(one, str))
    return tuple(dict.fromkeys(one for one in found if one))[:MOST_ALIASES]


def stem_of(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def spelled_tokens(text: str) -> list[str]:
    """Tokens of a query that spell a file, brought to one form: lower case, ``/``, no leading ``./``, no anchor."""
    found = []
    for match in _SPELLED.finditer(text):
        token = match.group().replace("\\", "/").partition("#")[0].lower().rstrip(".?!:")
        while token.startswith(("./", "/")):
            token = token[2:] if token.startswith("./") else token[1:]
        if token.strip("/"):
            found.append(token)
    return found


def option_of(text: str) -> str:
    """The option of a command, such as ``--database``, that a query is; else nothing."""
    token = text.strip("`\"' \t")
    return fold(token) if token.startswith("-") and tokens.find(token) == [token] else ""


@functools.lru_cache(maxsize=50_000)
def words(text: str, language: str) -> frozenset[str]:
    """Distinct word terms, without stop words."""
    return frozenset(term.text for term in analyze(text, language).terms if term.kind == "word")


@functools.lru_cache(maxsize=50_000)
def wholes(text: str, language: str) -> frozenset[str]:
    """Distinct terms that are compounds, such as ``2.2.1``: as words they are those of ``1.2.2`` too."""
    return frozenset(term.text for term in analyze(text, language).terms if term.kind == "whole")


def less(terms: frozenset[str], removed: frozenset[str]) -> frozenset[str]:
    """``terms`` without ``removed``, unless nothing would be left."""
    return terms - removed or terms


def name_terms(document: Named, stem: str, language: str, own: frozenset[str]) -> list[frozenset[str]]:
    """The terms of each name of a document, its stem the first; ``own`` are the words of its source's own name."""
    spelled = stem
    if not document.owns_stem or stem.lower() in NEVER_ALONE:
        folder = document.path.rpartition("/")[0].rpartition("/")[2]
        spelled = f"{folder} {stem}" if folder else ""
    names = (spelled, document.title, *document.aliases)
    return [found for name in names if name and (found := less(words(name, language), own))]
