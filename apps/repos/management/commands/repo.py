"""``manage.py repo add URL | sync SLUG | list``: what the pages do, as administrator, local paths allowed."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.access import rules
from apps.access.errors import Refusal
from apps.access.models import User
from apps.access.origin import Origin, acting, new_request_id
from apps.access.rules import Visibility
from apps.jobs.models import Job, Status
from apps.jobs.terminal import Bar
from apps.jobs.worker import run_job
from apps.repos.models import Repository, Schedule
from apps.repos.registration import NewCredential, register_repository, request_sync

POLL_SECONDS = 0.5


class Command(BaseCommand):
    help = "Add, sync and list repositories."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="register a repository and sync it")
        add.add_argument("url", help="https address, or a local path")
        add.add_argument("--name", default="", help="last part of the slug, for another branch of one address")
        add.add_argument("--branch", default="", help="followed branch; default: the one that HEAD names")
        add.add_argument("--depth", type=int, default=None, help="commits to fetch; default: all")
        add.add_argument("--visibility", choices=Visibility.values, default=Visibility.PRIVATE)
        add.add_argument("--schedule", choices=Schedule.values, default=Schedule.MANUAL)
        add.add_argument("--only", action="append", default=[], metavar="GLOB")
        add.add_argument("--include", action="append", default=[], metavar="GLOB")
        add.add_argument("--exclude", action="append", default=[], metavar="GLOB")
        # SECURITY: a token on the command line would stand in the process list and the shell's history.
        add.add_argument("--credential-stdin", action="store_true", help="read an access token from standard input")
        add.add_argument("--no-sync", action="store_true", help="register only")
        sync = acts.add_parser("sync", help="sync a repository now and wait for the end")
        sync.add_argument("slug")
        sync.add_argument("--force", action="store_true", help="list again, and try skipped files again")
        acts.add_parser("list", help="all repositories with their state")

    def handle(self, *args: Any, **options: Any) -> None:
        with acting(Origin(how="command", request_id=new_request_id())):
            try:
                getattr(self, f"_{options['act']}")(options)
            except Refusal as refusal:
                where = f"{refusal.field}: " if refusal.field else ""
                raise CommandError(f"{where}{refusal.message}", returncode=1) from None

    def _administrator(self) -> User:
        found = next((user for user in User.objects.order_by("pk").iterator() if rules.is_administrator(user)), None)
        if found is None:
            raise CommandError("There is no active administrator account; create one first.", returncode=1)
        return found

    def _add(self, options: dict[str, Any]) -> None:
        credential = NewCredential(secret=sys.stdin.readline().strip()) if options["credential_stdin"] else None
        registered = register_repository(
            by=self._administrator(),
            git_url=options["url"],
            name=options["name"],
            visibility=options["visibility"],
            credential=credential,
            trusted_path=True,
            sync=not options["no_sync"],
            branch=options["branch"],
            depth=options["depth"],
            schedule=options["schedule"],
            only=options["only"],
            include=options["include"],
            exclude=options["exclude"],
        )
        self.stdout.write(registered.repository.slug)
        if not options["no_sync"]:
            self._work(registered.job)

    def _sync(self, options: dict[str, Any]) -> None:
        administrator = self._administrator()
        repository = Repository.objects.visible_to(administrator).by_slug(options["slug"]).first()
        if repository is None:
            raise CommandError(f"There is no repository {options['slug']}.", returncode=1)
        self._work(request_sync(repository=repository, by=administrator, force=options["force"]).job)

    def _list(self, options: dict[str, Any]) -> None:
        for repository in Repository.objects.visible_to(self._administrator()).with_state().order_by("slug"):
            state = "syncing" if repository.is_syncing else repository.get_state_display()
            stale = f"\tstale since {repository.last_checked_at:%Y-%m-%d %H:%M}Z" if repository.is_stale else ""
            commit = repository.synced_commit[:7] or "-"
            self.stdout.write(f"{repository.slug}\t{repository.visibility}\t{state}\t{commit}{stale}")

    def _work(self, job: Job) -> None:
        """Run the job here, or wait for the worker that has it; show how it goes; fail when it fails."""
        with Bar(job, sys.stderr):
            done = run_job(job.pk)
            while done is None or done.is_live:
                time.sleep(POLL_SECONDS)
                done = run_job(job.pk) or Job.objects.get(pk=job.pk)
        if done.status != Status.SUCCESS:
            cause = done.error_message or done.state_words
            raise CommandError(f"{cause} ({done.error_code or done.status})", returncode=1)
        self.stdout.write(done.outcome)
        for item in done.items.filter(warning=True).order_by("path")[:20]:
            self.stderr.write(f"{item.path}: {item.message or item.reason}")
