"""The reader of the API in a real browser, with the network off (API fact 10)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page() -> Any:
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = settings.COGRAPH.chromium
    if not Path(chromium).exists():
        if settings.COGRAPH.require_browser:
            pytest.fail(f"{chromium} is not there")
        pytest.skip(f"{chromium} is not there; install Debian's package chromium")
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps an event loop in this thread
    try:
        with sync_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"] if os.getuid() == 0 else []
            )
            yield browser.new_page()
            browser.close()
    finally:
        os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE")
        if before is not None:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


def test_api_fact_10_the_reader_works_with_the_network_off(live_server: Any, page: Any) -> None:
    told: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: told.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(
        "document.addEventListener('securitypolicyviolation', e => console.error('CSP ' + e.violatedDirective))"
    )
    page.goto(f"{live_server.url}/api/docs")
    page.get_by_text("/api/me/tokens", exact=True).first.wait_for()
    assert told == []
    assert {url.split("/")[2] for url in asked if not url.startswith("data:")} == {
        live_server.url.removeprefix("http://")
    }
