"""The real application under granian on the test database, and Debian's chromium in front of it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection

from apps.access.models import User
from apps.access.sessions import SessionStore
from apps.jobs.models import Job
from apps.jobs.worker import run_job
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.repos.registration import register_repository, request_sync
from tests.portal.worlds import build, upstream_of

CHROMIUM = os.environ.get("COGRAPH_CHROMIUM") or "/usr/bin/chromium"
AXE = (Path(__file__).parent.parent / "vendor/axe.min.js").read_text()
PASSWORD = "a long enough one"
WATCH = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.__violations.push([event.violatedDirective, event.blockedURI, event.sourceFile, event.lineNumber].join(" "));
});
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    missing = not Path(CHROMIUM).is_file()
    for item in items:
        if here not in item.path.parents:
            continue
        item.add_marker(pytest.mark.browser)
        if missing and os.environ.get("COGRAPH_REQUIRE_BROWSER") != "1":
            item.add_marker(
                pytest.mark.skip(reason=f"no browser at {CHROMIUM}: apt-get install chromium, or set COGRAPH_CHROMIUM")
            )


@dataclass
class Site:
    """The running portal and what stands in it."""

    address: str
    world: Any
    upstream: Path
    synced: Any

    def sync(self) -> Any:
        """One sync of the repository that has a real upstream, by a worker of this process, and the graph of what it
        left: the jobs that follow a sync have no worker here."""
        live = Job.objects.live().filter(kind="sync", source_id=self.synced.pk).first()
        job = live or request_sync(repository=self.synced, by=self.world.people["ada"]).job
        done = run_job(job.pk)
        rebuild("repository", self.synced.pk)
        return done


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def environment() -> dict[str, str]:
    """What the server needs to find this run's database and keys."""
    database = connection.settings_dict
    host = str(database["HOST"]).replace("/", "%2F")
    url = f"postgresql://{database['USER']}@{host}/{database['NAME']}"
    return {
        **os.environ,
        "DATABASE_URL": url,
        "COGRAPH_DATA_DIR": settings.COGRAPH.data_dir,
        "COGRAPH_DJANGO_SECRET_KEY": settings.SECRET_KEY,
        "COGRAPH_EMBEDDING__BACKEND": "none",
        "COGRAPH_THROTTLE__USER": "100000",
    }


