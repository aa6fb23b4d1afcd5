"""What the REST endpoints of repositories take: bodies and query strings."""

from __future__ import annotations

from typing import Any

from apps.access.rest.strict import Boolean, Choice, Integer, Listed, ListQuery, StrictSerializer, Text
from apps.access.rules import Visibility
from apps.repos.discovery import Kind
from apps.repos.models import DocumentState, FileState, LinkStyle, Schedule
from apps.repos.ranges import LONGEST_PATH, MOST_LINES

STATES = ("never_synced", "ready", "empty", "not_found_upstream", "syncing", "error", "stale")
KINDS = [kind.value for kind in Kind]
DEFAULT_LINES = 200


class Globs(Listed):
    """Patterns in the manner of git's wildmatch, from the root."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=Text(min_length=1, max_length=400), max_length=100, **options)


class RepositoryQuery(ListQuery):
    """Filters of the list of repositories."""

    q = Text(max_length=200, default="", query_text=True, help_text="Part of the slug or description.")
    host = Text(max_length=200, default="")
    state = Choice(STATES, required=False)
    visibility = Choice(Visibility.choices, required=False)


class CredentialInput(StrictSerializer):
    """What opens a private repository. It is kept encrypted and never given back."""

    secret = Text(min_length=1, max_length=20_000)
    user = Text(max_length=200, default="")
    kind = Choice(["token", "ssh_key"], default="token")


class RepositoryInput(StrictSerializer):
    """A repository to register."""

    git_url = Text(min_length=1, max_length=1000)
    branch = Text(max_length=244, required=False)
    name = Text(max_length=200, default="", help_text="In place of the last part of the slug.")
    visibility = Choice(Visibility.choices, default="private")
    schedule = Choice(Schedule.choices, required=False)
    only = Globs(required=False)
    include = Globs(required=False)
    exclude = Globs(required=False)
    language = Text(min_length=1, max_length=20, required=False)
    credential = CredentialInput(required=False)
    description = Text(max_length=10_000, required=False)


class RepositoryChanges(StrictSerializer):
    """What of a repository changes; absent fields stay."""

    description = Text(max_length=10_000, required=False)
    git_url = Text(min_length=1, max_length=1000, required=False)
    branch = Text(max_length=244, required=False)
    visibility = Choice(Visibility.choices, required=False)
    schedule = Choice(Schedule.choices, required=False)
    only = Globs(required=False)
    include = Globs(required=False)
    exclude = Globs(required=False)
    docs_roots = Globs(required=False)
    language = Text(min_length=1, max_length=20, required=False)
    link_style = Choice(LinkStyle.choices, required=False)
    link_template = Text(max_length=500, required=False)
    max_words = Integer(min_value=16, max_value=4096, required=False)
    overlap_words = Integer(min_value=0, max_value=2048, required=False)
    max_chars = Integer(min_value=500, max_value=32_000, required=False)
    query_log_opt_out = Boolean(required=False)
    credential = CredentialInput(required=False, allow_null=True)


class SyncInput(StrictSerializer):
    """How to sync."""

    force = Boolean(default=False, help_text="Also when the commit is unchanged.")


class DeletionsInput(StrictSerializer):
    """What becomes of documents whose deletion waits."""

    action = Choice(["approve", "discard"])
    documents = Listed(child=Text(min_length=1, max_length=64), min_length=1, max_length=10_000, required=False)


class ReportQuery(StrictSerializer):
    """Which sync."""

    job = Text(min_length=1, max_length=64, required=False, help_text="Id of a sync; without it the latest.")


class DocumentQuery(ListQuery):
    """Filters of the list of documents."""

    path = Text(max_length=LONGEST_PATH, default="", help_text="The path begins so.")
    kind = Choice(KINDS, required=False)
    state = Choice([*DocumentState.values, "held", "kept"], required=False)
    q = Text(max_length=200, default="", query_text=True, help_text="Part of the path or title.")


class FileQuery(ListQuery):
    """Filters of the list of paths."""

    path = Text(max_length=LONGEST_PATH, default="", help_text="The path begins so.")
    kind = Choice(KINDS, required=False)
    state = Choice(FileState.choices, required=False)
    q = Text(max_length=200, default="", query_text=True, help_text="Part of the path.")


class RangeQuery(StrictSerializer):
    """Which lines."""

    path = Text(max_length=LONGEST_PATH, default="", help_text="Required.")
    start_line = Integer(min_value=1, max_value=10**9, default=1)
    end_line = Integer(
        min_value=1, max_value=10**9, required=False, help_text=f"Included; at most {MOST_LINES} lines at once."
    )
