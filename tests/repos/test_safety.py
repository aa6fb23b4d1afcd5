"""What git may be told to do, what it may reach, and where a secret may stand."""

from __future__ import annotations

import dataclasses
import logging
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.access.addresses import check_host
from apps.access.errors import Conflict, Forbidden, Invalid
from apps.access.models import AuditRecord, User
from apps.jobs.worker import run_job
from apps.repos import addresses, remotes
from apps.repos.git.environment import Access, command, environment
from apps.repos.git.errors import GitFailure, cause_of
from apps.repos.git.mirror import locked, mirror_of
from apps.repos.models import Repository
from apps.repos.registration import (
    NewCredential,
    change_repository,
    register_repository,
    request_chunk_anew,
    set_credential,
)
from tests.repos.git_server import serving

pytestmark = pytest.mark.django_db

TOKEN = "tok3n-Zx9Yw8Vu7Ts6"


def allow(settings: Any, **changes: Any) -> None:
    git = {name: value for name, value in changes.items() if name in ("ssh", "file_roots", "known_hosts")}
    rest = {name: value for name, value in changes.items() if name not in git}
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH, git=dataclasses.replace(settings.COGRAPH.git, **git), **rest
    )


def everything_stored() -> str:
    """Every value of every table as text."""
    found: list[str] = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            found.extend(
                bytes(value).decode("latin-1") if isinstance(value, bytes | memoryview) else str(value)
                for row in cursor.fetchall()
                for value in row
            )
    return "\n".join(found)


@pytest.mark.parametrize(
    "url",
    [
        "--upload-pack=x",
        "file:///etc",
        "/etc",
        "ext::sh -c id",
        "git@host:a/b",
        "ssh://git@host/a/b",
        "git://host/a",
        "ftp://host/a",
        "https://user:pass@host.example/a",
        "https://tok3n@host.example/a",
        "https://host.example/a b",
        "https://host.example/a\n",
        "https://host.example/",
        "https://host.example/../a",
        "https://host.example/a?x=1",
        "http://host.example/a/b",
        "",
    ],
)
def test_access_fact_34_refused_addresses(admin: User, url: str) -> None:
    with pytest.raises(Invalid) as refusal:
        register_repository(by=admin, git_url=url)
    assert refusal.value.field == "git_url"
    assert refusal.value.status == 422
    assert not Repository.objects.exists()
    assert "tok3n" not in refusal.value.message


@pytest.mark.parametrize(
    "branch", ["-x", "a..b", "a b", "a~1", "a:b", "refs/../x", "a.lock", "@{u}", "x\x00y", "/a", "a/"]
)
def test_access_fact_34_refused_branches(upstream: Any, admin: User, branch: str) -> None:
    with pytest.raises(Invalid) as refusal:
        register_repository(by=admin, git_url=str(upstream.path), trusted_path=True, branch=branch)
    assert refusal.value.field == "branch"


def test_repos_rule_1_2_ssh_off_names_the_https_form(admin: User) -> None:
    with pytest.raises(Invalid, match=r"https://host\.example/a/b"):
        register_repository(by=admin, git_url="git@host.example:a/b")


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/x.git",
        "https://[::ffff:10.0.0.1]/x.git",
        "https://10.0.0.1/x.git",
        "https://169.254.169.254/x.git",
        "https://[::1]/x.git",
        "https://localhost/x.git",
        "https://0.0.0.0/x.git",
    ],
)
def test_access_fact_33_private_hosts(admin: User, url: str) -> None:
    with pytest.raises(Invalid) as refusal:
        register_repository(by=admin, git_url=url)
    assert refusal.value.field == "git_url"


def test_access_fact_33_a_name_that_changes_is_pinned(settings: Any, tmp_path: Path, admin: User) -> None:
    answers = iter([["93.184.216.34"], ["10.0.0.1"]])
    assert check_host("rebind.example", 443, resolver=lambda host, port: next(answers)) == ("93.184.216.34",)
    with pytest.raises(Invalid):
        check_host("rebind.example", 443, resolver=lambda host, port: next(answers))
    line = command(["fetch"], directory=tmp_path, access=Access("https", resolve="rebind.example:443:93.184.216.34"))
    assert "http.curloptResolve=rebind.example:443:93.184.216.34" in line


