"""MCP over standard input and output, for clients that start their server themselves."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError

from apps.mcp import stdio

FAILED, WRONG_USAGE = 1, 2


class Command(BaseCommand):
    """SECURITY: the token comes from the environment alone; arguments of processes are read by every local user."""

    help = "Serve MCP over standard input and output. The token is read from COGRAPH_TOKEN."
    requires_system_checks: list[str] = []

    def handle(self, *arguments: Any, **options: Any) -> None:
        logging.captureWarnings(True)
        token = os.environ.pop("COGRAPH_TOKEN", "")
        try:
            problem = stdio.problem_with(token)
        except OperationalError:
            sys.stderr.write("cograph: the database does not answer; is the portal running?\n")
            sys.exit(FAILED)
        if problem:
            sys.stderr.write(f"cograph: {problem}\n")
            sys.exit(WRONG_USAGE)
        asyncio.run(stdio.serve(token))
