"""The rules of lint, by command and as readers see them (facts 26, 32, 84, 94 to 102, 125)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from apps.collections.curation import create_collection
from apps.collections.models import Collection, Document
from apps.collections.trash import trash_document
from apps.indexing.findings import findings, known_rules
from apps.jobs.worker import drain
from apps.knowledge_graph.lint import lint_seen, lint_stored
from apps.knowledge_graph.models import LintFinding, Node
from apps.knowledge_graph.storing.rebuild import rebuild
from tests.knowledge_graph.pages_of_texts import WORKED_EXAMPLE, page_text
from tests.knowledge_graph.test_stored_projection import write

pytestmark = pytest.mark.django_db

Fill = Callable[..., Collection]


@pytest.fixture
def fill(platform: Collection) -> Fill:
    def fill(files: Mapping[str, str], collection: Collection = platform) -> Collection:
        for key, text in files.items():
            write(collection, key, text)
        rebuild("collection", collection.pk)
        return collection

    return fill


def told(collection: Collection, *rules: str) -> list[tuple[str, str, int | None]]:
    return [(f.rule, f.path, f.line) for f in lint_stored(collection) if not rules or f.rule in rules]


def graph(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of ``manage.py graph``."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("graph", *arguments, stdout=out, stderr=err)
    except CommandError as error:
        return error.returncode, out.getvalue(), str(error)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("name", "strict"), [("rotta-logistics", 0), ("prometeo-antincendio", 1), ("passolibero-calzature", 0)]
)
def test_graph_fact_26_samples(name: str, strict: int, fill: Fill, samples: Any, expected: Any, olga: Any) -> None:
    collection = fill(samples(name), create_collection(by=olga, name=name))
    found = [[f.rule, f.severity, f.path or None] for f in lint_stored(collection)]
    assert found == expected[name]["lint_when_source_slug_equals_project"]
    assert graph("lint", "--source", name)[0] == 0
    assert graph("lint", "--source", f"collection/{collection.pk}", "--strict")[0] == strict


def test_graph_fact_04_superseded_without_successor(fill: Fill) -> None:
    files = dict(WORKED_EXAMPLE)
    collection = fill(files)
    assert told(collection) == [("KG104", "", None)]
    assert graph("delete", "decisions//dec-cache-v2.md", "--source", "platform", "--force")[0] == 1  # no administrator
    del files["decisions/dec-cache-v2.md"]


def test_graph_fact_04_by_command(fill: Fill, ada: Any) -> None:
    collection = fill(WORKED_EXAMPLE)
    assert graph("delete", "decisions//dec-cache-v2.md", "--source", "platform", "--force")[0] == 0
    assert Node.objects.count() == 3
    assert ("KG109", "decisions/dec-cache-v1.md", 1) in told(collection)


def test_graph_fact_20_another_project(fill: Fill, olga: Any) -> None:
    collection = fill({"a.md": page_text("a", project="elsewhere"), "b.md": page_text("b", project="platform")})
    assert told(collection, "KG119") == [("KG119", "a.md", 5)]


def test_graph_fact_32_35_and_43_documents_that_are_no_pages(fill: Fill) -> None:
    collection = fill(
        {
            "good.md": page_text("good"),
            "bad.md": "---\nslug: x\ntype: module\nsummary: a: b\n---\nsearchable\n",
            "near.md": "---\nslug: y\ntype: decison\n---\n",
            "foreign.md": "---\nslug: /z\ntype: post\n---\n",
            "open.md": "# A\n\n```\ncode\n",
        }
    )
    assert told(collection, "KG101", "KG114", "KG118") == [
        ("KG101", "bad.md", 4),
        ("KG114", "near.md", 3),
        ("KG118", "open.md", 3),
    ]


def test_graph_fact_82_and_105_hints(fill: Fill) -> None:
    collection = fill(
        {
            "x.md": page_text("x", "[[old]] [[goood]] [[note]] [[old]]"),
            "p.md": page_text("old"),
            "good.md": page_text("good"),
            "note.md": "# Note\n",
        }
    )
    write(collection, "p.md", page_text("new"))
    rebuild("collection", collection.pk)
    hints = {f.names: (f.hint, len(f.related)) for f in lint_stored(collection) if f.rule == "KG105"}
    assert hints["old"] == ("new was called old: add aliases: [old] to it", 1)
    assert hints["goood"] == ("did you mean good?", 0)
    assert hints["note"] == ("note.md is no page: give it type and slug", 0)


def test_graph_fact_84_duplicates(fill: Fill) -> None:
    collection = fill({"a.md": page_text("same"), "b.md": page_text("same")})
    [finding] = [f for f in lint_stored(collection) if f.rule == "KG102"]
    assert (finding.path, finding.severity) == ("b.md", "error")
    assert "a.md, b.md" in finding.message
    assert graph("lint", "--source", "platform")[0] == 1


def test_graph_fact_94_status_of_the_superseded(fill: Fill) -> None:
    collection = fill({"n.md": page_text("n", supersedes="[o]"), "o.md": page_text("o", status="superseded")})
    assert told(collection, "KG107", "KG109") == []
    write(collection, "o.md", page_text("o", status="accepted"))
    rebuild("collection", collection.pk)
    assert told(collection, "KG107", "KG109") == [("KG109", "o.md", 1)]


def test_graph_fact_95_stale_references(fill: Fill, olga: Any) -> None:
    links = "\n\n".join(f"[[{uid}]]" for uid in ("d", "r", "t"))
    collection = fill(
        {
            "a.md": page_text("a", links),
            "z.md": page_text("z", links, status="archived"),
            "d.md": page_text("d", status="deprecated"),
            "r.md": page_text("r", status="archived"),
            "t.md": page_text("t"),
        }
    )
    document = Document.objects.get(source_key="t.md")
    Document.objects.filter(pk=document.pk).update(trashed_at=document.created_at)
    found = [(f.path, f.line, f.message) for f in lint_stored(collection) if f.rule == "KG107"]
    assert found == [("a.md", 7, "d is deprecated"), ("a.md", 9, "r is archived"), ("a.md", 11, "t is deleted")]
    seen = [(f.rule, f.line) for f in lint_seen(olga, collection) if f.path == "a.md" and f.line and f.line > 8]
    assert seen == [("KG107", 9), ("KG105", 11)]


def test_graph_fact_96_a_circle(fill: Fill) -> None:
    pairs = (("a", "b"), ("b", "c"), ("c", "a"))
    collection = fill({f"{uid}.md": page_text(uid, supersedes=f"[{old}]") for uid, old in pairs})
    [finding] = [f for f in lint_stored(collection) if f.rule == "KG108"]
    assert finding.names == "a b c"


def test_graph_fact_98_folders(fill: Fill, elsewhere: Collection) -> None:
    lost = {"runbooks/d.md": page_text("d", type="decision")}
    collection = fill(lost | {"decisions/e.md": page_text("e", type="decision")})
    assert told(collection, "KG113") == [("KG113", "runbooks/d.md", 1)]
    assert told(fill({"d.md": page_text("d", type="decision")}, elsewhere), "KG113") == []


def test_graph_fact_99_empty_sources(platform: Collection) -> None:
    assert graph("lint", "--source", "platform", "--strict") == (0, "", "")
    assert graph("rebuild", "--source", "platform", "--sync")[0] == 0


def test_graph_fact_100_baselines(fill: Fill, tmp_path: Path) -> None:
    files = {"i.md": page_text("i", "[[gone]]", type="project")}
    fill(files)
    baseline = str(tmp_path / "baseline.json")
    assert graph("lint", "--source", "platform")[0] == 0
    assert graph("lint", "--source", "platform", "--strict")[0] == 1
    graph("lint", "--source", "platform", "--write-baseline", baseline)
    code, out, err = graph("lint", "--source", "platform", "--strict", "--baseline", baseline)
    assert (code, "(known)" in out, err) == (0, True, "")
    fill({"i.md": page_text("i", "[[real]]", type="project"), "real.md": page_text("real")})
    code, out, err = graph("lint", "--source", "platform", "--strict", "--baseline", baseline)
    assert (code, out, "repaired" in err) == (0, "", True)
    (tmp_path / "baseline.json").write_text("[]")
    assert graph("lint", "--source", "platform", "--baseline", baseline)[0] == 2


def test_graph_fact_101_formats(fill: Fill) -> None:
    fill({"d i r/n.md": "---\nslug: y\ntype: decison\n---\n", "a.md": page_text("a", "[[gone]]", status="acepted")})
    _, out, _ = graph("lint", "--source", "platform", "--format", "json")
    report = json.loads(out)
    assert set(report) == {"source", "counts", "findings", "stale_baseline"}
    assert {"rule", "severity", "path", "line", "column", "message", "hint", "related", "fingerprint"} == set(
        report["findings"][0]
    )
    _, out, _ = graph("lint", "--source", "platform", "--format", "sarif")
    [run] = json.loads(out)["runs"]
    assert json.loads(out)["version"] == "2.1.0"
    by_rule = {result["ruleId"]: result for result in run["results"]}
    assert run["tool"]["driver"]["rules"][by_rule["KG115"]["ruleIndex"]]["id"] == "KG115"
    place = by_rule["KG114"]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "d%20i%20r/n.md"}, "region": {"startLine": 3, "startColumn": 7}}
    [change] = by_rule["KG115"]["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 4, "startColumn": 9, "endLine": 4, "endColumn": 16},
            "insertedContent": {"text": "accepted"},
        }
    ]


def test_graph_fact_102_fix_repairs_rows_only(fill: Fill) -> None:
    collection = fill(WORKED_EXAMPLE)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE kb_nodes SET label = 'wrong' WHERE node_uid = 'mod-redis-pool'")
    texts = dict(Document.objects.values_list("source_key", "content_hash"))
    _, _, err = graph("lint", "--source", "platform", "--fix")
    assert "changed mod-redis-pool" in err
    assert Node.objects.get(node_uid="mod-redis-pool").label == "Redis pool"
    assert dict(Document.objects.values_list("source_key", "content_hash")) == texts
    assert "nothing to repair" in graph("lint", "--source", "platform", "--fix")[2]
    assert rebuild("collection", collection.pk).total == 0


def test_graph_rules_of_names_and_edges(fill: Fill) -> None:
    collection = fill(
        {
            "i.md": page_text("i", "[[a]] [[b]] [[i]] [[???]]", type="project"),
            "a.md": page_text("a", "# A\n\n[[b#nope]] [[b#Real]] [[b#^x]]", aliases="[b, both]", uses="[b]"),
            "b.md": page_text("b", "# B\n\n## Real\n", aliases="[both]", related="[{slug: a, type: uses, weight: 0.2}]",
                              uses="[{slug: a, weight: 0.3}]", supersedes="[a]", superseded_by="a"),
            "c.md": page_text("c", "[[both]]"),
            "d.md": page_text("d"),
        }
    )  # fmt: skip
    found = {(f.rule, f.path, f.line) for f in lint_stored(collection)}
    assert found >= {
        ("KG117", "i.md", 7),
        ("KG106", "i.md", 7),
        ("KG103", "a.md", 1),
        ("KG103", "b.md", 1),
        ("KG116", "a.md", 11),
        ("KG106", "c.md", 7),
        ("KG111", "d.md", 1),
        ("KG110", "d.md", 1),
    }
    assert {(f.names) for f in lint_stored(collection) if f.rule == "KG112"} == {
        "a invalidated_by",
        "a uses",
        "b>uses>a weights",
    }
    assert sum(f.rule == "KG116" for f in lint_stored(collection)) == 1


def test_graph_findings_of_readers_and_stored(put: Any, platform: Collection, olga: Any) -> None:
    put("a.md", page_text("a", "[[gone]]"))
    drain()
    assert {row.rule for row in LintFinding.objects.all()} == {"KG104", "KG105"}
    seen = findings(olga, platform, rules=("KG105",))
    assert [(each.rule, each.path, each.line) for each in seen] == [("KG105", "a.md", 7)]
    assert set(known_rules()) >= {f"KG{number}" for number in range(101, 122)}
    trash_document(document=Document.objects.get(source_key="a.md"), by=olga)
    assert findings(olga, platform, rules=("KG105",)) == []


def test_graph_fact_125_deleting(put: Any, platform: Collection, ada: Any) -> None:
    put("a/b.md", page_text("b"))
    drain()
    for _ in range(2):
        assert graph("delete", "a//b.md", "--source", "collection/platform")[0] == 0
    assert Document.objects.get().trashed_at is not None
    assert graph("restore", "./a/b.md", "--source", "platform")[0] == 0
    assert Document.objects.get().trashed_at is None
    graph("delete", "a/b.md", "--source", "platform")
    assert graph("delete", "a/b.md", "--source", "platform", "--force")[0] == 0
    assert not Document.objects.exists()
    for path in ("../x.md", "a/b.md", "never.md"):
        assert graph("delete", path, "--source", "platform")[0] == 2
    assert graph("lint", "--source", "nowhere")[0] == 2


def test_graph_names_that_several_sources_bear(platform: Collection, ada: Any) -> None:
    other = create_collection(by=ada, name="Platform")
    code, _, err = graph("lint", "--source", "platform")
    assert code == 2
    assert f"collection/{other.pk}" in err
    assert f"collection/{platform.pk}" in err


def test_graph_export(fill: Fill, olga: Any) -> None:
    fill({"a.md": page_text("a", "[[b]]", title="'<img src=x onerror=alert(1)>'"), "b.md": page_text("b")})
    _, out, _ = graph("export", "--source", "platform", "--as", "olga")
    exported = json.loads(out)
    assert [node["uid"] for node in exported["nodes"]] == ["a", "b"]
    assert [(edge["from"], edge["type"], edge["to"]) for edge in exported["edges"]] == [("a", "depends_on", "b")]
    _, out, _ = graph("export", "--source", "platform", "--format", "graphml")
    assert "&lt;img src=x onerror=alert(1)&gt;" in out
    assert "<img" not in out
    _, out, _ = graph("export", "--source", "platform", "--at", "0")
    assert json.loads(out)["nodes"] == []
    assert graph("export", "--source", "platform", "--at", "9")[0] == 2
