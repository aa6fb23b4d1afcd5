"""``manage.py eval_import NAME --corpus F --queries F --qrels F``: a test set from files, with its own collection."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.access import rules
from apps.access.errors import Refusal
from apps.access.models import User
from apps.access.origin import Origin, acting, new_request_id
from apps.retrieval.evaluation.importing import Files, import_set


class Command(BaseCommand):
    help = "Import a test set. No search but its own runs ever sees its corpus."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--corpus", type=Path, required=True, help="JSON lines: _id, title, text, parent, path")
        parser.add_argument("--queries", type=Path, required=True, help="JSON lines: _id, text")
        parser.add_argument("--qrels", type=Path, required=True, help="query, document or section, score; tabs")
        parser.add_argument("--page-qrels", type=Path, default=None)
        parser.add_argument("--store", choices=("docs", "code"), default="docs")
        parser.add_argument("--language", default="english")

    def handle(self, *args: Any, **options: Any) -> None:
        by = next((user for user in User.objects.order_by("pk") if rules.is_administrator(user)), None)
        if by is None:
            raise CommandError("There is no active administrator account; create one first.", returncode=1)
        files = Files(options["corpus"], options["queries"], options["qrels"], options["page_qrels"])
        with acting(Origin(how="command", request_id=new_request_id())):
            try:
                made = import_set(
                    by=by, name=options["name"], files=files, block=options["store"], language=options["language"]
                )
            except Refusal as refusal:
                raise CommandError(refusal.message, returncode=1) from None
        self.stdout.write(f"{made.name}: {made.queries.count()} questions; vectors are made by a job.")