@contextlib.contextmanager
def serving(port: int) -> Iterator[None]:
    root = Path(settings.BASE_DIR)
    subprocess.run(
        [
            sys.executable,
            "manage.py",
            "collectstatic",
            "--noinput",
            "-v0",
            "-i",
            "drf_spectacular_sidecar",
            "-i",
            "rest_framework",
        ],
        cwd=root,
        env=environment(),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = subprocess.Popen(
        [
            str(Path(sys.executable).parent / "granian"),
            *("--interface", "wsgi", "--host", "127.0.0.1", "--port", str(port)),
            *("--blocking-threads", "4", "--no-access-log", "--log-level", "error", "--workers-kill-timeout", "4"),
            "cograph_site.wsgi:application",
        ],
        cwd=root,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                break
            assert server.poll() is None, "the server ended at once"
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser a module: Playwright keeps a loop in this thread, which tests of other folders could not bear."""
    playwright = pytest.importorskip("playwright.sync_api")
    with pytest.MonkeyPatch.context() as patch, playwright.sync_playwright() as run:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # in such a thread Django refuses the database without it
        chromium = run.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield chromium
        chromium.close()


@contextlib.contextmanager
def connected_to(name: str) -> Iterator[None]:
    """This process looks at another database of the same server meanwhile."""
    before = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = name
    ContentType.objects.clear_cache()
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before
        ContentType.objects.clear_cache()


@contextlib.contextmanager
def own_database() -> Iterator[str]:
    """A database beside that of the other tests: what the server shall see must be committed."""
    name = f"browser_{os.getpid()}"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    connection.close()
    try:
        yield name
    finally:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.close()


@pytest.fixture(scope="session")
def running(
    django_test_environment: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Site]]:
    """The server, its database and what stands in it, once for all browser tests."""
    port = free_port()
    stack = contextlib.ExitStack()
    with django_db_blocker.unblock():
        name = stack.enter_context(own_database())
        with connected_to(name):
            call_command("migrate", verbosity=0)
            world = build()
            # The other tests hash with MD5, for speed; the server does not know it.
            User.objects.update(password=PBKDF2PasswordHasher().encode(PASSWORD, "0123456789abcdefghijklmnop"))
            upstream = upstream_of(tmp_path_factory.mktemp("upstream") / "acme" / "handbook")
            registered = register_repository(
                by=world.people["ada"],
                git_url=str(upstream),
                slug="local/acme/handbook",
                trusted_path=True,
                visibility="public",
                sync=False,
            )
            found = Site(f"http://127.0.0.1:{port}", world, upstream, registered.repository)
            found.sync()
            stack.enter_context(serving(port))
    try:
        yield name, found
    finally:
        with django_db_blocker.unblock():
            stack.close()


@pytest.fixture
def site(running: tuple[str, Site], django_db_blocker: Any) -> Iterator[Site]:
    name, found = running
    with django_db_blocker.unblock(), connected_to(name):
        yield found


@dataclass
class Visitor:
    """One person at one browser, watched for everything that must not happen."""

    site: Site
    context: Any
    page: Any
    faults: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()

    def go(self, path: str) -> Any:
        return self.page.goto(self.site.address + path)

    def sign_in(self, name: str) -> None:
        """A session as the sign-in page makes it; the page itself has a journey of its own."""
        user = User.objects.get(username=name)
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        self.context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": self.site.address}]
        )

    def check(self, *, axe: bool = False, rules: str = "") -> None:
        """No violation of the policy, no console error, no sideways scroll; with ``axe``, nothing serious found.

        ``rules`` narrows axe to those of its rules, separated by blanks.
        """
        self.faults += [f"{self.page.url}: {fault}" for fault in self.page.evaluate("window.__violations")]
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            self.faults.append(f"{self.page.url}: {wide} px wider than the window")
        if axe:
            self.page.evaluate(AXE)
            options: dict[str, Any] = {"resultTypes": ["violations"]}
            if rules:
                options["runOnly"] = rules.split()
            found = self.page.evaluate("(options) => axe.run(document, options)", options)
            self.faults += [
                f"{self.page.url}: {one['id']}: {one['nodes'][0]['html'][:160]}"
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]

    def done(self) -> None:
        left = [fault for fault in self.faults if not any(one in fault for one in self.expected)]
        assert not left, "\n".join(dict.fromkeys(left))


@pytest.fixture
def visit(browser: Any, site: Site) -> Iterator[Any]:
    """``visit(name, width=, scheme=, script=)`` opens a browser window, signed in as ``name`` unless empty."""
    visitors: list[Visitor] = []

    def open_window(
        name: str = "ada",
        *,
        width: int = 1280,
        scheme: str = "light",
        script: bool = True,
        expected: tuple[str, ...] = (),
    ) -> Visitor:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=script
        )
        context.add_init_script(WATCH)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.address)
        page = context.new_page()
        wait_after_clicks(page)
        visitor = Visitor(site, context, page, expected=expected)
        page.on(
            "console", lambda line: visitor.faults.append(f"{page.url}: {line.text}") if line.type == "error" else None
        )
        page.on("pageerror", lambda error: visitor.faults.append(f"{page.url}: {error}"))
        page.on(
            "request",
            lambda request: (
                visitor.faults.append(f"asked {request.url}")
                if not request.url.startswith((site.address, "data:", "blob:"))
                else None
            ),
        )
        page.set_default_timeout(8_000)
        if name:
            visitor.sign_in(name)
        visitors.append(visitor)
        return visitor

    yield open_window
    for visitor in visitors:
        if script_is_on(visitor):
            visitor.check()
        visitor.context.close()
    for visitor in visitors:
        visitor.done()


def wait_after_clicks(page: Any) -> None:
    """What is read after a click is read off the whole page behind it: Playwright waits for its first bytes only."""
    click = page.click

    def click_and_wait(*args: Any, **options: Any) -> None:
        click(*args, **options)
        page.wait_for_load_state("domcontentloaded")

    page.click = click_and_wait


def script_is_on(visitor: Visitor) -> bool:
    with contextlib.suppress(Exception):
        return bool(visitor.page.evaluate("Array.isArray(window.__violations)"))
    return False
