"""Chunks along the structure of files that are not prose."""

from __future__ import annotations

import json

import pytest

from apps.markup.chunking import Unit, chunk_structure
from apps.markup.values import Chunk, WordWindow


def cut(
    text: str, path: str, *, words: int = 20, label: str = "Config", units: list[Unit] | None = None
) -> list[Chunk]:
    chunks = list(chunk_structure(text, path, WordWindow(words, 0, 8000), label, units).chunks)
    raw = text.encode()
    for chunk in chunks:
        assert raw[chunk.start_byte : chunk.end_byte].decode() == chunk.source == chunk.text
    held = "".join("".join(chunk.source.split()) for chunk in chunks)
    assert held == "".join(text.split())
    return chunks


def paths(chunks: list[Chunk]) -> list[tuple[str, ...]]:
    return [chunk.heading_path for chunk in chunks]


def test_repository_documents_fact_11_a_small_file_has_the_kind_alone() -> None:
    assert paths(cut("# build\nname: ci\non: push\n", "ci.yml", label="Workflow")) == [("Workflow",)]
    assert paths(cut("x = 1\n", "demo.py", label="Example")) == [("Example",)]
    assert paths(cut('[project]\nname = "x"\n', "pyproject.toml")) == [("Config",)]


def test_repository_documents_fact_20_chunks_begin_at_keys() -> None:
    text = "".join(
        f"{top}:\n" + "".join(f"  key{number}:\n    value: {number}\n" for number in range(8)) for top in ("web", "db")
    )
    chunks = cut(text, "helm/values.yaml")
    assert all(path[:2] in {("Config", "web"), ("Config", "db")} for path in paths(chunks))
    assert chunks[0].source.startswith("web:\n  key0:\n    value: 0")
    assert all(chunk.source.lstrip().startswith(("web:", "db:", "key")) for chunk in chunks)
    assert chunks[1].source.startswith("  key")
    assert any(chunk.source.startswith("db:\n") for chunk in chunks)


def test_repository_documents_fact_20_chunks_begin_at_classes() -> None:
    def body(name: str) -> str:
        return f"class {name}:\n" + "".join(
            f"    def run{number}(self):\n        return {number}\n" for number in range(8)
        )

    text = "import os\n\n" + body("One") + "\n\n# about Two\n" + body("Two")
    lines = text.split("\n")
    one, two = lines.index("class One:") + 1, lines.index("class Two:") + 1
    units = [
        Unit(name, start, start + 16, tuple(Unit(f"run{n}", start + 1 + 2 * n, start + 2 + 2 * n) for n in range(8)))
        for name, start in (("One", one), ("Two", two))
    ]
    chunks = cut(text, "examples/demo.py", label="Example", units=units)
    assert paths(chunks)[0] == ("Example",)
    assert {path[:2] for path in paths(chunks)[1:]} == {("Example", "One"), ("Example", "Two")}
    assert any(chunk.source.startswith("# about Two\nclass Two:") for chunk in chunks)
    assert any(chunk.source.startswith("    def run") for chunk in chunks)


def test_yaml_documents_block_texts_and_comments() -> None:
    text = "a: 1\n---\nkind: X\ntext: |\n" + "  looks: like a key of its own\n" * 6 + "---\n# last\nz: 2\n"
    chunks = cut(text, "x.yml")
    assert ("Config", "document 2", "text") in paths(chunks)
    assert not any("looks" in path for path in paths(chunks))


def test_json_members() -> None:
    text = json.dumps({"name": "x", "deps": {f"d{n}": {"v": n} for n in range(5)}, "list": list(range(30))}, indent=2)
    found = paths(cut(text, "package.json"))
    assert ("Config", "deps") in found
    assert ("Config", "list") in found


def test_json_that_does_not_match_is_cut_between_lines() -> None:
    chunks = cut('{"a": [\n' + "1, 2, 3,\n" * 40, "broken.json")
    assert len(chunks) > 1
    assert set(paths(chunks)) == {("Config",)}


def test_toml_tables_outside_long_strings() -> None:
    text = "[one]\na = 1\n" + "b = 2\n" * 6 + '[two]\nt = """\n[three]\n"""\n' + "c = 3\n" * 6
    assert {path[1] for path in paths(cut(text, "pyproject.toml"))} == {"one", "two"}


def test_dockerfile_stages() -> None:
    text = (
        "FROM a AS build\nRUN x \\\n # why\n  y\nRUN <<EOF\nFROM not a stage\nEOF\nFROM b\n" + "COPY a b c d e f\n" * 4
    )
    found = paths(cut(text, "Dockerfile"))
    assert ("Config", "build") in found
    assert {path[1] for path in found} == {"build", "b"}


def test_makefile_targets_and_go_mod_directives() -> None:
    recipe = "\tone two three four five six\n"
    makefile = f"CC := cc\n\nall: x\n{recipe}{recipe}\nx: y\n{recipe}"
    found = paths(cut(makefile, "Makefile"))
    assert ("Config", "x") in found
    assert any(path[-1] == "all" for path in found) or found[0] == ("Config",)
    module = "module x\n\nrequire (\n" + "\ta.b/c v1\n" * 9 + ")\n\nreplace x => y\n"
    assert ("Config", "require") in paths(cut(module, "go.mod"))


def test_env_files_go_by_groups_and_lines() -> None:
    text = "A=1\nB=2\n\n" + "C=1 2 3 4\n" * 8
    chunks = cut(text, ".env")
    assert chunks[0].source == "A=1\nB=2"
    assert [(chunk.part, chunk.parts) for chunk in chunks[1:]] == [(1, 2), (2, 2)]


def test_a_line_over_the_limits_is_cut_at_words() -> None:
    chunks = cut("word " * 50, "notes.txt")
    assert [len(chunk.source.split()) for chunk in chunks] == [20, 20, 10]
    assert all("cut_inside_line" in chunk.flags for chunk in chunks)


@pytest.mark.parametrize("path", ["a.yaml", "a.json", "a.toml", "Dockerfile", "Makefile", "go.mod", ".env", "a.py"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \n",
        "[" * 20_000,
        "a:\n" * 3000,
        "{" * 5000 + "}" * 5000,
        '"' * 20_001,
        "\\\n" * 5000,
        "a: b: c:\n  - \n -\n--- \n...\n",
        " " * 20_000 + ":",
        "é部\u2028x " * 3000,
    ],
)
def test_scanners_take_anything(path: str, text: str) -> None:
    cut(text, path)
