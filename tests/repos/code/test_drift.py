"""Documents that name what the code no longer has, and public code that no document names."""

from __future__ import annotations

from typing import Any

from django.db import connection

from apps.access.models import User
from apps.indexing.findings import Finding, findings
from apps.indexing.findings_output import as_json, as_sarif
from apps.repos.code.stock import coverage_of
from apps.repos.models import Repository
from apps.repos.models_code import CodeCoverage, CodeDeparture, CodeFile, CodeNode
from apps.repos.standing import is_whole

FIRST = {
    "README.md": (
        "# Kit\n\nCall `resize_widget` with `--max-size`; set `KIT_CACHE_DIR`. See `src/widget.py`.\n\n"
        "`never_here` and `--not-ours` are not ours.\n"
    ),
    "src/widget.py": (
        "import os\n\ndef resize_widget(n):\n    return n\n\ndef paint(n):\n    return n\n\n"
        'def main(parser):\n    parser.add_argument("--max-size")\n    return os.environ["KIT_CACHE_DIR"]\n'
    ),
}


def drift(portal: Any, repository: Repository, *rules: str) -> list[Finding]:
    return findings(portal.admin, repository, rules=rules or ("drift_symbol", "drift_path", "drift_flag", "drift_env"))


def test_repo_docs_10_2_a_rename_is_drift_with_commit_and_survivor(portal: Any, upstream: Any) -> None:
    upstream.commit(FIRST)
    repository, _ = portal.synced(upstream)
    assert drift(portal, repository) == []
    renamed = upstream.commit({"src/widget.py": FIRST["src/widget.py"].replace("resize_widget", "resize_widgets")})
    upstream.commit({"other.txt": "x"})
    portal.sync(repository)
    (found,) = drift(portal, repository)
    assert (found.rule, found.severity, found.path, found.line) == ("drift_symbol", "warning", "README.md", 3)
    assert renamed[:10] in found.message and "src/widget.py" in found.message
    assert "`widget.resize_widgets`" in found.hint
    upstream.commit({"README.md": FIRST["README.md"].replace("`resize_widget`", "`resize_widgets`")})
    portal.sync(repository)
    assert drift(portal, repository) == []


def test_repo_docs_10_2_flags_variables_and_paths(portal: Any, upstream: Any) -> None:
    upstream.commit(FIRST)
    repository, _ = portal.synced(upstream)
    changed = FIRST["src/widget.py"].replace("--max-size", "--maximum-size").replace("KIT_CACHE_DIR", "KIT_CACHE_PATH")
    commit = upstream.commit({"src/widget.py": changed})
    upstream.git("mv", "src/widget.py", "src/widgets.py")
    moved = upstream.commit()
    portal.sync(repository)
    found = {row.rule: row for row in drift(portal, repository)}
    assert set(found) == {"drift_flag", "drift_env", "drift_path"}
    assert commit[:10] in found["drift_flag"].message and "`--maximum-size`" in found["drift_flag"].hint
    assert commit[:10] in found["drift_env"].message and "`KIT_CACHE_PATH`" in found["drift_env"].hint
    assert moved[:10] in found["drift_path"].message and "`src/widgets.py`" in found["drift_path"].hint
    upstream.commit({"src/widget.py": FIRST["src/widget.py"]})
    portal.sync(repository)
    assert drift(portal, repository) == [] and not CodeDeparture.objects.filter(name="--max-size").exists()


def test_what_left_before_the_first_sync_is_found_in_the_history(portal: Any, upstream: Any) -> None:
    upstream.commit(FIRST)
    gone = upstream.commit({"src/widget.py": "def paint(n):\n    return n\n"})
    upstream.commit({"src/widget.py": "def paint(n):\n    return n + 1\n"})
    repository, _ = portal.synced(upstream)
    found = {row.rule: row for row in drift(portal, repository)}
    assert set(found) == {"drift_symbol", "drift_flag", "drift_env"}
    assert all(gone[:10] in row.message for row in found.values())


