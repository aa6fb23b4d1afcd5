"""What stands between a reachable database and a portal that answers; every step is done once and skipped later."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from cograph_site.static_files import NOT_SERVED

ADMINISTRATOR = "admin"
PREPARING = 0x636F6772617068  # the key of the advisory lock: "cograph"
STAMP = ".collected"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Account:
    """The first account. `password` is empty when the operator chose it."""

    name: str
    password: str


@contextmanager
def alone() -> Iterator[None]:
    """One machine at a time prepares a database that several share."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [PREPARING])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [PREPARING])


def migrate(say: Say) -> int:
    """Apply what is missing; answers how many migrations that was."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        say(f"applying {len(plan)} migrations")
        call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
    return len(plan)


def collect_static_files(say: Say) -> bool:
    """Collect and compress the static files when one of them has changed; answers whether."""
    fingerprint = _static_fingerprint()
    stamp = settings.STATIC_ROOT / STAMP
    if stamp.exists() and stamp.read_text() == fingerprint:
        return False
    say("collecting the static files")
    stamp.unlink(missing_ok=True)
    call_command(
        "collectstatic",
        interactive=False,
        verbosity=0,
        clear=stamp.parent.exists(),
        ignore_patterns=NOT_SERVED,
        skip_checks=True,
    )
    stamp.write_text(fingerprint)
    return True


def _static_fingerprint() -> str:
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list(NOT_SERVED):
            modified = storage.get_modified_time(path)
            digest.update(f"{path}\0{storage.size(path)}\0{modified.timestamp()}\n".encode())
    return digest.hexdigest()


def make_administrator() -> Account | None:
    """The first account, when nobody has one. Its password is stored as a hash only and told once, by the caller."""
    users = get_user_model().objects
    if users.exists():
        return None
    chosen = settings.COGRAPH.admin_password
    password = chosen or secrets.token_urlsafe(12)
    users.create_superuser(ADMINISTRATOR, "", password)
    return Account(ADMINISTRATOR, "" if chosen else password)
