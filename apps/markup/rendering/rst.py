"""reStructuredText to HTML from the same docutils tree that gave the structure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from docutils import nodes

from apps.markup.links import split_href
from apps.markup.rendering.code import code_block
from apps.markup.rendering.highlighting import Highlighter
from apps.markup.rendering.resolved import Addresses
from apps.markup.rst import address_of
from apps.markup.rst_reading import read_rst
from apps.markup.values import Asset, Link, ParsedDocument

_WRAPPED: dict[type[nodes.Node], tuple[str, str]] = {
    nodes.emphasis: ("<em>", "</em>"),
    nodes.strong: ("<strong>", "</strong>"),
    nodes.literal: ("<code>", "</code>"),
    nodes.math: ("<code>", "</code>"),
    nodes.subscript: ("<sub>", "</sub>"),
    nodes.superscript: ("<sup>", "</sup>"),
    nodes.title_reference: ("<cite>", "</cite>"),
    nodes.abbreviation: ("<abbr>", "</abbr>"),
    nodes.acronym: ("<abbr>", "</abbr>"),
    nodes.term: ("<dt>", "</dt>\n"),
    nodes.classifier: (" <em>", "</em>"),
    nodes.definition: ("<dd>", "</dd>\n"),
    nodes.field_name: ("<dt>", "</dt>\n"),
    nodes.field_body: ("<dd>", "</dd>\n"),
    nodes.option_group: ("<dt><code>", "</code></dt>\n"),
    nodes.description: ("<dd>", "</dd>\n"),
    nodes.caption: ("<figcaption>", "</figcaption>\n"),
    nodes.legend: ("<div>", "</div>\n"),
    nodes.attribution: ("<p><cite>", "</cite></p>\n"),
    nodes.line_block: ("<div>", "</div>\n"),
    nodes.thead: ("<thead>", "</thead>\n"),
    nodes.tbody: ("<tbody>", "</tbody>\n"),
    nodes.row: ("<tr>", "</tr>\n"),
    nodes.rubric: ("<p><strong>", "</strong></p>\n"),
    nodes.subtitle: ("<p><strong>", "</strong></p>\n"),
}
_BLOCKS: dict[type[nodes.Node], str] = {
    nodes.paragraph: "p",
    nodes.bullet_list: "ul",
    nodes.list_item: "li",
    nodes.definition_list: "dl",
    nodes.field_list: "dl",
    nodes.docinfo: "dl",
    nodes.option_list: "dl",
    nodes.block_quote: "blockquote",
    nodes.figure: "figure",
    nodes.topic: "div",
    nodes.sidebar: "div",
    nodes.container: "div",
    nodes.compound: "div",
}
_SILENT = (nodes.comment, nodes.substitution_definition, nodes.pending, nodes.system_message, nodes.raw, nodes.colspec)
_ADMONITIONS = frozenset(
    {"attention", "caution", "danger", "error", "hint", "important", "note", "tip", "warning", "admonition"}
)


class RstPage:
    """Renders one parsed reStructuredText document."""

    def __init__(self, parsed: ParsedDocument, addresses: Addresses) -> None:
        self.parsed = parsed
        self.addresses = addresses
        self.headings = {heading.line: heading for heading in parsed.heading_tree}
        self.links = {link.href: link for link in reversed(parsed.links)}
        self.highlighter = Highlighter()
        self.out: list[str] = []
        self.in_link = 0
        # Section anchors come first; a label of the same name leads there.
        self.marked = {heading.anchor for heading in parsed.heading_tree}

    def render(self) -> str:
        """The HTML, still to be cleaned."""
        self.all(read_rst(self.parsed.text).document.children)
        return "".join(self.out)

    def all(self, children: Iterable[nodes.Node]) -> None:
        for child in children:
            self.one(child)

    def within(self, opening: str, node: nodes.Element, closing: str) -> None:
        self.out.append(opening)
        self.all(node.children)
        self.out.append(closing)

    def one(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.Text):
            self.out.append(escape(node.astext(), quote=False))
        elif not isinstance(node, nodes.Element) or isinstance(node, _SILENT):
            return
        elif type(node) in _WRAPPED:
            self.within(_WRAPPED[type(node)][0], node, _WRAPPED[type(node)][1])
        elif type(node) in _BLOCKS:
            tag = _BLOCKS[type(node)]
            self.within(f"{self.targets(node)}<{tag}{_lines(node)}>", node, f"</{tag}>\n")
        else:
            own = getattr(self, f"on_{node.__class__.__name__}", None)
            if own is not None:
                own(node)
            elif node.__class__.__name__ in _ADMONITIONS:
                self.admonition(node)
            elif isinstance(node, nodes.reference):
                self.on_reference(node)
            else:
                self.all(node.children)

    # -- anchors

    def targets(self, node: nodes.Element, *, skip: int = 0) -> str:
        """Empty marks for the labels of a node."""
        return self.marks(node.get("names", [])[skip:])

    def marks(self, names: list[str]) -> str:
        new = [name for name in names if name not in self.marked and not name.lower().startswith("cg-")]
        self.marked.update(new)
        return "".join(f'<span id="{escape(name)}"></span>' for name in new)

    def on_section(self, node: nodes.section) -> None:
        title = node.next_node(nodes.title)
        heading = self.headings.get((node.line or 0) - 1)
        labels = self.targets(node, skip=1)
        if title is None or heading is None:
            self.out.append(labels)
            self.all(node.children)
            return
        level = min(heading.level, 6)
        anchor = "" if heading.anchor.lower().startswith("cg-") else heading.anchor
        named = f' id="{escape(anchor)}"' if anchor else ""
        self.out.append(f'{labels}<h{level}{named} data-line="{heading.start_line}" data-end="{heading.end_line}">')
        self.all(title.children)
        if anchor:
            target = escape(anchor.replace("%", "%25"))
            self.out.append(f'<a class="heading-anchor" href="#{target}" aria-label="Link to this section">#</a>')
        self.out.append(f"</h{level}>\n")
        self.all(child for child in node.children if child is not title)

    def on_title(self, node: nodes.title) -> None:
        """The title of a topic or table; those of sections are written with their section."""
        self.within("<p><strong>", node, "</strong></p>\n")

    def on_target(self, node: nodes.target) -> None:
        if not node.get("refuri"):
            self.out.append(self.targets(node) + self.marks([node["refid"]] if node.get("refid") else []))
        self.all(node.children)

    # -- links and images

    def on_reference(self, node: nodes.reference) -> None:
        href = address_of(node)
        if not href or self.in_link:
            self.all(node.children)
            return
        link = self.links.get(href)
        if link is None:
            kind, path, query, fragment = split_href(href)
            link = Link(node.astext(), href, node.line or 1, kind, path, query, fragment)
        self.in_link += 1
        self.within(self.addresses.opening(link), node, "</a>")
        self.in_link -= 1

    def on_image(self, node: nodes.image) -> None:
        asset = Asset(node.get("alt", ""), node["uri"], node.line or 1)
        width, height = str(node.get("width", "")).removesuffix("px"), str(node.get("height", "")).removesuffix("px")
        self.out.append(self.addresses.image(asset, width=width, height=height, in_link=self.in_link > 0))

    def on_footnote_reference(self, node: nodes.footnote_reference) -> None:
        number = str(node.get("refid", ""))
        self.within(f'<sup class="footnote-ref"><a href="#cg-{escape(number)}">', node, "</a></sup>")

    def on_citation_reference(self, node: nodes.citation_reference) -> None:
        self.within(f'<a href="#cg-{escape(node.get("refid", ""))}">[', node, "]</a>")

    def on_footnote(self, node: nodes.Element) -> None:
        own: list[str] = node.get("ids", [])
        for number in own:
            self.out.append(f'<span id="cg-{escape(number)}"></span>')
        self.within(f'<div class="footnotes"{_lines(node)}>', node, "</div>\n")

    on_citation = on_footnote

    def on_label(self, node: nodes.label) -> None:
        self.within("<strong>[", node, "]</strong> ")

    # -- blocks

    def on_transition(self, node: nodes.transition) -> None:
        self.out.append(f"<hr{_lines(node)}>\n")

    def on_enumerated_list(self, node: nodes.enumerated_list) -> None:
        start = f' start="{node["start"]}"' if node.get("start") else ""
        self.within(f"<ol{start}{_lines(node)}>\n", node, "</ol>\n")

    def on_line(self, node: nodes.line) -> None:
        self.within("", node, "<br>\n")

    def on_literal_block(self, node: nodes.literal_block) -> None:
        classes: list[str] = node.get("classes", [])
        language = next((each for each in classes if each not in ("code", "code-block", "sourcecode")), "")
        code = node.astext().rstrip("\n")
        first, last = node.get("lines") or (node.line or 1, 0)
        last = max(last or first + code.count("\n"), first)
        self.out.append(
            code_block(code, language or None, first, last, self.highlighter, begin=last - code.count("\n"))
        )

    on_doctest_block = on_literal_block
    on_math_block = on_literal_block

    def on_table(self, node: nodes.table) -> None:
        self.within(f'{self.targets(node)}<div class="table"><table{_lines(node)}>\n', node, "</table></div>\n")

    def on_entry(self, node: nodes.entry) -> None:
        tag = "th" if isinstance(node.parent.parent, nodes.thead) else "td"
        spans = "".join(
            f' {name}="{int(node[key]) + 1}"'
            for name, key in (("rowspan", "morerows"), ("colspan", "morecols"))
            if key in node
        )
        self.within(f"<{tag}{spans}>", node, f"</{tag}>")

    def admonition(self, node: nodes.Element) -> None:
        kind = node.__class__.__name__
        title = node.children[0] if node.children and isinstance(node.children[0], nodes.title) else None
        shown = title.astext() if title is not None else kind.capitalize()
        self.out.append(
            f'<blockquote class="note note-{kind}"{_lines(node)}>\n<p class="note-title">{escape(shown)}</p>\n'
        )
        self.all(child for child in node.children if child is not title)
        self.out.append("</blockquote>\n")


def _lines(node: nodes.Element) -> str:
    """The lines of a node as far as docutils knows them."""
    if not node.line:
        return ""
    return f' data-line="{node.line}" data-end="{node.line + node.rawsource.rstrip().count(chr(10))}"'
