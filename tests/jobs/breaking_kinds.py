"""Kinds of jobs that kill, stop or delay their worker at named points. Real work on a real table, nothing mocked.

A test arms a point by writing a file named after it into the folder ``BREAK_FOLDER``; the first to reach it removes the
file and sends SIGKILL to its whole process group.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

from django.db import connection

from apps.jobs.errors import TransientFailure
from apps.jobs.kinds import JobKind, Slot, register_kind, register_purge
from apps.jobs.running import JobRun

TABLE = """
CREATE TABLE breaking_rows (
    repository uuid, path text, content text, vector text, PRIMARY KEY (repository, path)
)
"""
POINTS = ("after_claim", "mid_fetch", "mid_batch", "after_batch", "mid_embed", "after_finish")


def folder() -> Path:
    return Path(os.environ["BREAK_FOLDER"])


def reach(point: str) -> None:
    try:
        (folder() / point).unlink()
    except FileNotFoundError:
        return
    os.killpg(0, signal.SIGKILL)


def after_finish(task, **_):
    if task["name"] != "canary":
        reach("after_finish")


def store(run: JobRun, paths, content: str = "") -> None:
    with connection.cursor() as cursor:
        for path in paths:
            cursor.execute(
                "INSERT INTO breaking_rows AS old VALUES (%s, %s, %s)"
                " ON CONFLICT (repository, path) DO UPDATE SET content = excluded.content, vector = NULL"
                " WHERE old.content <> excluded.content",
                [run.source_key[1], path, content or f"text of {path}"],
            )
            run.item(path, "created" if cursor.rowcount else "unchanged", chunks=1)


def sync(run: JobRun) -> None:
    """Stores rows for ``files`` files in batches of 10; ``killer`` ones kill their worker whenever they are read."""
    reach("after_claim")
    run.progress("fetching")
    reach("mid_fetch")
    killers = run.params.get("killers", {})
    files = [(f"{number:03}.md", killers.get(f"{number:03}.md", "good")) for number in range(run.params["files"])]
    count = 0
    for portion in run.portions(files, size=10, key=lambda file: file):
        for _path, content in portion:
            if content.startswith("killer"):
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(run.params.get("pause", 0))
        with run.batch():
            store(run, [path for path, _ in portion[:5]])
            if count >= 50:
                reach("mid_batch")
            store(run, [path for path, _ in portion[5:]])
            count += len(portion)
            run.progress("indexing", count, len(files))
        if count >= 50:
            reach("after_batch")
    run.counters = {"discovered_files": len(files)}
    run.note(f"{len(files)} files")


def embed(run: JobRun) -> None:
    """Fills the vectors that are missing, 20 a batch."""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT path, content FROM breaking_rows WHERE repository = %s AND vector IS NULL"
                " ORDER BY path LIMIT 20",
                [run.source_key[1]],
            )
            rows = cursor.fetchall()
        if not rows:
            return
        run.progress("embedding", run.counters.get("embedded", 0))
        vectors = [(hashlib.sha256(content.encode()).hexdigest(), path) for path, content in rows]
        for _ in range(int(run.params.get("pause", 0) * 20)):
            run.check()
            time.sleep(0.05)
        with run.batch(), connection.cursor() as cursor:
            for vector, path in vectors:
                cursor.execute(
                    "UPDATE breaking_rows SET vector = %s WHERE repository = %s AND path = %s",
                    [vector, run.source_key[1], path],
                )
            run.counters["embedded"] = run.counters.get("embedded", 0) + len(rows)
        reach("mid_embed")


def deaf(run: JobRun) -> None:
    """Hears nothing for 60 s, then tries to write."""
    with run.batch():
        store(run, ["before.md"])
    time.sleep(60)
    with run.batch():
        store(run, ["after.md"])


def stoppable(run: JobRun) -> None:
    """Waits until the test lets it go on; only the first attempt writes its pid and waits."""
    mark = folder() / "stopped_pid"
    if not mark.exists():
        mark.write_text(str(os.getpid()))
        if run.params.get("in_batch"):
            with run.batch():
                store(run, ["mine.md"], "first")
                time.sleep(1)
        while not (folder() / "go_on").exists():
            time.sleep(0.05)
        try:
            with run.batch():
                store(run, ["mine.md"], "first again")
        except BaseException as error:
            (folder() / "refused").write_text(type(error).__name__)
            raise
        return
    with run.batch():
        store(run, ["mine.md"], "second")


def limited(run: JobRun) -> None:
    requests = folder() / "requests"
    with requests.open("a") as file:
        file.write(f"{time.time()}\n")
    if len(requests.read_text().split()) == 1:
        raise TransientFailure("rate_limited", "The embedder asks for a pause", retry_after=run.params["retry_after"])


def purge(run: JobRun, source) -> None:
    while True:
        with run.batch(), connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM breaking_rows WHERE ctid IN"
                " (SELECT ctid FROM breaking_rows WHERE repository = %s LIMIT 50)",
                [source[1]],
            )
            if not cursor.rowcount:
                return


def register() -> None:
    sources = frozenset({"repository"})
    register_kind(JobKind("b_sync", sync, sources, slot=lambda job: Slot("b_sync", 2, "{running} syncs running")))
    register_kind(JobKind("b_embed", embed, sources, attempts=5, after=("b_sync",)))
    register_kind(JobKind("b_deaf", deaf, sources))
    register_kind(JobKind("b_deadline", deaf, sources, attempts=1, deadline=timedelta(seconds=1)))
    register_kind(JobKind("b_stoppable", stoppable, sources))
    register_kind(JobKind("b_limited", limited, sources, attempts=1))
    register_purge(purge, sources=sources)
