"""Journeys 8 and 9, and diagrams in their frames."""

from __future__ import annotations

from typing import Any

import pytest

DIAGRAM_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox allow-scripts"
)
HANDBOOK = "/repos/local/acme/handbook"
GRAPH = "/graph/repo/local/acme/handbook"


@pytest.mark.parametrize("script", [True, False])
def test_journey_8_context(site: Any, visit: Any, script: bool) -> None:
    otto = visit("otto", script=script)
    page = otto.page
    otto.go("/context")
    assert page.locator("a[href^='?task=']").count() == 3
    page.fill("#cg-task", "install the handbook and run the first steps")
    page.click("button:has-text('Collect context')")
    page.wait_for_selector("#cg-pack", state="attached")
    nodes = page.locator("svg.graph .node[data-doc]").evaluate_all("all => all.map((one) => one.dataset.doc)")
    parts = page.locator(":is(article, li)[data-doc]").evaluate_all("all => all.map((one) => one.dataset.doc)")
    assert set(nodes) == set(parts)
    text = page.locator("#cg-pack").text_content()
    if script:
        page.click("button:has-text('Copy pack')")
        page.wait_for_selector(".copied")
        assert page.evaluate("navigator.clipboard.readText()") == text
        page.locator("svg.graph .node[data-doc='1']").click()
        page.wait_for_selector("article[data-doc='1'][data-chosen]")
        page.click("button:has-text('Wider picture')")
        assert page.locator("#cg-context[data-wide]").count() == 1
        otto.check(axe=True)
    page.fill("input[name=budget]", "500")
    page.click("button:has-text('Collect context')")
    page.wait_for_selector("text=of 500 tokens")
    page.fill("#cg-task", "xylophone zeppelin")
    page.click("button:has-text('Collect context')")
    page.wait_for_selector("text=Nothing found")


@pytest.mark.parametrize("script", [True, False])
def test_journey_9_graph(site: Any, visit: Any, script: bool) -> None:
    otto = visit("otto", script=script)
    page = otto.page
    otto.go("/graph")
    page.click("main a:has-text('handbook')")
    drawn = page.locator("svg.net .node").count()
    assert drawn == page.locator(".node-list > li").count() >= 3
    page.locator("svg.net .node[data-uid='dec-new']").click()
    page.wait_for_selector("#cg-detail")
    assert "focus=dec-new" in page.url
    page.select_option("select[name=depth]", "2")
    page.click("button:has-text('Show')")
    page.wait_for_url("**depth=2**")
    page.select_option("select[name=type]", "decision")
    page.click("button:has-text('Show')")
    page.wait_for_url("**type=decision**")
    assert page.locator("svg.net .node[data-uid='mod-cache']").count() == 0
    assert "Old way" in page.locator(".chain li").first.inner_text()
    page.click(".chain a:has-text('Old way')")
    page.wait_for_url("**focus=dec-old**")
    page.go_back()
    if script:
        page.focus("svg.net .node.focused")
        before = page.evaluate("document.activeElement.dataset.uid")
        for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
            page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.uid") in ("dec-new", "dec-old"), before
        otto.check(axe=True)
    page.click(".edges small a >> nth=0")
    assert f"{HANDBOOK}/files/docs/canon" in page.url
    assert "#L" in page.url


def test_knowledge_graph_12_panel_comes_by_itself(site: Any, visit: Any) -> None:
    otto = visit("otto")
    otto.go(f"{HANDBOOK}/docs/canon")
    otto.page.wait_for_selector(".graph-panel svg.net")
    assert "Old way" in otto.page.inner_text(".graph-panel")
    otto.check(axe=True)
    bare = visit("otto", script=False)
    bare.go(f"{HANDBOOK}/docs/canon")
    bare.page.click("aside a:has-text('In the graph')")
    assert "Old way" in bare.page.inner_text(".graph-panel")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_access_rule_25_diagrams_are_drawn_in_a_sandboxed_frame(site: Any, visit: Any, scheme: str) -> None:
    otto = visit("otto", scheme=scheme)
    page = otto.page
    otto.go(f"{HANDBOOK}/docs/diagram")
    page.wait_for_selector(".diagram[data-drawn] iframe", timeout=20_000)
    assert page.locator(".diagram iframe").first.get_attribute("sandbox") == "allow-scripts"
    frame = page.frames[1]
    assert "Load balancer" in (frame.text_content("svg") or "")
    assert frame.evaluate("(() => { try { return document.cookie; } catch { return 'refused'; } })()") == "refused"
    page.wait_for_function("document.querySelectorAll('.diagram iframe').length === 1")  # the other one is no diagram
    page.locator("pre.mermaid:has-text('this is no diagram')").wait_for()
    headers = page.request.get(f"{site.address}/diagram").headers
    assert headers["content-security-policy"] == DIAGRAM_POLICY
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    otto.go(f"{HANDBOOK}/docs/glossary")
    page.wait_for_timeout(300)
    assert not [url for url in asked if "mermaid" in url or "/diagram" in url]
