"""Where the given test collections are, and their files."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path


def folder() -> Path:
    beside = Path(__file__).resolve().parents[3] / "shared" / "bench"
    return Path(os.environ.get("BENCH_FOLDER", beside))


def lines(path: Path) -> list[dict]:
    raw = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines()]
