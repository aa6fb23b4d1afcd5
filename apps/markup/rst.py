"""reStructuredText into the same values as Markdown (``markup.md`` 7)."""

from __future__ import annotations

import re

from docutils import nodes

from apps.markup.anchors import slugify
from apps.markup.assembling import assemble
from apps.markup.decoding import line_count
from apps.markup.front_matter import FrontMatter
from apps.markup.links import split_href
from apps.markup.mdx import Mdx
from apps.markup.rst_reading import LabelReference, PageReference, RstReading, read_rst
from apps.markup.tree import HeadingDraft, Tree, line_starts
from apps.markup.values import BlockKind, CodeBlock, Decoded, Limits, Link, ParsedDocument, Skipped, Table

_DIRECTIVE = re.compile(r"\.\. +([\w:-]+)::")
_CODE = frozenset({"code", "code-block", "sourcecode", "literalinclude", "parsed-literal"})
_TABLES = frozenset({"table", "csv-table", "list-table"})
_BORDER = re.compile(r"(?:\+[-=+]+\+|=+(?: +=+)+)\s*$")
_LIST = re.compile(r"(?:[*+•‣⁃-]|\(?(?:\d+|[A-Za-z]|#|[ivxlcdmIVXLCDM]+)[.)])(?:\s|$)")


def parse_rst(decoded: Decoded, path: str, limits: Limits) -> ParsedDocument | Skipped:
    """Structure of a reStructuredText file; Skipped when it is nested deeper than the limit."""
    raw = decoded.text.encode()
    tree = Tree(raw, line_starts(raw), limits.max_nesting)
    try:
        reading = read_rst(decoded.text)
        depth = _depth(reading.document)
    except RecursionError:
        depth = limits.max_nesting + 1
    if depth > limits.max_nesting:
        return Skipped("nesting", f"nested deeper than {limits.max_nesting} levels")
    lines = decoded.text.split("\n")
    targets = _headings(tree, reading.document, lines)
    _blocks(tree, lines, line_count(decoded.text))
    _code_and_tables(tree, reading.document, lines)
    _links(tree, reading)
    tree.warnings += reading.warnings
    return assemble(decoded, path, "rst", tree, FrontMatter(), Mdx(raw), more_anchors=targets)


