"""Where links lead inside a collection: `collections.md` facts 28 to 44."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.access.errors import UnsupportedType
from apps.access.models import User
from apps.collections.curation import create_collection
from apps.collections.links import Page, Resolution, Shelf, Written
from apps.collections.models import Collection, Document, DocumentLink
from apps.collections.trash import trash_document
from apps.collections.uploads import upload_document
from apps.jobs.worker import drain
from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import Decoded, Limits, ParsedDocument


class Library:
    """A shelf made of texts, with links asked by key."""

    def __init__(self, **files: str) -> None:
        self.ids: dict[UUID, str] = {}
        self.parsed: dict[str, ParsedDocument] = {}
        pages = []
        for key, text in files.items():
            decoded = decode(text.encode(), Limits())
            assert isinstance(decoded, Decoded)
            parsed = parse(decoded, key, Limits())
            assert isinstance(parsed, ParsedDocument)
            self.parsed[key] = parsed
            id = uuid4()
            self.ids[id] = key
            front = parsed.frontmatter
            pages.append(
                Page(
                    id,
                    key,
                    parsed.title or key.rsplit("/", 1)[-1],
                    slug=str(front.get("slug", "")),
                    page_id=str(front.get("page_id", "")),
                    anchors=frozenset(parsed.anchors),
                )
            )
        self.shelf = Shelf(pages)

    def links(self, key: str) -> list[tuple[str, Resolution]]:
        return [
            (link.href, self.shelf.resolve(Written(key, link.link_type, link.href, link.fragment, link.rel_type)))
            for link in self.parsed[key].links
        ]

    def lead(self, key: str) -> dict[str, str]:
        """href -> where it leads, as one word a link."""
        found = {}
        for href, resolution in self.links(key):
            target = self.ids.get(resolution.document) if resolution.document else ""
            anchor = f"#{resolution.anchor}" if resolution.anchor else ""
            state = "" if resolution.state == "resolved" else f"{resolution.state} {resolution.reason}".strip()
            found[href] = " ".join(part for part in (f"{target}{anchor}", state) if part)
        return found


def library(files: dict[str, str]) -> Library:
    return Library(**files)


def test_collections_fact_28_relative_paths() -> None:
    shelf = library(
        {
            "docs/a/b.md": "[c](../c/d.md#top)",
            "docs/c/d.md": "# Top",
            "r.md": "[g](./docs/guide.md)",
            "docs/guide.md": "x",
        }
    )
    assert shelf.lead("docs/a/b.md") == {"../c/d.md#top": "docs/c/d.md#top"}
    assert shelf.lead("r.md") == {"./docs/guide.md": "docs/guide.md"}


def test_collections_fact_29_encoded_and_query() -> None:
    shelf = library({"a.md": "[s](./set%20up.md) [x](x.md?raw=1#top)", "set up.md": "x", "x.md": "# Top"})
    assert shelf.lead("a.md") == {"./set%20up.md": "set up.md", "x.md?raw=1#top": "x.md#top"}


def test_collections_fact_30_reference_links() -> None:
    assert library({"a.md": "See [guide][g].\n\n[g]: ./guide.md", "guide.md": "x"}).lead("a.md") == {
        "./guide.md": "guide.md"
    }
    assert library({"a.md": "See [guide][g].\n\n[g]: ./guide.md"}).lead("a.md") == {"./guide.md": "broken not found"}


def test_collections_fact_31_code_titles_and_parentheses() -> None:
    shelf = library({"a.md": '`[a](no.md)` [b](yes.md "T") ![i](p.png) [w](x_(y).md)', "yes.md": "x", "x_(y).md": "x"})
    assert shelf.lead("a.md") == {"yes.md": "yes.md", "x_(y).md": "x_(y).md"}


def test_collections_fact_32_five_ways_to_a_page() -> None:
    assert library({"a.md": "[k](wiki:OPS:b)", "wiki:OPS:b": "x"}).lead("a.md") == {"wiki:OPS:b": "wiki:OPS:b"}
    assert library({"a.md": "[k](b.md)", "sub/b.md": "x"}).lead("a.md") == {"b.md": "sub/b.md"}
    assert library({"a.md": "[k](b)", "b.md": "x"}).lead("a.md") == {"b": "b.md"}
    assert library({"a.md": "[k](guide.html)", "guide.md": "x"}).lead("a.md") == {"guide.html": "guide.md"}
    assert library({"a.md": "[k](guide/)", "guide/README.md": "x"}).lead("a.md") == {"guide/": "guide/README.md"}


def test_collections_fact_33_ambiguous_and_climbing() -> None:
    shelf = library({"a.md": "[k](b.md)", "x/b.md": "1", "y/b.md": "2", "z/c.md": "[up](../b.md)"})
    ((_, found),) = shelf.links("a.md")
    assert (found.reason, found.candidates) == ("ambiguous", ("x/b.md", "y/b.md"))
    assert shelf.lead("z/c.md") == {"../b.md": "broken not found"}


def test_collections_fact_34_whole_names() -> None:
    assert library({"a.md": "[[plan]]", "plan.md": "x", "team-plan.md": "y"}).lead("a.md") == {"plan": "plan.md"}


def test_collections_fact_35_wiki_names() -> None:
    assert library({"a.md": "[[Wiki Link]]", "wiki-link.md": "x"}).lead("a.md") == {"Wiki Link": "wiki-link.md"}
    assert library({"a.md": "[[Wiki Link]]", "w.md": "# Wiki Link"}).lead("a.md") == {"Wiki Link": "w.md"}
    assert library({"a.md": "[[Guide#Set up|here]]", "guide.md": "# Guide\n\n## Set up"}).lead("a.md") == {
        "Guide#Set up": "guide.md#set-up"
    }


def test_collections_fact_36_typed_wiki_links() -> None:
    shelf = library({"a.md": "[[depends_on::redis-pool|the pool]] [[std::vector]]", "redis-pool.md": "x"})
    assert shelf.lead("a.md") == {"depends_on::redis-pool": "redis-pool.md", "std::vector": "broken unknown type"}
    assert [link.rel_type for link in shelf.parsed["a.md"].links] == ["depends_on", "std"]


def test_collections_fact_37_case() -> None:
    shelf = library({"a.md": "[x](Guide.md)", "guide.md": "x"})
    ((_, found),) = shelf.links("a.md")
    assert (found.rule, found.state) == (6, "resolved")


def test_collections_fact_38_addresses_and_page_ids() -> None:
    shelf = library(
        {
            "a.md": "https://example.com/README.md and https://wiki.example.com/pages/3474267/Title and [u](/pages/99)",
            "README.md": "x",
            "confluence:DOCS:3474267#sec-000": "y",
        }
    )
    assert shelf.lead("a.md") == {
        "https://example.com/README.md": "external",
        "https://wiki.example.com/pages/3474267/Title": "confluence:DOCS:3474267#sec-000",
        "/pages/99": "broken not found",
    }


def test_collections_rule_6_5_a_key_that_is_no_path_can_be_uploaded(put: Put) -> None:
    put("confluence:DOCS:3474267#sec-000", "# Section\n\ntext")
    put("a.md", "https://wiki.example.com/pages/3474267/T and [k](confluence:DOCS:3474267#sec-000)")
    drain()
    page = Document.objects.get(source_key="confluence:DOCS:3474267#sec-000")
    assert (page.title, page.format) == ("Section", "markdown")
    found = dict(DocumentLink.objects.values_list("href", "target_document"))
    assert set(found.values()) == {page.pk} and len(found) == 2
    with pytest.raises(UnsupportedType):
        put("confluence:DOCS:report.pdf", "x")


def test_collections_rule_6_5_a_key_byte_for_byte_comes_first() -> None:
    keys = ("a#b.md", "what?.md", "%41.md")
    files = {"links.md": " ".join(f"[x]({key})" for key in keys), "a.md": "x", "A.md": "x", "what.md": "x"}
    read_as_paths = {"a#b.md": "a.md anchor missing anchor", "what?.md": "what.md", "%41.md": "A.md"}
    assert library(files).lead("links.md") == read_as_paths
    assert library(files | dict.fromkeys(keys, "x")).lead("links.md") == {key: key for key in keys}


def test_collections_rule_6_3_a_path_comes_before_a_page_id() -> None:
    shelf = library(
        {"a.md": "[p](/pages/12) [q](/pages/13)", "pages/12.md": "x", "wiki:OPS:12": "y", "wiki:OPS:13": "z"}
    )
    assert shelf.lead("a.md") == {"/pages/12": "pages/12.md", "/pages/13": "wiki:OPS:13"}


def test_collections_fact_39_outside() -> None:
    assert library({"a.md": "[o](../../../outside.md)"}).lead("a.md") == {"../../../outside.md": "broken outside"}


def test_collections_fact_40_anchors() -> None:
    shelf = library({"a.md": "## Sync ↔ Export — v2\n\n[g](#sync--export--v2) [b](#sync-export-v2)"})
    found = dict(shelf.links("a.md"))
    assert found["#sync--export--v2"].state == "resolved"
    assert (found["#sync-export-v2"].state, found["#sync-export-v2"].suggestion) == (
        "anchor missing",
        "#sync--export--v2",
    )


Put = Callable[..., Any]


@pytest.mark.django_db
def test_collections_fact_41_one_row_for_one_address(put: Put) -> None:
    put("inbox.md", "# Inbox")
    put("a.md", "[x](./inbox.md)\n\n[[Inbox]]\n\n[again](./inbox.md)")
    for _ in range(2):
        drain()
        rows = {link.href: link for link in DocumentLink.objects.filter(document__source_key="a.md")}
        assert {href: link.lines for href, link in rows.items()} == {"./inbox.md": [1, 5], "Inbox": [3]}
        assert rows["./inbox.md"].text == "x"
        assert {link.target_document.source_key for link in rows.values()} == {"inbox.md"}
    target = Document.objects.get(source_key="inbox.md")
    assert set(target.backlinks.values_list("document__source_key", flat=True)) == {"a.md"}


@pytest.mark.django_db
def test_collections_fact_42_binding_both_ways(put: Put, olga: User) -> None:
    put("sub/guides.md", "# G")
    put("a.md", "[m](guide.md)")
    drain()
    link = DocumentLink.objects.get()
    assert (link.state, link.reason, link.suggestion) == ("broken", "not found", "sub/guides.md")
    put("deep/guide.md", "# far")
    drain()
    link.refresh_from_db()
    assert (link.state, link.rule, link.target_document.source_key) == ("resolved", 7, "deep/guide.md")
    put("guide.md", "# near")
    drain()
    link.refresh_from_db()
    assert (link.rule, link.target_document.source_key) == (1, "guide.md")
    trash_document(document=Document.objects.get(source_key="guide.md"), by=olga)
    trash_document(document=Document.objects.get(source_key="deep/guide.md"), by=olga)
    drain()
    link.refresh_from_db()
    assert (link.state, link.target_document) == ("broken", None)


@pytest.mark.django_db
def test_collections_fact_43_nothing_of_another_collection(handbook: Collection, put: Put, olga: User) -> None:
    other = create_collection(by=olga, name="Other")
    upload_document(collection=other, by=olga, source_key="secret-plans.md", raw=b"# S")
    put("a.md", "[x](secret-plan.md)")
    drain()
    link = DocumentLink.objects.get(collection=handbook)
    assert (link.state, link.suggestion, link.candidates) == ("broken", "", [])


@pytest.mark.django_db
def test_collections_fact_44_unchanged_rows_are_not_written(put: Put, handbook: Collection) -> None:
    from apps.jobs.models import Job
    from apps.jobs.queue import enqueue

    put("b.md", "# B")
    put("a.md", "".join(f"[l{n}](b.md?{n}) [m{n}](missing-{n}.md)\n" for n in range(500)))
    drain()
    enqueue("resolve_links", source=handbook)
    job = next(job for job in drain() if job.kind == "resolve_links")
    assert Job.objects.get(pk=job.pk).counters["changed"] == 0


def test_twenty_thousand_links_are_linear() -> None:
    pages = [Page(uuid4(), f"d{n % 40}/page-{n}.md", f"Page {n}") for n in range(4000)]
    shelf = Shelf(pages)
    begun = time.process_time()
    for n in range(20_000):
        shelf.resolve(
            Written(f"d{n % 40}/page-{n % 4000}.md", "markdown", f"../d{(n * 7) % 40}/page-{(n * 7) % 5000}.md")
        )
    assert time.process_time() - begun < 10


def test_a_replaced_document_keeps_the_rows_of_links_it_still_has(
    put: Callable[..., Any], handbook: Collection
) -> None:
    def links() -> dict[str, DocumentLink]:
        return {link.href: link for link in DocumentLink.objects.filter(document__source_key="a.md")}

    put("b.md", "# B")
    put("a.md", "[b](b.md) [gone](gone.md) ![p](p.md)")
    drain()
    before = links()
    put("a.md", "New.\n\n[to b](b.md) [c](c.md)")
    after = links()
    assert set(after) == {"b.md", "c.md"}
    kept = after["b.md"]
    assert (kept.pk, kept.state, kept.target_document) == (
        before["b.md"].pk, "resolved", before["b.md"].target_document,
    )  # fmt: skip
    assert (kept.text, kept.lines, after["c.md"].state) == ("to b", [3], "pending")
