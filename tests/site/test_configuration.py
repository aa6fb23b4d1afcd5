"""Settings from the environment, and the operator's table of them."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cograph_site import configuration
from cograph_site.configuration import Configuration, ConfigurationError, known_names, read

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "operating" / "settings.md"


def test_nothing_set_gives_the_defaults() -> None:
    assert read({"PATH": "/bin", "HOME": "/x"}) == Configuration()


def test_both_shapes_of_names_are_read() -> None:
    site = read({"COGRAPH_PUBLIC_READ": "on", "COGRAPH_JOBS__WORKERS": "3", "COGRAPH_GIT__FILE_ROOTS": "/a, /b,"})
    assert site.public_read is True
    assert site.jobs.workers == 3
    assert site.git.file_roots == ("/a", "/b")
    assert site.git.fetch_seconds == 1800


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("false", False), ("Off", False)]
)
def test_spellings_of_booleans(text: str, value: bool) -> None:
    assert read({"COGRAPH_DEBUG": text}).debug is value


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("COGRAPH_DEBUG", "yes", "1, 0, true, false, on, off"),
        ("COGRAPH_JOBS__WORKERS", "two", "whole number"),
        ("COGRAPH_JOBS__WORKERS", "-1", "whole number"),
        ("COGRAPH_JOBS__WORKERS", "0", "1 or more"),
        ("COGRAPH_JOBS__LEASE_SECONDS", "nan", "number"),
        ("COGRAPH_GRAPH__EXPANSION_DECAY", "-0.5", "number"),
        ("COGRAPH_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("COGRAPH_GIT__SYNC_HOUR", "24", "0 to 23"),
        ("COGRAPH_RETRIEVAL__CANDIDATES", "99", "100 to 300"),
        ("COGRAPH_RETRIEVAL__DENSE_EXACT", "never", "auto, always"),
        ("COGRAPH_RETRIEVAL__BODY_B", "1", "0 to 0.99"),
        ("COGRAPH_RETRIEVAL__PAGE_ROWS", "0", "1 to 100"),
        ("COGRAPH_GRAPH__EXPANSION_HOPS", "4", "1 to 3"),
        ("COGRAPH_JOBS__RENEW_SECONDS", "60", "less than COGRAPH_JOBS__LEASE_SECONDS"),
        ("COGRAPH_BIND", "localhost", "127.0.0.1:8000"),
        ("COGRAPH_BIND", "127.0.0.1:70000", "127.0.0.1:8000"),
        ("COGRAPH_SECRETS_KEY", "short", "32 bytes"),
    ],
)
def test_a_bad_value_is_one_line_with_name_and_allowed_values(name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read({name: text})
    message = str(caught.value)
    assert name in message
    assert words in message
    assert "\n" not in message


def test_a_bad_secret_is_not_repeated() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read({"COGRAPH_SECRETS_KEY": "hunter2hunter2"})
    assert "hunter2" not in str(caught.value)


def test_secrets_stay_out_of_the_printed_configuration() -> None:
    site = read(
        {"COGRAPH_ADMIN_PASSWORD": "hunter2", "COGRAPH_EMBEDDING__API_KEY": "hunter3", "COGRAPH_TOKEN": "cgr_4"}
    )
    assert "hunter" not in repr(site)
    assert "cgr_4" not in repr(site)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("COGRAPH_PUBLICREAD", "COGRAPH_PUBLIC_READ"), ("COGRAPH_JOBS_WORKERS", "COGRAPH_JOBS__WORKERS")],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(name: str, nearest: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}.*{nearest}"):
        read({name: "1"})


def test_the_database_must_be_postgresql() -> None:
    assert configuration.database_url({}) == ""
    assert configuration.database_url({"DATABASE_URL": " postgres://u:p@h/d "}) == "postgres://u:p@h/d"
    with pytest.raises(ConfigurationError) as caught:
        configuration.database_url({"DATABASE_URL": "mysql://root:hunter2@db/x"})
    assert "hunter2" not in str(caught.value)


def test_every_command_stops_with_one_line_on_a_bad_setting() -> None:
    for command in ("check", "up"):
        done = subprocess.run(
            [sys.executable, "manage.py", command],
            cwd=ROOT,
            env={**os.environ, "COGRAPH_PUBLICREAD": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 1
        assert done.stderr == "COGRAPH_PUBLICREAD is not a setting of Cograph; did you mean COGRAPH_PUBLIC_READ?\n"


def test_the_operators_table_equals_the_code() -> None:
    """Every setting has a row with its default, and no row is about anything else."""
    rows = dict(re.findall(r"^\| `((?:COGRAPH_|DATABASE_URL)\w*)` \| (.+?) \|", TABLE.read_text(), flags=re.M))
    assert rows.pop("DATABASE_URL") == "unset"
    plain = Configuration()
    defaults = {}
    for name, (area, field, _) in known_names().items():
        defaults[name] = _as_table_cell(getattr(plain if area is None else getattr(plain, area), field))
    shown = {name: cell.strip("`") for name, cell in rows.items()}
    assert {name: "" if cell in ("empty", "unset") else cell for name, cell in shown.items()} == defaults


def _as_table_cell(value: object) -> str:
    if value is True:
        return "on"
    if value is False:
        return "off"
    if value is None or value in ("", ()):
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def test_areas_are_frozen() -> None:
    site = Configuration()
    with pytest.raises(dataclasses.FrozenInstanceError):
        site.jobs.workers = 5  # type: ignore[misc]
