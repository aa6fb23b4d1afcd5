from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from apps.access.secrets import ensure_secrets_key, key_path
from cograph_site import first_run, samples
from cograph_site.postgres import PostgresError, home
from cograph_site.postgres.database import check_database, make_database


class Command(BaseCommand):
    help = "Database, migrations, static files, first account, samples. `up` runs it; it prints the account as JSON."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--embedded", action="store_true", help="the database is the embedded one: make it")
        parser.add_argument("--no-samples", action="store_true", help="leave out the samples, now and later")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["embedded"]:
                make_database(home.existing(settings.COGRAPH.data_path))
            self.say(check_database(connection.settings_dict))
        except PostgresError as error:
            raise CommandError(str(error)) from None
        with first_run.alone():
            first_run.migrate(self.say)
            account = first_run.make_administrator()
            if options["no_samples"]:
                samples.decline()
            else:
                samples.give(self.say)
            samples.refresh_guides(self.say)
        if ensure_secrets_key():
            self.say(f"made the key file {key_path()}: keep a copy of it with your backups")
        first_run.collect_static_files(self.say)
        answer = {"name": account.name, "password": account.password} if account else {}
        self.stdout.write(json.dumps(answer))

    def say(self, text: str) -> None:
        self.stderr.write(f"cograph: {text}")
