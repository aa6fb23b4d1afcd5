"""Templates by their text: nothing that does not exist, nothing that the security policy refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib import admin
from django.template import engines
from django.urls import URLPattern, URLResolver, get_resolver

from apps.jobs.presentation import STATE_CLASS
from apps.repos.presentation import STATE_FILLS
from cograph_site.templatetags.cograph import STATES

ROOT = Path(settings.BASE_DIR)
TEMPLATES = sorted(path.relative_to(ROOT / "templates").as_posix() for path in (ROOT / "templates").rglob("*.html"))
STYLE = (ROOT / "static/css/cograph.css").read_text()
CLASSES = set(
    re.findall(r"\.(-?[A-Za-z_][\w-]*)", re.sub(r"/\*.*?\*/|url\([^)]*\)|\"[^\"]*\"", "", STYLE, flags=re.DOTALL))
)
ADMIN_STYLES = [*(Path(admin.__file__).parent / "static/admin/css").glob("*.css"), ROOT / "static/css/admin.css"]
ADMIN_CLASSES = {word for path in ADMIN_STYLES for word in re.findall(r"\.(-?[A-Za-z_][\w-]*)", path.read_text())}
TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)


def source(name: str) -> str:
    text = (ROOT / "templates" / name).read_text(encoding="utf-8")
    return re.sub(r"\{% comment %\}.*?\{% endcomment %\}", "", text, flags=re.DOTALL)


def url_names(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for entry in patterns:
        if isinstance(entry, URLPattern):
            if entry.name:
                yield prefix + entry.name
        else:
            inner = f"{prefix}{entry.namespace}:" if entry.namespace else prefix
            yield from url_names(entry.url_patterns, inner)


NAMES = set(url_names(get_resolver().url_patterns))


@pytest.mark.parametrize("name", TEMPLATES)
def test_portal_fact_42_template_names_only_what_exists(name: str) -> None:
    engines["django"].get_template(name)  # tags, filters and parents exist
    text = source(name)
    classes = CLASSES | ADMIN_CLASSES if name.startswith("admin/") else CLASSES
    for value in re.findall(r"class=\"([^\"]*)\"", text):
        for word in TAG.sub(" ", value).split():
            assert word in classes, f"{name}: class {word} is in no style sheet"
    for url in re.findall(r"\{%\s*url\s+['\"]([^'\"]+)['\"]", text):
        assert url in NAMES, f"{name}: no address is named {url}"
    for included in re.findall(r"\{%\s*(?:include|extends)\s+['\"]([^'\"]+)['\"]", text):
        engines["django"].get_template(included)


def test_portal_fact_42_faults_of_each_sort_would_be_found() -> None:
    assert "no-such-class" not in CLASSES
    assert "no-such-name" not in NAMES
    assert {"badge", "reader", "prose", "lines"} <= CLASSES
    assert {"home", "jobs:job", "repos:reader", "access:tokens"} <= NAMES


def test_portal_fact_42_classes_that_python_chooses_exist() -> None:
    chosen = {kind for kind, _ in STATES.values()} | set(STATE_CLASS.values()) | {style for _, style in STATE_FILLS}
    chosen |= {f"fill-{number}" for number in range(1, 7)}
    assert {word for word in chosen if word} <= CLASSES


@pytest.mark.parametrize("name", TEMPLATES)
def test_portal_rule_4_nothing_inline(name: str) -> None:
    text = source(name)
    assert not re.search(r"\sstyle\s*=", text)
    assert not re.search(r"<style\b", text)
    assert not re.search(r"\son[a-z]+\s*=", TAG.sub(" ", text), re.IGNORECASE)
    assert "hx-on" not in text
    assert "js:" not in text
    assert "javascript:" not in text
    for script in re.findall(r"<script\b[^>]*>", text):
        assert " src=" in script, f"{name}: inline script"
    for trigger in re.findall(r"hx-trigger=\"([^\"]*)\"", text):
        assert "[" not in trigger, f"{name}: a trigger filter is evaluated as script"


@pytest.mark.parametrize("name", TEMPLATES)
def test_portal_rule_2_every_hx_get_stands_on_a_working_address(name: str) -> None:
    for element in re.findall(r"<[a-z]+\b[^>]*\bhx-get=[^>]*>", TAG.sub("x", source(name))):
        assert re.search(r"\b(href|action)=", element) or "data-polls" in element, f"{name}: {element[:80]}"


@pytest.mark.parametrize("name", TEMPLATES)
def test_portal_rule_3_no_other_host(name: str) -> None:
    loaded = re.findall(r"(?:src|href|action|poster|data)=\"(https?:)?//[^\"]*\"", source(name))
    assert not loaded
    assert name.endswith("error.html") or "cdn" not in source(name).lower()


def test_portal_rule_52_bytes() -> None:
    import gzip

    import django_htmx

    def packed(*paths: Path) -> int:
        return sum(len(gzip.compress(path.read_bytes(), 9)) for path in paths)

    htmx = Path(django_htmx.__file__).parent / "static/django_htmx/htmx-2.min.js"
    assert packed(htmx, *(ROOT / "static/js").glob("*.js")) <= 40 * 1024
    assert packed(*(ROOT / "static/css").glob("*.css")) <= 30 * 1024


def test_vendored_files_are_listed() -> None:
    listed = (ROOT / "static/VENDOR.md").read_text()
    for path in (ROOT / "static/vendor").rglob("*"):
        if path.is_file():
            assert path.name in listed, f"{path} has no line in static/VENDOR.md"
