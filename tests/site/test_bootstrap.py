"""The environment that `manage.py` makes on a bare machine. Installing is tried for real in CI; here: the decisions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cograph_site import bootstrap, verify

ROOT = Path(__file__).resolve().parents[2]


def test_this_environment_is_complete() -> None:
    assert bootstrap.missing(bootstrap.requirements(with_tools=True)) == []


def test_what_is_missing_is_named() -> None:
    assert bootstrap.missing(["Django==5.2.*", "no-such-package[extra]==1.0"]) == ["no-such-package"]


def test_a_stamp_counts_while_its_files_are_unchanged(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    assert not bootstrap._current(environment, with_tools=False)
    stamp = environment / bootstrap.STAMP
    stamp.write_text(bootstrap._fingerprint())
    assert bootstrap._current(environment, with_tools=False)
    assert not bootstrap._current(environment, with_tools=True)
    stamp.write_text(bootstrap._fingerprint() + f" {bootstrap.TOOLS}\n")
    assert bootstrap._current(environment, with_tools=True)
    stamp.write_text("of an older version")
    assert not bootstrap._current(environment, with_tools=False)


def test_a_failed_installation_shows_the_installers_words() -> None:
    with pytest.raises(bootstrap.BootstrapError, match="no such line"):
        bootstrap._run([sys.executable, "-c", "import sys; print('no such line'); sys.exit(3)"])


def test_bootstrap_and_manage_need_the_standard_library_only() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import sys; sys.path.insert(0, '.'); import cograph_site.bootstrap"],
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0


def test_manage_py_can_be_read_by_an_old_python_which_is_then_told() -> None:
    source = (ROOT / "manage.py").read_text()
    head = source[: source.index("from cograph_site")]
    assert "Python 3.11 or newer" in head
    assert "match " not in head


def test_constraints_pin_every_requirement_and_nothing_but_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!-]+", line) for line in lines)
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    names = [re.match(r"[A-Za-z0-9._-]+", wanted) for wanted in bootstrap.requirements(with_tools=True)]
    assert not {name.group().lower().replace("_", "-") for name in names if name} - pinned


def test_verify_runs_the_checks_in_the_order_of_the_house() -> None:
    assert [step.name for step in verify.steps()] == [
        "format",
        "lint",
        "imports",
        "types",
        "migrations",
        "deploy",
        "tests",
    ]


def test_no_file_of_the_project_names_a_registry_or_a_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    hosts = re.compile(r"index[-_]url|extra[-_]index|find[-_]links|pypi|files\.python")
    for name in [".ci/run", "constraints.txt", "pyproject.toml", "manage.py", "README.md"]:
        if name in listed:
            assert not hosts.search((ROOT / name).read_text()), name