def test_a_name_that_the_code_never_had_is_no_drift(portal: Any, upstream: Any) -> None:
    upstream.commit(FIRST)
    repository, _ = portal.synced(upstream)
    upstream.commit({"src/widget.py": None})
    portal.sync(repository)
    assert not [row for row in drift(portal, repository) if "never_here" in row.message or "not-ours" in row.message]


def test_undocumented_symbols_with_coverage_of_their_package(portal: Any, upstream: Any) -> None:
    upstream.commit(FIRST)
    repository, _ = portal.synced(upstream)
    rows = drift(portal, repository, "undocumented")
    assert [(row.path, row.line) for row in rows] == [("src/widget.py", 6), ("src/widget.py", 9)]
    assert "`widget.paint`" in rows[0].message and "1 of 3 public symbols of src" in rows[0].message
    assert [(one.package, one.exported, one.documented) for one in coverage_of(repository)] == [("src", 3, 1)]
    upstream.commit({"docs/more.md": "# More\n\n`paint`\n"})
    portal.sync(repository)
    portal.sync(repository, force=True)
    trend = CodeCoverage.objects.filter(repository=repository)
    assert [(row.documented, row.exported) for row in trend] == [(1, 3), (2, 3)]


def test_findings_are_the_readers_own_and_go_out_as_json_and_sarif(portal: Any, upstream: Any) -> None:
    upstream.commit(FIRST)
    repository, _ = portal.synced(upstream)
    upstream.commit({"src/widget.py": FIRST["src/widget.py"].replace("resize_widget", "scale")})
    portal.sync(repository)
    assert findings(User.objects.create_user("otto"), repository) == []
    rows = drift(portal, repository)
    (plain,) = as_json(rows)
    assert (plain["rule"], plain["path"], plain["line"]) == ("drift_symbol", "README.md", 3)
    sarif = as_sarif(rows, commit=repository.synced_commit, uri="https://example.com/acme/site")
    (result,) = sarif["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("drift_symbol", "warning")
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "README.md"}, "region": {"startLine": 3}}
    assert sarif["runs"][0]["versionControlProvenance"][0]["revisionId"] == repository.synced_commit


def test_what_another_version_of_the_parser_no_longer_takes_for_a_symbol_did_not_leave(
    portal: Any, upstream: Any
) -> None:
    upstream.commit({"README.md": "# App\n\nBuilt on `express`; see `start`.\n", "app.js": "function start() {}\n"})
    repository, _ = portal.synced(upstream)
    CodeNode.objects.filter(repository=repository, name="start").update(
        name="express", qualified_name="app.express", key=b"as an older version had it"
    )
    CodeFile.objects.filter(repository=repository).update(version="0")
    upstream.commit({"other.txt": "x"})
    portal.sync(repository)
    assert CodeNode.objects.filter(repository=repository, name="start").exists()
    assert not CodeNode.objects.filter(repository=repository, name="express").exists()
    assert drift(portal, repository) == []
    assert not CodeDeparture.objects.filter(repository=repository).exists()


FAIL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no more rows'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON code_nodes FOR EACH STATEMENT EXECUTE FUNCTION refuse();
"""


def test_a_run_that_died_after_the_documents_is_made_good_at_the_same_commit(portal: Any, upstream: Any) -> None:
    upstream.commit(FIRST)
    repository, _ = portal.synced(upstream)
    renamed = upstream.commit({"src/widget.py": FIRST["src/widget.py"].replace("resize_widget", "resize_widgets")})
    with connection.cursor() as cursor:
        cursor.execute(FAIL)
        assert portal.sync(repository).status == "error"
        assert repository.synced_commit == renamed
        cursor.execute("DROP TRIGGER refuse ON code_nodes")
    assert portal.sync(repository).status == "success"
    (found,) = drift(portal, repository)
    assert found.rule == "drift_symbol" and renamed[:10] in found.message
    assert is_whole(repository), "then it rests"
