"""Asking for mentions to be linked anew."""

from __future__ import annotations

from apps.access.models import User
from apps.access.rules import Right
from apps.jobs.queue import Enqueued, enqueue
from apps.repos.models import Repository


def request_link_symbols(*, repository: Repository, by: User) -> Enqueued:
    """Queue the job ``link_symbols``, or join the live one. Raises NotFound, Forbidden, Throttled."""
    held = Repository.objects.get_for(by, Right.WRITE, pk=repository.pk)
    return enqueue("link_symbols", source=held, by=by)
