"""What REST says of repositories: answers and the functions that shape them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from apps.access.rest.schema import list_of
from apps.jobs.api_values import JobOutput
from apps.repos.models import Repository, RepositoryDocument
from apps.repos.presentation import Share
from apps.repos.reports import ReportView


class FreshnessOutput(serializers.Serializer[Any]):
    """Which state of a repository an answer shows, and how old it is."""

    slug = serializers.CharField()
    state = serializers.CharField()
    branch = serializers.CharField()
    commit = serializers.CharField()
    committed_at = serializers.DateTimeField(allow_null=True)
    synced_at = serializers.DateTimeField(allow_null=True)
    last_checked_at = serializers.DateTimeField(allow_null=True)
    stale_since = serializers.DateTimeField(allow_null=True)
    is_syncing = serializers.BooleanField()


class RepositoryLine(FreshnessOutput):
    """A repository in a list."""

    url = serializers.CharField()
    description = serializers.CharField()
    visibility = serializers.CharField()
    owner = serializers.CharField(allow_null=True)
    schedule = serializers.CharField()
    language = serializers.CharField()
    documents = serializers.IntegerField()
    created_at = serializers.DateTimeField()


class CountsOutput(serializers.Serializer[Any]):
    """How much a repository holds; ``files`` by what became of them."""

    documents = serializers.IntegerField()
    chunks = serializers.IntegerField()
    words = serializers.IntegerField()
    held_deletions = serializers.IntegerField()
    files = serializers.DictField(child=serializers.IntegerField())


class LanguageOutput(serializers.Serializer[Any]):
    """A language and its share of the bytes, in per cent."""

    name = serializers.CharField()
    bytes = serializers.IntegerField()
    share = serializers.FloatField()


class ChunkingOutput(serializers.Serializer[Any]):
    """How documents are cut."""

    max_words = serializers.IntegerField()
    overlap_words = serializers.IntegerField()
    max_chars = serializers.IntegerField()


class RepositoryOutput(RepositoryLine):
    """A repository. ``git_url`` and ``credential`` (its kind, never its secret) are for administrators."""

    git_url = serializers.CharField(allow_null=True)
    credential = serializers.CharField(allow_null=True)
    next_sync_at = serializers.DateTimeField(allow_null=True)
    followed_branch = serializers.CharField()
    only = serializers.ListField(child=serializers.CharField())
    include = serializers.ListField(child=serializers.CharField())
    exclude = serializers.ListField(child=serializers.CharField())
    docs_roots = serializers.ListField(child=serializers.CharField())
    link_style = serializers.CharField()
    chunking = ChunkingOutput()
    query_log_opt_out = serializers.BooleanField()
    counts = CountsOutput()
    languages = LanguageOutput(many=True)


class RegisteredOutput(RepositoryOutput):
    """A new repository with the job of its first sync."""

    job = JobOutput()


class HeldOutput(serializers.Serializer[Any]):
    """A document that the latest commit does not hold and whose deletion waits."""

    id = serializers.CharField()
    path = serializers.CharField()
    title = serializers.CharField()
    url = serializers.CharField()
    absent_commit = serializers.CharField()
    absent_since = serializers.DateTimeField(allow_null=True)


class ReasonOutput(serializers.Serializer[Any]):
    """Paths that were left out for one reason."""

    reason = serializers.CharField()
    count = serializers.IntegerField()
    samples = serializers.ListField(child=serializers.CharField())


class ChangeOutput(serializers.Serializer[Any]):
    """Files that changed in one way since the sync before; ``paths`` are the first of them."""

    state = serializers.CharField()
    count = serializers.IntegerField()
    paths = serializers.ListField(child=serializers.CharField())


class ReportOutput(serializers.Serializer[Any]):
    """What one sync did. ``reasons`` counts items by their reason, ``not_taken`` paths that are no items."""

    job = JobOutput()
    commit = serializers.CharField()
    previous_commit = serializers.CharField()
    branch = serializers.CharField()
    counters = serializers.DictField(child=serializers.IntegerField())
    totals = serializers.DictField()
    states = serializers.DictField(child=serializers.IntegerField())
    reasons = serializers.DictField(child=serializers.IntegerField())
    not_taken = ReasonOutput(many=True)
    changes = ChangeOutput(many=True)
    notes = serializers.ListField(child=serializers.DictField())


HeldPage = list_of(HeldOutput)
RepositoryPage = list_of(RepositoryLine)


def freshness(repository: Any) -> dict[str, Any]:
    """``repository`` comes with its state: ``Repository.objects.with_state()``."""
    return {
        "slug": repository.slug,
        "state": repository.state,
        "branch": repository.synced_branch,
        "commit": repository.synced_commit,
        "committed_at": repository.committed_at,
        "synced_at": repository.synced_at,
        "last_checked_at": repository.last_checked_at,
        "stale_since": repository.last_checked_at if repository.is_stale else None,
        "is_syncing": repository.is_syncing,
    }


def present_line(repository: Any) -> dict[str, Any]:
    """``repository`` comes with its state and ``documents_count``."""
    return {
        **freshness(repository),
        "url": repository.get_absolute_url(),
        "description": repository.description,
        "visibility": repository.visibility,
        "owner": repository.owner.get_username() if repository.owner else None,
        "schedule": repository.schedule,
        "language": repository.language,
        "documents": repository.documents_count,
        "created_at": repository.created_at,
    }


def present_repository(
    repository: Any, *, counts: dict[str, Any], languages: Sequence[Share], administers: bool
) -> dict[str, Any]:
    return {
        **present_line(repository),
        # SECURITY: an address may name internal hosts and folders; readers get the links made from it instead.
        "git_url": repository.git_url if administers else None,
        "credential": repository.credential_kind if administers else None,
        "next_sync_at": repository.next_sync_at,
        "followed_branch": repository.branch,
        "only": repository.only,
        "include": repository.include,
        "exclude": repository.exclude,
        "docs_roots": repository.docs_roots,
        "link_style": repository.link_style,
        "chunking": {
            "max_words": repository.max_words,
            "overlap_words": repository.overlap_words,
            "max_chars": repository.max_chars,
        },
        "query_log_opt_out": not repository.logs_queries,
        "counts": counts,
        "languages": [{"name": one.words, "bytes": one.count, "share": one.share} for one in languages],
    }


def present_held(repository: Repository, document: RepositoryDocument) -> dict[str, Any]:
    return {
        "id": str(document.pk),
        "path": document.path,
        "title": document.title,
        "url": f"{repository.get_absolute_url()}/docs/{document.slug}",
        "absent_commit": document.absent_commit,
        "absent_since": document.absent_since,
    }


def present_report(found: ReportView, job: dict[str, Any], changes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    report = found.report
    not_taken = report.not_taken if report else {}
    return {
        "job": job,
        "commit": report.commit if report else "",
        "previous_commit": report.previous_commit if report else "",
        "branch": report.branch if report else "",
        "counters": dict(found.counters),
        "totals": dict(found.totals),
        "states": dict(found.states),
        "reasons": dict(found.reasons),
        "not_taken": [
            {"reason": reason, "count": group["count"], "samples": list(group.get("samples", ()))}
            for reason, group in sorted(not_taken.items())
        ],
        "changes": list(changes),
        "notes": found.job.notes,
    }
