"""A database server of its own for a benchmark, with memory enough for the sizes measured, and CPU clocks."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SETTINGS = [
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "shared_buffers=2GB",
    "work_mem=64MB",
    "maintenance_work_mem=2GB",
    "max_wal_size=4GB",
    "random_page_cost=1.1",
    "max_parallel_workers_per_gather=0",
    "max_parallel_maintenance_workers=0",
    "autovacuum=off",
]


@contextmanager
def database(keep: str = "") -> Iterator[None]:
    """Django on a server with all tables and those of the test source. ``keep`` names a data folder that stays."""
    from cograph_site.postgres.database import make_database
    from cograph_site.postgres.server import Server

    root = Path(keep or tempfile.mkdtemp(prefix="cograph-bench-"))
    root.mkdir(parents=True, exist_ok=True)
    server = Server(root, say=lambda text: None, settings=SETTINGS)
    server.prepare()
    server.start()
    try:
        make_database(server.home, may_create_databases=True)
        os.environ["DATABASE_URL"] = server.home.url()
        os.environ["COGRAPH_DATA_DIR"] = str(root / "var")
        os.environ["DJANGO_SETTINGS_MODULE"] = "cograph_site.settings"
        import django

        django.setup()
        from django.core.management import call_command

        from tests.indexing import shelf

        call_command("migrate", verbosity=0)
        shelf.make_tables()
        shelf.register()
        yield
    finally:
        server.stop()
        if not keep:
            shutil.rmtree(root, ignore_errors=True)


def backend_pid() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


class Clock:
    """CPU milliseconds of this process and of one database backend together."""

    def __init__(self) -> None:
        self.pid = backend_pid()

    def read(self) -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return 1000 * (used.ru_utime + used.ru_stime) + self.server()

    def server(self) -> float:
        """Of the backend alone."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e6
