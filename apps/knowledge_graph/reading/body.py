"""Links of the body to occurrences (``knowledge-graph.md`` 4)."""

from __future__ import annotations

from apps.knowledge_graph.naming import cross_source, wanted_by_address
from apps.knowledge_graph.reading.items import split_type
from apps.knowledge_graph.values import RAW_CHARACTERS, Body, CrossReference, Occurrence, Problem
from apps.knowledge_graph.vocabulary import EDGE_TYPES, near, normal_word
from apps.markup.anchors import match_fragment
from apps.markup.values import Link, ParsedDocument

MAX_LINKS = 10_000


def read_body(parsed: ParsedDocument) -> Body:
    """Occurrences of the text in source order. Code, HTML and comments were left out by the tree already."""
    raw = parsed.text.encode("utf-8", "surrogatepass")
    occurrences: list[Occurrence] = []
    references: list[CrossReference] = []
    problems: list[Problem] = [
        Problem("KG118", "warning", warning.line, warning.column, warning.message, "close the fence")
        for warning in parsed.warnings
        if warning.code == "unclosed_fence"
    ]
    count = 0
    for link in parsed.links:
        if link.origin != "body" or link.link_type not in ("wiki", "markdown", "relative"):
            continue
        if link.link_type == "wiki" and not link.path:
            _own_anchor(link, parsed, problems)
            continue
        if link.link_type != "wiki" and not wanted_by_address(link.href, parsed.path):
            continue
        count += 1
        if count > MAX_LINKS:
            message = f"more than {MAX_LINKS} links; the rest is ignored"
            problems.append(Problem("KG121", "warning", link.line, link.column, message, "", "links"))
            break
        written = raw[link.start_byte : link.end_byte].decode("utf-8", "replace")[:RAW_CHARACTERS]
        section = parsed.sections[link.section].heading_path if link.section is not None else ()
        if link.link_type == "wiki":
            read = _wiki(link, written, section, problems)
            if isinstance(read, CrossReference):
                references.append(read)
            else:
                occurrences.append(read)
        else:
            occurrences.append(
                Occurrence(
                    provenance="wikilink",
                    mode="address",
                    target=link.href,
                    line=link.line,
                    column=link.column,
                    raw=written,
                    heading_path=section,
                    anchor=link.fragment,
                    label=link.text,
                )
            )
    heading = next((each.text for each in parsed.heading_tree if each.level == 1 and each.text and not each.nested), "")
    return Body(heading, tuple(occurrences), tuple(references), tuple(problems))


def _wiki(link: Link, written: str, section: tuple[str, ...], problems: list[Problem]) -> Occurrence | CrossReference:
    word, target = split_type(link.rel_type, link.path)
    stated: str | None = None
    problem = ""
    if word:
        normal = normal_word(word)
        if normal in EDGE_TYPES:
            stated = normal
            if normal != word:
                message = f"{word!r} read as {normal!r}"
                problems.append(Problem("KG120", "info", link.line, link.column, message, "", word))
        else:
            problem = "unknown_type"
            if meant := near(normal, EDGE_TYPES):
                message = f"edge type {word!r} is not known; did you mean {meant!r}?"
                column = link.column + (2 + link.embed)
                fix = (f"{word}::", f"{meant}::") if written[2 + link.embed :].startswith(f"{word}::") else ("", "")
                problems.append(Problem("KG114", "warning", link.line, column, message, f"write {meant}::", word, *fix))
            else:
                message = f"{written!r} names no page: {word!r} is no edge type"
                problems.append(Problem("KG106", "warning", link.line, link.column, message, "", written))
    elif crossing := cross_source(target):
        kind, source, slug = crossing
        return CrossReference(written, link.line, kind, source, slug, None, link.alias)
    if stated and (crossing := cross_source(target)):
        kind, source, slug = crossing
        return CrossReference(written, link.line, kind, source, slug, stated, link.alias)
    return Occurrence(
        provenance="wikilink",
        mode="name",
        target=target,
        line=link.line,
        column=link.column,
        raw=written,
        stated=stated,
        heading_path=section,
        anchor=link.fragment,
        label=link.alias,
        embed=link.embed,
        problem="unknown_type" if problem else "",
    )


def _own_anchor(link: Link, parsed: ParsedDocument, problems: list[Problem]) -> None:
    fragment = link.fragment
    if fragment.startswith("^"):
        return
    if match_fragment(fragment.rpartition("#")[2] or fragment, parsed.anchors) is None:
        message = f"no heading {fragment!r} in this page"
        problems.append(Problem("KG116", "warning", link.line, link.column, message, "", f"#{fragment}"))
