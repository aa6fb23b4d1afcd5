"""What is stored of a repository, loaded once at the beginning of a sync."""

from __future__ import annotations

import hashlib
import json

from django.conf import settings

from apps.repos.code.reading import CODE_VERSION
from apps.repos.discovery import Filters, Kind
from apps.repos.link_tree import RULES_VERSION
from apps.repos.models import Repository, RepositoryDocument, RepositoryFile
from apps.repos.plan import KnownDocument, KnownFile, Versions
from apps.repos.reading import PARSER_VERSION


def filters_of(repository: Repository) -> Filters:
    return Filters(tuple(repository.only), tuple(repository.include), tuple(repository.exclude))


def versions_of(repository: Repository) -> Versions:
    return Versions(parser=PARSER_VERSION, profile=repository.chunk_profile)


def digest_of(repository: Repository) -> str:
    """What the stored rows depend on besides the commit: when it differs, an unchanged commit is no reason to rest."""
    parts = [
        versions_of(repository).label,
        CODE_VERSION,
        RULES_VERSION,
        repository.git_url,
        repository.branch,
        repository.only,
        repository.include,
        repository.exclude,
        repository.docs_roots,
        repository.language,
        settings.COGRAPH.markup.max_file_bytes,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def known_documents(repository: Repository) -> dict[bytes, KnownDocument]:
    """Documents by the exact bytes of their path."""
    rows = RepositoryDocument.objects.filter(repository=repository).values_list(
        "id",
        "path",
        "raw_path",
        "kind",
        "title",
        "slug",
        "blob",
        "parser_version",
        "chunk_profile",
        "absence",
        "warnings__0",
    )
    found: dict[bytes, KnownDocument] = {}
    for id_, path, raw, kind, title, slug, blob, parser, profile, absence, warning in rows.iterator(chunk_size=5000):
        raw_path = path.encode() if raw is None else bytes(raw)
        first = (
            (warning["code"], warning["message"], warning["line"], warning["column"])
            if isinstance(warning, dict)
            else None
        )
        found[raw_path] = KnownDocument(
            id_, raw_path, path, Kind(kind), title, slug, blob, parser, profile, absence, first
        )
    return found


def known_files(repository: Repository) -> dict[bytes, KnownFile]:
    """Paths of the commit that was synced last, by their exact bytes."""
    rows = RepositoryFile.objects.filter(repository=repository).values_list(
        "id", "path", "raw_path", "mode", "blob", "size", "kind", "state", "reason", "message", "versions"
    )
    return {
        (path.encode() if raw is None else bytes(raw)): KnownFile(id_, *rest)
        for id_, path, raw, *rest in rows.iterator(chunk_size=5000)
    }
