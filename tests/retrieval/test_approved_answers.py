"""Answers that no change may move unnoticed: `retrieval.md` fact 59.

Digests of whole answers, on words alone so that they are the same on every machine, stand in ``approved_answers.json``
with the first rows in clear. A change that means to move them brings the file along::

    APPROVE_ANSWERS=1 pytest tests/retrieval/test_approved_answers.py
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from apps.access.models import User
from apps.retrieval.search import retrieve
from apps.retrieval.values import Answer, Question
from tests.retrieval.library import repository_of
from tests.retrieval.test_code_block import FILES

SHARED = Path(os.environ.get("SHARED_FOLDER") or Path(__file__).parents[3] / "shared") / "corpora" / "vite-docs"
APPROVED = Path(__file__).parent / "approved_answers.json"
SHOWN = 3
DOCUMENTS = (
    "CONTRIBUTING.md",
    "readme",
    "the contributing guide",
    "readme installation documentation",
    "the contributing guide for windows",
    "the contributing documentation for this repo",
    "the vite documentation on the plugin api",
    "docs on the release process",
    "how do I submit a pull request to this project",
    "import.meta.glob",
)
CODE = (
    "createServer",
    "create server",
    "creatServer",
    "server.createServer",
    "how do i resize a widget",
    "where is a connection dropped softly",
    "parse an import glob",
    "quiet_alarm",
)
pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(tmp_path: Path, settings: Any) -> User:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=str(tmp_path / "var"),
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
    )
    return User.objects.create_superuser("ada")


def digest(answer: Answer) -> dict[str, Any]:
    rows = [
        [hit.layer, hit.path, " > ".join(hit.heading_path) or hit.title, hit.start_line, hit.end_line, hit.final]
        for hit in answer.hits
    ]
    whole = [rows, answer.total, [[block.name, block.strength, block.total] for block in answer.blocks]]
    return {
        "digest": hashlib.sha256(json.dumps(whole).encode()).hexdigest(),
        "first": [f"{layer}: {path}: {heading}" for layer, path, heading, *_ in rows[:SHOWN]],
    }


def compare(name: str, found: dict[str, Any]) -> None:
    known = json.loads(APPROVED.read_text(encoding="utf-8")) if APPROVED.exists() else {}
    if os.environ.get("APPROVE_ANSWERS"):
        known[name] = found
        APPROVED.write_text(json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    moved = {query: (known.get(name, {}).get(query), now) for query, now in found.items()}
    moved = {query: pair for query, pair in moved.items() if pair[0] != pair[1]}
    assert not moved, f"answers moved; look at them, then approve them (see above): {moved}"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared corpora beside the checkout (set SHARED_FOLDER)")
def test_retrieval_fact_59_answers_of_documents(ada: User, tmp_path: Path) -> None:
    folder = tmp_path / "vitejs" / "vite"
    shutil.copytree(SHARED / "tree", folder)
    repository_of(folder, {}, ada)
    compare("documents", {query: digest(retrieve(viewer=ada, question=Question(query))) for query in DOCUMENTS})


def test_retrieval_fact_59_answers_of_code(ada: User, tmp_path: Path) -> None:
    repository_of(tmp_path / "acme" / "kit", FILES, ada)
    compare("code", {query: digest(retrieve(viewer=ada, question=Question(query))) for query in CODE})
