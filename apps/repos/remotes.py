"""Where a repository is fetched from: its address, checked again each time, and what opens it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

from django.conf import settings

from apps.access.addresses import check_address, check_host
from apps.access.errors import Invalid
from apps.access.secrets import decrypt
from apps.repos import addresses
from apps.repos.addresses import BadAddress, GitAddress
from apps.repos.git.credentials import Credential, handed_over
from apps.repos.git.environment import Access
from apps.repos.git.mirror import Mirror, mirror_of
from apps.repos.models import Repository

FIELD = "git_url"


@dataclass(frozen=True, slots=True)
class Remote:
    """An address ready to be fetched from, for one block of calls."""

    url: str
    access: Access


def accepted(text: str, *, trusted_path: bool = False) -> GitAddress:
    """The address that ``text`` means, if this deployment accepts it. No name is resolved.

    Local paths come out absolute, with links resolved. Raises Invalid naming the field.
    """
    try:
        address = addresses.parse(text)
    except BadAddress as error:
        raise Invalid(str(error), field=FIELD) from None
    if address.is_local:
        return _local(address, trusted_path=trusted_path)
    if address.scheme == "ssh" and not settings.COGRAPH.git.ssh:
        raise Invalid(
            f"ssh addresses are not accepted here; use {address.https_form}, with a credential if it needs one.",
            field=FIELD,
        )
    return address


def _local(address: GitAddress, *, trusted_path: bool) -> GitAddress:
    path = Path(address.path).expanduser().resolve()
    if not trusted_path:
        # SECURITY: links are resolved first; a link below a root may lead anywhere.
        roots = [Path(root).expanduser().resolve() for root in settings.COGRAPH.git.file_roots]
        if not any(path == root or root in path.parents for root in roots):
            raise Invalid(
                "Local paths are accepted on the command line, or below a folder that COGRAPH_GIT__FILE_ROOTS names.",
                field=FIELD,
            )
    return GitAddress(url=str(path), scheme="file", host="", port=None, user="", path=str(path))


def check_reachable(address: GitAddress) -> tuple[str, ...]:
    """The addresses of the host that may be connected to; empty for local paths. Raises Invalid naming the field.

    SECURITY: called before each fetch, and git is then pinned to the answer: a name that resolves to a public address
    now and to a private one a moment later reaches nothing.
    """
    if address.is_local:
        return ()
    if address.scheme == "ssh":
        return check_host(address.host, address.port or addresses.DEFAULT_PORTS["ssh"], field=FIELD)
    return check_address(address.url, schemes=("https", "http"), field=FIELD).ips


def credential_of(repository: Repository) -> Credential | None:
    """The credential in clear. Raises SecretUnreadable when its key is lost."""
    if not repository.credential_kind or repository.credential is None:
        return None
    kind = "ssh_key" if repository.credential_kind == "ssh_key" else "token"
    return Credential(
        kind=cast("object", kind),  # type: ignore[arg-type]
        user=repository.credential_user,
        secret=decrypt(repository.credential),
    )


@contextlib.contextmanager
def opened(repository: Repository) -> Iterator[Remote]:
    """The remote of a repository with everything that git needs for it; secrets live as long as the block.

    Raises Invalid when the address is no longer accepted, SecretUnreadable when the credential cannot be read.
    """
    address = accepted(repository.git_url, trusted_path=repository.trusted_path)
    ips = check_reachable(address)
    credential = credential_of(repository)
    if address.is_local:
        yield Remote(f"file://{quote(address.path)}", Access(scheme="file"))
        return
    access = Access(scheme=address.scheme)
    if address.scheme in {"https", "http"} and not _is_literal(address.host):
        port = address.port or addresses.DEFAULT_PORTS[address.scheme]
        access = Access(scheme=address.scheme, resolve=f"{address.host}:{port}:{','.join(map(_bracketed, ips))}")
    with handed_over(
        access, credential, ssh_host=ips[0] if address.scheme == "ssh" else "", known_hosts=known_hosts()
    ) as ready:
        yield Remote(repository.git_url, ready)


def _is_literal(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


def known_hosts() -> Path:
    """The file that host keys are taken from, and from nowhere else."""
    given = settings.COGRAPH.git.known_hosts
    return Path(given) if given else Path(settings.COGRAPH.data_path) / "known_hosts"


def mirror_folder() -> Path:
    return Path(settings.COGRAPH.data_path) / "mirrors"


def mirror(repository: Repository) -> Mirror:
    return mirror_of(mirror_folder(), repository.git_url, repository.depth)
