"""Every page in both themes and on a narrow screen: policy, console, other hosts, sideways scroll, axe."""

from __future__ import annotations

from typing import Any

import pytest

from tests.portal.worlds import make_job

HANDBOOK = "/repos/local/acme/handbook"
EXPECTED = ("404 (Not Found)", "Executing inline event handler")
"""Of the page that is not there; of the hostile diagram, whose handler is refused inside its frame."""
PAGES = [
    "/",
    "/about",
    "/help",
    "/help/keyboard",
    "/account",
    "/account/tokens",
    "/search",
    "/search?q=install",
    "/search?q=xylophone",
    "/repos",
    "/repos/add",
    HANDBOOK,
    f"{HANDBOOK}/docs",
    f"{HANDBOOK}/docs/set-up",
    f"{HANDBOOK}/docs/hostile",
    f"{HANDBOOK}/docs/empty",
    f"{HANDBOOK}/docs/bad",
    f"{HANDBOOK}/docs/canon",
    f"{HANDBOOK}/lint",
    "/lint",
    "/context",
    "/context?task=install+the+handbook",
    "/context?task=xylophone",
    "/graph",
    "/graph/repo/local/acme/handbook",
    "/graph/repo/local/acme/handbook?focus=dec-new&depth=2",
    f"{HANDBOOK}/files",
    f"{HANDBOOK}/files/src/main.py",
    f"{HANDBOOK}/files/img/bad.svg",
    f"{HANDBOOK}/report",
    f"{HANDBOOK}/settings",
    "/repos/github.com/acme/guides/report",
    "/jobs",
    "/no/such/page",
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_portal_rule_54_every_page(site: Any, visit: Any, scheme: str) -> None:
    live = make_job(site.world.public, kind="embed", status="running", stage="embedding", done=3, total=9)
    try:
        ada = visit("ada", scheme=scheme, expected=EXPECTED)
        for path in [*PAGES, f"/jobs/{live.pk}"]:
            ada.go(path)
            # The second theme differs from the first in its colours only.
            ada.check(axe=True, rules="color-contrast" if scheme == "dark" else "")
    finally:
        live.delete()


@pytest.mark.parametrize("width", [320, 768])
def test_portal_rule_6_no_sideways_scroll(site: Any, visit: Any, width: int) -> None:
    ada = visit("ada", width=width, expected=EXPECTED)
    for path in PAGES:
        ada.go(path)
        ada.check()
        if path == "/repos":
            ada.page.click(".fold-nav > summary") if width < 960 else None
            ada.check(axe=True)


def test_portal_rule_5_login_page(visit: Any) -> None:
    for scheme in ("light", "dark"):
        nobody = visit("", scheme=scheme, width=320)
        nobody.go("/login")
        nobody.check(axe=True)


def test_portal_rule_6_motion_off(visit: Any) -> None:
    ada = visit("ada")
    ada.page.emulate_media(reduced_motion="reduce")
    ada.go("/")
    assert ada.page.evaluate("getComputedStyle(document.body).transitionDuration") == "0s"
