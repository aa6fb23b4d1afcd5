"""How a job's function says that it cannot go on."""

from __future__ import annotations


class TransientFailure(Exception):
    """Something that passes by itself: network, a server's 5xx, a lock. The job is tried again after a wait.

    ``retry_after`` is in seconds and means that the other side asked to be left alone (429): the job waits that long
    and the attempt is given back. ``message`` is for people and must hold no secret.
    """

    def __init__(self, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after


class LastingFailure(Exception):
    """Something that no retry mends: a refused credential, a vanished branch. ``message`` says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Stopped(Exception):
    """The run must end now. Functions of kinds let it pass through."""


class Cancelled(Stopped):
    """Somebody cancelled the job, or its source was deleted."""


class LeaseLost(Stopped):
    """Another worker may own the job by now: nothing more may be written."""


class WorkerEnds(Stopped):
    """The worker is being stopped; the job goes back into the queue and loses no attempt."""


class DeadlineOver(Stopped):
    """The kind's deadline has passed."""