def test_repos_rule_1_2_local_paths_need_a_root(settings: Any, upstream: Any, tmp_path: Path, admin: User) -> None:
    with pytest.raises(Invalid):
        register_repository(by=admin, git_url=str(upstream.path))
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots" / "link").symlink_to(upstream.path)
    allow(settings, file_roots=(str(tmp_path / "roots"),))
    with pytest.raises(Invalid):
        register_repository(by=admin, git_url=str(tmp_path / "roots" / "link"))
    allow(settings, file_roots=(str(upstream.path.parent),))
    assert register_repository(by=admin, git_url=str(upstream.path)).repository.slug == "local/acme/site"


def test_repos_rule_1_2_a_root_that_is_taken_away_is_noticed(
    settings: Any, upstream: Any, portal: Any, admin: User
) -> None:
    upstream.commit({"a.md": "# A"})
    allow(settings, file_roots=(str(upstream.path.parent),))
    repository = register_repository(by=admin, git_url=str(upstream.path), sync=False).repository
    assert portal.sync(repository).status == "success"
    allow(settings, file_roots=())
    job = portal.sync(repository)
    assert (job.status, job.error_code) == ("error", "address_refused")


def test_repos_rule_1_3_environment(tmp_path: Path) -> None:
    values = environment(str(tmp_path), Access("https"))
    assert values["GIT_ALLOW_PROTOCOL"] == "https"
    assert values["GIT_TERMINAL_PROMPT"] == "0"
    assert values["GIT_CONFIG_NOSYSTEM"] == "1"
    assert values["HOME"] == str(tmp_path)
    assert "DATABASE_URL" not in values
    line = command(["fetch"], directory=tmp_path, access=Access("https"))
    assert "http.followRedirects=false" in line
    assert "core.hooksPath=/dev/null" in line


def test_repos_rule_1_1_slugs() -> None:
    assert addresses.slug_of(addresses.parse("https://GitLab.com/a/b/c.git")) == "gitlab.com/a~b/c"
    assert addresses.slug_of(addresses.parse("https://github.com/Acme/API"), "api-v2") == "github.com/Acme/api-v2"
    assert addresses.slug_of(addresses.parse("ssh://git@Host.example:22/a/b")) == "host.example/a/b"


def test_repos_rule_1_1_slug_is_unique_without_case(upstream: Any, portal: Any) -> None:
    portal.add(upstream)
    with pytest.raises(Conflict) as refusal:
        portal.add(upstream)
    assert "/repos/local/acme/site" in refusal.value.message
    with pytest.raises(Conflict):
        portal.add(upstream, name="SITE")
    assert portal.add(upstream, name="site-next", branch="next").slug == "local/acme/site-next"


def test_repos_only_administrators_register(upstream: Any, db: None) -> None:
    otto = User.objects.create_user("otto")
    with pytest.raises(Forbidden):
        register_repository(by=otto, git_url=str(upstream.path), trusted_path=True)


