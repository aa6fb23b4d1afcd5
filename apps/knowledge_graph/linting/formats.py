"""Findings as JSON and as SARIF 2.1.0, and the baseline of known ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from apps.knowledge_graph.linting.values import RULES, SEVERITY, TITLES, GraphFinding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


class BadBaseline(ValueError):
    """A baseline file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Findings against a baseline. ``stale``: fingerprints that match nothing any more, with how many are missing."""

    new: tuple[GraphFinding, ...]
    known: tuple[GraphFinding, ...]
    stale: Mapping[str, int]

    def fails(self, *, strict: bool) -> bool:
        failing = ("error", "warning") if strict else ("error",)
        return any(finding.severity in failing for finding in self.new)


def compare(findings: Sequence[GraphFinding], baseline: Mapping[str, int]) -> Compared:
    """Of several findings with one fingerprint as many are known as the baseline counts."""
    left = Counter(baseline)
    new: list[GraphFinding] = []
    known: list[GraphFinding] = []
    for finding in findings:
        if left[finding.fingerprint] > 0:
            left[finding.fingerprint] -= 1
            known.append(finding)
        else:
            new.append(finding)
    return Compared(tuple(new), tuple(known), {name: count for name, count in sorted(left.items()) if count > 0})


def baseline_of(findings: Iterable[GraphFinding]) -> dict[str, Any]:
    counts = Counter(finding.fingerprint for finding in findings)
    return {"version": 1, "findings": dict(sorted(counts.items()))}


def read_baseline(data: Any) -> dict[str, int]:
    """The counts of a baseline file. Raises BadBaseline."""
    found = data.get("findings") if isinstance(data, dict) else None
    if not isinstance(found, dict) or data.get("version") != 1:
        raise BadBaseline("not a baseline of this program")
    if not all(isinstance(name, str) and type(count) is int and count > 0 for name, count in found.items()):
        raise BadBaseline("fingerprints must have counts")
    return dict(found)


def as_json(finding: GraphFinding, *, known: bool = False) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "message": finding.message,
        "hint": finding.hint,
        "related": [{"path": place.path, "line": place.line, "note": place.note} for place in finding.related],
        "fingerprint": finding.fingerprint,
        **({"known": True} if known else {}),
    }


def json_report(source: str, compared: Compared) -> dict[str, Any]:
    findings = [as_json(finding) for finding in compared.new]
    findings += [as_json(finding, known=True) for finding in compared.known]
    return {
        "source": source,
        "counts": dict(Counter(finding.severity for finding in compared.new)),
        "findings": findings,
        "stale_baseline": dict(compared.stale),
    }


def sarif_report(compared: Compared) -> dict[str, Any]:
    """One run. Known findings carry a suppression, so that viewers show them apart."""
    rules = [
        {
            "id": rule,
            "name": TITLES[rule].title().replace(" ", ""),
            "shortDescription": {"text": TITLES[rule]},
            "defaultConfiguration": {"level": _LEVELS[SEVERITY[rule]]},
        }
        for rule in RULES
    ]
    results = [_result(finding) for finding in compared.new]
    results += [{**_result(finding), "suppressions": [{"kind": "external"}]} for finding in compared.known]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "cograph", "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _result(finding: GraphFinding) -> dict[str, Any]:
    text = f"{finding.message}. {finding.hint}".strip() if finding.hint else finding.message
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": RULES.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "partialFingerprints": {"cograph/v1": finding.fingerprint},
    }
    if finding.path:
        result["locations"] = [_location(finding.path, finding.line, finding.column)]
    if finding.related:
        result["relatedLocations"] = [_location(place.path, place.line, None) for place in finding.related]
    if finding.fix and finding.line and finding.column:
        written, replacement = finding.fix
        region = {
            "startLine": finding.line,
            "startColumn": finding.column,
            "endLine": finding.line,
            "endColumn": finding.column + len(written),
        }
        change = {"deletedRegion": region, "insertedContent": {"text": replacement}}
        result["fixes"] = [
            {
                "description": {"text": finding.hint},
                "artifactChanges": [
                    {"artifactLocation": {"uri": _uri(finding.path)}, "replacements": [change]},
                ],
            }
        ]
    return result


def _location(path: str, line: int | None, column: int | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    if line:
        physical["region"] = {"startLine": line, **({"startColumn": column} if column else {})}
    return {"physicalLocation": physical}


def _uri(path: str) -> str:
    return quote(path)