def _depth(document: nodes.document) -> int:
    deepest, stack = 0, [(document, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack += [(child, level + 1) for child in node.children if isinstance(child, nodes.Element)]  # type: ignore[misc]
    return deepest


def _headings(tree: Tree, document: nodes.document, lines: list[str]) -> list[str]:
    """Add the headings; returns the labels that the document defines."""
    starts = tree.starts
    taken = 0
    for section in document.findall(nodes.section):
        title = section.next_node(nodes.title)
        level, parent = 1, section.parent
        while parent is not None and not isinstance(parent, nodes.document):
            level += isinstance(parent, nodes.section)
            parent = parent.parent
        if title is None or not section.line:
            continue
        # docutils reports the line of the underline.
        line = max(section.line - 1, 1)
        over = line - 2
        first = (
            line - 1 if over >= taken and _adorned(lines[over]) and lines[over].strip() == lines[line].strip() else line
        )
        text = " ".join(title.astext().split())
        last = taken = min(line + 1, len(starts) - 1)
        anchor = tree.anchors.claim(slugify(text))
        tree.headings.append(
            HeadingDraft(level, text, anchor, first, last, starts[first - 1], starts[last] - 1, nested=False, line=line)
        )
    tree.headings.sort(key=lambda each: each.start_line)
    labels: list[str] = []
    for target in document.findall(nodes.target):
        labels += [] if target.get("refuri") else target.get("names", [])
        if target.get("refid"):
            labels.append(target["refid"])
    for node in document.findall(nodes.Element):
        if not isinstance(node, (nodes.target, nodes.document)):
            own: list[str] = node.get("names", [])[1:] if isinstance(node, nodes.section) else node.get("names", [])
            labels += own
    return labels


def _adorned(line: str) -> bool:
    stripped = line.rstrip()
    return bool(stripped) and not stripped[0].isalnum() and stripped == stripped[0] * len(stripped)


def _blocks(tree: Tree, lines: list[str], count: int) -> None:
    """Groups of lines at indentation zero, with the indented lines below them; headings stand for themselves."""
    heading_lines = {line for each in tree.headings for line in range(each.start_line, each.end_line + 1)}
    for each in tree.headings:
        tree.blocks.append(tree.block_of_lines("heading", each.start_line, each.end_line))
    group = last = 0
    after_blank = True
    for line in range(1, count + 1):
        content = lines[line - 1]
        if line in heading_lines:
            group = _close(tree, lines, group, last)
            after_blank = True
            continue
        if not content.strip():
            after_blank = True
            continue
        if after_blank and (content[0] not in " \t" or not group):
            group = _close(tree, lines, group, last) or line
        group = group or line
        last, after_blank = line, False
    _close(tree, lines, group, last)
    tree.blocks.sort(key=lambda each: each.start_byte)


def _close(tree: Tree, lines: list[str], group: int, last: int) -> int:
    if group:
        tree.blocks.append(tree.block_of_lines(_kind(lines[group - 1]), group, last))
    return 0


def _kind(line: str) -> BlockKind:
    directive = _DIRECTIVE.match(line)
    if directive:
        return "code" if directive[1] in _CODE else "table" if directive[1] in _TABLES else "paragraph"
    if _BORDER.match(line):
        return "table"
    return "list" if _LIST.match(line) else "paragraph"


def _code_and_tables(tree: Tree, document: nodes.document, lines: list[str]) -> None:
    for node in document.findall(nodes.literal_block):
        if node.get("shown"):
            continue
        content = node.astext() + "\n"
        classes: list[str] = node.get("classes", [])
        language = next((each for each in classes if each != "code"), "")
        first, last = node.get("lines") or (node.line or 1, 0)
        last = last or first + content.count("\n") - 1
        limit = len(tree.starts) - 1
        tree.code_blocks.append(CodeBlock(language, content, min(first, limit), min(last, limit), language))
    for table in document.findall(nodes.table):
        header = [_cells(row) for head in table.findall(nodes.thead) for row in head.findall(nodes.row)]
        rows = [_cells(row) for body in table.findall(nodes.tbody) for row in body.findall(nodes.row)]
        first, last = table.get("lines") or (table.line or 1, 0)
        if not last:
            last = first
            while last < len(lines) and lines[last].strip():
                last += 1
        tree.tables.append(Table(header[0] if header else (), tuple(header[1:] + rows), first, last))


def _cells(row: nodes.row) -> tuple[str, ...]:
    return tuple(" ".join(each.astext().split()) for each in row.findall(nodes.entry))


def _links(tree: Tree, reading: RstReading) -> None:
    found: list[Link] = []
    for node in reading.document.findall(nodes.reference):
        href = address_of(node)
        if href:
            found.append(_link(tree, node.astext(), href, _line(node), "body"))
    found += [_link(tree, target, target, line, "directive") for target, line in reading.documents + reading.refused]
    tree.links += sorted(found, key=lambda each: each.line)
    for image in reading.document.findall(nodes.image):
        start = tree.starts[min(_line(image), len(tree.starts) - 1) - 1]
        tree.assets.append((start, start, image.get("alt", ""), image["uri"]))
    tree.assets.sort(key=lambda each: each[0])


def address_of(node: nodes.reference) -> str:
    """Where a reference leads, as it was written; labels and sections of the same document as ``#name``."""
    if isinstance(node, PageReference):
        return str(node["target"])
    if isinstance(node, LabelReference):
        return f"#{node['target']}"
    if node.get("refuri"):
        return str(node["refuri"])
    return f"#{node['refid']}" if node.get("refid") else ""


def _line(node: nodes.Node) -> int:
    """The line of a node, or of the nearest one above it that has one."""
    current: nodes.Node | None = node
    while current is not None:
        if current.line:
            return current.line
        current = current.parent
    return 1


def _link(tree: Tree, text: str, href: str, line: int, origin: str) -> Link:
    line = min(line, len(tree.starts) - 1)
    start = tree.starts[line - 1]
    kind, path, query, fragment = split_href(href)
    section = sum(1 for each in tree.headings if each.text and each.start_byte <= start) - 1
    lead = not tree.headings or (bool(tree.blocks) and tree.blocks[0].start_line < tree.headings[0].start_line)
    return Link(
        text, href, line, kind, path, query, fragment, origin="directive" if origin == "directive" else "body",
        section=section + lead if section + lead >= 0 else None, end_line=line, start_byte=0, end_byte=0,
    )  # fmt: skip
