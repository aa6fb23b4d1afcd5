"""``manage.py ingest COLLECTION PATH...``: upload files, folders and archives from this machine, with a bar."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.access import rules
from apps.access.errors import Refusal
from apps.access.models import User
from apps.access.origin import Origin, acting, new_request_id
from apps.collections.curation import create_collection
from apps.collections.keys import ending, is_document
from apps.collections.models import Collection
from apps.collections.uploads import Staged, stage_archive, stage_batch
from apps.jobs.models import ItemState, Job, Status
from apps.jobs.terminal import Bar
from apps.jobs.worker import run_job

POLL_SECONDS = 0.5
QUIET = frozenset({ItemState.UNCHANGED})


class Command(BaseCommand):
    help = "Upload documents into a collection: files, folders and zip archives. Nothing is deleted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("collection", help="id, slug or name")
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="file, folder or zip archive")
        parser.add_argument("--into", default="", metavar="FOLDER", help="put all keys below this folder")
        parser.add_argument("--as", dest="user", default="", help="account that uploads; default: an administrator")
        parser.add_argument("--create", action="store_true", help="make the collection (private) when there is none")
        parser.add_argument("--all", action="store_true", help="name unchanged files too")

    def handle(self, *args: Any, **options: Any) -> None:
        with acting(Origin(how="command", request_id=new_request_id())):
            try:
                failed = self._ingest(options)
            except Refusal as refusal:
                raise CommandError(refusal.message, returncode=1) from None
        if failed:
            raise CommandError(f"{failed} files were left out.", returncode=1)

    def _ingest(self, options: dict[str, Any]) -> int:
        by = self._user(options["user"])
        collection = self._collection(by, options["collection"], create=options["create"])
        failed = 0
        for staged in self._staged(collection, by, options["paths"], options["into"].strip("/")):
            job = self._work(staged.job)
            if job.status != Status.SUCCESS:
                raise CommandError(f"{job.error_message or job.state_words} (job {job.pk})", returncode=1)
            failed += self._report(job, everything=options["all"])
        return failed

    def _user(self, name: str) -> User:
        if name:
            named = User.objects.filter(username=name, is_active=True).first()
            if named is None:
                raise CommandError(f"There is no active account {name}.", returncode=1)
            return named
        found = next((user for user in User.objects.order_by("pk").iterator() if rules.is_administrator(user)), None)
        if found is None:
            raise CommandError("There is no active administrator account; create one first.", returncode=1)
        return found

    def _collection(self, by: User, name: str, *, create: bool) -> Collection:
        rows = Collection.objects.visible_to(by)
        try:
            found = list(rows.filter(pk=UUID(name))[:1])
        except ValueError:
            found = list(rows.filter(slug=name)[:2]) or list(rows.filter(name__iexact=name)[:2])
        if len(found) > 1:
            raise CommandError(f"Several collections are called {name}; give the id.", returncode=1)
        if found:
            one: Collection = found[0]
            return one
        if not create:
            raise CommandError(f"There is no collection {name}. Add --create to make it.", returncode=1)
        return create_collection(by=by, name=name)

    def _staged(self, collection: Collection, by: User, paths: list[Path], into: str) -> Iterator[Staged]:
        for path in paths:
            if not path.exists():
                raise CommandError(f"There is no file or folder {path}.", returncode=1)
        limits = settings.COGRAPH.upload
        batch: list[tuple[str, bytes, str | None]] = []
        held = 0
        for path, key in _files(paths):
            if ending(path.name) == ".zip":
                with path.open("rb") as file:
                    yield stage_archive(collection=collection, by=by, file=file, size=path.stat().st_size)
                continue
            size = path.stat().st_size
            if batch and (len(batch) >= limits.batch_files or held + size > limits.batch_bytes):
                yield stage_batch(collection=collection, by=by, entries=batch)
                batch, held = [], 0
            batch.append((f"{into}/{key}" if into else key, path.read_bytes(), None))
            held += size
        if batch:
            yield stage_batch(collection=collection, by=by, entries=batch)

    def _work(self, job: Job) -> Job:
        """Run the job here, or wait for the worker that has it; in a terminal with a bar."""
        with Bar(job, sys.stderr):
            done = run_job(job.pk)
            while done is None or done.is_live:
                time.sleep(POLL_SECONDS)
                done = run_job(job.pk) or Job.objects.get(pk=job.pk)
        return done

    def _report(self, job: Job, *, everything: bool) -> int:
        """A line a file and the sum; returns how many were left out."""
        left_out = 0
        for item in job.items.order_by("path").iterator(chunk_size=500):
            refused = item.state in (ItemState.ERROR, ItemState.SKIPPED, ItemState.QUARANTINED)
            left_out += refused
            if item.state in QUIET and not everything:
                continue
            place = f":{item.line}:{item.column or 1}" if item.line else ""
            words = f"  {item.message or item.reason}" if item.message or item.reason else ""
            (self.stderr if refused else self.stdout).write(f"{item.state:<10} {item.path}{place}{words}")
        self.stdout.write(job.outcome)
        return left_out


def _files(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """Each file with its key: its path below the folder that was named, or its name."""
    for path in paths:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                # A link out of the folder is not followed: what is uploaded is what lies there.
                hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
                if file.is_file() and not file.is_symlink() and not hidden and is_document(file.name):
                    yield file, file.relative_to(path).as_posix()
        else:
            yield path, path.name
