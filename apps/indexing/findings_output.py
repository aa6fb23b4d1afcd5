"""Findings for other programs: JSON, and SARIF 2.1.0 as code hosts and editors read it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from apps.indexing.findings import Finding

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def as_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [
        {
            "rule": finding.rule,
            "severity": finding.severity,
            "message": finding.message,
            "hint": finding.hint,
            "path": finding.path,
            "line": finding.line,
            "column": finding.column,
            "document": str(finding.document_id) if finding.document_id else None,
            "fingerprint": finding.fingerprint,
            "replacement": finding.patch.new if finding.patch else None,
            "since": _moment(finding.since) if finding.since else None,
            "first_commit": finding.first_commit or None,
        }
        for finding in findings
    ]


def as_sarif(findings: Sequence[Finding], *, version: str = "", commit: str = "", uri: str = "") -> dict[str, Any]:
    """One run with all findings. ``commit`` and ``uri`` say of which repository at which state they are."""
    rules = sorted({finding.rule for finding in findings})
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "Cograph",
                **({"semanticVersion": version} if version else {}),
                "rules": [{"id": rule, "name": rule} for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, rules) for finding in findings],
    }
    if commit and uri:
        run["versionControlProvenance"] = [{"repositoryUri": uri, "revisionId": commit}]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, rules: Sequence[str]) -> dict[str, Any]:
    text = f"{finding.message} {finding.hint}".strip()
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
    }
    if finding.path:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.path)}}
        if finding.line:
            region = {"startLine": finding.line}
            if finding.column:
                region["startColumn"] = finding.column
            place["region"] = region
        result["locations"] = [{"physicalLocation": place}]
    if finding.patch and finding.path and finding.line:
        whole = {"startLine": finding.line, "startColumn": 1, "endColumn": len(finding.patch.old) + 1}
        change = {"deletedRegion": whole, "insertedContent": {"text": finding.patch.new}}
        artifact = {"artifactLocation": {"uri": _uri(finding.path)}, "replacements": [change]}
        result["fixes"] = [{"description": {"text": finding.hint or finding.message}, "artifactChanges": [artifact]}]
    if finding.since:
        result["provenance"] = {"firstDetectionTimeUtc": _moment(finding.since)}
    if finding.first_commit:
        result["properties"] = {"firstSeenCommit": finding.first_commit}
    if finding.fingerprint:
        result["partialFingerprints"] = {"cograph/v1": finding.fingerprint}
    return result


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
