"""Since when each finding of a source is there, and at which commit it was first seen (``portal.md`` 32).

Findings are worked out when they are read; what is stored is only when each was met first. They do not depend on who
looks (whatever is hidden answers as if it were not there), so one look by the server serves every reader, who gets the
times of those findings alone that are shown to him.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils import timezone

from apps.access.rules import system_viewer
from apps.indexing.findings import Finding, found_in
from apps.indexing.models import FindingSighting
from apps.jobs.kinds import JobKind, SourceKey, register_kind, register_purge

if TYPE_CHECKING:
    from apps.access.sources import Source
    from apps.jobs.running import JobRun

KIND = "note_findings"
AFTER = ("sync", "link_symbols", "resolve_links", "upload", "lint_graph")
"""Whatever may bring findings, or end them."""
WRITE_AT_ONCE = 5000


def register(source_kinds: frozenset[str]) -> None:
    register_kind(JobKind(KIND, note_findings, sources=source_kinds, after=AFTER))
    register_purge(_purge, sources=source_kinds)


def note_findings(run: JobRun) -> None:
    """The function of the job kind: remember the findings that are new, forget those that are gone."""
    source = run.source
    now = timezone.now()
    found = dict.fromkeys(map(mark_of, found_in(system_viewer(), source)))
    rows = FindingSighting.objects.filter(source_id=source.pk).values_list("mark", "pk")
    known = {mark: pk for mark, pk in rows}  # noqa: C416 - dict() would take the keys of the queryset for its own
    gone = [pk for mark, pk in known.items() if mark not in found]
    new = [
        FindingSighting(
            source_kind=source.kind,
            source_id=source.pk,
            mark=mark,
            commit=str(getattr(source, "synced_commit", "")),
            first_seen_at=now,
        )
        for mark in found
        if mark not in known
    ]
    with run.batch():
        FindingSighting.objects.filter(pk__in=gone).delete()
        FindingSighting.objects.bulk_create(new, batch_size=WRITE_AT_ONCE, ignore_conflicts=True)
        run.counters["findings"] = len(found)
        run.counters["new_findings"] = len(new)


def mark_of(finding: Finding) -> str:
    """What a finding is known by from one sync to the next: what it is about, not the line where it stands."""
    about = finding.fingerprint or "\0".join((finding.path, finding.message))
    return hashlib.sha256(f"{finding.rule}\0{about}".encode("utf-8", "replace")).hexdigest()[:32]


def with_sightings(source: Source, findings: Sequence[Finding]) -> list[Finding]:
    """The same findings with ``since`` and ``first_commit``; those not met by the server yet stay without."""
    if not findings:
        return []
    marks = [mark_of(finding) for finding in findings]
    rows = FindingSighting.objects.filter(source_id=source.pk, mark__in=set(marks))
    known = {mark: (since, commit) for mark, since, commit in rows.values_list("mark", "first_seen_at", "commit")}
    return [_dated(finding, known.get(mark)) for finding, mark in zip(findings, marks, strict=True)]


def _dated(finding: Finding, sighting: tuple[datetime, str] | None) -> Finding:
    if sighting is None:
        return finding
    return replace(finding, since=sighting[0], first_commit=sighting[1])


def _purge(run: JobRun, source: SourceKey) -> None:
    with run.batch():
        FindingSighting.objects.filter(source_id=source[1]).delete()
