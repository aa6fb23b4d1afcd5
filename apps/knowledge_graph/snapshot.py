"""One state of the graph for all that one request reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import connection, transaction

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Everything read inside is of one moment: nodes and edges come by several statements, between which a projection
    may commit, and an edge to a node that is not there is a state that never was. Nothing can be written inside. Within
    a transaction of the caller's, that one decides."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def in_one_snapshot(act: Callable[P, T]) -> Callable[P, T]:
    """``act`` in `one_snapshot`."""

    @wraps(act)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        with one_snapshot():
            return act(*args, **kwargs)

    return inside
