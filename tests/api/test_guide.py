"""The REST guide: its blocks run, one after the other, by a real shell against a real server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group

from apps.access.models import User
from apps.access.tokens import create_token
from apps.collections.models import Collection
from apps.jobs.worker import drain
from apps.repos.samples import register_local
from tests.repos.conftest import Upstream

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "agents" / "rest.md"


def blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("_own_data_folder")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_example_of_the_guide_runs(live_server: Any, tmp_path: Path) -> None:
    ada = User.objects.create_superuser("ada", password="x")
    Group.objects.create(name="readers")
    guides = {str(path.relative_to(ROOT / "docs")): path.read_bytes() for path in sorted((ROOT / "docs").rglob("*.md"))}
    Upstream(tmp_path / "guides").commit({**guides, "Makefile.old": "x"})
    assert register_local(path=tmp_path / "guides", slug="local/cograph/docs", by=ada) is not None
    drain()
    _, text = create_token(user=ada, name="guide", scopes=["read", "write"])
    script = "\n".join(f'echo "== block {number}"\n{block}' for number, block in enumerate(blocks(), start=1))
    work = tmp_path / "work"
    work.mkdir()
    # The interpreter of the tests stands in for the reader's python3.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=work,
        env={
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(work),
            "COGRAPH": live_server.url,
            "COGRAPH_TOKEN": text,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert done.stdout.count("== block") == len(blocks()) > 12
    assert "did you mean `limit`?" in done.stdout
    assert "\n304\n" in done.stdout
    assert set(Collection.objects.values_list("name", flat=True)) == {"Runbooks", "Once"}
