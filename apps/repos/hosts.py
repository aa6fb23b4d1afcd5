"""Links to a file at one commit on its git host (``repository-documents.md`` 9.3)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from urllib.parse import quote

from apps.repos.addresses import BadAddress, parse

STYLES = ("github", "gitlab", "gitea", "bitbucket")
COMMIT_PAGES = {"gitlab": "-/commit", "bitbucket": "commits"}
KNOWN_HOSTS = {
    "github.com": "github",
    "gitlab.com": "gitlab",
    "bitbucket.org": "bitbucket",
    "codeberg.org": "gitea",
    "gitea.com": "gitea",
}


@dataclass(frozen=True, slots=True)
class Host:
    """How to link into one repository. ``base`` is its web address; ``style`` empty gives no links."""

    base: str
    style: str
    template: str = ""

    def file(self, commit: str, path: str, start: int | None = None, end: int | None = None) -> str | None:
        """The address of a file, or of its lines (from 1, end included), at ``commit``; None without a host page."""
        place = quote(path)
        if self.style == "template":
            return self.template.format_map(
                {"commit": commit, "path": place, "start": start or 1, "end": end or start or 1}
            )
        if not self.base:
            return None
        if self.style == "github":
            return f"{self.base}/blob/{commit}/{place}{_lines(start, end, '#L{0}', '#L{0}-L{1}')}"
        if self.style == "gitlab":
            return f"{self.base}/-/blob/{commit}/{place}{_lines(start, end, '#L{0}', '#L{0}-{1}')}"
        if self.style == "gitea":
            return f"{self.base}/src/commit/{commit}/{place}{_lines(start, end, '#L{0}', '#L{0}-L{1}')}"
        if self.style == "bitbucket":
            return f"{self.base}/src/{commit}/{place}{_lines(start, end, '#lines-{0}', '#lines-{0}:{1}')}"
        return None

    def commit(self, commit: str) -> str | None:
        """The address of a commit, or None."""
        if not self.base or self.style not in STYLES:
            return None
        return f"{self.base}/{COMMIT_PAGES.get(self.style, 'commit')}/{commit}"


def _lines(start: int | None, end: int | None, one: str, several: str) -> str:
    if start is None:
        return ""
    return one.format(start) if end is None or end <= start else several.format(start, end)


@functools.lru_cache(maxsize=256)
def host_of(git_url: str, style: str = "auto", template: str = "") -> Host:
    """How files of the repository at ``git_url`` are linked. ``auto`` goes by the host's name."""
    try:
        address = parse(git_url)
    except BadAddress:
        return Host("", "")
    if style == "template":
        return Host("", "template" if template else "", template)
    if address.is_local or style == "none":
        return Host("", "")
    if style == "auto":
        style = KNOWN_HOSTS.get(address.host) or next(
            (name for name in ("github", "gitlab", "gitea", "bitbucket") if name in address.host.split(".")), ""
        )
        if not style and "forgejo" in address.host:
            style = "gitea"
    port = f":{address.port}" if address.port and address.scheme != "ssh" else ""
    scheme = "http" if address.scheme == "http" else "https"
    return Host(f"{scheme}://{address.host}{port}/{address.path.removesuffix('.git')}", style)


def own_place(git_url: str) -> str:
    """Host and path of the repository on the web; empty without a host page."""
    return _without_scheme(host_of(git_url).base)


def _without_scheme(address: str) -> str:
    return address.removeprefix("http://").removeprefix("https://")


def own_path(git_url: str, href: str) -> str | None:
    """The path inside the repository that an absolute address on its own git host means, with ``#…`` kept; else None.

    ``https://github.com/acme/api/blob/main/docs/a.md#x`` in ``acme/api`` is ``docs/a.md#x``.
    """
    own = own_place(git_url)
    if not own:
        return None
    rest = _without_scheme(href)
    if not rest.lower().startswith(own.lower() + "/"):
        return None
    tail = rest[len(own) + 1 :].removeprefix("-/")
    head, _, after = tail.partition("/")
    if head not in {"blob", "tree", "raw", "src"}:
        return None
    if head == "src" and after.startswith(("branch/", "commit/", "tag/")):
        after = after.partition("/")[2]
    _, _, path = after.partition("/")
    return path or None
