"""Speed of parsing and chunking against the reference parser's bare parse, in one interleaved run.

    python tests/bench/markup.py [FOLDER]

FOLDER holds Markdown files; default: the documentation corpus of the shared material (``SHARED_FOLDER``, else
``shared`` beside the checkout). Files are done one after the other and let go, without looks for cycles, as the
parser's children do; so is the reference, which gains nothing by it. Prints megabytes for each second of CPU and the
ratios; demanded are 20 MB and ten times the reference.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from markdown_it import MarkdownIt

from apps.markup.decoding import decode
from apps.markup.ingest import read_document
from apps.markup.parsing import parse
from apps.markup.rendering import render
from apps.markup.values import CharacterBudget, Limits, ParsedDocument, Skipped, WordWindow

ROUNDS = 7


def _files(folder: Path) -> list[tuple[str, bytes]]:
    return [(str(file), file.read_bytes()) for file in sorted(folder.rglob("*.md"))]


def _cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _each(results: Iterable[object]) -> None:
    deque(results, maxlen=0)


def main(folder: Path) -> None:
    files = _files(folder)
    size = sum(len(raw) for _, raw in files) / 1e6
    texts = [raw.decode(errors="replace") for _, raw in files]
    limits = Limits()
    reference = MarkdownIt("commonmark").enable("table")
    parsed: list[ParsedDocument] = []
    for path, raw in files:
        decoded = decode(raw, limits)
        document = decoded if isinstance(decoded, Skipped) else parse(decoded, path, limits)
        if not isinstance(document, Skipped):
            parsed.append(document)
    works: dict[str, Callable[[], object]] = {
        "reference parse": lambda: _each(reference.parse(text) for text in texts),
        "word window": lambda: _each(read_document(raw, path, limits, WordWindow()) for path, raw in files),
        "character budget": lambda: _each(read_document(raw, path, limits, CharacterBudget()) for path, raw in files),
        "render": lambda: _each(render(document) for document in parsed),
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    gc.freeze()
    gc.disable()
    for _ in range(ROUNDS):
        for name, work in works.items():
            gc.collect()
            seconds[name].append(_cpu(work))
    print(f"{len(files)} files, {size:.2f} MB, {ROUNDS} rounds; MB per CPU second: median (least to most)")
    for name, taken in seconds.items():
        ratios = [base / own for base, own in zip(seconds["reference parse"], taken, strict=True)]
        middle = statistics.median(taken)
        print(
            f"{name:18} {size / middle:6.1f} ({size / max(taken):.1f} to {size / min(taken):.1f})"
            f"   {statistics.median(ratios):5.1f} times the reference"
        )


if __name__ == "__main__":
    shared = Path(os.environ.get("SHARED_FOLDER") or Path(__file__).parents[3] / "shared")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else shared / "corpora" / "vite-docs")
