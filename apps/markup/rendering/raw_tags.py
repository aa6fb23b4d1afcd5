"""Raw HTML of a document, read tag by tag and written again.

SECURITY: nothing of the author's markup is copied. A tag is written anew from its name and the attributes that are
allowed on it, everything that is no whole tag becomes text. So an unfinished tag, comment or script cannot swallow
what follows, and the cleaner that comes last sees only well-formed tags.
"""

from __future__ import annotations

import re
from html import escape, unescape

from apps.markup.links import split_href
from apps.markup.rendering.resolved import Addresses
from apps.markup.values import Asset, Link

_NAMES = (
    "a abbr b bdi bdo blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption "
    "figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p picture pre q rp rt ruby s samp section small span strike "
    "strong sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr"
)
TAGS = frozenset(_NAMES.split())
_EVERYWHERE = frozenset({"title", "lang", "dir"})
_ALIGNED = frozenset({"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "table", "tr", "col", "colgroup"})
_OWN: dict[str, frozenset[str]] = {
    "a": frozenset({"id", "name"}),
    "td": frozenset({"align", "colspan", "rowspan"}),
    "th": frozenset({"align", "colspan", "rowspan", "scope"}),
    "ol": frozenset({"start"}),
    "details": frozenset({"open"}),
    **{tag: frozenset({"align"}) for tag in _ALIGNED},
}
# Their content is no text for readers, or another parser's language.
_WITH_CONTENT = frozenset(
    {"script", "style", "svg", "math", "template", "iframe", "object", "noscript", "head", "title"}
)
_END = {name: re.compile(rf"</{name}[^>]*+>", re.IGNORECASE) for name in _WITH_CONTENT}
_VOID = frozenset({"br", "hr", "img", "col", "wbr"})
# What may be opened in one block and closed in another, with Markdown between the two.
STRUCTURE = frozenset(
    {"div", "section", "details", "summary", "figure", "figcaption", "blockquote", "table", "caption", "thead", "tbody"}
    | {
        "tfoot",
        "tr",
        "td",
        "th",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "picture",
    }
)
DEEPEST = 100
"""Raw tags inside each other; deeper ones go, their text stays. (The cleaner is quadratic in depth.)"""
_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9:.-]*+)"""
    r"""(?P<attributes>(?:[\s/]++[^\s/>=<"']++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?+)*+)[\s/]*+>"""
)
_ATTRIBUTE = re.compile(r"""([^\s/>=<"']++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?+""")
_SPECIAL = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))


class RawTags:
    """Writes the raw HTML of one document; remembers which of its tags are open."""

    def __init__(self, addresses: Addresses, links: dict[str, Link], assets: dict[str, Asset]) -> None:
        self._addresses = addresses
        self._links = links
        self._assets = assets
        self._open: list[tuple[str, bool]] = []
        """Open tags and whether they were written."""
        self._counts: dict[str, int] = {}
        self._written = 0
        self.open_links = 0
        """How many raw ``<a>`` are open."""

    def inline(self, source: str, *, in_link: bool) -> str:
        """The HTML of inline tags; `end_of_text` closes what they leave open."""
        return self._write(source, "", in_link)

    def block(self, source: str, mark: str) -> str:
        """The HTML of a raw block. ``mark`` is an attribute that its first opening tag gets."""
        written = self._write(source, mark, False)
        return written + self.end_of_text(keep=STRUCTURE)

    def end_of_text(self, *, since: int = 0, keep: frozenset[str] = frozenset()) -> str:
        """Closing tags for what was opened after ``since`` tags were open (see `depth`), but for kept ones.

        A browser would carry an open ``<b>`` through all that follows.
        """
        closed = ""
        while len(self._open) > since and self._open[-1][0] not in keep:
            closed += self._close_last()
        return closed

    @property
    def depth(self) -> int:
        """Number of open tags."""
        return len(self._open)

    def _write(self, source: str, mark: str, in_link: bool) -> str:
        pieces: list[str] = []
        endless: set[str] = set()
        at = 0
        while (place := source.find("<", at)) >= 0:
            pieces.append(_text(source[at:place]))
            special = next((close for opening, close in _SPECIAL if source.startswith(opening, place)), None)
            if special is not None:
                stop = source.find(special, place + 2)
                at = len(source) if stop < 0 else stop + len(special)
                continue
            found = _TAG.match(source, place)
            if found is None:
                pieces.append("&lt;")
                at = place + 1
                continue
            at = found.end()
            name = found["name"].lower()
            if name in _WITH_CONTENT:
                # Without an end tag in the block only the tag itself is left out; looked for once.
                if not found["end"] and name not in endless:
                    stop_tag = _END[name].search(source, at)
                    if stop_tag is None:
                        endless.add(name)
                    else:
                        at = stop_tag.end()
            elif name in TAGS:
                if found["end"]:
                    pieces.append(self._end_tag(name))
                else:
                    pieces.append(self._start_tag(name, found["attributes"], mark, in_link or self.open_links > 0))
                    mark = ""
        pieces.append(_text(source[at:]))
        return "".join(pieces)

    def _end_tag(self, name: str) -> str:
        """Closes the innermost such tag and what is open inside of it; nothing when none is open."""
        closed = ""
        while self._counts.get(name):
            last = self._open[-1][0]
            closed += self._close_last()
            if last == name:
                break
        return closed

    def _close_last(self) -> str:
        name, written = self._open.pop()
        self._counts[name] -= 1
        if not written:
            return ""
        self._written -= 1
        if name == "a":
            self.open_links -= 1
        return f"</{name}>"

    def _start_tag(self, name: str, attributes: str, mark: str, in_link: bool) -> str:
        values: dict[str, str] = {}
        for attribute in _ATTRIBUTE.finditer(attributes):
            written = attribute[2] or ""
            if written[:1] in ('"', "'"):
                written = written[1:-1]
            values.setdefault(attribute[1].lower(), unescape(written))
        if name == "img":
            return self._image(values, in_link)
        if name not in _VOID:
            shown = self._written < DEEPEST and not (name == "a" and in_link)
            self._open.append((name, shown))
            self._counts[name] = self._counts.get(name, 0) + 1
            if not shown:
                return ""
            self._written += 1
        opening = f"<{name}"
        if name == "a":
            self.open_links += 1
            if "href" in values:
                opening = self._addresses.opening(self._link(values["href"]), values.pop("title", ""))[:-1]
        kept = _EVERYWHERE | _OWN.get(name, frozenset())
        written_attributes = "".join(
            f' {key}="{escape(value)}"'
            for key, value in values.items()
            if key in kept and not (key in ("id", "name") and value.lower().startswith("cg-"))
        )
        return f"{opening}{written_attributes}{mark}>"

    def _link(self, href: str) -> Link:
        known = self._links.get(href)
        if known is not None:
            return known
        kind, path, query, fragment = split_href(href)
        return Link("", href, 1, kind, path, query, fragment, origin="html")

    def _image(self, values: dict[str, str], in_link: bool) -> str:
        source = values.get("src", "")
        asset = self._assets.get(source) or Asset(values.get("alt", ""), source, 1, origin="html")
        if asset.alt != values.get("alt", ""):
            asset = Asset(values.get("alt", ""), source, asset.line, origin="html")
        return self._addresses.image(
            asset,
            title=values.get("title", ""),
            width=values.get("width", ""),
            height=values.get("height", ""),
            in_link=in_link,
        )


def _text(source: str) -> str:
    # Entities of the author stay what they are: the text is unescaped once and escaped once.
    return escape(unescape(source), quote=False) if "&" in source else source.replace(">", "&gt;")
