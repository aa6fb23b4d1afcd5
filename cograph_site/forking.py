"""Forked children that look like subprocess.Popen.

A fork shares the memory of Django and the rooms with its parent: three process trees of the workers cost about 100 MB
less than three fresh interpreters.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable

from cograph_site.processes import end_with_parent

POLL_SECONDS = 0.02


class Forked:
    """A child that runs `work` as leader of its own process group and gets SIGTERM when we die.

    Call it from a process with one thread and without database connections: neither survives a fork.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        prepare = end_with_parent(signal.SIGTERM)
        self.pid = os.fork()
        if self.pid == 0:
            os.setpgid(0, 0)
            prepare()
            self._run(work)

    @staticmethod
    def _run(work: Callable[[], object]) -> None:
        """Never returns: the child must not come back into the loop of its parent."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            work()
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.returncode = -1  # somebody else has collected it
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(["forked child"], timeout or 0.0)
            time.sleep(POLL_SECONDS)
        return code

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
