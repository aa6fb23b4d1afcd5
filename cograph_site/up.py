"""`manage.py up`: the whole portal by one command, from an empty folder on."""

from __future__ import annotations

import argparse
import dataclasses
import http.client
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from apps.access.key_files import ensure_key
from cograph_site import configuration, data_folder, processes
from cograph_site.postgres import PostgresError
from cograph_site.postgres.server import Server
from cograph_site.supervisor import Guard, Supervisor

ROOT = Path(__file__).resolve().parent.parent
WEB_THREADS = min(16, 2 * (os.cpu_count() or 1) + 1)
READY_SECONDS = 120.0
HURRY_SECONDS = 0.1
WEB_FAILURES = 3


class UpError(Exception):
    """The portal cannot start; the text says why."""


class Stopping(BaseException):
    """Ctrl-C or SIGTERM."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="manage.py up", description="Start the whole portal.")
    parser.add_argument("--port", type=int, help="port of the web server (default: that of COGRAPH_BIND, 8000)")
    parser.add_argument("--data-dir", help="database, mirrors, keys (default: COGRAPH_DATA_DIR)")
    parser.add_argument("--no-samples", action="store_true", help="leave out the samples")
    options = parser.parse_args(arguments)
    try:
        site = _configuration(options.port, options.data_dir)
        Up(site, samples=not options.no_samples).run()
    except (UpError, PostgresError, data_folder.FolderHeld, data_folder.FolderUnusable) as error:
        _say(str(error))
        return 1
    except (Stopping, KeyboardInterrupt):
        return 0
    return 0


def _configuration(port: int | None, folder: str | None) -> configuration.Configuration:
    environ = dict(os.environ)
    if folder:
        environ["COGRAPH_DATA_DIR"] = str(Path(folder).expanduser().absolute())
    site = configuration.read(environ)
    if port is not None:
        host, _ = configuration.host_and_port(site.bind)
        bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        site = configuration.read({**environ, "COGRAPH_BIND": bind})
    return dataclasses.replace(site, data_dir=str(data_folder.make(site.data_path)))


class Up:
    """One run of the portal on one data folder."""

    def __init__(self, site: configuration.Configuration, *, samples: bool) -> None:
        self.site = site
        self.samples = samples
        self.folder = site.data_path
        self.host, self.port = configuration.host_and_port(site.bind)
        self.lock = data_folder.Lock(self.folder)
        self.guard = Guard(self.folder / "guard.lock")
        self.supervisor = Supervisor(folder=ROOT, say=_say, guard=self.guard)
        self.server: Server | None = None
        self.url = configuration.database_url(os.environ)
        self._database_down = False
        self._wake, self._woken = os.pipe()

    def run(self) -> None:
        """Start everything, watch it until a signal comes, stop everything."""
        began = time.monotonic()
        self.lock.take(f"process {os.getpid()}, which is starting")
        self._catch_signals()
        try:
            self._wait_for_earlier_guard()
            self._check_port()
            self.guard.start()
            self._make_key()
            self._start_database()
            account = self._prepare()
            try:
                self._start_web()
            finally:
                _show_account(account)
            self._start_workers()
            self.lock.describe(f"process {os.getpid()}, which answers at {self.address}")
            print(f"Cograph answers at {self.address}", flush=True)  # noqa: T201
            _say(f"ready after {time.monotonic() - began:.1f} s; Ctrl-C stops everything")
            self._watch()
        finally:
            self._stop()

    @property
    def address(self) -> str:
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(self.host, self.host)  # noqa: S104
        return f"http://[{shown}]:{self.port}/" if ":" in shown else f"http://{shown}:{self.port}/"

    def _environment(self) -> dict[str, str]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        environment = {
            **os.environ,
            "DATABASE_URL": self.url,
            "COGRAPH_DATA_DIR": str(self.folder),
            "COGRAPH_BIND": f"{host}:{self.port}",
            "DJANGO_SETTINGS_MODULE": "cograph_site.settings",
            "PYTHONUNBUFFERED": "1",
        }
        environment.pop("COGRAPH_ADMIN_PASSWORD", None)  # only the first start needs it
        return environment

    def _catch_signals(self) -> None:
        stopping = False

        def stop(_number: int, _frame: FrameType | None) -> None:
            nonlocal stopping
            if not stopping:  # once: the second Ctrl-C must not interrupt the stopping itself
                stopping = True
                raise Stopping

        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)

    def _sleep(self, seconds: float) -> None:
        """Sleep until a child ends or the time is over."""
        ready, _, _ = select.select([self._wake], [], [], seconds)
        if ready:
            os.read(self._wake, 4096)

    def _wait_for_earlier_guard(self) -> None:
        began = told = time.monotonic()
        while self.guard.earlier_one_is_busy():
            now = time.monotonic()
            if now - told > 1:
                told = now
                _say(f"waiting for the processes of an earlier run to end ({now - began:.0f} s)")
            time.sleep(0.05)

    def _check_port(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                raise UpError(
                    f"the web server cannot use {self.host}:{self.port} ({error.strerror}): choose another with --port"
                ) from None

    def _make_key(self) -> None:
        target = self.folder / data_folder.DJANGO_KEY
        if not self.site.django_secret_key and ensure_key(target, secrets.token_urlsafe(50))[1]:
            _say(f"made the key file {target}")

    def _start_database(self) -> None:
        if self.url:
            _say("using the database of DATABASE_URL")
            return
        self.server = Server(self.folder, say=_say)
        self.server.prepare()
        self.guard.watch(self.server.spawn().pid, signal.SIGINT)
        self.server.wait_ready()
        self.url = self.server.home.url()
        _say("the database server runs")

    def _prepare(self) -> dict[str, str]:
        """Migrations, static files, first account, samples; answers the account if one was made."""
        command = [sys.executable, "manage.py", "prepare_site"]
        command += ["--embedded"] if self.server is not None else []
        command += [] if self.samples else ["--no-samples"]
        environment = self._environment()
        if self.site.admin_password:
            environment["COGRAPH_ADMIN_PASSWORD"] = self.site.admin_password
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=processes.end_with_parent(signal.SIGTERM),
        )
        try:
            answer, _ = child.communicate()
        finally:
            if child.poll() is None:
                processes.signal_group(child.pid, signal.SIGKILL)
                child.wait()
        if child.returncode != 0:
            raise UpError("the portal could not be prepared; the lines above say why")
        account: dict[str, str] = json.loads(answer.decode().splitlines()[-1])
        return account

    def _start_web(self) -> None:
        command = [
            sys.executable,
            "-m",
            "granian",
            "--interface",
            "wsgi",
            "--host",
            self.host,
            "--port",
            str(self.port),
        ]
        command += ["--workers", "1", "--blocking-threads", str(WEB_THREADS), "--blocking-threads-idle-timeout", "600"]
        command += ["--respawn-failed-workers", "--respawn-interval", "0.3", "--workers-kill-timeout", "4", "--no-ws"]
        command += ["--log-level", "debug" if self.site.log_level == "debug" else "warning"]
        web = self.supervisor.add("web server", [*command, "cograph_site.wsgi:application"], self._environment())
        began = told = time.monotonic()
        while not self._answers():
            now = time.monotonic()
            self._look()
            if web.failures >= WEB_FAILURES or now - began > READY_SECONDS:
                raise UpError("the web server does not start; the lines above say why")
            if now - told > 2:
                told = now
                _say(f"waiting for the first page ({now - began:.0f} s)")
            self._sleep(0.05)

    def _answers(self) -> bool:
        """Whether the web server gives a page. The first one loads templates and routes, so it is the slow one."""
        target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        name = next((host for host in self.site.allowed_hosts if host != "*"), "localhost").removeprefix(".")
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection(target, self.port, timeout=30)
            try:
                connection.request("GET", "/", headers={"Host": name, "User-Agent": "cograph-up"})
                return connection.getresponse().status < 500
            finally:
                connection.close()
        return False

    def _start_workers(self) -> None:
        self.supervisor.add("worker process", [sys.executable, "manage.py", "run_workers"], self._environment())

    def _look(self) -> None:
        if self.server is not None:
            before = self.server.pid
            if self.server.revive():
                self.guard.forget(before)
                self.guard.watch(self.server.pid, signal.SIGINT)
                if not self._database_down:
                    _say("the database server had died; starting it again")
                self._database_down = True
            elif self._database_down and self.server.answers():
                self._database_down = False
                _say("the database server is back")
        self.supervisor.look()
        ours = {service.child.pid for service in self.supervisor.services if service.child is not None}
        processes.reap_strangers(ours | ({self.server.pid} if self.server is not None else set()))

    def _watch(self) -> None:
        while True:
            self._look()
            self._sleep(HURRY_SECONDS if self._database_down else self.supervisor.pause())

    def _stop(self) -> None:
        _say("stopping")
        self.supervisor.stop()
        if self.server is not None:
            self.server.stop()
            self.guard.forget(self.server.pid)
        self.guard.leave()
        self.lock.release()
        _say("stopped")


def _show_account(account: dict[str, str]) -> None:
    if not account:
        return
    print(f"Administrator: {account['name']}")  # noqa: T201
    if account.get("password"):
        print(f"Password: {account['password']}   (shown only now; change it under Account)", flush=True)  # noqa: T201
    else:
        print("Password: the one in COGRAPH_ADMIN_PASSWORD", flush=True)  # noqa: T201


def _say(text: str) -> None:
    print(f"cograph: {text}", file=sys.stderr, flush=True)  # noqa: T201
