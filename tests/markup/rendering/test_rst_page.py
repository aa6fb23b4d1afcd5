"""reStructuredText pages."""

from __future__ import annotations

import re

from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.rendering import Resolve, Resolved, render
from apps.markup.rendering.resolved import as_written
from apps.markup.values import Limits, Link, Skipped


def page(text: str, resolve: Resolve = as_written) -> str:
    decoded = decode(text.encode(), Limits())
    assert not isinstance(decoded, Skipped)
    parsed = parse(decoded, "d.rst", Limits())
    assert not isinstance(parsed, Skipped)
    return render(parsed, resolve)


def test_markup_fact_38_headings_and_code() -> None:
    html = page("=====\nDoc\n=====\n\nPart\n----\n\n.. code-block:: sh\n\n   # not heading")
    assert re.findall(r'<(h\d) id="(\w+)" data-line="(\d+)" data-end="(\d+)"', html) == [
        ("h1", "doc", "1", "3"),
        ("h2", "part", "5", "6"),
    ]
    assert '<pre data-language="sh"' in html
    assert "# not heading" in html


def test_directives_that_would_read_are_shown_as_text() -> None:
    html = page(".. include:: /etc/passwd\n\n.. raw:: html\n\n   <script>alert(1)</script>\n\nafter")
    assert ".. include:: /etc/passwd" in html
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "after" in html


def test_options_of_other_tools_leave_the_directive() -> None:
    html = page(
        ".. code-block:: python\n   :caption: ``urls.py``\n   :emphasize-lines: 1\n\n   x = 1\n\n"
        ".. note::\n   :collapsible:\n\n   Noted.\n"
    )
    assert "<strong><code>urls.py</code></strong>" in html
    assert 'data-language="python" data-line="1" data-end="5"' in html
    assert ">1</span></span>" in html
    assert "Noted." in html
    assert "collapsible" not in html


def test_what_docutils_cannot_read_stays_as_written() -> None:
    html = page("=====  ====\na      b\n=====  ====\n1 2 3 4 5 6\n=====  ====\n\n.. image:: a.png\n   :width: wide\n")
    assert '<span class="line" data-line="4">1 2 3 4 5 6</span>' in html
    assert '<span class="line" data-line="7">.. image:: a.png</span>' in html


def test_numbered_papers_with_titles() -> None:
    html = page("See :pep:`WSGI <3333#middleware>`, :pep:`8`, :rfc:`mail <2822>` and :pep:`odd <x y>`.")
    assert re.findall(r'href="[^"]*/([^/"]+)"[^>]*>([^<]+)<', html) == [
        ("pep-3333#middleware", "WSGI"),
        ("pep-0008", "PEP 8"),
        ("rfc2822.html", "mail"),
    ]
    assert "and odd." in html


def test_references_and_labels() -> None:
    def resolve(link: object) -> Resolved:
        assert isinstance(link, Link)
        return {"other": Resolved("/docs/other"), "#far": Resolved("/docs/far#x")}.get(
            link.href, Resolved(None, "broken", "not found")
        )

    text = "See :ref:`near`, :ref:`far`, :ref:`gone`, :doc:`other`, `x <javascript:alert(1)>`_.\n"
    html = page(f"{text}\n.. _near:\n\nHere\n====\n", resolve)
    assert '<a href="#near">near</a>' in html
    assert '<span id="near"></span><h1 id="here"' in html
    assert '<a href="/docs/far#x">far</a>' in html
    assert '<a class="broken" title="not found">gone</a>' in html
    assert '<a href="/docs/other">other</a>' in html
    assert "javascript" not in html


def test_lists_tables_notes_and_unknown_directives() -> None:
    html = page(
        "- a\n- b\n\n3. x\n4. y\n\n=== ===\na   b\n=== ===\n1   2\n=== ===\n\n.. warning:: hot\n\n"
        ".. tool:: arg\n\n   content *x*\n\nterm\n   def\n"
    )
    for part in (
        "<li",
        '<ol start="3"',
        "<thead><tr><th>",
        "note-warning",
        "content <em>x</em>",
        "<dt>term</dt>",
        "arg",
    ):
        assert part in html
