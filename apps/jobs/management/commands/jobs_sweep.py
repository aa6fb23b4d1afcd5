"""``manage.py jobs_sweep``: the sweep loop."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from apps.jobs.parent import end_with_parent
from apps.jobs.sweep import run_forever, sweep


class Command(BaseCommand):
    help = "Mends the job queue every minute until it is stopped: lost workers, lost messages, due schedules."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="sweep once, say what was done, and end")
        parser.add_argument("--with-parent", action="store_true", help="end when the starting process ends")

    def handle(self, *args: Any, once: bool = False, with_parent: bool = False, **options: Any) -> None:
        if once:
            swept = sweep()
            self.stdout.write(f"{swept.lost} lost, {swept.sent} sent again, {swept.scheduled} scheduled")
            return
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        signal.signal(signal.SIGINT, lambda *_: stop.set())
        if with_parent:
            end_with_parent(stop.set)
        run_forever(stop)
