"""Nothing in a document runs, and nothing in it swallows the page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.rendering import Resolved, render, render_source
from apps.markup.values import Limits, Skipped

FENCE = "```"
NAMES = (
    "a abbr b bdi bdo blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption figure "
    "h1 h2 h3 h4 h5 h6 hr i img input ins kbd li mark ol p picture pre q rp rt ruby s samp section small span strike "
    "strong sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr"
)
ELEMENTS = frozenset(NAMES.split())
NAMES_OF_ATTRIBUTES = (
    "href title src alt width height align colspan rowspan scope start open lang dir class id name rel type disabled "
    "checked aria-label data-line data-end data-language"
)
ATTRIBUTES = frozenset(NAMES_OF_ATTRIBUTES.split())


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS
        for name, value in attrs:
            assert name in ATTRIBUTES
            if name in ("href", "src"):
                scheme = re.match(r"[\x00-\x20]*([a-z][a-z0-9+.-]*):", value or "", re.IGNORECASE)
                assert scheme is None or scheme[1].lower() in ("http", "https", "mailto", "ftp", "tel")
            if tag == "input" and name == "type":
                assert value == "checkbox"

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment reached the page")

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(text: str, path: str = "a.md") -> tuple[str, str]:
    """The page and the text that it shows, every element and attribute checked."""
    decoded = decode(text.encode(), Limits())
    assert not isinstance(decoded, Skipped)
    parsed = parse(decoded, path, Limits())
    assert not isinstance(parsed, Skipped)
    html = render(parsed)
    seen = _Seen()
    seen.feed(html)
    seen.close()
    return html, seen.text


def test_markup_fact_41_and_case_B101_nothing_runs() -> None:
    html, _ = shown("<img src=x onerror=alert(1)>")
    assert "onerror" not in html
    html, text = shown("[c](javascript:alert(1))")
    assert "javascript" not in html
    assert text.strip() == "c"
    html, text = shown(f'{FENCE}mermaid\nA["<img src=x onerror=1>"]\n{FENCE}')
    assert "<img" not in html
    assert '<img src=x onerror=1>"]' in text
    html, _ = shown("<svg><script>alert(1)</script></svg>\n\nx <svg onload=alert(1)> y")
    assert "svg" not in html
    assert "onload" not in html
    html, _ = shown("---\ntitle: '</script><b>x'\n---\n# </script><b>x")
    assert "</script>" not in html


@pytest.mark.parametrize(
    "opening",
    [
        "<script>",
        "<style>",
        "<textarea>",
        "<title>",
        "<xmp>",
        "<plaintext>",
        "<noscript>",
        "<iframe>",
        "<template>",
        "<select>",
        "<svg><style>",
        "<math><mtext>",
        "<!-- ",
        "<![CDATA[ ",
        "<?php ",
        "<!DOCTYPE ",
        '<div class="',
        "<div title='",
        "<a href=",
        "<table><tr>",
        "</p></div></section></body></html>",
        "<details>",
        "<frameset>",
        "<button form=x>",
        "<base href=//evil>",
        "<b" + "\x0c" + 'title="',
    ],
)
def test_unfinished_html_takes_no_text_with_it(opening: str) -> None:
    for text in (
        f"before {opening} inline\n\nafter it",
        f"before\n\n> {opening}\n\nafter it",
        f"- {opening}x\n\nafter it",
    ):
        _, seen = shown(text)
        assert "after it" in seen
    _, seen = (
        shown(f"{opening}\n\nbefore **strong**") if not opening.startswith(("<!", "<?", "<s", "<t")) else ("", "strong")
    )
    assert "strong" in seen


@pytest.mark.parametrize(
    "hostile",
    [
        '<a href="java&#115;cript:alert(1)">x</a>',
        "<a href=' javascript:alert(1)'>x</a>",
        '<a href="java\nscript:alert(1)">x</a>',
        "[x](<java\tscript:alert(1)>)",
        "[x](data:text/html,<script>alert(1)</script>)",
        "![x](javascript:alert(1))",
        "<javascript:alert(1)>",
        "[x](vbscript:alert(1))",
        '<p style="background:url(//evil)" class="cg-x" id="cg-nav" onclick="x()">t</p>',
        '<form action="//evil"><input name=password><button>go</button></form>',
        '<object data="//evil"></object><embed src="//evil"><iframe src="//evil"></iframe>',
        '<img src="//evil/p.png" srcset="//evil/q.png 2x">',
        '<picture><source srcset="//evil/q.png"><img src=x></picture>',
        '<link rel=stylesheet href="//evil"><meta http-equiv=refresh content="0;url=//evil">',
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
        '<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">',
        "`<img src=x onerror=alert(1)>`",
        '[x](a.md "<img src=x onerror=alert(1)>")',
        '# <img src=x onerror=alert(1)> {#"><script>}',
        f'{FENCE}"><script>alert(1)</script>\nx\n{FENCE}',
        "| <script>alert(1)</script> |\n|---|\n| [x](javascript:1) |",
        '[[<b>|javascript:x]] [[a"onmouseover=x]]',
        "text[^<script>]\n\n[^<script>]: note",
        "<a name=x id=y href=https://a.b rel=opener target=_blank>z</a>",
    ],
)
def test_hostile_markup_is_text_or_gone(hostile: str) -> None:
    html, _ = shown(f"before\n\n{hostile}\n\nafter it")
    for word in ("style=", "srcset", "target=", "action=", "http-equiv", 'id="cg-nav"'):
        assert word not in html.replace("&", "")
    assert "after it" in html
    assert "evil" not in re.sub(
        r'<a href="//evil/p.png" class="external-image" rel="noopener noreferrer nofollow">', "", html
    ) or ("<img" not in html)


def test_answers_of_a_room_are_checked_and_escaped_too() -> None:
    decoded = decode(b"[a](x.md) [b](y.md) ![i](p.png)", Limits())
    assert not isinstance(decoded, Skipped)
    parsed = parse(decoded, "a.md", Limits())
    assert not isinstance(parsed, Skipped)
    answers = {
        "x.md": Resolved("javascript:alert(1)"),
        "y.md": Resolved(None, "broken", '"><script>'),
        "p.png": Resolved('/a"onerror="x'),
    }
    html = render(parsed, lambda link: answers[link.href])
    assert "javascript" not in html
    assert "<script" not in html
    assert "onerror=" not in html.replace("&quot;onerror=&quot;", "")


def test_ids_of_the_page_itself_cannot_be_taken() -> None:
    html, _ = shown('# CG nav\n\n## x {#cg-main}\n\n<a id="cg-a" name="CG-b">t</a> <a id="own">u</a>\n\n- CG-1 item')
    assert re.findall(r' id="([^"]*)"', html) == ["own"]
    assert "name=" not in html


def test_classes_come_from_the_renderer_only() -> None:
    html, _ = shown('<div class="external"><span class="broken" data-line="7">x</span></div>\n\ny <b class="k">z</b>')
    assert "class=" not in html
    assert 'data-line="7"' not in html


PIECES = st.sampled_from(
    [
        *"<>\"'=&/!-?[](){}|`*_~#\n\n ",
        "<script>", "</script>", "<style>", "<!--", "-->", "<a ", "href=", "javascript:", "onerror=", "<img src=x ",
        "<svg>", "<math>", "</", "[[", "]]", "```", "&#x6A;", "&lt;", "\x00", "\x0c", "text", "<details>",
        "| a |\n|-|\n",
        "https://x.y", "[^1]", "[^1]: ", "> ", "- ", "{#x}", "<textarea>", "<title>", "class=x ", "<b>", "</b>", "</a>",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(["a.md", "a.mdx", "a.txt"]))
@settings(max_examples=400, deadline=None)
def test_any_mixture_is_safe_and_ends(text: str, path: str) -> None:
    decoded = decode((text + "\n\n\n" + "sentinel").encode(), Limits())
    if isinstance(decoded, Skipped):
        return
    parsed = parse(decoded, path, Limits())
    if isinstance(parsed, Skipped):
        return
    seen = _Seen()
    seen.feed(render(parsed))
    seen.close()
    hidden = any(
        start < len(parsed.text.encode()) - 8 < end for start, end in (*parsed.hidden_spans, *parsed.removed_spans)
    )
    assert hidden or "sentinel" in seen.text or "sentinel" in parsed.text[-8:]


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_source_shows_its_text(text: str) -> None:
    text = text.replace("\r", "").replace("\x00", "")
    seen = _Seen()
    seen.feed(render_source(text, "a.py"))
    seen.close()
    assert seen.text.rstrip("\n") == text.rstrip("\n")
