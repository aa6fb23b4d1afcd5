#!/usr/bin/env python3
"""Cograph's command line. On a machine that has only Python and git it first makes its own environment."""

from __future__ import annotations

import os
import sys

OLDEST_PYTHON = (3, 11)


def main() -> int:
    if sys.version_info < OLDEST_PYTHON:
        print("Cograph needs Python 3.11 or newer; this is Python %d.%d." % sys.version_info[:2], file=sys.stderr)  # noqa: UP031
        return 1
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cograph_site.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else ""

    from cograph_site import bootstrap

    problem = bootstrap.enter(with_tools=command == "verify")
    if problem:
        print(problem, file=sys.stderr)
        return 1

    from cograph_site.configuration import ConfigurationError

    try:
        if command == "up":  # stays without Django, so that the supervisor is small
            from cograph_site.up import main as up

            return up(sys.argv[2:])
        if command == "verify":
            from cograph_site.verify import main as verify

            return verify(sys.argv[2:])
        return run(sys.argv)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run(argv: list[str]) -> int:
    """A command of Django's or of a room."""
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, connection

    try:
        execute_from_command_line(argv)
    except OperationalError as error:
        if connection.connection is not None:
            raise
        print(f"The database cannot be reached: {str(error).splitlines()[0]}", file=sys.stderr)
        if not os.environ.get("DATABASE_URL"):
            print("It runs while `manage.py up` runs on this data folder (COGRAPH_DATA_DIR).", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
