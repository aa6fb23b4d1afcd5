"""What is left of names that left the code, in real repositories (``repository-documents.md`` 10.2)."""

from __future__ import annotations

from typing import Any

import pytest

from apps.indexing.findings import Finding, findings
from apps.jobs.models import Job
from apps.jobs.worker import run_job
from apps.repos.code.relinking import request_link_symbols
from apps.repos.models import Repository
from apps.repos.models_code import CodeDeparture

README = "# Kit\n\nCall `resize_widget` or `draw_border` with `--max-size`; set `KIT_CACHE_DIR`. See `src/widget.py`.\n"
WIDGET = '''\
import os


def resize_widget(widget, factor):
    """Make it larger."""
    width = widget.width * factor
    height = widget.height * factor
    return widget.with_size(width, height)


def draw_border(widget, color):
    for edge in widget.edges():
        edge.paint(color)
    return len(widget.edges())


def main(parser):
    parser.add_argument("--max-size", type=int, default=10)
    parser.add_argument("--verbose", action="store_true")
    return os.environ["KIT_CACHE_DIR"]
'''
DRIFT = ("drift_symbol", "drift_path", "drift_flag", "drift_env")


def hints(portal: Any, repository: Repository) -> dict[str, str]:
    found: list[Finding] = findings(portal.admin, repository, rules=DRIFT)
    return {row.message.split("`")[1]: row.hint for row in found}


def nearest(word: str, name: str) -> str:
    return f"The nearest {word} that is left is `{name}`."


@pytest.fixture
def repository(portal: Any, upstream: Any) -> Repository:
    upstream.commit({"README.md": README, "src/widget.py": WIDGET})
    found: Repository = portal.synced(upstream)[0]
    return found


