"""From a commit to documents: kinds, states, counters, moves, deletions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentChunk

pytestmark = pytest.mark.django_db

SIX = (
    "discovered_files",
    "indexed_documents",
    "indexed_chunks",
    "unchanged_documents",
    "deleted_documents",
    "replaced_files",
)


def six(job: Any) -> tuple[int, ...]:
    return tuple(job.counters.get(name, 0) for name in SIX)


def test_repos_fact_01_six_kinds(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit(
        {
            "README.md": "# Demo\n\nHello.",
            "docs/guide.md": "# Guide\n\nText.",
            "examples/demo.py": "class A:\n    pass\n",
            "tests/test_helper.py": "def test_a():\n    pass\n",
            ".github/workflows/ci.yml": "# build\non: push\n",
            "pyproject.toml": "[project]\nname = 'x'\n",
            ".hidden/x.md": "# Hidden",
            "node_modules/p/README.md": "# P",
        }
    )
    repository, job = portal.synced(upstream)
    assert job.status == "success", (job.error_code, job.error_message)
    kinds = {path: document.kind for path, document in documents(repository).items()}
    assert kinds == {
        "README.md": "repo_doc",
        "docs/guide.md": "repo_doc",
        "examples/demo.py": "example",
        "tests/test_helper.py": "test",
        ".github/workflows/ci.yml": "workflow",
        "pyproject.toml": "config",
    }
    assert job.sync_report.not_taken["no rule"]["samples"] == [".hidden/x.md", "node_modules/p/README.md"]


def test_repos_fact_11_titles_of_other_kinds(upstream: Any, portal: Any, documents: Any) -> None:
    upstream.commit(
        {
            "examples/demo.py": "x = 1\n",
            "tests/test_helper.py": "def test_a():\n    pass\n",
            ".github/workflows/ci.yml": "# build\non: push\n",
            "pyproject.toml": "[project]\nname = 'x'\n",
        }
    )
    repository, _ = portal.synced(upstream)
    titles = {document.title for document in documents(repository).values()}
    assert titles == {"Example: demo.py", "Test: test_helper.py", "Workflow: ci.yml", "Config: pyproject.toml"}
    paths = {
        (chunk.document.kind, tuple(chunk.heading_path))
        for chunk in RepositoryDocumentChunk.objects.filter(repository=repository).select_related("document")
    }
    assert ("workflow", ("Workflow",)) in paths


def test_repos_fact_23_and_24_counters(upstream: Any, portal: Any, items: Any) -> None:
    upstream.commit({"README.md": "# Demo\n\nUse `helper`."})
    repository, job = portal.synced(upstream)
    assert six(job) == (1, 1, 1, 0, 0, 0)
    assert RepositoryDocument.objects.get(repository=repository).title == "Demo"
    upstream.commit({"other.md": "# Other\n\nText."})
    assert six(portal.sync(repository)) == (2, 1, 1, 1, 0, 0)
    upstream.commit({"README.md": "# Demo\n\nUse `other`.", "other.md": None})
    job = portal.sync(repository)
    assert six(job) == (1, 1, 1, 0, 1, 1)
    assert {path: item.state for path, item in items(job).items()} == {"README.md": "replaced", "other.md": "removed"}


def test_repos_fact_26_moved_folder(upstream: Any, portal: Any, documents: Callable[[Repository], Any]) -> None:
    upstream.commit({"docs/a/one.md": "# One\n\nText of one.", "docs/a/two.md": "# Two\n\nText of two."})
    repository, _ = portal.synced(upstream)
    before = {document.title: document.pk for document in documents(repository).values()}
    chunks = set(RepositoryDocumentChunk.objects.values_list("pk", flat=True))
    upstream.git("mv", "docs/a", "docs/b")
    upstream.commit()
    job = portal.sync(repository)
    after = documents(repository)
    assert {document.title: document.pk for document in after.values()} == before
    assert set(after) == {"docs/b/one.md", "docs/b/two.md"}
    assert {document.slug for document in after.values()} == {"b-one", "b-two"}
    assert set(RepositoryDocumentChunk.objects.values_list("pk", flat=True)) == chunks
    assert six(job) == (2, 0, 0, 2, 0, 0)
    assert {r.slug: r.document.slug for r in repository.redirects.select_related("document")} == {
        "a-one": "b-one",
        "a-two": "b-two",
    }
