"""What the queue calls: load by id, make one call."""

from __future__ import annotations

from uuid import UUID

from apps.jobs.worker import perform as _perform


def perform(job_id: str) -> None:
    """Run the job if it can be claimed; otherwise the message was late, doubled or early, and is dropped."""
    _perform(UUID(job_id))
