"""J4: a collection made, filled by dropping files, read in four tabs, cited, and closed to who is not signed in."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from apps.collections.models import Collection, Document
from apps.collections.uploads import upload_document
from apps.jobs.worker import drain
from apps.markup.shared_pool import close_shared_pool

FILES = {
    "start.md": "# Start\n\nRead [the pool](pool.md#limits).\n\n```sh\nmake run\n```\n",
    "pool.md": "# Pool\n\n## Limits\n\nThirty-two connections.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "bad.md": "---\na:\n\t- b\n---\n# Bad header\n\nStill found.\n",
}
DROP = """([files, zone]) => {
  const data = new DataTransfer();
  Object.entries(files).forEach(([name, text]) => data.items.add(new File([text], name, {type: "text/markdown"})));
  zone.dispatchEvent(new DragEvent("dragover", {dataTransfer: data, bubbles: true, cancelable: true}));
  zone.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


@contextmanager
def worker(page: Any) -> Iterator[None]:
    """One worker beside the browser, until the page has seen the end."""
    ended = threading.Event()

    def work() -> None:
        try:
            while not ended.is_set():
                drain()
                ended.wait(0.2)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    name = connection.settings_dict["NAME"]
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)
        close_shared_pool()
        assert connection.settings_dict["NAME"] == name


def make_collection(visitor: Any, name: str) -> None:
    page = visitor.page
    visitor.go("/docs")
    if not page.locator("#cg-name").is_visible():
        page.click("#cg-new summary")
    page.fill("#cg-name", name)
    page.click("button:has-text('Make collection')")
    page.wait_for_url(re.compile("/docs/[0-9a-f-]{36}$"))


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (320, "dark")])
def test_journey_4_collection(visit: Any, width: int, scheme: str) -> None:
    otto = visit("otto", width=width, scheme=scheme)
    page = otto.page
    make_collection(otto, f"Journey {width}")
    otto.check(axe=True)
    zone = page.locator("[data-drop]").element_handle()
    page.evaluate(DROP, [FILES, zone])
    assert page.locator("#cg-files").evaluate("field => field.files.length") == 3
    page.click(".drop button:has-text('Upload')")
    page.wait_for_selector("#cg-uploads .job-live[data-polls]")
    assert "?upload=" in page.url
    otto.check(axe=True)
    with worker(page):
        page.wait_for_selector("#cg-uploads :text('done with warnings')", timeout=30_000)
        assert page.locator("#cg-uploads tbody tr").count() == 3
        told = page.inner_text("#cg-uploads tbody tr:has-text('bad.md')")
        assert "line 3, column 1" in told
        assert "indexed without metadata" in told
        page.wait_for_selector("#cg-list tbody tr:has-text('Start')")
        page.wait_for_selector("#cg-about dd:has-text('3')")
    otto.check(axe=True)
    page.click("#cg-list a:has-text('Start')")
    document = page.url
    page.click("article a:has-text('the pool')")
    assert page.url.endswith("#limits")
    assert page.inner_text("aside .side-list") == "Start\nstart.md"
    for tab, words in (
        ("Raw", "the pool"),
        ("Metadata", "pool.md#limits"),
        ("Chunks", "Chunk 0"),
        ("Preview", "Start"),
    ):
        otto.go(document.removeprefix(otto.site.address))
        page.click(f".tabs a:has-text('{tab}')")
        assert f"tab={tab.lower()}" in page.url
        assert words in page.inner_text("main")
        otto.check(axe=True)
    held = Document.objects.get(collection__name=f"Journey {width}", source_key="start.md")
    again = FILES["start.md"].replace("make run", "make all") + "\n" + "A line without end. " * 40
    upload_document(collection=held.collection, by=held.uploaded_by, source_key="start.md", raw=again.encode())
    otto.go(document.removeprefix(otto.site.address))
    page.click(".meta a:has-text('compare')")
    assert "make all" in page.inner_text("tr.added") and "make run" in page.inner_text("tr.removed")
    assert page.inner_text(".data tbody tr").startswith("Start\tchanged")
    otto.check(axe=True)
    page.select_option("select[name=from]", "2")
    page.click("main button:has-text('Compare')")
    page.locator("h2:text-is('The same version twice')").wait_for()
    otto.check(axe=True)
    otto.go(f"{document.removeprefix(otto.site.address)}?tab=chunks")
    link = page.locator("#chunk-0 a:text-is('link')")
    link.click()
    assert page.url.endswith("?tab=chunks#chunk-0")
    cited = page.url
    page.click("#chunk-0 h2 a")
    assert "/chunks/" in page.url
    passage = page.url
    signed_out = visit("", width=width, scheme=scheme)
    for address in (cited, passage):
        signed_out.page.goto(address)
        assert "/login" in signed_out.page.url
    dana = visit("dana", expected=("404",))
    assert dana.page.goto(cited).status == 404


def test_journey_4_without_script(visit: Any, tmp_path: Any) -> None:
    otto = visit("otto", script=False)
    page = otto.page
    make_collection(otto, "Journey without script")
    place = page.url
    paths = []
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    page.set_input_files("#cg-files", paths)
    page.click(".drop button:has-text('Upload')")
    assert "?upload=" in page.url
    assert page.locator("#cg-uploads :text('waits for a worker')").count() == 1
    drain()
    page.goto(page.url)
    assert page.locator("#cg-uploads tbody tr").count() == 3
    page.goto(place)
    page.click("#cg-list a:has-text('Start')")
    page.click(".tabs a:has-text('Chunks')")
    page.locator("#chunk-0").wait_for()
    page.click("button:has-text('Move to the trash')")
    page.click(".tabs a:has-text('Trash')")
    page.click("button:has-text('Restore')")
    assert Document.objects.filter(collection__name="Journey without script", trashed_at=None).count() == 3
    page.click(".tabs a:has-text('Settings')")
    page.fill("#cg-confirm", "Journey without script")
    page.click("button:has-text('Delete collection')")
    assert page.url.endswith("/docs")
    assert not Collection.objects.filter(name="Journey without script", deleted_at=None).exists()
