"""What people do at a browser, from one end to the other."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from django.utils import timezone

from apps.jobs.models import Job
from apps.repos.models import Repository
from tests.portal.worlds import make_job

HANDBOOK = "/repos/local/acme/handbook"


@pytest.mark.parametrize("script", [True, False])
def test_journey_3_read(visit: Any, script: bool) -> None:
    otto = visit("otto", script=script)
    page = otto.page
    otto.go(f"{HANDBOOK}/docs")
    page.click("#cg-tree a:has-text('Handbook')")
    page.click("article a:has-text('setting up')")
    assert page.url.endswith("/docs/set-up#first-steps")
    page.locator("h2#first-steps").wait_for()
    page.click(".toc a:has-text('Sync ↔ Export — v2')")
    assert page.url.endswith("#sync--export--v2")
    page.click("article a:has-text('jump')")
    assert unquote(page.url).endswith("#部署手順-1")
    ids = page.locator("article h2").evaluate_all("all => all.map((one) => one.id)")
    assert ids == ["first-steps", "sync--export--v2", "部署手順", "部署手順-1", "-go", "-go-1"]
    assert page.locator(".toc a").evaluate_all("all => all.map((a) => decodeURIComponent(a.hash))") == [
        f"#{one}" for one in ids
    ]
    assert page.locator("article img").evaluate("img => img.naturalWidth") == 1
    assert page.locator("article a.broken").inner_text() == "nothing"
    page.click(".pill:has-text('src/main.py')")
    assert page.url.endswith("/files/src/main.py")
    page.go_back()
    page.click("a[rel=prev]")
    page.go_back()
    assert "Set up" in page.title()


def test_portal_rule_12_a_page_goes_out_as_text(visit: Any) -> None:
    otto = visit("otto")
    otto.go(f"{HANDBOOK}/docs/set-up")
    with otto.page.expect_response(lambda answer: "raw=1" in answer.url) as fetched:
        otto.page.click("button:text-is('Copy as Markdown')")
    otto.page.wait_for_selector("button:text-is('Copied')")
    assert otto.page.evaluate("navigator.clipboard.readText()") == fetched.value.text() != ""
    assert "text/plain" in fetched.value.headers["content-type"]
    for page in (f"{HANDBOOK}/docs/set-up", HANDBOOK):
        otto.go(page)
        address = otto.page.get_attribute(".meta a:text-is('JSON')", "href")
        assert otto.page.request.get(f"{otto.site.address}{address}").json()
    otto.go(f"{HANDBOOK}/docs/set-up")
    otto.page.click(".meta a:text-is('Compare')")
    assert otto.page.locator("h1").inner_text() == "Set up"
    otto.check(axe=True)


def test_portal_rule_21_marks_the_current_section_and_copies_code(visit: Any) -> None:
    otto = visit("otto")
    otto.go(f"{HANDBOOK}/docs/set-up")
    otto.page.wait_for_selector(".toc a[aria-current]")
    otto.page.hover("article .with-copy")
    otto.page.click("article .with-copy .copy")
    otto.page.wait_for_selector(".copy.copied")
    assert otto.page.evaluate("navigator.clipboard.readText()").strip() == "make install"
    assert otto.page.inner_text("article .lang") == "sh"


def test_portal_rule_21_lines_of_a_file(visit: Any) -> None:
    otto = visit("otto")
    otto.go(f"{HANDBOOK}/files/docs/set%20up.md#L1-L2")
    otto.page.wait_for_selector("#L2.marked")
    assert otto.page.locator(".marked").count() == 2
    otto.page.click("#L5", position={"x": 20, "y": 5})
    otto.page.wait_for_selector("#L5.marked")
    assert otto.page.url.endswith("#L5")


def test_portal_rule_7_keyboard(visit: Any) -> None:
    otto = visit("otto")
    page = otto.page
    otto.go("/repos")
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") != first
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.textContent") == first
    page.keyboard.press("Control+j")
    assert page.evaluate("document.activeElement.textContent") == first
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert first in page.title()
    page.keyboard.press("?")
    page.locator("#cg-keys").wait_for()
    page.keyboard.press("Escape")
    page.locator("#cg-keys").wait_for(state="hidden")
    page.keyboard.press("g")
    with page.expect_navigation():
        page.keyboard.press("h")
    assert page.url == f"{otto.site.address}/"
    otto.go("/repos")
    with otto.context.expect_page() as opened:
        page.keyboard.press("j")
        page.keyboard.press("o")
    opened.value.close()


def test_portal_fact_35_keys_rest_while_typing(visit: Any) -> None:
    ada = visit("ada")
    page = ada.page
    ada.go("/repos")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "cg-quick"
    page.keyboard.type("jo?[")
    assert page.input_value("#cg-quick") == "jo?["
    ada.go(f"{HANDBOOK}/settings")
    page.focus("#cg-only")
    page.keyboard.type("/docs/**")
    assert page.input_value("#cg-only") == "/docs/**"


def test_portal_fact_36_tab_order(visit: Any) -> None:
    ada = visit("ada")
    for path in ("/repos", f"{HANDBOOK}/docs/set-up", "/account/tokens"):
        ada.go(path)
        ada.page.keyboard.press("Tab")
        assert ada.page.evaluate("document.activeElement.className") == "skip"
        ada.page.keyboard.press("Enter")
        assert ada.page.evaluate("document.activeElement.id") == "cg-main"
    ada.go("/about")
    seen = []
    for _ in range(12):
        ada.page.keyboard.press("Tab")
        place = ada.page.evaluate(
            "(() => { const box = document.activeElement.getBoundingClientRect(); return [box.top, box.left]; })()"
        )
        seen.append(place)
    header = [place for place in seen if 0 <= place[0] < 52][:5]
    assert header == sorted(header, key=lambda place: place[1])


def test_portal_fact_4_filtering_while_typing(visit: Any) -> None:
    ada = visit("ada")
    page = ada.page
    ada.go("/repos")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/repos?" in request.url else None)
    page.focus("#cg-filter")
    page.keyboard.type("handbook-xyz", delay=60)
    page.wait_for_selector("text=No repository matches")
    assert len(asked) <= 2
    assert page.evaluate("document.activeElement.id") == "cg-filter"
    assert "q=handbook-xyz" in page.url
    page.reload()
    assert page.input_value("#cg-filter") == "handbook-xyz"


def test_portal_rule_28_live_job_until_the_end(site: Any, visit: Any) -> None:
    job = make_job(site.world.public, kind="embed", status="running", stage="embedding", done=118, total=126)
    ada = visit("ada")
    page = ada.page
    ada.go(f"/jobs/{job.pk}")
    assert "118 of 126" in page.inner_text("#cg-job")
    Job.objects.filter(pk=job.pk).update(done=125)
    page.wait_for_selector("text=125 of 126")
    Job.objects.filter(pk=job.pk).update(
        status="success",
        warnings=2,
        lease_token=None,
        lease_expires=None,
        finished_at=timezone.now(),
        outcome="Two texts were cut.",
    )
    page.wait_for_selector("text=Two texts were cut.")
    assert "done with warnings" in page.inner_text("#cg-job")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2600)
    assert not asked


def test_portal_rule_28_polling_rests_in_hidden_tabs(site: Any, visit: Any) -> None:
    job = make_job(site.world.public, kind="embed", status="running", stage="embedding")
    ada = visit("ada")
    ada.go(f"/jobs/{job.pk}")
    ada.page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    asked: list[str] = []
    ada.page.on("request", lambda request: asked.append(request.url))
    ada.page.wait_for_timeout(2600)
    assert not asked
    job.delete()


def test_portal_fact_23_reloads_itself_without_script(site: Any, visit: Any) -> None:
    job = make_job(site.world.public, kind="embed", status="running", stage="embedding")
    ada = visit("ada", script=False)
    ada.go(f"/jobs/{job.pk}")
    Job.objects.filter(pk=job.pk).update(
        status="cancelled", lease_token=None, lease_expires=None, finished_at=timezone.now()
    )
    ada.page.wait_for_selector("#cg-job .badge:has-text('cancelled')", timeout=9000)


@pytest.mark.parametrize("script", [True, False])
def test_journey_5_broken_repository(site: Any, visit: Any, script: bool) -> None:
    ada = visit("ada", script=script)
    page = ada.page
    try:
        ada.go(f"{HANDBOOK}/settings")
        page.fill("#cg-only", "documentation/**")
        page.click("button:has-text('Save filters')")
        page.click("button:has-text('Sync now')")
        assert "waits for a worker" in page.inner_text(".job-live")
        site.sync()
        ada.go(f"{HANDBOOK}/report")
        assert "0 of 13 files matched" in page.inner_text("main")
        assert "done with warnings" in page.inner_text("main")
        assert "docs/glossary.md" in page.inner_text("main")
        ada.go(f"{HANDBOOK}/settings")
        page.fill("#cg-only", "docs/**")
        page.click("button:has-text('Try these filters')")
        page.wait_for_selector("text=Would take 9 of 13 files.")
        page.click("button:has-text('Save filters')")
        site.sync()
        ada.go(f"{HANDBOOK}/docs/glossary")
        assert "is a piece" in page.inner_text("article")
    finally:
        Repository.objects.filter(pk=site.synced.pk).update(only=[])
        site.sync()


@pytest.mark.parametrize("script", [True, False])
def test_journey_6_access(site: Any, visit: Any, script: bool) -> None:
    slug = site.world.private.slug
    olga, otto = (visit(name, script=script, expected=("404 (Not Found)",)) for name in ("olga", "otto"))
    hidden = otto.go(f"/repos/{slug}")
    assert hidden.status == 404
    body = otto.page.content()
    olga.go(f"/repos/{slug}/settings")
    olga.page.select_option("select[name=kind]", "user")
    olga.page.fill("form.filters input[name=name]", "otto")
    olga.page.click("form.filters button")
    assert "otto may now read" in olga.page.inner_text("main")
    otto.go("/repos")
    assert slug in otto.page.inner_text("main")
    assert otto.go(f"/repos/{slug}/docs/docs-setup").status == 200
    otto.go("/jobs")
    assert slug in otto.page.inner_text("main")
    olga.page.click("tr:has-text('otto') button:has-text('End')")
    assert otto.go(f"/repos/{slug}").status == 404
    assert otto.page.content() == body
    otto.go("/jobs")
    assert slug not in otto.page.inner_text("main")


def test_portal_fact_33_token_shown_once_with_copy(visit: Any) -> None:
    ada = visit("ada")
    page = ada.page
    ada.go("/account/tokens")
    page.fill("#cg-name", "browser")
    page.click("button:has-text('Make token')")
    shown = page.inner_text("#cg-token")
    page.click("button:has-text('Copy token')")
    page.wait_for_selector(".copied")
    assert page.evaluate("navigator.clipboard.readText()") == shown
    ada.go("/account/tokens")
    assert shown not in page.content()


def test_portal_fact_34_no_page_comes_back_after_signing_out(visit: Any) -> None:
    otto = visit("otto")
    page = otto.page
    otto.go("/account")
    page.click(".menu > summary >> nth=0")
    page.click("button:has-text('Sign out')")
    page.wait_for_selector("#cg-password")
    page.go_back()
    page.wait_for_selector("#cg-password")
    assert "What you are here" not in page.content()


def test_portal_rule_6_chosen_theme_needs_no_script(visit: Any) -> None:
    ada = visit("ada", scheme="light")
    page = ada.page
    ada.go("/about")
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.click(".menu > summary >> nth=0")
    page.click("button:has-text('Dark')")
    assert page.url.endswith("/about")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light


def test_journey_13_hostile(site: Any, visit: Any) -> None:
    # The picture, opened by its own address; the handler in the label of a diagram, refused inside its frame.
    otto = visit("otto", expected=("Blocked script execution", "Executing inline event handler"))
    alerts: list[str] = []
    otto.page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    for path in (
        "docs/hostile",
        "docs",
        "files",
        "files/docs/hostile.md",
        "files/img/bad.svg",
        "report",
        "images/img/bad.svg",
        "docs/hostile?raw=1",
    ):
        otto.page.goto(f"{site.address}{HANDBOOK}/{path}")
        otto.page.wait_for_timeout(50)
    assert not alerts
    otto.go(f"{HANDBOOK}/docs/hostile")
    bad = "script, style, iframe:not([sandbox=allow-scripts]), "
    bad += "svg[onload], [onerror], [onclick], [onload], [style], a[href^='javascript:']"
    assert otto.page.evaluate("(bad) => document.querySelectorAll(`main :is(${bad})`).length", bad) == 0
    otto.page.locator("article").wait_for()
    otto.page.wait_for_timeout(1500)  # the frame of its diagram draws meanwhile
    assert not alerts
    raw = otto.page.request.get(f"{site.address}{HANDBOOK}/images/img/bad.svg")
    assert raw.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert raw.headers["x-content-type-options"] == "nosniff"


def test_portal_rule_52_static_files_carry_hashes_and_last_a_year(site: Any, visit: Any) -> None:
    ada = visit("ada")
    sent: dict[str, Any] = {}
    ada.page.on("response", lambda response: sent.update({response.url: response}))
    ada.go("/about")
    ada.page.wait_for_load_state("networkidle")
    assets = {url: response for url, response in sent.items() if "/static/" in url}
    assert len(assets) >= 3
    for response in assets.values():
        assert "max-age=31536000" in response.headers["cache-control"].replace("31557600", "31536000").replace(
            "315360000", "31536000"
        )
    packed = sum(
        int(response.headers.get("content-length", 0)) for url, response in assets.items() if url.endswith(".js")
    )
    assert 0 < packed <= 40 * 1024


@pytest.mark.parametrize("script", [True, False])
def test_sign_in_by_the_page(site: Any, visit: Any, script: bool) -> None:
    nobody = visit("", script=script)
    page = nobody.page
    nobody.go(f"{HANDBOOK}/docs/set-up")
    page.fill("#cg-user", "otto")
    page.fill("#cg-password", "a long enough one")
    page.click("main button.primary")
    page.wait_for_selector("h2#first-steps")
    assert page.url == f"{site.address}{HANDBOOK}/docs/set-up"


def test_journey_2_search(site: Any, visit: Any) -> None:
    otto = visit("otto")
    page = otto.page
    otto.go("/search")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/search?" in request.url else None)
    page.keyboard.type("install step", delay=70)
    page.wait_for_selector(".results mark:has-text('install')")
    assert len(asked) <= 2
    assert page.evaluate("document.activeElement.id") == "cg-q"
    assert page.url.endswith("/search?q=install+step")
    page.wait_for_function("document.getElementById('cg-said').textContent.includes('result')")
    page.fill("#cg-q", "glossary")
    page.wait_for_selector(".results a:has-text('Glossary')")
    page.click(".facets a:has-text('docs/')")
    assert "path=docs%2F" in page.url
    assert page.locator(".chip").count() >= 1
    page.keyboard.press("j")
    page.keyboard.press("e")
    page.wait_for_selector("details.why[open]")
    assert "words" in page.inner_text("details.why[open]")
    otto.check(axe=True)
    before = page.url
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "/docs/" in page.url
    page.go_back()
    assert page.url == before
    assert page.input_value("#cg-q") == "glossary"


def test_journey_2_search_without_script(site: Any, visit: Any) -> None:
    otto = visit("otto", script=False)
    page = otto.page
    otto.go("/")
    page.fill("#cg-q", "install")
    page.press("#cg-q", "Enter")
    page.click(".facets a:has-text('Documents')")
    assert "kind=doc" in page.url
    page.click("details.why > summary >> nth=0")
    page.locator("details.why[open] table").wait_for()
    page.click("details.why[open] a:has-text('lines')")
    assert "/chunks/" in page.url
    page.locator("tr.marked").first.wait_for()
    page.click("text=Read in the document")
    assert "#first-steps" in page.url


def test_portal_rule_24_chunk_page_marks_its_lines(site: Any, visit: Any) -> None:
    from apps.repos.models import RepositoryDocumentChunk

    chunk = RepositoryDocumentChunk.objects.get(document__path="docs/set up.md", section_anchor="first-steps")
    for scheme, width in (("light", 1280), ("dark", 320)):
        otto = visit("otto", scheme=scheme, width=width)
        otto.go(f"/chunks/{chunk.pk}")
        otto.page.wait_for_selector("[data-passage] .marked")
        assert "make install" in otto.page.inner_text("[data-passage]")
        assert otto.page.locator("[data-passage] h2.marked").inner_text().startswith("First steps")
        otto.check(axe=True)
    other = otto.page.locator(".lines tr:not(.marked) a").last
    other.click()
    assert f"/chunks/{chunk.pk}" not in otto.page.url
