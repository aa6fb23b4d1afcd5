"""The parser pool: order, limits, and that one bad file costs only itself."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from apps.markup.decoding import decode
from apps.markup.ingest import read_text
from apps.markup.pool import Failure, ParserPool, PoolClosed
from apps.markup.values import Decoded, Limits, Skipped, WordWindow


def _alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_results_come_in_the_order_of_the_payloads_with_several_processes() -> None:
    with ParserPool(Limits(), processes=2) as pool:
        payloads = [(number, 2) for number in range(150)]
        assert list(pool.run("operator:mul", payloads)) == [2 * number for number in range(150)]
        assert list(pool.run("operator:mul", [])) == []


def test_a_child_is_used_again_by_the_next_run() -> None:
    with ParserPool(Limits()) as pool:
        first = list(pool.run("os:getpid", [(), ()]))
        second = list(pool.run("os:getpid", [()]))
        assert first[0] == first[1] == second[0] != os.getpid()


def test_values_keep_their_classes() -> None:
    values = (Limits(parse_seconds=3.5), WordWindow(), Skipped("binary", "x"))
    with ParserPool(Limits()) as pool:
        assert next(pool.run("copy:copy", [(values,)])) == values


def test_named_tuples_in_a_field_keep_theirs_at_any_depth() -> None:
    decoded = decode(b"# A\n\n- [b](c.md)\n  - d\n\n    e\n", Limits())
    assert isinstance(decoded, Decoded)
    read = read_text(decoded, "a.md", Limits(), WordWindow())
    with ParserPool(Limits()) as pool:
        # Named tuples equal plain ones: only how they are written tells them apart.
        assert repr(next(pool.run("copy:copy", [(read,)]))) == repr(read)


def test_a_file_over_its_time_is_skipped_and_the_next_ones_are_done() -> None:
    with ParserPool(Limits(parse_seconds=0.4)) as pool:
        results = list(pool.run("time:sleep", [(0,), (30,), (0,), (30,), (0,)]))
    assert [result.reason if result else None for result in results] == [None, "time_limit", None, "time_limit", None]


def test_a_file_over_its_memory_is_skipped_and_the_next_ones_are_done() -> None:
    with ParserPool(Limits(parse_memory_mb=256)) as pool:
        results = list(pool.run("operator:mul", [(b"x", 3), (b"x", 1 << 30), (b"y", 2)]))
    assert results[0] == b"xxx"
    assert results[1].reason == "memory_limit"
    assert results[2] == b"yy"


def test_a_crash_in_native_code_costs_its_one_file() -> None:
    # 6 is SIGABRT, what an allocation failure in a native parser ends with; signal 0 does nothing.
    with ParserPool(Limits()) as pool:
        results = list(pool.run("signal:raise_signal", [(18,), (6,), (18,)]))
    assert [getattr(result, "reason", None) for result in results] == [None, "memory_limit", None]


def test_an_exception_is_told_for_its_file() -> None:
    with ParserPool(Limits()) as pool:
        results = list(pool.run("operator:truediv", [(1, 2), (1, 0), (3, 2)]))
    assert results == [0.5, Failure("ZeroDivisionError: division by zero"), 1.5]


def test_a_slow_reader_costs_no_file() -> None:
    with ParserPool(Limits(parse_seconds=0.3)) as pool:
        results = []
        for result in pool.run("operator:mul", [(b"x", 200_000)] * 40):
            results.append(len(result))
            if len(results) in (1, 33):
                time.sleep(0.5)
    assert results == [200_000] * 40


def test_children_hold_no_secret_of_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGRAPH_SECRETS_KEY", "hush")
    with ParserPool(Limits()) as pool:
        assert list(pool.run("os:getenv", [("COGRAPH_SECRETS_KEY",)])) == [None]


def test_closing_ends_the_children_at_once() -> None:
    pool = ParserPool(Limits())
    [pid] = pool.run("os:getpid", [()])
    threading.Timer(0.3, pool.close).start()
    started = time.monotonic()
    with pytest.raises(PoolClosed):
        list(pool.run("time:sleep", [(0,), (15,)]))
    assert time.monotonic() - started < 10
    pool.close()
    ended = time.monotonic() + 2  # the kernel ends a killed process in its own time
    while _alive(pid) and time.monotonic() < ended:
        time.sleep(0.01)
    assert not _alive(pid)
    with pytest.raises(PoolClosed):
        list(pool.run("time:sleep", [(0,)]))


def test_payloads_are_taken_as_they_are_needed() -> None:
    taken = 0

    def endless() -> object:
        nonlocal taken
        while True:
            taken += 1
            yield (taken, 1)

    with ParserPool(Limits()) as pool:
        results = pool.run("operator:mul", endless())
        assert [next(results) for _ in range(3)] == [1, 2, 3]
        results.close()
    assert taken < 500
