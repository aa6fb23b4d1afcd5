"""`manage.py verify`: every check that a change must pass, in one command.

Order: ruff format, ruff check, import-linter, mypy, makemigrations, check --deploy, pytest with the browser tests.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What a deployment behind a proxy would set; `check --deploy` judges that, not the defaults of a laptop.
DEPLOYED = {"COGRAPH_ALLOWED_HOSTS": "cograph.example", "COGRAPH_DJANGO_SECRET_KEY": secrets.token_urlsafe(50)}


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    command: Sequence[str]
    environment: Mapping[str, str]


def steps(pytest_arguments: Sequence[str] = ()) -> list[Step]:
    python = [sys.executable]
    manage = [sys.executable, "manage.py"]
    return [
        Step("format", [*python, "-m", "ruff", "format", "--check", "."], {}),
        Step("lint", [*python, "-m", "ruff", "check", "."], {}),
        Step("imports", [*python, "-c", "from importlinter.cli import lint_imports_command as c; c()"], {}),
        Step("types", [*python, "-m", "mypy"], {}),
        Step("migrations", [*manage, "makemigrations", "--check", "--dry-run"], {"DATABASE_URL": "", **NO_DATABASE}),
        Step("deploy", [*manage, "check", "--deploy", "--fail-level", "WARNING"], DEPLOYED),
        Step("tests", [*python, "-m", "pytest", *PARALLEL, *pytest_arguments], {}),
    ]


# One more than there are cores, at most four: tests that start workers, servers and browsers wait for them a quarter of
# their time. Each process has a database server of its own. Modules stay whole and come in the order of collection,
# longest first.
PROCESSES = min(4, (os.cpu_count() or 1) + 1)
PARALLEL = [f"--numprocesses={PROCESSES}", "--dist=loadfile", "--no-loadscope-reorder"]

# makemigrations looks at a database for consistency and warns when there is none; that is no finding.
NO_DATABASE = {"PYTHONWARNINGS": "ignore:Got an error checking a consistent migration history:RuntimeWarning"}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="manage.py verify", description="Run every check.")
    names = [step.name for step in steps()]
    parser.add_argument("--only", action="append", choices=names, metavar="STEP", help=f"one of: {', '.join(names)}")
    parser.add_argument("--skip", action="append", choices=names, metavar="STEP", default=[], help="leave a step out")
    options, rest = parser.parse_known_args(arguments)
    failed = []
    began = time.monotonic()
    for step in steps(rest):
        if (options.only and step.name not in options.only) or step.name in options.skip:
            continue
        _say(f"{step.name} ...")
        start = time.monotonic()
        code = subprocess.run(step.command, cwd=ROOT, env={**os.environ, **step.environment}, check=False).returncode
        _say(f"{step.name}: {'ok' if code == 0 else f'FAILED ({code})'} after {time.monotonic() - start:.1f} s")
        if code != 0:
            failed.append(step.name)
    total = time.monotonic() - began
    _say(f"failed: {', '.join(failed)} ({total:.0f} s)" if failed else f"all checks passed ({total:.0f} s)")
    return 1 if failed else 0


def _say(text: str) -> None:
    print(f"verify: {text}", flush=True)  # noqa: T201
