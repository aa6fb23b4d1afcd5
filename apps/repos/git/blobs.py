"""Contents of blobs by id, streamed through one ``git cat-file --batch``."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from apps.repos.git.environment import opened, running


@contextlib.contextmanager
def blob_reader(mirror: Path) -> Iterator[BlobReader]:
    """A reader for the blobs of one mirror; its git process lives as long as the block."""
    with running(["cat-file", "--batch"], directory=mirror, stdin=True) as process:
        yield BlobReader(opened(process.stdin), opened(process.stdout))


class LazyBlobs:
    """A reader whose git process starts with the first blob that is asked for, which is mostly never."""

    def __init__(self, mirror: Path) -> None:
        self._mirror = mirror
        self._stack = contextlib.ExitStack()
        self._reader: BlobReader | None = None

    def __enter__(self) -> LazyBlobs:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, blob: str) -> bytes | None:
        if self._reader is None:
            self._reader = self._stack.enter_context(blob_reader(self._mirror))
        return self._reader.read(blob)


class BlobReader:
    """Reads blobs one after the other. SECURITY: objects are named by id; no path of the repository is ever opened."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests = requests
        self._answers = answers

    def read(self, blob: str) -> bytes | None:
        """The bytes of a blob, or None when the mirror does not have it. At most the announced size is in memory."""
        return next(self.read_many([blob]))

    def read_many(self, blobs: Iterable[str]) -> Iterator[bytes | None]:
        """The bytes of each blob in order, None for a missing one. Requests are sent ahead by a thread, so that git
        never waits for us between two answers."""
        wanted = list(blobs)
        feeder = threading.Thread(target=self._feed, args=(wanted,), daemon=True)
        feeder.start()
        for _ in wanted:
            yield self._answer()
        feeder.join()

    def _feed(self, blobs: list[str]) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._requests.write("".join(f"{blob}\n" for blob in blobs).encode("ascii"))
            self._requests.flush()

    def _answer(self) -> bytes | None:
        head = self._answers.readline().split()
        if len(head) == 2 and head[1] == b"missing":
            return None
        if len(head) != 3:
            raise EOFError("git cat-file ended early")
        size = int(head[2])
        data = self._answers.read(size)
        if len(data) != size:
            raise EOFError("git cat-file ended early")
        self._answers.read(1)
        return data if head[1] == b"blob" else None


def blobs_at(mirror: Path, places: Sequence[tuple[str, bytes]]) -> list[str | None]:
    """The id of the blob at each (commit, path), by one git process; None where the mirror has none.

    The protocol is by lines, so a path that holds a line feed has none either.
    """
    asked = [b"%s:%s\n" % (commit.encode("ascii"), path) if b"\n" not in path else b"-\n" for commit, path in places]
    with running(["cat-file", "--batch-check=%(objectname) %(objecttype)"], directory=mirror, stdin=True) as process:
        requests, answers = opened(process.stdin), opened(process.stdout)

        def feed() -> None:
            with contextlib.suppress(OSError, ValueError):
                requests.write(b"".join(asked))
                requests.close()

        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        found = [answers.readline().split(b" ") for _ in asked]
        feeder.join()
    return [line[0].decode("ascii") if len(line) == 2 and line[1] == b"blob\n" else None for line in found]
