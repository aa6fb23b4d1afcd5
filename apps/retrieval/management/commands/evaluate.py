"""``manage.py evaluate SET``: measure the search on a set, alone or against another profile."""

from __future__ import annotations

import dataclasses
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from apps.access import rules
from apps.access.errors import Refusal
from apps.access.models import User
from apps.indexing.models import EmbeddingProfile
from apps.retrieval.evaluation.running import MODES, Compared, Measured, compare, evaluate, record
from apps.retrieval.models_evaluation import EvaluationSet


class Command(BaseCommand):
    help = "nDCG@10, MRR@10 and recall of a set, with times; each run is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("set", metavar="SET")
        parser.add_argument("--mode", choices=MODES, default="hybrid")
        parser.add_argument("--compare", default="", metavar="PROFILE", help="label, or begin of the fingerprint")
        parser.add_argument("--as", dest="user", default="", help="account that asks; default: an administrator")
        parser.add_argument("--format", choices=("text", "json"), default="text")
        parser.add_argument("--commit", default="", help="of the program, kept with the run")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = EvaluationSet.objects.filter(name=options["set"]).first()
        if chosen is None:
            raise CommandError(f"There is no evaluation set {options['set']}.", returncode=1)
        viewer = self._viewer(options["user"])
        try:
            measured = evaluate(set_=chosen, viewer=viewer, mode=options["mode"])
            record(measured, by=viewer, commit=options["commit"])
            other: Measured | None = None
            if options["compare"]:
                other = evaluate(
                    set_=chosen, viewer=viewer, mode=options["mode"], profile=self._profile(options["compare"])
                )
                record(other, by=viewer, commit=options["commit"])
        except Refusal as refusal:
            raise CommandError(refusal.message, returncode=1) from None
        compared = compare(measured, other) if other is not None else []
        if options["format"] == "json":
            self.stdout.write(json.dumps(self._values(measured, other, compared), indent=2, sort_keys=True))
            return
        self._tell(measured)
        if other is not None:
            self._tell(other)
            self._tell_difference(compared)

    def _viewer(self, name: str) -> User:
        users = User.objects.filter(is_active=True).order_by("pk")
        if name:
            found = users.filter(username=name).first()
        else:
            found = next((user for user in users if rules.is_administrator(user)), None)
        if found is None:
            raise CommandError(f"There is no active account {name or 'that administrates'}.", returncode=1)
        return found

    def _profile(self, name: str) -> EmbeddingProfile:
        found = EmbeddingProfile.objects.filter(Q(label=name) | Q(fingerprint__startswith=name)).order_by("pk").first()
        if found is None:
            raise CommandError(f"There is no profile {name}.", returncode=1)
        return found

    def _values(self, measured: Measured, other: Measured | None, compared: list[Compared]) -> dict[str, Any]:
        runs = [
            {
                "set": one.set.name,
                "mode": one.mode,
                "profile": one.profile,
                "metrics": one.metrics,
                "milliseconds": one.times,
                "queries": len(one.wall),
                "stale": one.stale,
            }
            for one in (measured, other)
            if one is not None
        ]
        return {"runs": runs, "compared": [dataclasses.asdict(one) for one in compared]}

    def _tell(self, measured: Measured) -> None:
        profile = f" {measured.profile}" if measured.profile else ""
        self.stdout.write(f"{measured.set.name} {measured.mode}{profile}: {len(measured.wall)} questions")
        for level, metrics in measured.metrics.items():
            numbers = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
            self.stdout.write(f"  {level:8} {numbers}")
        self.stdout.write("  ms       " + "  ".join(f"{name} {value:.1f}" for name, value in measured.times.items()))
        if measured.stale:
            self.stdout.write(f"  {measured.stale} judgements are stale: their place is gone. They were left out.")

    def _tell_difference(self, compared: list[Compared]) -> None:
        for one in compared:
            found = one.difference
            self.stdout.write(
                f"  {one.level:8} difference {found.mean:+.4f}  95 % [{found.low:+.4f}, {found.high:+.4f}]"
            )
            for moved in one.moved:
                self.stdout.write(f"    {moved.before:.3f} -> {moved.after:.3f}  {moved.query}")
