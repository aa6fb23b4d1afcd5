"""``manage.py graph rebuild|lint|delete|restore|export``: answers to standard output, messages to standard error.

Exit codes: 0 done, 1 failed or findings that fail, 2 wrong usage or an unknown source.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.access import rules
from apps.access.errors import Invalid, NotFound, Refusal
from apps.access.models import User
from apps.access.origin import Origin, acting, new_request_id
from apps.access.sources import Source
from apps.jobs.queue import enqueue
from apps.knowledge_graph import export
from apps.knowledge_graph.deleting import delete_page, restore_page
from apps.knowledge_graph.lint import lint_stored, refresh_findings
from apps.knowledge_graph.linting import formats
from apps.knowledge_graph.linting.values import GraphFinding
from apps.knowledge_graph.naming_sources import SourceUnclear, find_by_name, source_word
from apps.knowledge_graph.observing import PROJECT_GRAPH
from apps.knowledge_graph.past import graph_at
from apps.knowledge_graph.reader import open_graph
from apps.knowledge_graph.storing.history import HistoryUnavailable
from apps.knowledge_graph.storing.rebuild import rebuild
from apps.knowledge_graph.storing.sources import find_graph

FAILED, USAGE = 1, 2


class Command(BaseCommand):
    help = "Rebuild, check, export the knowledge graph of a source; delete and restore its pages."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        rebuilt = acts.add_parser("rebuild", help="project all pages again and apply the difference")
        rebuilt.add_argument("--sync", action="store_true", help="do it now and print the difference")
        rebuilt.add_argument("--dry-run", action="store_true", help="print the difference, change nothing")
        lint = acts.add_parser("lint", help="check the pages of a source")
        lint.add_argument("--strict", action="store_true", help="warnings fail too")
        lint.add_argument("--format", choices=("text", "json", "sarif"), default="text")
        lint.add_argument("--fix", action="store_true", help="put derived rows right first; no source is edited")
        lint.add_argument("--baseline", metavar="FILE", help="findings that are known and do not fail")
        lint.add_argument("--write-baseline", metavar="FILE")
        delete = acts.add_parser("delete", help="delete a page; it can be restored")
        delete.add_argument("path")
        delete.add_argument("--force", action="store_true", help="for good")
        restore = acts.add_parser("restore", help="take back a soft delete")
        restore.add_argument("path")
        exported = acts.add_parser("export", help="print the whole graph")
        exported.add_argument("--format", choices=export.FORMATS, default="json")
        exported.add_argument("--as", dest="viewer", metavar="USER", help="only what this user sees")
        exported.add_argument("--at", type=int, metavar="REVISION", help="as it was then")
        exported.add_argument("--output", metavar="FILE")
        for one in (rebuilt, lint, delete, restore, exported):
            one.add_argument("--source", required=True, help="repo/<slug>, collection/<id or slug>, or a plain name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            source = find_by_name(options["source"])
        except SourceUnclear as unclear:
            raise CommandError(str(unclear), returncode=USAGE) from None
        with acting(Origin(how="command", request_id=new_request_id())):
            try:
                getattr(self, f"_{options['act']}")(source, options)
            except NotFound:
                raise CommandError(f"There is no {options['path']} in {source.label}.", returncode=USAGE) from None
            except Invalid as invalid:
                raise CommandError(invalid.message, returncode=USAGE) from None
            except Refusal as refusal:
                raise CommandError(refusal.message, returncode=FAILED) from None
            except HistoryUnavailable as failure:
                raise CommandError(str(failure), returncode=FAILED) from None

    def _rebuild(self, source: Source, options: dict[str, Any]) -> None:
        if options["sync"] or options["dry_run"]:
            report = rebuild(source.kind, source.pk, dry_run=options["dry_run"])
            if not options["dry_run"]:
                refresh_findings(source)
            self.stdout.write(json.dumps(report.as_json(), indent=1))
            return
        self.stdout.write(str(enqueue(PROJECT_GRAPH, source=source).job.pk))

    def _lint(self, source: Source, options: dict[str, Any]) -> None:
        if options["fix"]:
            report = rebuild(source.kind, source.pk, cause="fix")
            self.stderr.write(f"repaired: {json.dumps(report.as_json())}" if report.total else "nothing to repair")
        findings = lint_stored(source)
        if options["write_baseline"]:
            text = json.dumps(formats.baseline_of(findings), indent=1) + "\n"
            Path(options["write_baseline"]).write_text(text, encoding="utf-8")
        compared = formats.compare(findings, self._baseline(options["baseline"]))
        if options["format"] == "sarif":
            self.stdout.write(json.dumps(formats.sarif_report(compared), indent=1))
        elif options["format"] == "json":
            self.stdout.write(json.dumps(formats.json_report(source_word(source), compared), indent=1))
        else:
            for finding in compared.new:
                self.stdout.write(_line(finding))
            for finding in compared.known:
                self.stdout.write(f"{_line(finding)} (known)")
        for fingerprint, count in compared.stale.items():
            self.stderr.write(f"the baseline names {fingerprint} {count} times too often; it is repaired")
        if compared.fails(strict=options["strict"]):
            raise SystemExit(FAILED)

    def _baseline(self, name: str | None) -> dict[str, int]:
        if not name:
            return {}
        try:
            return formats.read_baseline(json.loads(Path(name).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise CommandError(f"{name}: {error}", returncode=USAGE) from None

    def _delete(self, source: Source, options: dict[str, Any]) -> None:
        done = delete_page(source=source, path=options["path"], by=_administrator(), force=options["force"])
        self.stderr.write("deleted" if done else "it was deleted before")

    def _restore(self, source: Source, options: dict[str, Any]) -> None:
        done = restore_page(source=source, path=options["path"], by=_administrator())
        self.stderr.write("restored" if done else "it was not deleted")

    def _export(self, source: Source, options: dict[str, Any]) -> None:
        graph = find_graph(source.kind, source.pk)
        revision = graph.revision if graph else 0
        if options["viewer"] is not None:
            if options["at"] is not None:
                raise CommandError("--as shows the present; leave out --at", returncode=USAGE)
            user = User.objects.filter(username=options["viewer"]).first()
            if user is None:
                raise CommandError(f"There is no user {options['viewer']}.", returncode=USAGE)
            nodes, edges = export.reader_rows(*open_graph(user, source))
        elif graph is None:
            nodes, edges = [], []
        else:
            if options["at"] is not None:
                if not 0 <= options["at"] <= revision:
                    raise CommandError(f"Revisions are 0 to {revision}.", returncode=USAGE)
                revision = options["at"]
            nodes, edges = export.past_rows(graph_at(graph, revision))
        pieces = export.write(options["format"], source_word(source), revision, nodes, edges)
        if options["output"]:
            with Path(options["output"]).open("w", encoding="utf-8") as out:
                out.writelines(pieces)
        else:
            self.stdout.write("".join(pieces), ending="")


def _line(finding: GraphFinding) -> str:
    place = ":".join(str(part) for part in (finding.path, finding.line, finding.column) if part)
    hint = f" ({finding.hint})" if finding.hint else ""
    return f"{place or '-'}: {finding.rule} {finding.severity}: {finding.message}{hint}"


def _administrator() -> User:
    found = next((user for user in User.objects.order_by("pk").iterator() if rules.is_administrator(user)), None)
    if found is None:
        raise CommandError("There is no active administrator account; create one first.", returncode=FAILED)
    return found
