"""The first stage of a sync: bring the followed branch into the mirror, or say plainly why that failed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from apps.access.addresses import Unresolvable
from apps.access.errors import Invalid
from apps.access.redact import redact
from apps.access.secrets import SecretUnreadable
from apps.jobs.errors import LastingFailure, TransientFailure
from apps.jobs.running import JobRun
from apps.repos import remotes
from apps.repos.git import mirror as mirrors
from apps.repos.git.errors import GitFailure, GitTimeout, cause_of
from apps.repos.git.mirror import BranchMissing, Mirror, MirrorBusy
from apps.repos.git.values import RemoteHead
from apps.repos.models import Repository, State

DETAIL_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Fetched:
    """The followed branch as it stands upstream; ``commit`` is empty for a repository without commits."""

    mirror: Path
    branch: str
    commit: str


def fetch(run: JobRun, repository: Repository, *, unless: str = "", verify: bool = False) -> Fetched:
    """Ask upstream and fetch what is new. When the branch still stands at ``unless`` nothing is fetched.

    A mirror is trusted to hold the commit that was synced last, unless ``verify``: another machine may have synced it.

    Raises LastingFailure or TransientFailure with a text that holds no secret.
    """
    run.progress("fetch")
    mirror = remotes.mirror(repository)
    try:
        return _fetch(run, repository, mirror, unless, verify)
    except Unresolvable as error:
        raise TransientFailure("unreachable", error.message) from None
    except Invalid as error:
        raise LastingFailure("address_refused", error.message) from None
    except SecretUnreadable as error:
        raise LastingFailure("credential_unreadable", error.message) from None
    except BranchMissing:
        wanted = repository.branch or "HEAD"
        raise LastingFailure(
            "branch_not_found",
            f"The branch {wanted} is not there upstream. Choose another one; the content here is kept.",
        ) from None
    except MirrorBusy:
        raise TransientFailure("mirror_busy", "Another sync uses the same local copy.") from None
    except GitTimeout as error:
        raise TransientFailure("timeout", f"Fetching was not done within {error.seconds:g} seconds.") from None


def _fetch(run: JobRun, repository: Repository, mirror: Mirror, unless: str, verify: bool) -> Fetched:
    with remotes.opened(repository) as remote:
        try:
            head = mirrors.remote_head(remote.url, repository.branch, access=remote.access, check=run.check)
            known = not verify and head.commit == repository.synced_commit and mirror.exists()
            if not head.commit or head.commit == unless or known or mirror.has_commit(head.commit):
                return Fetched(mirror.directory, head.branch, head.commit)
            try:
                commit = _into_mirror(run, repository, mirror, remote, head)
            except GitFailure as error:
                if not cause_of(error.text).local:
                    raise
                mirror.remove()
                commit = _into_mirror(run, repository, mirror, remote, head)
            return Fetched(mirror.directory, head.branch, commit)
        except GitFailure as error:
            raise _failure(run, repository, error, remote.access.secrets) from None


def _into_mirror(run: JobRun, repository: Repository, mirror: Mirror, remote: remotes.Remote, head: RemoteHead) -> str:
    seconds = settings.COGRAPH.git.fetch_seconds
    with mirrors.locked(mirror, seconds=seconds, check=run.check) as lock:
        return mirrors.fetch(
            mirror,
            remote.url,
            head,
            access=remote.access,
            depth=repository.depth,
            lock=lock,
            seconds=seconds,
            check=run.check,
        )


def _failure(
    run: JobRun, repository: Repository, error: GitFailure, secrets: tuple[str, ...]
) -> LastingFailure | TransientFailure:
    cause = cause_of(error.text)
    detail = redact(_last_words(error.text), secrets).replace(str(remotes.mirror_folder()), "mirrors")
    message = f"{cause.message} ({detail[:DETAIL_CHARACTERS]})" if detail else cause.message
    if cause.code == "not_found_upstream":
        with run.batch():
            Repository.objects.filter(pk=repository.pk).update(state=State.NOT_FOUND_UPSTREAM)
    if cause.lasting:
        return LastingFailure(cause.code, message)
    return TransientFailure(cause.code, message)


def _last_words(text: str) -> str:
    """The line of git's output that names the cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return (telling or lines or [""])[0]
