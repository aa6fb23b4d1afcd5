"""The queue's broker: django-q2's ORM broker with a canary for each cluster, fair to idle clusters, patient with the
database."""

from __future__ import annotations

import functools
import time
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from apps.jobs import heartbeat

RECONNECT_SECONDS = 1.0
BUSY_SECONDS = 0.02
CANARY = {
    "id": "canary",
    "name": "canary",
    "func": "apps.jobs.heartbeat.answer_canary",
    "args": (),
    "kwargs": {},
    "save": False,
    "ack_failure": True,
    "started": None,
}


class Sender(ORM):  # type: ignore[misc]
    """Puts messages into the queue over the connection that has just stored the job.

    django-q2's own way is meant for threads that lie idle between messages: it closes what may be stale before each
    and asks the server for its health, which costs more than the message.
    """

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        return OrmQ.objects.using(Conf.ORM)


@functools.cache
def sender() -> Sender:
    return Sender()


class CanaryBroker(ORM):  # type: ignore[misc]
    """Hands every idle cluster a canary message of its own each few seconds, and no message to a busy one.

    A cluster whose worker was killed at the wrong moment hangs for good without a word (django-q issue 394). The canary
    enters through this cluster's own pusher and is answered by its own worker, so a beat that stays away tells which
    cluster hangs; the age of messages in the shared queue could not.

    Left to itself, the pusher of a busy cluster takes two messages ahead, which then wait behind a sync of hours while
    other clusters are idle.
    """

    _next_canary = 0.0

    def dequeue(self) -> list[tuple[Any, str]] | None:
        if not heartbeat.can_take():
            time.sleep(BUSY_SECONDS)
            return None
        if time.monotonic() >= self._next_canary:
            self._next_canary = time.monotonic() + heartbeat.BEAT_SECONDS
            heartbeat.hand_over()
            return [(None, SignedPackage.dumps(CANARY))]
        try:
            found: list[tuple[Any, str]] | None = super().dequeue()
        except (DatabaseError, InterfaceError):
            # Left to itself the pusher would die and come back after ten seconds.
            connections[Conf.ORM].close()
            time.sleep(RECONNECT_SECONDS)
            return None
        if found:
            heartbeat.hand_over()
        return found
