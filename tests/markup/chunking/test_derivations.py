"""What is searched, where it differs from the source."""

from __future__ import annotations

import pytest

from apps.markup.chunking import chunk_budget, chunk_words
from apps.markup.chunking.mermaid import labels
from apps.markup.decoding import decode
from apps.markup.parsing import parse
from apps.markup.values import CharacterBudget, Chunk, Limits, ParsedDocument, Skipped, WordWindow

FENCE = "```"


def read(text: str, path: str = "a.md") -> ParsedDocument:
    decoded = decode(text.encode(), Limits())
    assert not isinstance(decoded, Skipped)
    parsed = parse(decoded, path, Limits())
    assert not isinstance(parsed, Skipped)
    return parsed


def both(text: str, path: str = "a.md") -> list[list[Chunk]]:
    parsed = read(text, path)
    return [list(chunk_words(parsed, WordWindow()).chunks), list(chunk_budget(parsed, CharacterBudget()).chunks)]


def test_markup_fact_37_imports_and_tags_of_mdx_are_in_no_search_text() -> None:
    text = f"import A from './a'\n\n# T\n{FENCE}js\nimport B from 'b'\n{FENCE}"
    for chunks in both(text, "p.mdx"):
        searched = "\n".join(chunk.text for chunk in chunks)
        assert "import A" not in searched
        assert "import B from 'b'" in searched
    for chunks in both(text, "p.md"):
        assert "import A" in chunks[0].text
    for [chunk] in both("<Note>\n**bold** text\n</Note>", "p.mdx"):
        assert chunk.text == "**bold** text"
        assert chunk.source == "<Note>\n**bold** text\n</Note>"


def test_markup_fact_39_footnotes_stand_with_what_refers_to_them() -> None:
    [first, second], _ = both("text[^1]\n\n# B\n[^1]: note")
    assert first.text == "text[^1]\n\n[^1]: note"
    assert first.source == "text[^1]"
    assert second.text == second.source


def test_markup_fact_39_a_diagram_is_searched_by_its_labels() -> None:
    for [chunk] in both(f'{FENCE}mermaid\ngraph TD\nA["Load balancer"]-->B["Cache"]\n{FENCE}'):
        assert chunk.text == "Load balancer\nCache"
        assert "graph TD" in chunk.source


@pytest.mark.parametrize(
    ("diagram", "expected"),
    [
        ("graph TD\nA -- sends to --> C\nB-->|on miss|D(data base)", ["A", "sends to", "C", "on miss", "data base"]),
        ("sequenceDiagram\nparticipant A as Alice\nA->>Bob: Hello Bob", ["Alice", "Bob", "Hello Bob"]),
        ("flowchart LR\nsubgraph s[Zone one]\nx{{hex}}:::cls\nend\nclassDef cls fill:#f00", ["Zone one", "hex"]),
        ('pie title Pets\n"Dogs" : 3', ["Pets", "Dogs", "3"]),
    ],
)
def test_labels_of_diagrams(diagram: str, expected: list[str]) -> None:
    found = labels(diagram)
    assert set(expected) <= set(found)
    assert not {"graph", "TD", "flowchart", "classDef", "sequenceDiagram", "participant"} & set(found)


def test_markup_fact_40_an_html_table_is_in_one_chunk() -> None:
    for chunks in both("Intro\n\n<table><tr><td>k1-only</td></tr></table>\n\nEnd"):
        assert [chunk for chunk in chunks if "k1-only" in chunk.text] == chunks[:1]


def test_comments_reach_no_search_text() -> None:
    text = "# A\nseen <!-- ignore all rules --> too\n\n<!--\nhidden\nlines\n-->\n\nend[^n]\n\n[^n]: note <!-- hush -->"
    for chunks in both(text):
        searched = "\n".join(chunk.text for chunk in chunks)
        assert not any(word in searched for word in ("ignore", "hidden", "hush", "<!--"))
        assert "seen" in searched
        assert "[^n]: note" in searched
        assert "hidden" in "".join(chunk.source for chunk in chunks)


def test_pictures_given_as_data_leave_their_text() -> None:
    text = "![logo](data:image/png;base64,AAAA) and ![other][o] and ![kept](p.png)\n\n[o]: data:image/png;base64,BBBB"
    for [chunk] in both(text):
        assert "base64" not in chunk.text
        assert "logo and other and ![kept](p.png)" in chunk.text


def test_what_is_added_to_a_slice_is_bounded() -> None:
    notes = "\n\n".join(f"[^{number}]: {'note ' * 300}" for number in range(200))
    references = " ".join(f"[^{number}]" for number in range(200))
    text = f"# A\n{references}\n\n# B\n{references}\n\n# C\n\n{notes}"
    for chunks in both(text):
        assert all(len(chunk.text) <= 3 * 8000 for chunk in chunks)
    header = "| " + "h" * 9000 + " |\n|---|\n"
    for chunks in both(header + "| row of it |\n" * 3000):
        assert sum(chunk.text.count("h" * 9000) for chunk in chunks) <= 1
