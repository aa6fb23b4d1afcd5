"""A private world with one of everything, so that every endpoint has something to answer with."""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from apps.access.grants import grant
from apps.access.models import ApiToken, User
from apps.access.rest import docs
from apps.access.tokens import create_token
from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document, DocumentChunk
from apps.collections.uploads import upload_document
from apps.jobs.models import Job
from apps.jobs.worker import drain
from apps.markup.shared_pool import close_shared_pool
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.models_code import CodeNode
from tests.repos.conftest import Portal, Upstream


@pytest.fixture(scope="session", autouse=True)
def _end_readers() -> Iterator[None]:
    yield
    close_shared_pool()


@dataclass(frozen=True, slots=True)
class World:
    """Everything is Olga's and private; Wim may write, Otto has nothing, Ada administrates."""

    ada: User
    olga: User
    wim: User
    otto: User
    repository: Repository
    collection: Collection
    token: ApiToken

    def names(self, path: str) -> dict[str, str]:
        """A value for each hole of a path of the schema, all of them there."""
        host, owner, name = self.repository.slug.split("/")
        in_collection = "md-collections" in path
        document: Any = (
            Document.objects.filter(collection=self.collection)
            if in_collection
            else RepositoryDocument.objects.filter(repository=self.repository)
        ).first()
        kind = Collection.kind if in_collection else Repository.kind
        source = self.collection if in_collection else self.repository
        return {
            "host": host,
            "owner": owner,
            "name": name,
            "collection_id": str(self.collection.pk),
            "document_id": str(document.pk),
            "doc_slug": "readme",
            "slug": self.repository.slug,
            "uid": "mod-site",
            "chunk_id": str(DocumentChunk.objects.earliest("chunk_index").pk),
            "job_id": str(Job.objects.of_source(kind, source.pk).earliest("created_at").pk),
            "token_id": str(self.token.pk),
            "node_id": str(CodeNode.objects.get(repository=self.repository, name="serve").pk),
            "kind": "user",
            "grantee": "wim",
        }

    def absent(self) -> dict[str, str]:
        """The same holes with what is nowhere."""
        one = str(uuid.UUID(int=7, version=4))
        return {
            "host": "example.org",
            "owner": "no",
            "name": "thing",
            "collection_id": one,
            "document_id": one,
            "doc_slug": "nothing",
            "slug": "example.org/no/thing",
            "uid": "mod-nowhere",
            "chunk_id": "7",
            "job_id": one,
            "token_id": one,
            "node_id": one,
            "kind": "user",
            "grantee": "nobody",
        }


CANONICAL = "---\ntype: module\nslug: mod-site\n---\n# The site\n\nServes pages.\n"


@pytest.fixture
def _own_data_folder(settings: Any, tmp_path: Path) -> None:
    settings.COGRAPH = dataclasses.replace(settings.COGRAPH, data_dir=str(tmp_path / "var"))


@pytest.fixture
def world(db: None, _own_data_folder: None, tmp_path: Path) -> World:
    return make_world(tmp_path)


def make_world(folder: Path) -> World:
    ada = User.objects.create_superuser("ada", password="x")
    olga, wim, otto = (User.objects.create_user(name, password="x") for name in ("olga", "wim", "otto"))
    Group.objects.create(name="readers")
    upstream = Upstream(folder / "acme" / "site")
    upstream.commit(
        {
            "README.md": "# Site\n\nHow to [set up](docs/setup.md) the site.\n",
            "docs/setup.md": "# Set up\n\n## First\n\nInstall the server.\n\n## Second\n\nRun it with `--dry-run`.\n",
            "docs/site.md": CANONICAL,
            "src/site.py": "def serve(port):\n    return port\n",
            "pyproject.toml": "[project]\nname = 'site'\n",
        }
    )
    repository, _ = Portal(ada).synced(upstream, owner=olga, visibility="private")
    collection = create_collection(by=olga, name="Handbook")
    for key, text in (
        ("backup.md", "# Backup\n\nThe database is backed up every night.\n\n# Restore\n\nRestore with care.\n"),
        ("site.md", CANONICAL),
        ("adr/0042.md", "---\ntitle: ADR-0042\ntags: [db]\n---\n# ADR-0042\n\nWe use PostgreSQL.\n"),
    ):
        upload_document(collection=collection, by=olga, source_key=key, raw=text.encode())
    for source in (repository, collection):
        grant(source=source, to=wim, level="write", by=ada)
    drain()
    token, _ = create_token(user=olga, name="mine", scopes=["read"])
    return World(ada, olga, wim, otto, repository, collection, token)


@pytest.fixture
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(docs.document())
    return found


@pytest.fixture
def signed_in() -> Callable[[User], Client]:
    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(method, path, operation) of every verb in the schema."""
    for path, verbs in schema["paths"].items():
        for method, operation in verbs.items():
            if method != "parameters":
                yield method, path, operation
