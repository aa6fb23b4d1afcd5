"""Pages in repositories: moves, renames, broken headers with git's history, rewritten history (facts 36, 83, 89)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from apps.jobs.worker import drain
from apps.knowledge_graph.deleting import delete_page, restore_page
from apps.knowledge_graph.models import CanonicalPage, Edge, Evidence, GraphRevision, GraphSource, Node
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.repos.models import Repository, RepositoryDocument
from tests.knowledge_graph.pages_of_texts import WORKED_EXAMPLE, page_text
from tests.repos.conftest import Portal, Upstream

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_data_folder(settings: Any, tmp_path: Path) -> None:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=str(tmp_path / "var"),
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
    )


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "acme" / "site")


@pytest.fixture
def portal(ada: Any) -> Portal:
    return Portal(ada)


def edges(repository: Repository) -> set[str]:
    return set(Edge.objects.filter(source__repository=repository).values_list("edge_uid", flat=True))


def same_when_rebuilt(repository: Repository) -> bool:
    return rebuild("repository", repository.pk, dry_run=True).total == 0


def test_graph_fact_03_worked_example_in_a_repository(portal: Portal, upstream: Upstream) -> None:
    upstream.commit(WORKED_EXAMPLE)
    repository, _ = portal.synced(upstream)
    drain()
    assert edges(repository) == {
        "dec-cache-v2>supersedes>dec-cache-v1",
        "dec-cache-v2>decision_for>mod-session-store",
        "mod-session-store>depends_on>mod-redis-pool",
    }
    assert same_when_rebuilt(repository)
    # All that one commit brings is one revision.
    assert GraphRevision.objects.count() == 1


def test_graph_fact_83_moves(portal: Portal, upstream: Upstream) -> None:
    upstream.commit(WORKED_EXAMPLE)
    repository, _ = portal.synced(upstream)
    drain()

    def ids() -> list[dict[str, int]]:
        return [dict(model.objects.values_list(name, "pk")) for model, name in ((Node, "node_uid"), (Edge, "edge_uid"))]

    before = ids()
    upstream.git("mv", "decisions", "records")
    upstream.commit()
    portal.sync(repository)
    drain()
    assert before == ids()
    assert set(CanonicalPage.objects.filter(header_state="current").values_list("path", flat=True)) == {
        "records/dec-cache-v1.md",
        "records/dec-cache-v2.md",
        "modules/mod-session-store.md",
        "modules/mod-redis-pool.md",
    }
    assert same_when_rebuilt(repository)


def test_graph_fact_36_history_of_a_path(portal: Portal, upstream: Upstream) -> None:
    upstream.commit({"p.md": page_text("p", "[[b]]", supersedes="[o]", title="Title")})
    repository, _ = portal.synced(upstream)
    drain()
    for number in range(2):
        upstream.commit({"p.md": f"---\nslug: p\ntype: module\nstatus: a: b\n---\n[[c]] {number}\n"})
        portal.sync(repository)
        drain()
        assert edges(repository) == {"p>supersedes>o", "p>related_to>c"}
        assert CanonicalPage.objects.get(uid="p").header_state == "stale_header"
        assert same_when_rebuilt(repository)
    GraphSource.objects.all()._raw_delete("default")
    rebuild("repository", repository.pk)
    assert edges(repository) == {"p>supersedes>o", "p>related_to>c"}
    assert CanonicalPage.objects.get(uid="p").label == "Title"


def test_graph_fact_37_two_files_pass_a_slug_on_in_one_sync(portal: Portal, upstream: Upstream) -> None:
    upstream.commit({"a.md": page_text("s", "[[one]]"), "l.md": page_text("l", "[[s]]")})
    repository, _ = portal.synced(upstream)
    drain()
    node = Node.objects.get(node_uid="s").pk
    upstream.commit({"a.md": "# Plain\n", "b.md": page_text("s", "[[two]]")})
    portal.sync(repository)
    drain()
    assert edges(repository) == {"l>depends_on>s", "s>related_to>two"}
    assert Node.objects.get(node_uid="s").pk == node
    assert same_when_rebuilt(repository)


def test_graph_a_page_removed_upstream(portal: Portal, upstream: Upstream) -> None:
    files = {**WORKED_EXAMPLE, **{f"n{number}.md": page_text(f"n{number}") for number in range(8)}}
    upstream.commit(files)
    repository, _ = portal.synced(upstream)
    drain()
    upstream.commit({"modules/mod-session-store.md": None})
    portal.sync(repository)
    assert edges(repository) == {
        "dec-cache-v2>supersedes>dec-cache-v1",
        "dec-cache-v2>related_to>mod-session-store",
    }
    assert Node.objects.get(node_uid="mod-session-store").dangling
    assert same_when_rebuilt(repository)


def test_graph_fact_89_history_rewritten(portal: Portal, upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit(WORKED_EXAMPLE)
    repository, _ = portal.synced(upstream)
    drain()
    upstream.git("checkout", "-q", "--orphan", "other")
    upstream.commit({"modules/mod-redis-pool.md": page_text("mod-redis-pool", "[[mod-session-store]]")})
    upstream.git("branch", "-M", "main")
    portal.sync(repository)
    drain()
    fresh = Upstream(tmp_path / "acme" / "clone")
    fresh.git("fetch", "-q", str(upstream.path), "main")
    fresh.git("reset", "-q", "--hard", "FETCH_HEAD")
    clone, _ = portal.synced(fresh)
    drain()
    assert edges(repository) == edges(clone)
    rows = [
        sorted(Evidence.objects.filter(source__repository=each).values_list("raw", "line", "edge_uid"))
        for each in (repository, clone)
    ]
    assert rows[0] == rows[1]


def test_graph_commands_leave_a_path_out_of_sync(portal: Portal, upstream: Upstream) -> None:
    upstream.commit(WORKED_EXAMPLE)
    repository, _ = portal.synced(upstream)
    drain()
    path = "modules/mod-session-store.md"
    assert delete_page(source=repository, path=path, by=portal.admin, force=True)
    assert not RepositoryDocument.objects.filter(path=path).exists()
    assert Node.objects.get(node_uid="mod-session-store").dangling
    repository.refresh_from_db()
    portal.sync(repository, force=True)
    drain()
    assert Node.objects.get(node_uid="mod-session-store").dangling
    assert restore_page(source=repository, path=path, by=portal.admin)
    drain()
    assert not Node.objects.get(node_uid="mod-session-store").dangling
    assert len(edges(repository)) == 3
    assert same_when_rebuilt(repository)


def test_graph_goes_with_its_source(portal: Portal, upstream: Upstream) -> None:
    from apps.repos.registration import delete_repository

    upstream.commit(WORKED_EXAMPLE)
    repository, _ = portal.synced(upstream)
    drain()
    delete_repository(repository=repository, by=portal.admin)
    drain()
    assert not GraphSource.objects.exists()
    assert not Node.objects.exists()
    assert not Repository.objects.exists()
