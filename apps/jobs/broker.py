"""The queue's broker: django-q2's ORM broker, with a canary for each cluster and patience for the database."""

from __future__ import annotations

import time
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.signing import SignedPackage

from apps.jobs.heartbeat import BEAT_SECONDS

RECONNECT_SECONDS = 1.0


class CanaryBroker(ORM):  # type: ignore[misc]
    """Hands every cluster a canary message of its own each few seconds.

    A cluster whose worker was killed at the wrong moment hangs for good without a word (django-q issue 394). The canary
    enters through this cluster's own pusher and is answered by its own worker, so a beat that stays away tells which
    cluster hangs; the age of messages in the shared queue could not.
    """

    _next_canary = 0.0

    def dequeue(self) -> list[tuple[Any, str]] | None:
        if time.monotonic() >= self._next_canary:
            self._next_canary = time.monotonic() + BEAT_SECONDS
            task = {"id": "canary", "name": "canary", "func": "apps.jobs.heartbeat.beat", "args": (), "kwargs": {}}
            return [(None, SignedPackage.dumps({**task, "save": False, "ack_failure": True, "started": None}))]
        try:
            found: list[tuple[Any, str]] | None = super().dequeue()
        except (DatabaseError, InterfaceError):
            # Left to itself the pusher would die and come back after ten seconds.
            connections[Conf.ORM].close()
            time.sleep(RECONNECT_SECONDS)
            return None
        return found
