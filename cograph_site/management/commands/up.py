from __future__ import annotations

import sys
from typing import NoReturn

from django.core.management.base import BaseCommand

from cograph_site import up


class Command(BaseCommand):
    """Lists `up` in the help; manage.py itself runs it before Django is loaded."""

    help = "Start the whole portal: database, migrations, first account, workers, sweep and web server."

    def run_from_argv(self, argv: list[str]) -> NoReturn:
        sys.exit(up.main(argv[2:]))

    def print_help(self, prog_name: str, subcommand: str) -> None:
        up.main(["--help"])
