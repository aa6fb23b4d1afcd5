"""``manage.py rekey_secrets``: encrypt stored secrets with the first key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.access import secrets
from apps.access.origin import Origin, acting


class Command(BaseCommand):
    help = "Encrypt every stored secret with the first key of COGRAPH_SECRETS_KEY."

    def handle(self, *args: Any, **options: Any) -> None:
        with acting(Origin(how="command")):
            done = secrets.rekey()
        self.stdout.write(f"{done.rewritten} secrets encrypted with the first key.")
        if done.unreadable:
            raise CommandError(
                f"{done.unreadable} secrets cannot be read with any of the keys: enter those credentials again."
            )
