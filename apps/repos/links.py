"""The stored links of a repository: written with their document, resolved all together after a sync.

Keys, titles and anchors are read once; links are worked on in memory; only rows that change are written, in bulk.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import Q

from apps.indexing.arrays import update_values
from apps.indexing.bulk import collector_paused
from apps.indexing.copying import copy_values
from apps.jobs.running import JobRun
from apps.markup.page_names import SUGGESTED_AT_MOST
from apps.repos.hosts import own_place
from apps.repos.link_tree import BROKEN, EXTERNAL, RULES_VERSION, LinkTree, Page, Resolution, Written
from apps.repos.models import Repository, RepositoryDocument, RepositoryDocumentLink, RepositoryFile
from apps.repos.reading import LinkUse

_HALF = 32
"""Of ``linked_with``: characters that tell the sync; the others tell all that links could lead to."""
WRITE_AT_ONCE = 5000
COLUMNS = (
    ("repository_id", "uuid"),
    ("document_id", "uuid"),
    ("link_type", "text"),
    ("href", "text"),
    ("text", "text"),
    ("lines", "int4[]"),
    ("path", "text"),
    ("fragment", "text"),
    ("alias", "text"),
    ("rel_type", "text"),
    ("field", "text"),
    ("embed", "bool"),
    ("image", "bool"),
    ("state", "text"),
    ("reason", "text"),
    ("rule", "int2"),
    ("target_document_id", "uuid"),
    ("target_path", "text"),
    ("anchor", "text"),
    ("candidates", "text[]"),
    ("suggestion", "text"),
)
CHANGED = (("id", "int8"), *COLUMNS[-8:])
RESOLUTION = ("state", "reason", "rule", "target_document_id", "target_path", "anchor", "candidates", "suggestion")


def copy_links(repository: Repository, uses: Iterable[tuple[uuid.UUID, LinkUse]]) -> None:
    """Store the links of new document versions, not yet resolved. Runs in the caller's transaction."""
    unresolved = ("", None, None, "", "", (), "")
    rows = [
        (
            repository.pk, document_id, use.link_type, use.href, use.text, use.lines, use.path, use.fragment, use.alias,
            use.rel_type[:60], use.field, use.embed, use.image, EXTERNAL if use.link_type == "absolute" else BROKEN,
            *unresolved,
        )
        for document_id, use in uses
    ]  # fmt: skip
    copy_values("repo_document_links", COLUMNS, rows)


def resolve_links(run: JobRun, repository: Repository, *, only_if_needed: bool = False) -> None:
    """Look at the links of the repository and write the rows that changed: at every link, or ``only_if_needed``, and
    where all that they can lead to is as it was, at those that no run has looked at yet.
    """
    digest = _digest(repository)
    if only_if_needed and repository.linked_with.startswith(digest) and not _is_changed(run.counters):
        return
    run.progress("link")
    with collector_paused():
        tree = load_tree(repository)
    linked_with = digest + tree.digest(RULES_VERSION)
    own = own_place(repository.git_url)
    links: Any = RepositoryDocumentLink.objects.filter(repository=repository)
    if only_if_needed and repository.linked_with[_HALF:] == linked_with[_HALF:]:
        rows: Iterable[_Stored] = _not_looked_at(links, own)
    else:
        # Most links of a documentation lead elsewhere, are stored so from the start, and can lead nowhere else.
        rows = _stored(links.exclude(_elsewhere(own)))
    with collector_paused():
        changed = _changes(tree, rows)
    for at in range(0, len(changed), WRITE_AT_ONCE):
        with run.batch():
            update_values("repo_document_links", CHANGED, changed[at : at + WRITE_AT_ONCE])
    with run.batch():
        Repository.objects.filter(pk=repository.pk).update(linked_with=linked_with)
        run.counters["links_changed"] = len(changed)


_Stored = tuple[Any, ...]
"""Primary key, document, what is written, and ``RESOLUTION``."""


def _stored(links: Any) -> Iterator[_Stored]:
    fields = ("pk", "document_id", "link_type", "href", "fragment", "rel_type", *RESOLUTION)
    rows: Iterator[_Stored] = links.order_by("pk").values_list(*fields).iterator(chunk_size=WRITE_AT_ONCE)
    return rows


def _not_looked_at(links: Any, own: str) -> list[_Stored]:
    """Links as ``copy_links`` stores them; of addresses elsewhere, those of the place ``own`` may lead back here. With
    them those that lead nowhere, as far as suggestions go: one may be the turn of another link than before.
    """
    fresh_or_lost = Q(state=BROKEN, reason__in=("", _LOST))
    rows = list(_stored(links.filter(fresh_or_lost | Q(link_type="absolute", state=EXTERNAL) & ~_elsewhere(own))))
    lost = [row for row in rows if row[_REASON] == _LOST]
    fresh = [row for row in rows if row[_REASON] != _LOST]
    if len(rows) > SUGGESTED_AT_MOST:
        return [*lost[:SUGGESTED_AT_MOST], *fresh]
    return [*(row for row in lost if not row[_SUGGESTION]), *fresh]


def _elsewhere(own: str) -> Q:
    """Addresses that are known to lead elsewhere, and not to the place ``own`` of this repository on the web."""
    elsewhere = Q(link_type="absolute", state=EXTERNAL)
    return elsewhere & ~Q(href__icontains=f"{own}/") if own else elsewhere


_LOST = "not found"
_REASON, _SUGGESTION = 6 + RESOLUTION.index("reason"), 6 + RESOLUTION.index("suggestion")


def _changes(tree: LinkTree, rows: Iterable[_Stored]) -> list[tuple[Any, ...]]:
    """The values of ``CHANGED`` of links that lead elsewhere than is stored."""
    changed: list[tuple[Any, ...]] = []
    for pk, document_id, link_type, href, fragment, rel_type, *stored in rows:
        source = tree.by_id.get(document_id)
        if source is None:
            continue
        values = _values(tree.resolve(source, Written(link_type, href, fragment, rel_type)))
        if values != tuple(stored):
            changed.append((pk, *values))
    return changed


def load_tree(repository: Repository) -> LinkTree:
    """Paths and pages of the synced commit, by two queries; held documents are pages too, since they are readable."""
    paths = RepositoryFile.objects.filter(repository=repository).values_list("path", flat=True)
    documents = RepositoryDocument.objects.filter(repository=repository).values_list(
        "id", "path", "title", "anchors", "frontmatter"
    )
    pages = [
        Page(
            id=id_,
            path=path,
            title=title,
            anchors=frozenset(anchors),
            slug=_text(header.get("slug")),
            aliases=_texts(header.get("aliases")),
            canonical=bool(_text(header.get("slug")) and _text(header.get("type"))),
        )
        for id_, path, title, anchors, header in documents.iterator(chunk_size=2000)
    ]
    return LinkTree(paths.iterator(chunk_size=5000), pages, repository.docs_roots, repository.git_url)


def _values(found: Resolution) -> tuple[Any, ...]:
    return (
        found.state,
        found.reason,
        found.rule,
        found.document,
        found.path,
        found.anchor,
        list(found.candidates),
        found.suggestion,
    )


def _is_changed(counters: Mapping[str, int]) -> bool:
    return any(counters.get(name) for name in ("indexed_documents", "moved", "deleted_documents"))


def _digest(repository: Repository) -> str:
    parts = (str(RULES_VERSION), repository.synced_commit, repository.synced_with, *repository.docs_roots)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_HALF]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
