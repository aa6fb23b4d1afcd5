"""Identifiers of requirements and decisions, and inline code that names a file (``markup.md`` 3.8, 3.9)."""

from __future__ import annotations

import re

_ID = r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+"
_CELL = re.compile(rf"[*_`\[]*({_ID})[\]*_`]*")
LIST_ITEM = re.compile(rf"(?:[-*+]|\d{{1,9}}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?([*_`\[]*({_ID})(?![\w-])[^\n]*)".encode())
# Extensions that Cograph reads, documents and code alike.
_ENDINGS = frozenset(
    re.findall(
        r"\w+",
        "bash bat c cc cfg cjs conf cpp cs css cts cxx env go gradle h hpp htm html hxx ini java js json jsonc jsx kt "
        "lock markdown md mdx mjs mod mts php properties proto ps1 py pyi rb rs rst sass scala scss sh sql sum svelte "
        "swift tf toml ts tsx txt vue work xml yaml yml",
    )
)
_REFERENCE = re.compile(
    r"((?:\.{0,2}/)?[\w.@+~-]+(?:/[\w.@+~\[\]-]+)*/?)"
    r"(?:::([A-Za-z_][\w.:]*)|\#L(\d+)(?:-L?(\d+))?|:(\d+)(?:-(\d+)|:\d+)?)?"
)


def item_id(cell: str) -> str:
    """The identifier that a table cell is; empty when it is none."""
    match = _CELL.fullmatch(cell) if cell[:1].isupper() or cell[:1] in "*_`[" else None
    return match[1] if match else ""


def code_reference(content: str) -> tuple[str, str, int | None, int | None] | None:
    """Path, symbol, first and last line that inline code names; None when it is no path."""
    if "/" not in content:
        # Most inline code is no path: looked at before the pattern, which costs three times as much.
        stem, _, ending = content.partition(":")[0].partition("#")[0].rpartition(".")
        if not stem or ending.lower() not in _ENDINGS:
            return None
    elif not content.strip("/."):
        return None
    match = _REFERENCE.fullmatch(content)
    if not match:
        return None
    path = match[1]
    first = match[3] or match[5]
    start = int(first) if first and len(first) < 10 else None
    last = match[4] or match[6]
    end = int(last) if last and len(last) < 10 else start
    return path, match[2] or "", start, end
