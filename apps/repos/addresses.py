"""Git addresses: which are accepted, and the slug that an address gives (``repository-documents.md`` 1.1, 1.2).

Parsing only. Whether a host may be reached is asked of ``apps.access.addresses`` at registration and before each fetch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

SCP_FORM = re.compile(r"(?:(?P<user>[A-Za-z0-9._-]+)@)?(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):(?P<path>[^/].*|/.*)")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
DEFAULT_PORTS = {"https": 443, "http": 80, "ssh": 22}
SLUG_PART = re.compile(r"[A-Za-z0-9._~-]+")


class BadAddress(ValueError):
    """An address that is refused; the text is one sentence for the person who typed it."""


@dataclass(frozen=True, slots=True)
class GitAddress:
    """An accepted address. ``scheme`` is https, http, ssh or file; ``path`` without leading slash except for file."""

    url: str
    scheme: str
    host: str
    port: int | None
    user: str
    path: str

    @property
    def is_local(self) -> bool:
        return self.scheme == "file"

    @property
    def https_form(self) -> str:
        return f"https://{self.host}/{self.path}"


def parse(text: str) -> GitAddress:
    """The address that ``text`` means. Raises BadAddress for every form that Cograph refuses whatever its settings."""
    if not text or not text.strip():
        raise BadAddress("Enter the address of a git repository.")
    # SECURITY: a leading dash would be read by git as an option (--upload-pack=…).
    if text.startswith("-"):
        raise BadAddress("The address must not begin with a dash.")
    if any(character.isspace() or ord(character) < 32 or ord(character) == 127 for character in text):
        raise BadAddress("The address must not hold blanks or control characters.")
    if HELPER.match(text):
        # SECURITY: `ext::` and other remote helpers run commands.
        raise BadAddress("Remote helpers are not accepted; use an https:// address.")
    scheme = SCHEME.match(text)
    if scheme is None:
        if text.startswith(("/", "./", "../", "~")):
            return GitAddress(url=text, scheme="file", host="", port=None, user="", path=text)
        scp = SCP_FORM.fullmatch(text)
        if scp is None:
            raise BadAddress("This is not an address that git can read; use the form https://host/owner/name.")
        return _remote(
            url=text, scheme="ssh", host=scp["host"].strip("[]"), port=None, user=scp["user"] or "", path=scp["path"]
        )
    name = scheme.group(1).lower()
    if name == "file":
        path = unquote(text[len("file://") :])
        if not path.startswith("/"):
            raise BadAddress("A file:// address needs an absolute path.")
        return GitAddress(url=text, scheme="file", host="", port=None, user="", path=path)
    if name not in {"https", "http", "ssh"}:
        raise BadAddress(f"Addresses that begin with {name}:// are not accepted; use https://.")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise BadAddress("The host or port of the address is not valid.") from None
    if not parts.hostname:
        raise BadAddress("The address names no host.")
    if parts.query or parts.fragment:
        raise BadAddress("The address must not hold a query or fragment.")
    if parts.password is not None or (parts.username is not None and name != "ssh"):
        raise BadAddress("The address must not hold a user name or password; use a credential.")
    return _remote(url=text, scheme=name, host=parts.hostname, port=port, user=parts.username or "", path=parts.path)


def _remote(*, url: str, scheme: str, host: str, port: int | None, user: str, path: str) -> GitAddress:
    # SECURITY: ssh reads a host or user that begins with a dash as an option.
    if host.startswith("-") or user.startswith("-"):
        raise BadAddress("Host and user must not begin with a dash.")
    clean = path.strip("/")
    if not clean:
        raise BadAddress("The address names no repository on its host.")
    if any(part in {".", ".."} for part in unquote(clean).split("/")):
        raise BadAddress("The path of the address must not climb.")
    return GitAddress(url=url, scheme=scheme, host=host.lower(), port=port, user=user, path=clean)


def slug_of(address: GitAddress, name: str = "") -> str:
    """``host/owner/name`` of an address; ``name`` replaces the last part (a second branch of one address).

    Local paths give ``local/<parent folder>/<folder>``. Raises BadAddress when a part cannot stand in a slug.
    """
    parts = [part for part in unquote(address.path).removesuffix("/").removesuffix(".git").split("/") if part]
    if address.is_local:
        if not parts:
            raise BadAddress("The path names no folder.")
        tail = [_safe(part) for part in parts[-2:]]
        owner, last = (tail[0], tail[1]) if len(tail) == 2 else ("files", tail[0])
        host = "local"
    else:
        host = (
            address.host if address.port in (None, DEFAULT_PORTS[address.scheme]) else f"{address.host}-{address.port}"
        )
        host = host.replace(":", "-")
        last = parts[-1]
        owner = "~".join(parts[:-1]) or "-"
    slug = f"{host}/{owner}/{name or last}"
    check_slug(slug)
    return slug


def _safe(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9._~-]+", "-", part).strip("-.") or "folder"


def check_slug(slug: str) -> None:
    """Raises BadAddress unless ``slug`` is ``host/owner/name`` of allowed characters and none is ``.`` or ``..``."""
    parts = slug.split("/")
    if len(parts) != 3 or any(not SLUG_PART.fullmatch(part) or part in {".", ".."} for part in parts):
        raise BadAddress("Host, owner and name may hold letters, digits and . _ ~ - only.")
    if len(slug) > 255:
        raise BadAddress("The address is too long.")


def check_branch(branch: str) -> None:
    """Raises BadAddress unless ``branch`` is a name that git allows (``git check-ref-format --branch``)."""
    if branch.startswith("-"):
        # SECURITY: read by git as an option.
        raise BadAddress("A branch must not begin with a dash.")
    bad = re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)|\A[/.]|[/.]\Z", branch)
    if bad or branch == "@" or len(branch) > 244:
        raise BadAddress("This is not the name of a branch.")
