"""What a person writes into a page to make a proposal an edge: one line of its header, and where it goes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from apps.access.errors import NotFound
from apps.knowledge_graph.models import CanonicalPage, Edge
from apps.knowledge_graph.storing.documents import StoredDocument, load_document, read_document
from apps.knowledge_graph.values import Page

_RELATED = re.compile(r"""["']?related["']?[ ]*:""", re.IGNORECASE)
_ITEM = re.compile(r"([ ]*)-[ ]")


@dataclass(frozen=True, slots=True)
class Paste:
    """This line, in this file: before ``line`` (from 1), or in its place where it ``replaces`` that one."""

    path: str
    line: int
    text: str
    replaces: bool = False

    def __str__(self) -> str:
        place = f"line {self.line} becomes" if self.replaces else f"before line {self.line}"
        return f"{self.path}, {place}: {self.text}"

    def into(self, text: str) -> str:
        """The text of the file with the line in its place."""
        lines = text.split("\n")
        lines[self.line - 1 : self.line if self.replaces else self.line - 1] = [self.text]
        return "\n".join(lines)


def line_to_paste(edge: Edge) -> Paste:
    """The line for a proposed edge: the first way of writing it with which the page says what it said, and the edge.
    Raises NotFound when its page is gone."""
    page = CanonicalPage.objects.filter(source=edge.source_id, uid=edge.from_uid, bears=True).first()
    kind = edge.source.kind
    document = load_document(kind, page.document_key) if page is not None else None
    if document is None:
        raise NotFound
    ways = list(_ways(document, edge))
    before = read_document(document).page
    return next((way for way in ways if _says_it(document, before, way, edge.to_uid)), ways[0])


def _ways(document: StoredDocument, edge: Edge) -> Iterator[Paste]:
    lines = [line.rstrip("\r") for line in document.text.split("\n")]
    closing = next((at for at, line in enumerate(lines[1:], start=2) if line.rstrip() in ("---", "...")), 2)
    item = f'"[[{edge.to_uid}]]"'
    # Types that the matrix gives need not be written.
    yield Paste(document.path, closing, f"related: [{item}]")
    for number, line in enumerate(lines[1 : closing - 1], start=2):
        if key := _RELATED.match(line):
            given = line[key.end() :].strip()
            if given.startswith("["):
                rest = given[1:].lstrip()
                others = rest if rest.startswith("]") else f", {rest}"
                yield Paste(document.path, number, f"{key[0]} [{item}{others}", replaces=True)
            elif given:
                yield Paste(document.path, number, f"{key[0]} [{item}, {given}]", replaces=True)
            for below in range(number, closing - 1):
                if first := _ITEM.match(lines[below]):
                    yield Paste(document.path, below + 1, f"{first[1]}- {item}")
                    break
    yield Paste(document.path, closing, f"{edge.edge_type}: [{item}]")


def _says_it(document: StoredDocument, before: Page | None, way: Paste, target: str) -> bool:
    """Whether the page reads as before with the line in it, and names the target in its header once more."""
    after = read_document(replace(document, text=way.into(document.text))).page
    if before is None or after is None or (after.uid, after.header_state) != (before.uid, before.header_state):
        return False
    named = [each.target for each in before.header.occurrences]
    return sorted(each.target for each in after.header.occurrences) == sorted([*named, target])
