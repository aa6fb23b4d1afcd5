"""Kinds, filters, titles, addresses of pages: pure functions."""

from __future__ import annotations

import uuid

import pytest

from apps.repos.discovery import Filters, Kind, decide, is_side, title_of
from apps.repos.globs import BadPattern, check_pattern, compile_pattern
from apps.repos.slugs import base_slug, free_slug


def kind(path: str, **filters: tuple[str, ...]) -> Kind | None:
    return decide(path, Filters(**filters)).kind


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".github/workflows/sub/ci.yml", None),
        ("sub/Dockerfile", None),
        ("x/deploy/c.yaml", None),
        ("sub/.env.local", Kind.CONFIG),
        ("deploy/a/b.yaml", Kind.CONFIG),
        (".devcontainer/d.json", Kind.CONFIG),
    ],
)
def test_repos_fact_02_config_and_workflow_places(path: str, expected: Kind | None) -> None:
    assert kind(path) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("examples/README.md", Kind.REPO_DOC),
        ("tests/notes.rst", Kind.REPO_DOC),
        ("tests/helper.py", None),
        ("pkg/x_test.go", None),
        ("pkg/tests/x_test.go", Kind.TEST),
    ],
)
def test_repos_fact_03_first_rule_wins(path: str, expected: Kind | None) -> None:
    assert kind(path) is expected


@pytest.mark.parametrize("path", ["build/README.md", ".vscode/a.md", "LICENSE", "notes.txt"])
def test_repos_fact_04_not_taken(path: str) -> None:
    assert kind(path) is None


def test_repos_fact_04_include_adds_a_text_file() -> None:
    assert kind("a/notes.txt", include=("**/*.txt",)) is Kind.REPO_DOC
    assert kind("notes.txt", include=("**/*.txt",)) is Kind.REPO_DOC
    assert kind("notes.txt", include=("**/*.txt",), exclude=("notes.*",)) is None
    assert kind(".claude/skills/x/SKILL.md", include=(".claude/skills/**",)) is Kind.REPO_DOC


def test_repos_rule_3_2_extensions_names_and_folders_without_case() -> None:
    assert kind("README.MD") is Kind.REPO_DOC
    assert kind("Examples/Demo.PY") is Kind.EXAMPLE
    assert kind("dockerfile") is Kind.CONFIG
    assert kind("MAKEFILE") is Kind.CONFIG
    assert kind("docker-compose.prod.yml") is None
    assert kind("docker-compose.yaml") is Kind.CONFIG


def test_repos_rule_3_4_exclude_wins_and_only_limits() -> None:
    filters = Filters(only=("docs/**",), exclude=("docs/old/**",))
    assert decide("docs/a.md", filters).kind is Kind.REPO_DOC
    assert decide("docs/old/a.md", filters).reason == "filtered"
    assert decide("README.md", filters).reason == "filtered"
    assert decide("img.zip", Filters()).reason == "binary"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.md", "a.md", True),
        ("*.md", "docs/a.md", False),
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("docs/**", "docs/a/b.md", True),
        ("docs/**", "docs", False),
        ("docs/", "docs/a.md", True),
        ("/docs/*.md", "docs/a.md", True),
        ("a/**/b.md", "a/b.md", True),
        ("a/**/b.md", "a/x/y/b.md", True),
        ("a?c.md", "abc.md", True),
        ("a?c.md", "a/c.md", False),
        ("[!a]*.md", "b.md", True),
        ("[!a]*.md", "a.md", False),
        ("[a-c]1.md", "b1.md", True),
        ("[[:digit:]].md", "7.md", True),
        ("a[.md", "a[.md", True),
        (r"\*.md", "*.md", True),
        (r"\*.md", "x.md", False),
        ("x**y.md", "xaby.md", True),
        ("x**y.md", "xa/by.md", False),
        ("[]-]a", "]a", True),
    ],
)
def test_repos_rule_3_4_wildmatch(pattern: str, path: str, fits: bool) -> None:
    assert (compile_pattern(pattern).fullmatch(path) is not None) is fits


@pytest.mark.parametrize("pattern", ["", "  ", "a" * 401, "*a" * 13, "a\nb"])
def test_repos_rule_3_4_bad_patterns(pattern: str) -> None:
    with pytest.raises(BadPattern):
        check_pattern(pattern)


def test_repos_rule_5_1_titles() -> None:
    assert title_of(Kind.REPO_DOC, "docs/setup.md", None) == "setup.md"
    assert title_of(Kind.REPO_DOC, "docs/setup.md", "Set up") == "Set up"
    assert title_of(Kind.CONFIG, "pyproject.toml", "ignored") == "Config: pyproject.toml"


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("README.md", "readme"),
        ("docs/installation.md", "installation"),
        ("docs/guides/setup.md", "guides-setup"),
        ("src/auth/login.py", "src-auth-login-py"),
        ("docs/docs.md", "docs"),
        ("docs/部署.md", "部署"),
        ("docs/!!!.md", ""),
        ("pages/docs/x.md", "docs-x"),
        ("Documentation/A  b.RST", "a-b"),
        ("x" * 200 + ".md", "x" * 80),
    ],
)
def test_repos_fact_37_slugs(path: str, slug: str) -> None:
    assert base_slug(path) == slug


def test_repos_fact_37_page_without_letters_gets_four_digits() -> None:
    document = uuid.UUID("12345678-1234-4234-8234-1234567890ab")
    assert free_slug("docs/!!!.md", document, set()) == "page-90ab"


def test_repos_rule_7_2_collisions() -> None:
    document = uuid.UUID("12345678-1234-4234-8234-1234567890ab")
    assert free_slug("overview.md", document, {"overview"}) == "overview-90ab"
    assert free_slug("overview.md", document, {"overview", "overview-90ab"}) == "overview-567890ab"
    long = free_slug("y" * 90 + ".md", document, {"y" * 80})
    assert long == "y" * 75 + "-90ab"


def test_repos_side_folders() -> None:
    assert is_side("src/__fixtures__/a.md")
    assert is_side("vendor/x/README.md")
    assert not is_side("docs/vendor.md")