def test_names_that_resemble_nothing_are_followed_through_the_commit_that_renamed_them(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    changed = (
        WIDGET.replace("resize_widget", "scale").replace("--max-size", "--limit").replace("KIT_CACHE_DIR", "STORE_AT")
    )
    commit = upstream.commit({"src/widget.py": changed})
    upstream.commit({"src/widget.py": changed + "\n\ndef more():\n    pass\n"})
    portal.sync(repository)
    assert hints(portal, repository) == {
        "resize_widget": nearest("symbol", "widget.scale"),
        "--max-size": nearest("flag", "--limit"),
        "KIT_CACHE_DIR": nearest("environment variable", "STORE_AT"),
    }
    assert set(CodeDeparture.objects.values_list("commit", flat=True)) == {commit}


def test_names_that_are_renamed_while_their_file_moves_are_followed_into_it(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    changed = (
        WIDGET.replace("resize_widget", "scale").replace("--max-size", "--limit").replace("KIT_CACHE_DIR", "STORE_AT")
    )
    upstream.commit({"src/widget.py": None, "lib/shapes.py": changed})
    portal.sync(repository)
    assert hints(portal, repository) == {
        "resize_widget": nearest("symbol", "shapes.scale"),
        "--max-size": nearest("flag", "--limit"),
        "KIT_CACHE_DIR": nearest("environment variable", "STORE_AT"),
        "src/widget.py": nearest("path", "lib/shapes.py"),
    }


def test_names_that_are_renamed_twice_between_two_syncs_lead_to_what_is_left(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    for symbol, flag in (("scale", "--limit"), ("grow_by", "--ceiling")):
        upstream.commit({"src/widget.py": WIDGET.replace("resize_widget", symbol).replace("--max-size", flag)})
    portal.sync(repository)
    assert hints(portal, repository) == {
        "resize_widget": nearest("symbol", "widget.grow_by"),
        "--max-size": nearest("flag", "--ceiling"),
    }


def test_a_survivor_that_leaves_in_a_later_sync_hands_on_to_its_own(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    for symbol in ("scale", "grow_by", "enlarge"):
        upstream.commit({"src/widget.py": WIDGET.replace("resize_widget", symbol)})
        portal.sync(repository)
    assert hints(portal, repository) == {"resize_widget": nearest("symbol", "widget.enlarge")}


def test_a_body_that_moved_to_another_file_is_known_again_under_its_new_name(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    start, end = WIDGET.index("def draw_border"), WIDGET.index("def main")
    upstream.commit(
        {
            "src/widget.py": WIDGET[:start] + WIDGET[end:],
            "src/frame.py": "def other(widget, color):\n    return color\n\n\n"
            + WIDGET[start:end].replace("draw_border", "outline"),
        }
    )
    portal.sync(repository)
    assert hints(portal, repository) == {"draw_border": nearest("symbol", "frame.outline")}


def test_a_symbol_that_moved_under_its_name_is_named_where_it_is(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    upstream.commit({"README.md": README.replace("`draw_border`", "`widget.draw_border`")})
    start, end = WIDGET.index("def draw_border"), WIDGET.index("def main")
    upstream.commit({"src/widget.py": WIDGET[:start] + WIDGET[end:], "src/frame.py": WIDGET[start:end]})
    portal.sync(repository)
    assert hints(portal, repository) == {"widget.draw_border": nearest("symbol", "frame.draw_border")}


def test_several_names_of_one_file_renamed_at_once_are_told_apart_by_their_bodies(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    changed = WIDGET.replace("resize_widget", "one").replace("draw_border", "two").replace("color", "factor")
    upstream.commit({"src/widget.py": changed.replace("\n\n\n", "\n\n# again\n\n")})
    portal.sync(repository)
    assert hints(portal, repository) == {
        "resize_widget": nearest("symbol", "widget.one"),
        "draw_border": nearest("symbol", "widget.two"),
    }


def test_a_file_that_is_renamed_and_changed_is_followed_by_its_content(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    (upstream.path / "lib").mkdir()
    for old, new in (("src/widget.py", "lib/shape.py"), ("lib/shape.py", "lib/form.py")):
        upstream.git("mv", old, new)
        upstream.commit({new: f"{WIDGET}\n\nSIDE = {len(new)}\n"})
    portal.sync(repository)
    assert hints(portal, repository) == {"src/widget.py": nearest("path", "lib/form.py")}


def test_renames_before_the_first_sync_are_followed_too(portal: Any, upstream: Any) -> None:
    upstream.commit({"README.md": README, "src/widget.py": WIDGET})
    upstream.commit(
        {"src/widget.py": WIDGET.replace("resize_widget", "scale").replace("--max-size", "--limit"), "x.txt": "x"}
    )
    upstream.commit({"src/widget.py": WIDGET.replace("resize_widget", "enlarge").replace("--max-size", "--top")})
    repository, _ = portal.synced(upstream)
    assert hints(portal, repository) == {
        "resize_widget": nearest("symbol", "widget.enlarge"),
        "--max-size": nearest("flag", "--top"),
    }


def test_flags_and_methods_of_other_languages(portal: Any, upstream: Any) -> None:
    go = 'package main\n\nimport "flag"\n\nfunc main() {\n\tflag.Int("max-size", 3, "how large")\n}\n'
    script = (
        "export class Widget {\n  resizeTo(width: number): number {\n    return width * this.factor(width)\n  }\n\n"
        "  factor(of: number): number {\n    return process.env.KIT_SCALE ? of : 1\n  }\n}\n"
    )
    document = "# Kit\n\n`--max-size` is of the server, `resizeTo` of the page, `KIT_SCALE` too.\n"
    upstream.commit({"README.md": document, "main.go": go, "page.ts": script})
    repository, _ = portal.synced(upstream)
    commit = upstream.commit(
        {
            "main.go": go.replace("max-size", "limit"),
            "page.ts": script.replace("resizeTo", "fit").replace("KIT_SCALE", "ZOOM_AT"),
        }
    )
    upstream.commit({"x.txt": "x"})
    portal.sync(repository)
    assert hints(portal, repository) == {
        "--max-size": nearest("flag", "--limit"),
        "resizeTo": nearest("symbol", "page.Widget.fit"),
        "KIT_SCALE": nearest("environment variable", "ZOOM_AT"),
    }
    assert set(CodeDeparture.objects.values_list("commit", flat=True)) == {commit}


def test_what_resembles_nothing_that_is_left_has_no_survivor(
    portal: Any, upstream: Any, repository: Repository
) -> None:
    upstream.commit({"src/widget.py": "def zip():\n    return 1\n"})
    portal.sync(repository)
    assert hints(portal, repository) == {
        "resize_widget": "No symbol that is left resembles it.",
        "draw_border": "No symbol that is left resembles it.",
        "--max-size": "No flag that is left resembles it.",
        "KIT_CACHE_DIR": "No environment variable that is left resembles it.",
    }


def relinked(portal: Any, repository: Repository) -> Job:
    job = run_job(request_link_symbols(repository=repository, by=portal.admin).job.pk)
    assert job is not None
    return job


def test_a_forced_re_link_heals_mentions_and_survivors(portal: Any, upstream: Any, repository: Repository) -> None:
    upstream.commit({"src/widget.py": WIDGET.replace("resize_widget", "resize_widgets")})
    portal.sync(repository)
    right = hints(portal, repository)
    assert right == {"resize_widget": nearest("symbol", "widget.resize_widgets")}
    CodeDeparture.objects.filter(name="resize_widget").update(survivor="widget.never_was")
    CodeDeparture.objects.create(
        repository=repository, kind="flag", name="--max-size", qualified_name="--max-size", path="src/widget.py"
    )
    assert set(hints(portal, repository)) == {"resize_widget", "--max-size"}
    assert relinked(portal, repository).status == "success"
    assert hints(portal, repository) == right
    upstream.commit({"README.md": README.replace("resize_widget", "resize_widgets")})
    portal.sync(repository)
    relinked(portal, repository)
    assert hints(portal, repository) == {}
