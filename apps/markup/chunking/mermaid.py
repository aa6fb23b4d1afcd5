"""The labels of a Mermaid diagram: what a reader of the picture sees, without the language that draws it."""

from __future__ import annotations

import re

_TAG = re.compile(r"<[^<>\n]*>|:::\w+")
_PLAIN_WORDS = r"\w[\w'’.,/&%+!?]*(?:[ ]+\w[\w'’.,/&%+!?]*)*"
_PIECE = re.compile(
    r'"(?P<quoted>[^"\n]*)"'
    r"|\|(?P<edge>[^|\"\n]*)\|"
    r"|(?<=[\[({])(?P<shape>[^\[\](){}\"|\n]+)(?=[\])}])"
    rf"|(?P<words>{_PLAIN_WORDS})(?P<opens>[\[({{])?"
)
_STYLE = re.compile(
    r"\s*(?:%%|style\b|classDef\b|class\s+\S+\s+\w+\s*$|click\b|linkStyle\b|direction\b|end\s*$|accTitle|accDescr"
    r"|dateFormat\b|axisFormat\b|autonumber\b|activate\b|deactivate\b|---\s*$)"
)
_KEYWORD = re.compile(
    r"(?:subgraph|participant|actor|loop|alt|else|opt|par|and|critical|break|rect|box|note (?:over|left of|right of)"
    r"|title|section|state|class|namespace)\b\s*",
    re.IGNORECASE,
)
_SHAPED = ("flowchart", "graph", "block-beta", "mindmap")


def labels(source: str) -> list[str]:
    """Labels in order of first appearance, each once. ``source`` may be part of a diagram."""
    lines = [line for line in source.split("\n") if line.strip() and not _STYLE.match(line)]
    if lines and (first := lines[0].split()) and _is_head(first[0]):
        lines[0] = "" if first[0].lower() in _SHAPED or len(first) == 1 else lines[0].partition(first[0])[2]
    named: set[str] = set()
    found: dict[str, None] = {}
    for line in lines:
        for label in _line(_TAG.sub(" ", line), named):
            found.setdefault(label)
    # A node that has a label somewhere is drawn with it everywhere; its name is no text of the picture.
    return [label for label in found if label not in named]


def _is_head(word: str) -> bool:
    head = word.lower().rstrip(":")
    return (
        head in _SHAPED
        or head.endswith(("diagram", "diagram-v2", "chart", "chart-beta", "graph"))
        or head
        in (
            "gantt",
            "pie",
            "journey",
            "timeline",
            "quadrantchart",
            "sankey-beta",
            "packet-beta",
            "architecture-beta",
            "kanban",
            "zenuml",
        )
    )


def _line(line: str, named: set[str]) -> list[str]:
    found: list[str] = []
    body = line.strip()
    keyword = _KEYWORD.match(body)
    if keyword:
        body = body[keyword.end() :]
        short, alias, full = body.partition(" as ")
        if alias:
            named.add(short.strip())
            body = full
    for match in _PIECE.finditer(body):
        if match["opens"]:
            *before, name = match["words"].split(" ")
            named.add(name)
            text = " ".join(before)
        else:
            text = match["quoted"] or match["edge"] or match["shape"] or match["words"] or ""
        text = " ".join(text.replace("#quot;", '"').strip("/\\<> ").split())
        if text:
            found.append(text)
    return found
