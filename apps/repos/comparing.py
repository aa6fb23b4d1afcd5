"""The versions of a document that syncs brought, and two of them side by side (``portal.md`` 25).

What old commits held is not stored: it is read again from the mirror, redacted and cut as the repository cuts today.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from apps.access.errors import NotFound
from apps.indexing.chunk_comparison import CutText
from apps.indexing.comparison import Comparison, Side, compare
from apps.markup.pool import Failure
from apps.markup.shared_pool import run_in_child
from apps.markup.values import Skipped
from apps.repos import remotes
from apps.repos.git.blobs import blob_reader, blobs_at
from apps.repos.git.errors import GitFailure
from apps.repos.models import Repository, RepositoryDocument, SyncReport
from apps.repos.reading import READ_FILE, is_lfs_pointer

MOST_SYNCS = 200
MOST_PATHS = 10
SHORT = 7


@dataclass(frozen=True, slots=True)
class Version:
    """What the first of some syncs that saw one content found at ``commit``. ``synced_at`` is None for what was there
    before the syncs whose reports are kept."""

    commit: str
    synced_at: datetime | None
    path: str
    blob: str

    @property
    def name(self) -> str:
        return self.commit

    @property
    def words(self) -> str:
        return self.commit[:SHORT]


def kept_versions(document: RepositoryDocument) -> list[Version]:
    """The newest first, each with other content than the one before; empty when this machine has no mirror of the
    repository, which ``document`` comes with."""
    mirror = remotes.mirror(document.repository)
    if not mirror.exists():
        return []
    syncs = _syncs(document.repository)
    paths = _paths(document)
    try:
        blobs = iter(blobs_at(mirror.directory, [(commit, path) for commit, _ in syncs for path in paths]))
    except (GitFailure, OSError):
        return []
    found: list[Version] = []
    for commit, synced_at in syncs:
        here = [(path, blob) for path, blob in zip(paths, blobs, strict=False) if blob is not None]
        if not here:
            continue
        path, blob = here[0]
        if found and found[-1].blob == blob:
            found.pop()  # the earlier sync brought it
        found.append(Version(commit, synced_at, path.decode("utf-8", "replace"), blob))
    return found


def _syncs(repository: Repository) -> list[tuple[str, datetime | None]]:
    """Commits that were synced, newest first, each once, with the time at which a sync first came to it."""
    rows = SyncReport.objects.filter(repository=repository).exclude(commit="").order_by("-created_at", "-pk")
    found: dict[str, datetime | None] = {}
    current = before = ""
    for commit, previous, created_at in rows.values_list("commit", "previous_commit", "created_at")[:MOST_SYNCS]:
        if commit == current or commit not in found:
            found[commit] = created_at
        current, before = commit, previous
    if before:
        found.setdefault(before, None)
    return list(found.items())


def _paths(document: RepositoryDocument) -> list[bytes]:
    """Where the document is now, then where it was, the latest first."""
    now = bytes(document.raw_path) if document.raw_path is not None else document.path.encode("utf-8", "surrogatepass")
    earlier = document.old_slugs.order_by("-created_at", "-pk").values_list("path", flat=True)[:MOST_PATHS]
    return list(dict.fromkeys([now, *(path.encode("utf-8", "surrogatepass") for path in earlier)]))


def compare_versions(document: RepositoryDocument, versions: list[Version], *names: str) -> Comparison:
    """The older and the newer of two of its ``versions``, by name. Raises NotFound for one that is not among them."""
    known = {version.name: version for version in versions}
    chosen = [known[name] for name in names if name in known]
    if len(chosen) != 2:
        raise NotFound
    try:
        with blob_reader(remotes.mirror(document.repository).directory) as reader:
            raws = [reader.read(version.blob) for version in chosen]
    except (GitFailure, OSError, EOFError):
        raise NotFound from None
    old, new = (_side(document, version, raw) for version, raw in zip(chosen, raws, strict=True))
    return compare(old, new)


def _side(document: RepositoryDocument, version: Version, raw: bytes | None) -> Side:
    if raw is None or is_lfs_pointer(raw):
        return Side(version.words, unread="The local copy does not hold its content.")
    limits = settings.COGRAPH.markup
    payload = (raw, version.path, document.kind, limits, document.repository.word_window)
    # SECURITY: what is read here is redacted by the same function as at a sync.
    (read,) = run_in_child(READ_FILE, payload, limits=limits)
    if isinstance(read, Skipped | Failure):
        return Side(version.words, unread=read.message)
    return Side(version.words, read.text, CutText(read.title, read.chunks), ids=_stored(document, version))


def _stored(document: RepositoryDocument, version: Version) -> dict[int, int]:
    """Ids of the chunks that search knows, where this is the version that it knows."""
    if version.blob != document.blob or document.chunk_profile != document.repository.chunk_profile:
        return {}
    return dict(document.chunks.values_list("chunk_index", "pk"))
