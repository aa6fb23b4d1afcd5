"""Earlier texts of one path of a repository, from its mirror."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from uuid import UUID

from apps.markup.decoding import decode
from apps.markup.values import Decoded, Limits
from apps.repos import remotes
from apps.repos.discovery import Kind
from apps.repos.git.blobs import blob_reader
from apps.repos.git.environment import run
from apps.repos.git.errors import GitFailure
from apps.repos.models import RepositoryDocument
from apps.repos.redaction import redact_file


class HistoryUnavailable(Exception):
    """The mirror cannot be asked now; nothing may be concluded from that."""


def earlier_texts(repository_id: UUID, path: str, most: int) -> Iterator[tuple[str, str]]:
    """(text, content hash) of the path in up to ``most`` earlier commits, newest first, until it did not exist.

    Raises HistoryUnavailable.
    """
    document = RepositoryDocument.objects.select_related("repository").get(repository=repository_id, path=path)
    mirror = remotes.mirror(document.repository)
    commit = document.commit or document.repository.synced_commit
    if not mirror.exists() or not commit:
        raise HistoryUnavailable("The mirror of the repository is not there.")
    try:
        output = run(
            ["log", f"--max-count={most + 1}", "--format=", "--raw", "--no-abbrev", "--no-renames", "-m",
             "--first-parent", commit, "--", f":(top,literal){path}"],
            directory=mirror.directory,
        )  # fmt: skip
    except GitFailure as failure:
        raise HistoryUnavailable("The history of the repository cannot be read.") from failure
    blobs: list[str] = []
    for line in output.decode("utf-8", "replace").splitlines():
        parts = line.split("\t", 1)[0].split()
        if len(parts) != 5 or not line.startswith(":"):
            continue
        if set(parts[3]) == {"0"}:
            break  # deleted: what stood there before was another document
        if parts[3] != document.blob and parts[3] not in blobs[-1:]:
            blobs.append(parts[3])
    with blob_reader(mirror.directory) as reader:
        for blob in blobs[:most]:
            raw = reader.read(blob)
            decoded = decode(raw, Limits()) if raw is not None else None
            if isinstance(decoded, Decoded):
                # SECURITY: a header of an older version may hold what is redacted in the present one.
                text = redact_file(decoded.text, path, Kind(document.kind)).text
                yield text, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
