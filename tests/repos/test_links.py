"""Where links lead, which files are named, and reading lines by path."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apps.access.errors import BadRequest, Invalid, NotFound
from apps.repos import known, links
from apps.repos.hosts import host_of, own_path
from apps.repos.link_tree import LinkTree, Page, Written
from apps.repos.models import RepositoryDocumentLink
from apps.repos.pills import pills_of
from apps.repos.preview import preview_filters
from apps.repos.ranges import NotIndexed, read_range, stored_text
from apps.repos.registration import change_repository


def tree(
    *paths: str, others: tuple[str, ...] = (), anchors: tuple[str, ...] = (), url: str = "", **more: Any
) -> LinkTree:
    pages = [Page(uuid.uuid4(), path, path, frozenset(anchors)) for path in paths]
    return LinkTree([*paths, *others], pages, git_url=url, **more)


def lead(in_tree: LinkTree, href: str, source: str, link_type: str = "relative") -> tuple[str, str, str]:
    """State, path and anchor (or reason) that a link on ``source`` gives."""
    page = in_tree.pages[source]
    found = in_tree.resolve(page, Written(link_type, href, href.partition("#")[2]))
    return found.state, found.path, found.anchor or found.reason


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("/guide/x", "docs/guide/x.md"),
        ("./x", "docs/guide/x.md"),
        ("x.html", "docs/guide/x.md"),
        ("x/", "docs/guide/x.md"),
        ("x.md?raw=1", "docs/guide/x.md"),
        ("../guide/x.md", "docs/guide/x.md"),
        ("/docs/guide/x.md", "docs/guide/x.md"),
        ("X.md", "docs/guide/x.md"),
        ("./set%20up.md", "docs/guide/set up.md"),
        ("/", "docs/README.md"),
    ],
)
def test_repos_fact_44_ways_to_name_a_page(href: str, target: str) -> None:
    found = tree("docs/guide/a.md", "docs/guide/x.md", "docs/guide/set up.md", "docs/README.md", anchors=("top",))
    assert lead(found, href, "docs/guide/a.md")[:2] == ("resolved", target)


def test_repos_fact_44_anchors_are_kept_and_checked() -> None:
    found = tree("docs/a.md", "docs/x.md", anchors=("sync--export--v2",))
    assert lead(found, "x#sync--export--v2", "docs/a.md") == ("resolved", "docs/x.md", "sync--export--v2")
    assert lead(found, "x#sync-export-v2", "docs/a.md")[0] == "anchor missing"
    assert lead(found, "#sync--export--v2", "docs/a.md", "anchor") == ("resolved", "docs/a.md", "sync--export--v2")


def test_repos_fact_44_broken() -> None:
    found = tree("docs/a.md")
    assert lead(found, "gone.md", "docs/a.md") == ("broken", "", "not found")
    assert lead(found, "../../../../outside.md", "docs/a.md") == ("broken", "", "outside")


def test_repos_rule_9_1_files_and_folders_are_targets() -> None:
    found = tree("docs/a.md", "lib/README.md", others=("src/app.py", "img/p.png"))
    assert lead(found, "../src/app.py", "docs/a.md")[:2] == ("asset", "src/app.py")
    assert lead(found, "../src", "docs/a.md")[:2] == ("asset", "src")
    assert lead(found, "../lib/", "docs/a.md")[:2] == ("resolved", "lib/README.md")


@pytest.mark.parametrize(
    ("href", "near"),
    [
        ("img/announcing.webp", "img/anouncing.webp"),  # not the page of that name
        ("img/announcing.png", ""),
        ("announcin.md", "docs/announcing.md"),
        ("announcin.html", "docs/announcing.md"),
        ("announcin", "docs/announcing.md"),
        ("announcing.yml", ""),
    ],
)
def test_repos_rule_9_1_what_is_suggested_is_of_the_same_kind(href: str, near: str) -> None:
    found = tree("docs/announcing.md", "docs/a.md", others=("img/anouncing.webp",))
    page = found.pages["docs/a.md"]
    assert found.resolve(page, Written("relative", f"gone/{href}", "")).suggestion == near


def test_repos_rule_9_1_pictures_of_other_hosts_are_no_broken_links(upstream: Any, portal: Any) -> None:
    pictures = (
        "![a](https://img.example/a.svg) <img src='//img.example/b.svg'> ![c](data:image/png;base64,AA==) ![d](d.png)"
    )
    upstream.commit({"README.md": f"# Kit\n\n{pictures}\n"})
    repository, _ = portal.synced(upstream)
    states = dict(RepositoryDocumentLink.objects.filter(document__repository=repository).values_list("href", "state"))
    assert states["https://img.example/a.svg"] == states["//img.example/b.svg"] == "external"
    assert [href for href, state in states.items() if state == "broken"] == ["d.png"]


def test_repos_rule_9_1_own_host_counts_as_path() -> None:
    found = tree("docs/a.md", "docs/x.md", url="https://github.com/acme/api.git", anchors=("top",))
    href = "https://github.com/acme/api/blob/main/docs/x.md#top"
    assert lead(found, href, "docs/a.md", "absolute") == ("resolved", "docs/x.md", "top")
    assert lead(found, "https://example.com/x.md", "docs/a.md", "absolute")[0] == "external"
    assert own_path("git@gitlab.com:a/b.git", "https://gitlab.com/a/b/-/blob/main/x.md") == "x.md"


def test_repos_rule_9_1_roots_set_in_admin() -> None:
    found = tree("site/content/x.md", "site/a.md", roots=("site/content",))
    assert lead(found, "/x", "site/a.md")[:2] == ("resolved", "site/content/x.md")


def test_repos_rule_9_1_names_and_ambiguity() -> None:
    found = tree("a.md", "x/b.md", "y/b.md", "sub/c.md")
    assert lead(found, "c.md", "a.md")[:2] == ("resolved", "sub/c.md")
    assert lead(found, "b.md", "a.md") == ("broken", "", "ambiguous")
    assert lead(found, "../b.md", "a.md") == ("broken", "", "outside")


def test_repos_rule_9_1_wiki_links() -> None:
    found = tree("plan.md", "team-plan.md", "wiki-link.md", "inbox.md", anchors=("set-up",))
    assert lead(found, "plan", "inbox.md", "wiki")[:2] == ("resolved", "plan.md")
    assert lead(found, "Wiki Link", "inbox.md", "wiki")[:2] == ("resolved", "wiki-link.md")
    assert lead(found, "Inbox", "plan.md", "wiki")[:2] == ("resolved", "inbox.md")
    assert lead(found, "Plan#Set up", "inbox.md", "wiki") == ("resolved", "plan.md", "set-up")


@pytest.mark.parametrize(
    ("url", "style", "link"),
    [
        ("https://github.com/a/b.git", "auto", "https://github.com/a/b/blob/c0/src/x%20y.py#L3-L5"),
        ("git@gitlab.com:a/b/c.git", "auto", "https://gitlab.com/a/b/c/-/blob/c0/src/x%20y.py#L3-5"),
        ("https://codeberg.org/a/b", "auto", "https://codeberg.org/a/b/src/commit/c0/src/x%20y.py#L3-L5"),
        ("https://bitbucket.org/a/b", "auto", "https://bitbucket.org/a/b/src/c0/src/x%20y.py#lines-3:5"),
        ("https://git.example.com/a/b", "gitea", "https://git.example.com/a/b/src/commit/c0/src/x%20y.py#L3-L5"),
        ("https://git.example.com/a/b", "auto", None),
        ("https://git.example.com/a/b", "none", None),
    ],
)
def test_repos_rule_9_3_host_links(url: str, style: str, link: str | None) -> None:
    assert host_of(url, style).file("c0", "src/x y.py", 3, 5) == link


def test_repos_rule_9_3_own_template() -> None:
    host = host_of("https://h/a/b", "template", "https://view.example/{commit}/{path}?from={start}&to={end}")
    assert host.file("c0", "a b.py", 3) == "https://view.example/c0/a%20b.py?from=3&to=3"


@pytest.mark.django_db
@pytest.mark.parametrize("hole", ["{commit.__class__}", "{start:>999999999}", "{path!r}", "{other}", "{0}", "{", "{}"])
def test_repos_rule_9_3_a_template_holds_its_names_and_nothing_else(upstream: Any, portal: Any, hole: str) -> None:
    repository = portal.add(upstream)
    with pytest.raises(Invalid) as caught:
        change_repository(
            repository=repository, by=portal.admin, link_style="template", link_template=f"https://h/{hole}"
        )
    assert caught.value.field == "link_template"


@pytest.mark.django_db
def test_repos_fact_45_pills(upstream: Any, portal: Any) -> None:
    upstream.commit(
        {
            "docs/a.md": "# A\n\n`app.py:3` and `app.py` and `index.ts` and `src/lib/x.go` and `nope.py`\n",
            "src/app.py": "x",
            "tests/app.py": "x",
            "src/one/index.ts": "x",
            "src/two/index.ts": "x",
            "src/lib/x.go": "x",
        }
    )
    repository, _ = portal.synced(upstream)
    document = repository.documents.get(path="docs/a.md")
    pills = pills_of(repository, document)
    assert [(pill.path, pill.start, pill.is_local) for pill in pills] == [
        ("src/app.py", 3, True),
        ("src/app.py", None, True),
        ("src/lib/x.go", None, True),
    ]
    assert pills[0].url == "/repos/local/acme/site/files/src/app.py#L3"


@pytest.mark.django_db
def test_repos_links_are_stored_with_line_and_suggestion(upstream: Any, portal: Any) -> None:
    upstream.commit(
        {"a.md": "# A\n\n[x](b.md#two)\n\n[y](gone.md) [z](gide.md)\n", "b.md": "# B\n\n## Two\n\nx", "guide.md": "# G"}
    )
    repository, _ = portal.synced(upstream)
    rows = {link.href: link for link in RepositoryDocumentLink.objects.all()}
    assert (rows["b.md#two"].state, rows["b.md#two"].anchor) == ("resolved", "two")
    assert (rows["gone.md"].state, rows["gone.md"].lines) == ("broken", [5])
    assert rows["gide.md"].suggestion == "guide.md"
    upstream.commit({"gone.md": "# Here now", "b.md": "# B\n\n## Three\n\nx"})
    portal.sync(repository)
    rows = {link.href: link for link in RepositoryDocumentLink.objects.all()}
    assert (rows["gone.md"].state, rows["b.md#two"].state) == ("resolved", "anchor missing")
    upstream.commit({"gone.md": None})
    portal.sync(repository)
    assert RepositoryDocumentLink.objects.get(href="gone.md").state == "broken"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "files",
    [
        {"a.md": "# A\n\n[b](b.md#two), [gone](gone.md) and [lost](lost.md) too.\n"},
        {"b.md": "# B\n\n## Three\n\n[a](a.md#a)\n"},
        {"gone.md": "# Gone\n\nIt is here now. [b](b.md#two)\n"},
        {"b.md": None, "a.md": "# A\n\n[b](b.md)\n"},
        {"c.md": "---\naliases: [lost]\n---\n# C\n\n[[lost]] [[Gone]]\n"},
    ],
)
def test_repos_rule_9_1_links_after_a_change_are_those_of_a_whole_look(
    upstream: Any, portal: Any, files: dict[str, str | None]
) -> None:
    upstream.commit(
        {
            "a.md": "# A\n\n[b](b.md#two) and [gone](gone.md) and [[lost]]\n",
            "b.md": "# B\n\n## Two\n\n[a](a.md#a)\n",
        }
    )
    repository, _ = portal.synced(upstream)
    upstream.commit(files)
    assert portal.sync(repository).counters["links_changed"]
    assert portal.sync(repository, force=True).counters["links_changed"] == 0


def test_repos_rule_9_1_suggestions_pass_on_when_links_go(upstream: Any, portal: Any) -> None:
    lost = "".join(f"[x{number}](a/nam{number}.md)\n" for number in range(300))
    upstream.commit({"first.md": lost, "second.md": lost, "third.md": f"{lost} once", "name7.md": "# Seven\n"})
    repository, _ = portal.synced(upstream)
    for text in ("no link left", f"{lost} and more [z](namu7.md)", "none again"):
        upstream.commit({"second.md": text})
        portal.sync(repository)
        assert portal.sync(repository, force=True).counters["links_changed"] == 0


def test_new_rules_are_used_at_the_next_sync_of_the_same_commit(
    upstream: Any, portal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.commit({"a.md": "# A\n\n[x](gone.md)\n", "gonne.md": "# Gone\n"})
    repository, _ = portal.synced(upstream)
    RepositoryDocumentLink.objects.update(suggestion="of older rules")
    portal.sync(repository)
    assert RepositoryDocumentLink.objects.get().suggestion == "of older rules"
    for room in (known, links):
        monkeypatch.setattr(room, "RULES_VERSION", links.RULES_VERSION + 1)
    job = portal.sync(repository)
    assert RepositoryDocumentLink.objects.get().suggestion == "gonne.md"
    assert job.counters["indexed_documents"] == 0


def test_repos_fact_46_access_fact_39_reading_by_path(upstream: Any, portal: Any) -> None:
    upstream.commit(
        {
            "docs/a.md": "one\n\n   three\n",
            ".env": "KEY=abc123def\nPORT=1\n",
            "big.md": "→docs/a.md",
            "img.png": b"\x89PNG",
        }
    )
    repository, _ = portal.synced(upstream)
    found = read_range(repository, "docs/a.md", 1, 1000)
    assert (found.lines, found.total_lines, found.end_line) == (("one", "", "   three"), 3, 3)
    assert found.commit == repository.synced_commit
    assert read_range(repository, "docs/a.md", 3, 3).lines == ("   three",)
    assert stored_text(repository, ".env").text == "KEY=[redacted]\nPORT=1\n"
    for path in ("../../../etc/passwd", "docs/../../x", "%2e%2e/x", "/etc/hostname", "a\x00b", "", "x" * 5000):
        with pytest.raises(NotFound) as absent:
            read_range(repository, path, 1, 5)
        with pytest.raises(NotFound) as unknown:
            read_range(repository, "no/such.md", 1, 5)
        assert str(absent.value) == str(unknown.value)
    for path in ("img.png", "big.md"):
        with pytest.raises(NotIndexed):
            read_range(repository, path, 1, 5)
    for start, end in ((0, 1), (2, 1), (1, 1001), (5000, 5001)):
        with pytest.raises(BadRequest) as refusal:
            read_range(repository, "docs/a.md", start, end)
        assert refusal.value.code == "out_of_range"


@pytest.mark.django_db
def test_repos_rule_3_4_dry_run(upstream: Any, portal: Any, django_assert_num_queries: Any) -> None:
    upstream.commit({"docs/a.md": "# A", "old/b.md": "# B", "notes.txt": "x", "x.py": "x"})
    repository, _ = portal.synced(upstream)
    with django_assert_num_queries(1):
        found = preview_filters(repository, include=["*.txt"], exclude=["old/**"])
    assert (found.taken, found.listed) == (2, 4)
    assert (found.adds, found.removes) == (("notes.txt",), ("old/b.md",))
