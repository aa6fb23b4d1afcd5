"""A small portal as agents see it: sources, people, and the SDK's own client in front of the server."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.management import call_command
from mcp.client.client import Client as McpClient
from mcp.shared.exceptions import MCPError

from apps.access.grants import grant
from apps.access.models import User
from apps.access.rest import throttles
from apps.collections.curation import create_collection
from apps.collections.models import Collection
from apps.collections.uploads import upload_document
from apps.jobs.worker import drain, run_job
from apps.markup.shared_pool import close_shared_pool
from apps.mcp import calling
from apps.mcp.replies import META_KEY
from apps.mcp.server import server
from apps.repos.models import Repository
from apps.repos.registration import register_repository, request_sync
from tests.repos.conftest import Upstream


@pytest.fixture(scope="session", autouse=True)
def _end_readers() -> Iterator[None]:
    yield
    close_shared_pool()


@dataclass
class Said:
    """A tool's answer as a test reads it."""

    text: str
    is_error: bool
    meta: dict[str, Any]

    @property
    def items(self) -> list[dict[str, Any]]:
        return list(self.meta.get("items", ()))

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def cursor(self) -> str | None:
        found: str | None = self.meta.get("next_cursor")
        return found

    def fences(self) -> list[str]:
        """The texts inside the fences, ends of lines included."""
        return [match[2] for match in re.finditer(r"^(`{3,})[^\n]*\n(.*?)^\1$", self.text, re.DOTALL | re.MULTILINE)]


def read_result(result: types.CallToolResult) -> Said:
    assert len(result.content) == 1
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    assert result.structured_content is None
    meta = (result.meta or {}).get(META_KEY, {})
    return Said(block.text, bool(result.is_error), dict(meta))


class Agent:
    """Speaks with the server in this process, as one user."""

    def __init__(self, user: User) -> None:
        self.user = user

    def session(self, act: Callable[[McpClient], Any]) -> Any:
        problem: list[MCPError] = []

        async def run() -> Any:
            with calling.calling_as(self.user):
                async with McpClient(server(), mode="legacy", cache=None) as client:
                    try:
                        return await act(client)
                    except MCPError as error:  # outside of the client's task groups, which would wrap it
                        problem.append(error)

        found = async_to_sync(run)()
        if problem:
            raise problem[0]
        return found

    def call(self, tool: str, **arguments: Any) -> Said:
        throttles.reset()
        name = tool if tool.startswith("cograph_") else f"cograph_{tool}"
        return read_result(self.session(lambda client: client.call_tool(name, arguments)))

    def tools(self) -> list[types.Tool]:
        return list(self.session(lambda client: client.list_tools()).tools)

    def resources(self) -> list[str]:
        return [str(one.uri) for one in self.session(lambda client: client.list_resources()).resources]

    def read(self, uri: str) -> str:
        found = self.session(lambda client: client.read_resource(uri))
        return str(found.contents[0].text)


@dataclass
class Land:
    """``api`` is public, ``plans`` private (owner Olga, group docs reads); ``glossary`` public, ``vault`` private."""

    people: dict[str, User]
    api: Repository
    plans: Repository
    glossary: Collection
    vault: Collection
    upstreams: dict[str, Upstream]
    agents: dict[str, Agent] = field(default_factory=dict)

    def agent(self, name: str) -> Agent:
        return self.agents.setdefault(name, Agent(self.people[name]))

    def sync(self, repository: Repository) -> None:
        enqueued = request_sync(repository=repository, by=self.people["ada"])
        run_job(enqueued.job.pk)
        drain()
        repository.refresh_from_db()

    def upload(self, collection: Collection, key: str, text: str) -> Any:
        done = upload_document(collection=collection, by=self.people["olga"], source_key=key, raw=text.encode())
        drain()
        return done


API_FILES: dict[str, str | bytes | None] = {
    "README.md": "# Acme API\n\nThe service behind the shop.\n\n## Start\n\nRun `make serve`.\n",
    "docs/jobs.md": (
        "# Jobs\n\nJobs are rows.\n\n## Leases\n\nA worker leases a job for sixty seconds, so that a dead worker "
        "blocks nobody.\n\n## Retries\n\nA failed job is retried three times, see [set up](setup.md#install).\n"
    ),
    "docs/setup.md": "# Set up\n\n## Install\n\nUse `pip install acme`.\n\n## Configure\n\nSet ADR-0042 flags.\n",
    "docs/part/README.md": "# A part\n\nNot the root.\n",
    "config.yaml": "server:\n  port: 8080\n\n  host: localhost\n",
    "src/app.py": "def serve() -> None:\n    '''Serve the shop.'''\n    print('serving')\n",
    "img/logo.bin": b"\x00\x01\x02binary\x00",
}
PLAN_FILES: dict[str, str | bytes | None] = {
    "README.md": "# Secret plans\n\nThe zeppelin leases a harbour.\n",
    "docs/zeppelin.md": "# Zeppelin\n\n## Route\n\nThe zeppelin flies at dawn.\n",
}


QUEUE = "# Queue\n\nWhere jobs wait. See [lease](lease.md).\n\n## Order\n\nFirst in.\n"


def build(folder: Path) -> Land:
    people = {name: User.objects.create_user(name) for name in ("olga", "dana", "otto")}
    people["ada"] = User.objects.create_superuser("ada")
    group = Group.objects.create(name="docs")
    people["dana"].groups.add(group)
    upstreams = {name: Upstream(folder / "acme" / name) for name in ("api", "plans")}
    upstreams["api"].commit(API_FILES)
    upstreams["plans"].commit(PLAN_FILES)
    made = {
        name: register_repository(
            by=people["ada"], git_url=str(one.path), trusted_path=True, sync=False, visibility=visibility
        ).repository
        for (name, one), visibility in zip(upstreams.items(), ("public", "private"), strict=True)
    }
    Repository.objects.filter(pk=made["plans"].pk).update(owner=people["olga"])
    made["plans"].refresh_from_db()
    grant(source=made["plans"], to=group, level="read", by=people["ada"])
    glossary = create_collection(by=people["olga"], name="Glossary", visibility="public")
    vault = create_collection(by=people["olga"], name="Vault")
    land = Land(people, made["api"], made["plans"], glossary, vault, upstreams)
    for repository in made.values():
        land.sync(repository)
    land.upload(glossary, "terms/lease.md", "---\ntags: [jobs]\n---\n# Lease\n\nA lease is time-limited ownership.\n")
    land.upload(
        glossary, "terms/queue.md", "# Queue\n\nWhere jobs wait. See [lease](lease.md).\n\n## Order\n\nFirst in.\n"
    )
    land.upload(vault, "codes.md", "# Codes\n\nThe zeppelin code is 4711.\n")
    return land


@pytest.fixture(scope="module")
def built(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Land]:
    """The land, committed once for the tests of a module; what a test changes is rolled back behind it."""
    folder = tmp_path_factory.mktemp("land")
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr(settings, "COGRAPH", dataclasses.replace(settings.COGRAPH, data_dir=str(folder / "var")))
        try:
            yield build(folder)
        finally:
            call_command("flush", verbosity=0, interactive=False)


@pytest.fixture
def land(built: Land, db: None) -> Land:
    return dataclasses.replace(
        built,
        people={name: User.objects.get(username=name) for name in built.people},
        api=Repository.objects.get(pk=built.api.pk),
        plans=Repository.objects.get(pk=built.plans.pk),
        glossary=Collection.objects.get(pk=built.glossary.pk),
        vault=Collection.objects.get(pk=built.vault.pk),
        agents={},
    )
