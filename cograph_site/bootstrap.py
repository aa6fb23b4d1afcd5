"""The environment that Cograph runs in: made beside `manage.py` when the present one lacks the packages.

Standard library only. A stamp in the environment says from which `pyproject.toml` and `constraints.txt` it was made;
when they change, the next start installs again.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = "cograph-installed"
TOOLS = "dev"
TELL_SECONDS = 5.0


class BootstrapError(Exception):
    """The environment cannot be made; the text says what to do."""


def enter(*, with_tools: bool) -> str:
    """Return when this process has all packages; else make the environment and start the same command in it.

    Answers an empty string, or why it cannot be done. `with_tools` asks for the packages of development as well.
    """
    chosen = os.environ.get("COGRAPH_VENV", "")
    environment = Path(chosen).expanduser().resolve() if chosen else ROOT / ".venv"
    inside = Path(sys.prefix).resolve() == environment
    if not inside and not chosen and not missing(requirements(with_tools=with_tools)):
        return ""  # an environment of the user's own, complete
    try:
        environment.parent.mkdir(parents=True, exist_ok=True)
        with (environment.parent / f".{environment.name.lstrip('.')}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _current(environment, with_tools=with_tools):
                _install(environment, with_tools=with_tools)
    except BootstrapError as error:
        return str(error)
    except OSError as error:
        return f"the environment {environment} cannot be made: {error.strerror}"
    if inside:
        return ""
    python = str(_python(environment))
    os.environ.pop("PYTHONHOME", None)
    sys.stdout.flush()
    sys.stderr.flush()
    return os.execv(python, [python, *sys.orig_argv[1:]])  # noqa: S606  never comes back


def requirements(*, with_tools: bool) -> list[str]:
    """The requirements of the project as pyproject.toml states them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tools: list[str] = project["optional-dependencies"][TOOLS] if with_tools else []
    return [*project["dependencies"], *tools]


def missing(wanted: Sequence[str]) -> list[str]:
    """The distributions among the requirements that this interpreter does not have."""
    absent = []
    for requirement in wanted:
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        if match is None:
            continue
        try:
            importlib.metadata.version(match.group())
        except importlib.metadata.PackageNotFoundError:
            absent.append(match.group())
    return absent


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _current(environment: Path, *, with_tools: bool) -> bool:
    try:
        words = (environment / STAMP).read_text().split()
    except OSError:
        return False
    return words[:1] == [_fingerprint()] and (TOOLS in words or not with_tools) and _python(environment).exists()


def _install(environment: Path, *, with_tools: bool) -> None:
    tools = with_tools or _had_tools(environment)
    (environment / STAMP).unlink(missing_ok=True)
    wanted = requirements(with_tools=tools)
    if not _python(environment).exists():
        _say(f"making a Python environment in {environment}")
    installer = _make(environment)
    _say(f"installing {len(wanted)} packages and what they need (once; about a minute)")
    _run([*installer, "-c", str(ROOT / "constraints.txt"), *wanted])
    (environment / STAMP).write_text(_fingerprint() + (f" {TOOLS}" if tools else "") + "\n")
    _say("the environment is ready")


def _had_tools(environment: Path) -> bool:
    return _python(environment).exists() and any(environment.glob("lib/python*/site-packages/pytest_django"))


def _make(environment: Path) -> list[str]:
    """Make the environment and answer the command that installs into it."""
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    python = str(_python(environment))
    with_pip = importlib.util.find_spec("ensurepip") is not None
    command = [sys.executable, "-m", "venv", str(environment)]
    if with_pip:
        if not Path(python).exists() or not any(environment.glob("lib/python*/site-packages/pip")):
            _check(subprocess.run(command, capture_output=True, text=True, check=False), "python -m venv")
        return [python, "-m", "pip", "install", *options]
    # Debian splits ensurepip off; the pip of the system can install into another environment.
    if importlib.util.find_spec("pip") is None:
        version = "%d.%d" % sys.version_info[:2]  # noqa: UP031
        raise BootstrapError(
            f"this Python has neither ensurepip nor pip: install the package python{version}-venv (Debian, Ubuntu), "
            "or the one that your system names so, and start again"
        )
    _check(subprocess.run([*command, "--without-pip"], capture_output=True, text=True, check=False), "python -m venv")
    return [sys.executable, "-m", "pip", "--python", python, "install", *options]


def _check(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise BootstrapError(f"{what} failed: {' '.join(lines[-3:])}")


def _run(command: Sequence[str]) -> None:
    """Run the installer; every few seconds a line says how far it is. Its own words are shown when it fails."""
    began = told = time.monotonic()
    lines: list[str] = []
    seen = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        stream = child.stdout
        if stream is None:
            raise BootstrapError("the installer has no output")
        reader = threading.Thread(target=lambda: lines.extend(iter(stream.readline, "")), daemon=True)
        reader.start()
        while child.poll() is None:
            time.sleep(0.1)
            now = time.monotonic()
            if now - told >= TELL_SECONDS:
                told = now
                seen = sum(1 for line in lines if line.startswith("Collecting "))
                step = "installing" if any(line.startswith("Installing") for line in lines) else "fetching"
                _say(f"{step}: {seen} packages so far ({now - began:.0f} s)")
        reader.join(timeout=5)
    if child.returncode != 0:
        raise BootstrapError("the packages could not be installed:\n" + "".join(lines[-15:]).rstrip())


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"


def _say(text: str) -> None:
    print(f"cograph: {text}", file=sys.stderr, flush=True)  # noqa: T201
