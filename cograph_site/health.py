"""Is the portal alive, and is it ready? For load balancers, `up`, and administrators who want to know why not."""

from __future__ import annotations

import shutil
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.access.rules import is_administrator
from apps.jobs import clusters, sweep

_migrated = False


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """The web server answers. Touches neither database nor session."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when database, migrations and sweep are well, else 503. The reasons are for administrators only."""
    checks: dict[str, Any] = {"database": _database()}
    if checks["database"] == "ok":
        checks["migrations"] = _migrations()
        checks["sweep"] = _sweep()
    ready = all(answer == "ok" for answer in checks.values())
    body: dict[str, Any] = {"status": "ready" if ready else "not ready"}
    if checks["database"] == "ok" and is_administrator(request.user):
        body["checks"] = {**checks, **_details()}
    return JsonResponse(body, status=200 if ready else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        connection.close()
        return "unreachable"
    return "ok"


def _migrations() -> str:
    """Once all are applied they stay so while this process lives; until then each call looks again."""
    global _migrated
    if not _migrated:
        executor = MigrationExecutor(connection)
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return "ok" if _migrated else "missing"


def _sweep() -> str:
    return "late" if sweep.sweep_is_late() else "ok"


def _details() -> dict[str, Any]:
    last: datetime | None = sweep.last_sweep()
    disk = shutil.disk_usage(settings.COGRAPH.data_path)
    return {
        "last_sweep": last.isoformat() if last else None,
        "workers": "waiting messages are not taken" if clusters.hung() else "ok",
        "embedder": settings.COGRAPH.embedding.backend,
        "disk_free_bytes": disk.free,
        "disk_total_bytes": disk.total,
    }
