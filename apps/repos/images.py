"""Pictures that pages show: read from the mirror of this machine by blob id."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from django.conf import settings

from apps.repos import remotes
from apps.repos.git.blobs import blob_reader
from apps.repos.git.errors import GitFailure
from apps.repos.models import Repository, RepositoryFile

TYPES = {
    ".avif": "image/avif",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}


@dataclass(frozen=True, slots=True)
class Image:
    content: bytes
    media_type: str
    blob: str


def image_of(repository: Repository, file: RepositoryFile) -> Image | None:
    """The picture at a path of the synced commit; None when it is no picture, too large, or not in this mirror.

    SECURITY: the caller looked the row up inside the reader's scope; git is asked for the blob id of that row.
    """
    media_type = TYPES.get(posixpath.splitext(file.path.lower())[1])
    if media_type is None or (file.size or 0) > settings.COGRAPH.markup.max_file_bytes:
        return None
    mirror = remotes.mirror(repository)
    if not mirror.exists():
        return None
    try:
        with blob_reader(mirror.directory) as reader:
            content = reader.read(file.blob)
    except (GitFailure, OSError, EOFError):
        return None
    return None if content is None else Image(content, media_type, file.blob)
