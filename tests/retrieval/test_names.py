"""Who names a file or a heading gets it: `retrieval.md` facts 30 to 47, on words alone, which is fact 127."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.access.models import User
from apps.retrieval.search import search
from apps.retrieval.values import Answer, Hit, Question
from tests.retrieval.library import repository_of

pytestmark = pytest.mark.django_db
Ask = Callable[[str], Answer]

CONTRIBUTING = """# Contributing to Kit

Thank you for wanting to help.

## Ground rules

Be kind and say what you mean.

## Setting up

Install the toolchain, then run the setup script.

## Running checks

Run every check before you send a change.

## Writing commits

One commit does one thing.

## Sending changes

Open a request and describe the reason.

## Review

Somebody answers within two days.

## Next point

Look at the calendar of the team for the next meeting.

## Cloning the repo on Windows

Turn on long paths and symbolic links first.

## Backlog

Everything that waits stands on the board of the tracker.
"""

FILES = {
    "README.md": "# Kit\n\nA kit of small parts.\n\n## Install\n\nAdd it to your project.\n",
    "CONTRIBUTING.md": CONTRIBUTING,
    "docs/setup.md": "# Setup\n\nHow to prepare a machine.\n\n## Needs\n\nA compiler.\n",
    "x/setup.md": "# Setup of x\n\nOnly for the part x.\n",
    "docs/troubleshooting.md": "# Troubleshooting\n\nWhat to do when it fails.\n\n## Logs\n\nRead the log first.\n",
    "docs/faq.md": "# Questions\n\n## Troubleshooting\n\nSee the other page.\n",
    "docs/settings.md": (
        "# Settings\n\nEvery option.\n\n## Which value counts\n\n"
        "When a setting is given in two places, the one nearer to the command counts.\n\n"
        "## Names\n\nNames are lower case.\n"
    ),
    "packages/widget/README.md": "# Widget\n\nDraws a widget.\n",
    "test/fixtures/README.md": "# Fixture\n\nA file for tests.\n",
    "docs/other.md": "# Other\n\nClone a copy of the repository with the usual command on any system.\n",
    "src/widget.py": "def resize_widget(widget, width):\n    widget.width = width\n    return widget\n",
}


@pytest.fixture
def kit(db: None, tmp_path: Path, settings: Any) -> Ask:
    settings.COGRAPH = dataclasses.replace(
        settings.COGRAPH,
        data_dir=str(tmp_path / "var"),
        embedding=dataclasses.replace(settings.COGRAPH.embedding, backend="none"),
    )
    admin = User.objects.create_superuser("ada", password="x")
    repository_of(tmp_path / "acme" / "kit", FILES, admin)
    return lambda query: search(viewer=admin, question=Question(query=query))


def section(hit: Hit) -> tuple[str, str]:
    return hit.path, hit.heading_path[-1] if hit.heading_path else ""


def paths(answer: Answer) -> list[str]:
    return list(dict.fromkeys(hit.path for hit in answer.hits))


def test_names_lead_to_files_and_headings(kit: Ask) -> None:
    """One repository, many questions: each line is a fact of its own."""
    # 30
    first = kit("the contributing guide").hits[0]
    assert first.path == "CONTRIBUTING.md"
    assert section(first)[1] in {"Contributing to Kit", "Ground rules"}
    # 31
    spellings = [kit(query) for query in ("CONTRIBUTING.md", "contributing.md", "./CONTRIBUTING.md")]
    assert {answer.hits[0].path for answer in spellings} == {"CONTRIBUTING.md"}
    assert len({tuple(section(hit) for hit in answer.hits[:3]) for answer in spellings}) == 1
    assert all(answer.hits[0].snippet.text.strip() for answer in spellings)
    # 32
    assert paths(kit("docs/setup.md"))[0] == "docs/setup.md"
    assert "x/setup.md" in paths(kit("docs/setup.md"))
    assert paths(kit("setup.md"))[:2] == ["docs/setup.md", "x/setup.md"]
    # 33
    assert paths(kit("readme"))[0] == "README.md"
    assert "packages/widget/README.md" in paths(kit("readme"))
    assert "test/fixtures/README.md" not in paths(kit("readme"))
    assert paths(kit("test/fixtures/README.md"))[0] == "test/fixtures/README.md"
    assert paths(kit("README.md"))[0] == "README.md"
    assert "test/fixtures/README.md" not in paths(kit("README.md"))
    # 34
    found = paths(kit("readme of the widget package"))
    assert found[0] == "packages/widget/README.md"
    assert "README.md" in found
    # 36
    assert section(kit("which of two settings counts when both are given").hits[0]) == (
        "docs/settings.md",
        "Which value counts",
    )
    # 37
    assert paths(kit("troubleshooting"))[0] == "docs/troubleshooting.md"
    assert ("docs/faq.md", "Troubleshooting") in [section(hit) for hit in kit("troubleshooting").hits]
    assert paths(kit("setup"))[0] == "docs/setup.md"
    # 38
    windows = ("CONTRIBUTING.md", "Cloning the repo on Windows")
    assert section(kit("the contributing guide for windows").hits[0]) == windows
    # 39
    assert section(kit("cloning on windows").hits[0]) == windows
    assert section(kit("the tracker backlog").hits[0]) == ("CONTRIBUTING.md", "Backlog")
    # 40
    assert section(kit("next point").hits[0]) == ("CONTRIBUTING.md", "Next point")
    # what a hit says about it
    hit = kit("CONTRIBUTING.md").hits[0]
    assert (hit.name_class, hit.streams["name"].rank) == ("spelled", 1)


FILLER = "Plain words of the middle that say little at all. " * 40
MORE = {
    # 41 and 42: headings that share words, and one rare word
    "docs/gull-colony.md": (
        "# Gull colony\n\nAll about it.\n\n## Colony in spring\n\nThe gull colony stirs.\n\n"
        "## Colony in autumn\n\nThe gull colony leaves by the estuary.\n\n## Counting\n\nThe gull colony is counted.\n"
    ),
    # 43
    "docs/often.md": f"# Tern log\n\n## Often\n\n{'A whimbrel. ' * 10}\n",
    "docs/both.md": "# Tern notes\n\n## Both\n\nA whimbrel in the saltmarsh.\n",
    "docs/third.md": "# Tern places\n\n## Third\n\nA saltmarsh.\n",
    # 44
    "docs/avocet.md": f"# Avocet\n\n## One\n\n{FILLER}\n\n## Two\n\n{FILLER}\n\n## Three\n\n{FILLER}\n",
    "docs/godwit.md": f"# Godwit\n\n{FILLER}\n\n## One\n\n{FILLER}\n",
    # 45
    "docs/deep.md": f"# Deep\n\n{FILLER}\n\n## Middle\n\n{FILLER}\n\n### Lower\n\nThe bittern booms.\n\n{FILLER}\n",
    # 46
    "docs/manual.md": "# Manual\n\nHow it works.\n",
    "vendor/manual.md": "# Manual\n\nHow something else works.\n",
    # 47
    "docs/bare.md": "One line without a heading.\n",
    "docs/empty.md": "---\ntitle: Empty one\n---\n",
}


def test_retrieval_fact_127_inside_files_that_are_named(kit: Ask, tmp_path: Path) -> None:
    """Facts 35 and 41 to 47, with ``none`` as embedder as above."""
    # 35
    assert kit("how do i resize a widget").hits[0].path == "src/widget.py"
    admin = User.objects.get(username="ada")
    shore = repository_of(tmp_path / "acme" / "shore", MORE, admin)

    def ask(query: str) -> Answer:
        return search(viewer=admin, question=Question(query=query, sources=(("repository", shore.pk),)))

    # 41
    assert paths(ask("gull-colony.md"))[0] == "docs/gull-colony.md"
    assert section(ask("gull colony").hits[0])[0] == "docs/gull-colony.md"
    # 42
    assert section(ask("gull-colony.md estuary").hits[0]) == ("docs/gull-colony.md", "Colony in autumn")
    # 43
    assert section(ask("whimbrel saltmarsh").hits[0]) == ("docs/both.md", "Both")
    # 44
    assert "Avocet" not in [section(hit)[1] for hit in ask("avocet.md").hits if hit.path == "docs/avocet.md"]
    assert section(ask("godwit.md").hits[0]) == ("docs/godwit.md", "Godwit")
    # 45
    assert section(ask("bittern booms").hits[0]) == ("docs/deep.md", "Lower")
    # 46
    found = paths(ask("manual.md"))
    assert found[0] == "docs/manual.md"
    assert "vendor/manual.md" not in found
    assert paths(ask("vendor/manual.md"))[0] == "vendor/manual.md"
    # 47
    hit = ask("bare.md").hits[0]
    assert (hit.path, hit.snippet.text.strip()) == ("docs/bare.md", "One line without a heading.")
    hit = ask("empty.md").hits[0]
    assert (hit.path, hit.title, hit.snippet.text) == ("docs/empty.md", "Empty one", "")
    assert ask("bare.md").profile == ""


def test_a_document_named_only_by_common_words_is_found(kit: Ask, tmp_path: Path) -> None:
    admin = User.objects.get(username="ada")
    repository_of(tmp_path / "acme" / "odd", {"docs/a.md": "# What is the\n\nThe text of it.\n"}, admin)
    answer = kit("what is the")
    assert [hit.path for hit in answer.hits] == ["docs/a.md"]
    assert kit("of the").empty is not None
