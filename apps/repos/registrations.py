"""What this room tells the rooms below, once at start."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

from django.conf import settings

from apps.access.secrets import register_secret
from apps.access.sources import register_source
from apps.access.view_as import register_documents
from apps.indexing.stores import register_store
from apps.jobs.kinds import JobKind, Slot, register_kind, register_prune, register_purge
from apps.jobs.models import Job
from apps.jobs.running import JobRun
from apps.repos import remotes
from apps.repos.git.mirror import remove_others
from apps.repos.models import (
    Repository,
    RepositoryDocument,
    RepositoryGroupGrant,
    RepositoryUserGrant,
    WebhookDelivery,
)
from apps.repos.schedules import due_syncs
from apps.repos.stores import CODE_STORE, STORE

DELIVERIES_KEPT = timedelta(days=30)
PRUNE_BATCH = 5000


def register() -> None:
    from apps.repos import findings, links, removal, sync
    from apps.repos.code import drift
    from apps.repos.code.linking import link_symbols

    register_source(Repository, user_grants=RepositoryUserGrant, group_grants=RepositoryGroupGrant)
    register_secret(Repository, "credential")
    register_secret(Repository, "hook_secret")
    register_documents(RepositoryDocument)
    register_store(STORE)
    register_store(CODE_STORE)
    register_kind(
        JobKind(
            "sync",
            sync.run_sync,
            sources=frozenset({Repository.kind}),
            deadline=timedelta(hours=6),
            slot=_slot,
            every=due_syncs,
            prune=_prune_deliveries,
        )
    )

    def resolve(run: JobRun) -> None:
        links.resolve_links(run, cast("Repository", run.source))

    register_kind(JobKind("resolve_links", resolve, sources=frozenset({Repository.kind})))
    register_prune(_prune_mirrors)
    register_kind(JobKind("link_symbols", link_symbols, sources=frozenset({Repository.kind})))
    drift.register()
    findings.register()
    register_purge(removal.purge, sources=[Repository.kind])


def _slot(job: Job) -> Slot:
    return Slot("sync", settings.COGRAPH.jobs.running_syncs, "{running} syncs running")


def _prune_mirrors(now: datetime) -> int:
    """Mirrors on this machine whose address no repository has any more."""
    wanted = {remotes.mirror(repository).directory for repository in Repository.objects.live()}
    return remove_others(remotes.mirror_folder(), wanted)


def _prune_deliveries(now: datetime) -> int:
    old = WebhookDelivery.objects.filter(received_at__lt=now - DELIVERIES_KEPT)
    ids = list(old.values_list("pk", flat=True)[:PRUNE_BATCH])
    deleted, _ = WebhookDelivery.objects.filter(pk__in=ids).delete()
    return deleted