def test_repos_fact_33_access_fact_32_case_B086_token_is_nowhere(
    settings: Any, tmp_path: Path, portal: Any, upstream: Any, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    upstream.commit({"a.md": "# A\n\ntext"})
    with serving(tmp_path / "acme", TOKEN) as server:
        allow(settings, allowed_private_hosts=("localhost",))
        url = f"http://localhost:{server.port}/site/.git"
        repository = register_repository(
            by=portal.admin, git_url=url, credential=NewCredential(TOKEN, user="ann"), sync=False
        ).repository
        job = portal.sync(repository)
        assert (job.status, job.error_message) == ("success", "")
        assert repository.documents.count() == 1
        assert server.seen, "git processes were looked at"
        assert TOKEN not in "\n".join(server.seen), "neither argument nor environment"
        server.token = "another"
        job = portal.sync(repository)
        assert (job.status, job.error_code) == ("error", "credential_refused")
        assert "credential" in job.error_message
    job = portal.sync(repository)
    assert job.status == "queued", "an unreachable host is tried again"
    assert job.waiting_reason
    stored = everything_stored()
    logged = "\n".join(record.getMessage() for record in caplog.records)
    on_disk = "".join(path.read_bytes().decode("latin-1") for path in (tmp_path / "var").rglob("*") if path.is_file())
    for place in (stored, logged, on_disk):
        assert TOKEN not in place
    assert not list(Path("/tmp").glob("cograph-secret-*")), "one-use files are gone"
    assert AuditRecord.objects.filter(act="source_created").exists()
    set_credential(repository=repository, credential=None, by=portal.admin)
    repository.refresh_from_db()
    assert repository.credential is None


def test_a_credential_stays_with_the_server_that_it_was_given_for(settings: Any, portal: Any) -> None:
    allow(settings, allowed_private_hosts=("localhost",))
    repository = register_repository(
        by=portal.admin, git_url="http://localhost:9/a/b", credential=NewCredential(TOKEN), sync=False
    ).repository
    for address, kept in (
        ("http://localhost:9/a/other", True),
        ("http://localhost:10/a/other", False),
    ):
        changed = change_repository(repository=repository, by=portal.admin, git_url=address)
        assert (changed.credential is not None, bool(changed.credential_kind)) == (kept, kept), address
    assert AuditRecord.objects.filter(act="credential_changed").count() == 1
    anew = set_credential(repository=repository, credential=NewCredential(TOKEN), by=portal.admin)
    assert anew.credential is not None


def test_repos_rule_1_2_redirects_are_not_followed(settings: Any, tmp_path: Path, portal: Any, upstream: Any) -> None:
    upstream.commit({"a.md": "# A\n\ntext"})
    allow(settings, allowed_private_hosts=("localhost",))
    with serving(tmp_path / "acme") as server, serving(tmp_path / "acme") as other:
        server.redirect_to = f"http://127.0.0.1:{other.port}"
        repository = register_repository(
            by=portal.admin, git_url=f"http://localhost:{server.port}/site/.git", sync=False
        ).repository
        job = portal.sync(repository)
        assert job.status != "success"
        assert other.requests == []


def test_access_fact_58_lost_key_says_enter_again(settings: Any, portal: Any, upstream: Any, tmp_path: Path) -> None:
    allow(settings, allowed_private_hosts=("localhost",))
    repository = register_repository(
        by=portal.admin, git_url="http://localhost:9/a/b", credential=NewCredential(TOKEN), sync=False
    ).repository
    (tmp_path / "var" / "secrets.key").unlink()
    job = portal.sync(repository)
    assert job.error_code == "credential_unreadable"
    assert "again" in job.error_message


def test_repos_case_B088_three_failed_runs_make_it_stale(portal: Any, upstream: Any) -> None:
    upstream.commit({"a.md": "# A\n\ntext"})
    repository, _ = portal.synced(upstream)
    good = repository.last_checked_at
    upstream.path.rename(upstream.path.with_name("away"))
    for run in range(3):
        state = Repository.objects.with_state().get(pk=repository.pk)
        assert (state.failed_runs, state.is_stale) == (run, False)
        portal.sync(repository)
    state = Repository.objects.with_state().get(pk=repository.pk)
    assert (state.is_stale, state.last_checked_at) == (True, good)
    assert list(Repository.objects.in_state("stale")) == [repository]
    assert list(Repository.objects.in_state("error")) == [repository]
    assert repository.documents.count() == 1, "content stays"


def test_repos_change_needs_the_right(upstream: Any, portal: Any) -> None:
    repository = portal.add(upstream)
    changed = change_repository(repository=repository, by=portal.admin, description="Guides", schedule="hourly")
    assert (changed.description, changed.schedule) == ("Guides", "hourly")
    record = AuditRecord.objects.get(act="source_changed")
    assert record.after == {"description": "Guides", "schedule": "hourly"}
    with pytest.raises(Invalid) as refusal:
        change_repository(repository=repository, by=portal.admin, max_words=10)
    assert refusal.value.field == "max_words"
    with pytest.raises(Invalid) as refusal:
        change_repository(repository=repository, by=portal.admin, overlap_words=300)
    assert refusal.value.field == "overlap_words"
    with pytest.raises(Invalid) as refusal:
        change_repository(repository=repository, by=portal.admin, slug="x/y/z")
    assert refusal.value.code == "unknown_field"


@pytest.mark.parametrize(
    ("text", "code", "lasting"),
    [
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", "credential_refused", True),
        ("fatal: Authentication failed for 'https://h/'", "credential_refused", True),
        ("remote: Repository not found.\nfatal: repository 'https://h/' not found", "not_found_upstream", True),
        ("fatal: '/x' does not appear to be a git repository", "not_found_upstream", True),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", "unreachable", False),
        ("error: RPC failed; curl 56\nfatal: early EOF", "unreachable", False),
        ("fatal: loose object 12 (stored in x) is corrupt", "mirror_damaged", False),
    ],
)
def test_repos_causes(text: str, code: str, lasting: bool) -> None:
    cause = cause_of(text)
    assert (cause.code, cause.lasting) == (code, lasting)


def test_repos_rule_1_5_damaged_mirror_is_fetched_anew(portal: Any, upstream: Any) -> None:
    upstream.commit({"a.md": "# A\n\ntext"})
    repository, _ = portal.synced(upstream)
    upstream.commit({"b.md": "# B\n\ntext"})
    mirror = remotes.mirror(repository)
    for path in (mirror.directory / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"damage")
    job = portal.sync(repository)
    assert job.status == "success", job.error_message
    assert repository.documents.count() == 2


@pytest.mark.parametrize("damage", [b"", b"no object", None])
def test_repos_rule_1_5_a_mirror_that_lost_one_file_is_fetched_anew(portal: Any, upstream: Any, damage: Any) -> None:
    upstream.commit({"a.md": "# A\n\nfirst", "b.md": "# B\n\nsecond"})
    blob = upstream.git("rev-parse", "HEAD:a.md")
    repository, _ = portal.synced(upstream)
    folder = remotes.mirror(repository).directory / "objects"
    for pack in (folder / "pack").glob("*.pack"):
        packed = pack.read_bytes()
        for path in (folder / "pack").iterdir():
            path.unlink()
        subprocess.run(["git", f"--git-dir={folder.parent}", "unpack-objects", "-q"], input=packed, check=True)
    lost = folder / blob[:2] / blob[2:]
    lost.unlink()
    if damage is not None:
        lost.write_bytes(damage)
    job = run_job(request_chunk_anew(repository=repository, by=portal.admin).job.pk)
    assert job is not None
    assert (job.status, job.counters["indexed_documents"]) == ("success", 2), job.error_message


def test_repos_rule_1_5_lock_is_held_by_one(tmp_path: Path) -> None:
    from apps.repos.git.mirror import MirrorBusy

    mirror = mirror_of(tmp_path, "https://h/x", None)
    with locked(mirror, seconds=1), pytest.raises(MirrorBusy), locked(mirror, seconds=0.1):
        pass
    with locked(mirror, seconds=0.1):
        pass


def test_repos_failed_listing_deletes_nothing(portal: Any, upstream: Any) -> None:
    upstream.commit({"a.md": "# A\n\ntext"})
    repository, _ = portal.synced(upstream)
    from apps.repos.git.listing import list_tree

    with pytest.raises(GitFailure):
        list_tree(remotes.mirror(repository).directory, "0" * 40)


def test_repos_rule_1_5_a_mirror_without_the_commit_is_brought_up_to_date(portal: Any, upstream: Any) -> None:
    upstream.commit({"a.md": "# A\n\ntext"})
    repository, _ = portal.synced(upstream)
    mirror = remotes.mirror(repository)
    kept = mirror.directory.with_name("kept")
    shutil.copytree(mirror.directory, kept)
    upstream.commit({"b.md": "# B\n\ntext"})
    portal.sync(repository)
    shutil.rmtree(mirror.directory)
    kept.rename(mirror.directory)  # as on a machine that took no part in the last sync
    job = portal.sync(repository, force=True)
    assert (job.status, job.counters["unchanged_documents"]) == ("success", 2)
    assert mirror.has_commit(repository.synced_commit)
