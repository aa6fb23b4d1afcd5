"""What a rendered page says: structure, anchors, links, images, code."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pyromark
import pytest

from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.rendering import RENDERER_VERSION, Resolve, Resolved, render, render_source
from apps.markup.rendering.cleaning import clean
from apps.markup.rendering.markdown import seen
from apps.markup.rendering.resolved import as_written
from apps.markup.tree import OPTIONS
from apps.markup.values import Asset, Limits, Link, ParsedDocument, Skipped

FENCE = "```"


def read(text: str | bytes, path: str = "a.md") -> ParsedDocument:
    decoded = decode(text.encode() if isinstance(text, str) else text, Limits())
    assert not isinstance(decoded, Skipped)
    parsed = parse(decoded, path, Limits())
    assert not isinstance(parsed, Skipped)
    return parsed


def page(text: str | bytes, path: str = "a.md", resolve: Resolve = as_written, images: tuple[str, ...] = ()) -> str:
    return render(read(text, path), resolve, images=images)


def bare(html: str) -> str:
    """The HTML without line marks and heading links."""
    html = re.sub(r' data-(?:line|end)="\d+"', "", html)
    return re.sub(r'<a class="heading-anchor"[^>]*>#</a>', "", html).strip()


def test_markup_fact_01_no_byte_order_mark_in_the_page() -> None:
    html = page(b"\xef\xbb\xbf---\ntitle: Vault\n---\n# Vault")
    assert bare(html) == '<h1 id="vault">Vault</h1>'


def test_markup_fact_02_line_ends_make_no_difference() -> None:
    text = "---\ntitle: Win\n---\n# Win\n\ntext\n"
    assert page(text.replace("\n", "\r\n")) == page(text)


def test_markup_fact_09_a_broken_header_is_shown() -> None:
    html = page("---\npath: C:\\x: y\n---\n# Bad")
    assert "path: C:\\x: y" in html
    assert '<h1 id="bad" data-line="4"' in html


def test_markup_fact_16_an_unclosed_fence_is_code_to_the_end() -> None:
    html = page(f"# A\n{FENCE}\nno closer\n\n# B\nsee [x](gone.md)")
    assert html.count("<h1") == 1
    assert "<a href=" not in html.replace('<a class="heading-anchor" href="#a"', "")
    assert "see [x](gone.md)" in html


def test_case_B005_an_unclosed_fence_renders_as_commonmark_says() -> None:
    html = page(f"# A\n{FENCE}\nno closer\n\n# B\nsee [x](gone.md)")
    assert 'data-line="2" data-end="6"' in html


def test_markup_fact_25_headings_carry_their_anchors() -> None:
    html = page("## Use\none\n\n## Use\ntwo\n\n## Setup {#install}")
    assert re.findall(r'<h2 id="([^"]+)"', html) == ["use", "use-1", "install"]
    assert "Setup</h2>" in bare(html).replace(" </h2>", "</h2>")
    assert "{#install}" not in html
    assert '<a class="heading-anchor" href="#use-1"' in html


def test_markup_fact_24_anchors_of_every_script() -> None:
    html = page("## 部署手順\n\n## 部署手順\n\n## 🚀 Go")
    assert re.findall(r'<h2 id="([^"]+)"', html) == ["部署手順", "部署手順-1", "-go"]


def test_markup_fact_23_a_link_within_the_page_is_checked() -> None:
    html = page("## Sync ↔ Export — v2\n\n[a](#sync--export--v2) [b](#sync-export-v2) [top](#top)")
    assert '<a href="#sync--export--v2">a</a>' in html
    assert '<a class="broken" title="no such section on this page">b</a>' in html
    assert '<a href="#top">top</a>' in html


def test_the_rendered_link_carries_the_true_anchor() -> None:
    assert '<a href="#set-up">x</a>' in page("# Set up\n\n[x](#Set%20up)")


def test_markup_fact_36_items_have_ids() -> None:
    html = page("| id | what |\n|---|---|\n| API-AUTH | all calls |\n\n- ADR-0042 decided")
    assert '<tr id="api-auth"' in html
    assert '<li id="adr-0042"' in html


def test_mdx_of_as_many_bytes_as_the_name_of_its_element() -> None:
    assert page("Some text", "p.mdx") == '<p data-line="1" data-end="1">Some text</p>\n'
    assert "<li" in page("- ab", "p.mdx")


def test_markup_fact_37_mdx_tags_go_and_their_children_stay() -> None:
    html = page("<Note>\n**bold** text\n</Note>", "p.mdx")
    assert "<strong>bold</strong> text" in html
    assert "import" not in page("import A from './a'\n\n# T", "p.mdx")
    html = page("<details>more *text*</details> after\n\n```jsx\n<div>\n  <p>x</p>\n```\n", "p.mdx")
    assert re.search(r"<details>more <em>text</em></details> after", html)
    assert "&lt;" in html
    assert "xiv" not in html


def test_markup_fact_39_a_diagram_keeps_its_source() -> None:
    html = page(f'{FENCE}mermaid\ngraph TD\nA["Load balancer"]-->B["Cache"]\n{FENCE}')
    assert html.startswith('<pre class="mermaid" data-line="1" data-end="4"><code>graph TD\n')
    large = page(f"{FENCE}mermaid\n" + "A-->B\n" * 10_000 + FENCE)
    assert 'class="mermaid"' not in large


def test_footnotes_lead_there_and_back() -> None:
    html = page("one[^1] two[^b] three[^1]\n\n[^b]: second\n[^1]: first\n[^c]: unused")
    assert re.findall(r'<a href="#(cg-fn-\d)" id="([^"]+)"', html) == [
        ("cg-fn-1", "cg-fnref-1"),
        ("cg-fn-2", "cg-fnref-2"),
        ("cg-fn-1", "cg-fnref-1-2"),
    ]
    assert re.findall(r'<li id="(cg-fn-\d)"', html) == ["cg-fn-1", "cg-fn-2", "cg-fn-3"]
    assert html.index("first") < html.index("second") < html.index("unused")


def test_links_are_resolved_by_the_room() -> None:
    asked: list[Link | Asset] = []

    def resolve(link: Link | Asset) -> Resolved:
        asked.append(link)
        known = {
            "a.md#s": Resolved("/docs/a#s"),
            "p.png": Resolved("/assets/1"),
            "b.md": Resolved("/b", "anchor missing"),
        }
        return known.get(link.href, Resolved(None, "broken", "not found"))

    html = page("[a](a.md#s 'Ti\"tle') ![p](p.png) [c](gone.md) [b](b.md) ![q](q.png)", resolve=resolve)
    assert '<a href="/docs/a#s" title="Ti&quot;tle">a</a>' in html
    assert '<img src="/assets/1" alt="p">' in html
    assert '<a class="broken" title="not found">c</a>' in html
    assert '<a href="/b" class="anchor-missing"' in html
    assert '<span class="broken" title="not found">q</span>' in html
    assert {each.href for each in asked} == {"a.md#s", "p.png", "gone.md", "b.md", "q.png"}
    assert "gone.md" not in html


def test_wiki_links_bare_addresses_and_embeds() -> None:
    def resolve(link: Link | Asset) -> Resolved:
        if isinstance(link, Link) and link.embed:
            return Resolved("/n", html="<p>inner</p>")
        return Resolved(f"/to/{link.href}" if not link.href.startswith("http") else link.href)

    html = page(
        "See [[Foo|the *foo*]] at https://x.y/z. And `[[no]]`.\n\n![[note]]\n\n| a |\n|---|\n| [[P\\|L]] |",
        resolve=resolve,
    )
    assert '<a href="/to/Foo">the *foo*</a> at <a href="https://x.y/z"' in html
    assert ">https://x.y/z</a>. And <code>[[no]]</code>" in html
    assert re.search(r'<div class="embed"[^>]*><p>inner</p></div>', html)
    assert '<a href="/to/P">L</a>' in html


def test_links_to_other_hosts_say_so() -> None:
    html = page("[a](https://a.b) <https://c.d> [m](mailto:x@y.z)")
    assert html.count('rel="noopener noreferrer nofollow"') == 2
    assert '<a href="mailto:x@y.z">m</a>' in html


def test_images_of_other_hosts_are_links_unless_allowed() -> None:
    text = "![alt](https://pics.example/a.png) [![badge](https://pics.example/b.png)](https://x.y)"
    html = page(text)
    assert "<img" not in html
    assert '<a href="https://pics.example/a.png" class="external-image"' in html
    assert '<span class="external-image">badge</span></a>' in html
    assert html.count("<a ") == 2
    assert page(text, images=("pics.example",)).count("<img") == 2
    assert "<img" not in page("![x](https://pics.example.evil/a.png) ![y](//other/b.png)", images=("pics.example",))
    assert "<img" not in page('<img src="https://pics.example/a.png" alt="raw">')


def test_tables_notes_and_task_boxes() -> None:
    html = bare(page("| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n> [!WARNING]\n> hot\n\n- [x] done\n- [ ] open"))
    assert '<th class="align-center">a</th><th class="align-right">b</th>' in html
    assert '<blockquote class="note note-warning">\n<p class="note-title">Warning</p>\n<p>hot</p>' in html
    assert '<input type="checkbox" disabled="" checked=""> done' in html
    assert '<input type="checkbox" disabled=""> open' in html
    assert "style" not in html


def test_code_is_highlighted_up_to_a_limit() -> None:
    html = page(f"{FENCE}python\ndef f(): pass\n{FENCE}")
    assert '<pre data-language="python"' in html
    assert '<span class="k">def</span>' in html
    assert '<span class="k">' not in page(f"{FENCE}python\n" + "def f(): pass\n" * 8000 + FENCE)
    assert "<code>" in page(f"{FENCE}\nplain <b>\n{FENCE}")


def test_every_line_of_code_has_its_number() -> None:
    html = page(f"# T\n\n- x\n\n  {FENCE}py\n  a = '''\n\n  b'''\n  {FENCE}\n")
    assert re.findall(r'<span class="line" data-line="(\d+)">', html) == ["6", "7", "8"]


def test_blocks_tell_their_lines() -> None:
    html = page("---\na: b\n---\n# T\n\ntwo\nlines\n\n> quote\n\n<div>raw</div>\n\n---\n")
    assert re.findall(r'<(\w+)[^>]*? data-line="(\d+)" data-end="(\d+)"', html) == [
        ("h1", "4", "4"),
        ("p", "6", "7"),
        ("blockquote", "9", "9"),
        ("p", "9", "9"),
        ("div", "11", "11"),
        ("hr", "13", "13"),
    ]


def test_details_may_hold_markdown() -> None:
    html = bare(page("<details open><summary>More</summary>\n\n*inside*\n\n</details>\n\nafter"))
    assert '<details open=""><summary>More</summary>\n<p><em>inside</em></p>\n</details>' in html


def test_text_is_shown_line_by_line() -> None:
    html = page("a <b>\n\n  c", "notes.txt")
    assert '<span id="L1" class="line" data-line="1">a &lt;b&gt;</span>\n' in html
    assert '<span id="L3" class="line" data-line="3">  c</span>' in html
    assert '<span class="nt">a</span>' in render_source("a: 1\n", "deploy/x.yaml")


def test_the_same_input_gives_the_same_bytes(shared: Path) -> None:
    assert RENDERER_VERSION
    for file in sorted(shared.glob("corpora/vite-docs/**/*.md"))[:40]:
        parsed = read(file.read_bytes(), file.name)
        assert render(parsed) == render(read(file.read_bytes(), file.name))


def test_the_page_says_what_the_reference_renderer_says(shared: Path) -> None:
    def said(html: str) -> str:
        html = re.sub(
            r'<(a|span)(?: href="[^"]*")? class="(?:heading-anchor|external-image)"[^>]*>[^<]*</\1>', "", html
        )
        html = re.sub(r'<p class="note-title">[^<]*</p>', "", html)
        return re.sub(r"\s+", "", unescape(re.sub(r"<[^>]*>", "", html))).replace("[[", "").replace("]]", "")

    files = sorted(shared.glob("corpora/**/*.md"))
    assert len(files) > 100
    for file in files:
        parsed = read(file.read_bytes(), file.name)
        reference = clean(pyromark.html(seen(parsed), options=OPTIONS))
        assert said(render(parsed)) == said(reference), file.name


@pytest.mark.parametrize("folder", ["vite-docs", "canonical-samples"])
def test_no_text_is_lost_on_the_corpora(shared: Path, folder: str) -> None:
    for file in sorted(shared.glob(f"corpora/{folder}/**/*.md")):
        parsed = read(file.read_bytes(), file.name)
        html = render(parsed)
        text = re.sub(r"<[^>]*>", "", html)
        for heading in parsed.heading_tree:
            assert f' id="{heading.anchor}"'.replace("&", "&amp;") in html
        for block in parsed.code_blocks:
            if block.language != "mermaid" and "&" not in block.content and "<" not in block.content:
                assert block.content.rstrip("\n").replace(">", "&gt;") in text.replace("&quot;", '"').replace(
                    "&#x27;", "'"
                )
        assert html.count('class="heading-anchor"') == len(parsed.heading_tree)
