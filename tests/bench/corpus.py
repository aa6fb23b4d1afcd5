"""Generated corpora: words by Zipf's law, topics by source, some rare identifiers. Seeded, any size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

SOURCES = 50
WORDS = 60_000
COMMON = 2_000
TOPIC = 3_000
CHUNKS_A_DOCUMENT = 20


@dataclass(frozen=True, slots=True)
class Made:
    source: int
    document: int
    heading: str
    text: str


def vocabulary() -> np.ndarray:
    random = np.random.default_rng(1)
    letters = np.array(list("aeiouaeiourstlnmdcpbgvfhkz"))
    words = {"".join(random.choice(letters, size)) for size in random.integers(3, 11, WORDS * 2)}
    return np.array(sorted(words)[:WORDS])[random.permutation(WORDS)]


def chunks(number: int) -> Iterator[Made]:
    """``number`` chunks of 20 to 80 words, some 50 on average, document by document, source by source."""
    words = vocabulary()
    random = np.random.default_rng(2)
    shares = 1 / (np.arange(WORDS) + 10.0)
    common = shares[:COMMON] / shares[:COMMON].sum()
    everywhere = shares / shares.sum()
    topics = [random.permutation(np.arange(COMMON, WORDS))[:TOPIC] for _ in range(SOURCES)]
    topic_shares = 1 / (np.arange(TOPIC) + 5.0)
    topic_shares /= topic_shares.sum()
    a_source = -(-number // SOURCES)
    ids = itertools.count()
    for source in range(SOURCES):
        left = min(a_source, number - source * a_source)
        while left > 0:
            batch = min(left, 2000)
            sizes = random.integers(20, 81, batch)
            total = int(sizes.sum())
            kind = random.random(total)
            drawn = np.where(
                kind < 0.55,
                random.choice(COMMON, total, p=common),
                np.where(
                    kind < 0.85,
                    topics[source][random.choice(TOPIC, total, p=topic_shares)],
                    random.choice(WORDS, total, p=everywhere),
                ),
            )
            spelled = words[drawn]
            ends = np.cumsum(sizes)
            for place in range(batch):
                number_here = next(ids)
                text = " ".join(spelled[ends[place] - sizes[place] : ends[place]])
                if number_here % 200 == 0:
                    text += f" identifierNumber{number_here // 600}"
                heading = " ".join(spelled[ends[place] - sizes[place] : ends[place] - sizes[place] + 3])
                yield Made(source, number_here // CHUNKS_A_DOCUMENT, heading, text)
            left -= batch


def queries() -> dict[str, list[str]]:
    """Query sets by how common their words are: the words' ranks decide how many rows an OR matches."""
    words = vocabulary()
    random = np.random.default_rng(3)

    def some(low: int, high: int, sizes: tuple[int, int], count: int) -> list[str]:
        return [" ".join(words[random.integers(low, high, random.integers(*sizes))]) for _ in range(count)]

    return {
        "common": some(0, 12, (2, 4), 5),
        "medium": [f"{a} {b}" for a, b in zip(some(60, 300, (1, 2), 20), some(2000, 8000, (2, 4), 20), strict=True)],
        "rare": [
            *some(12_000, 50_000, (2, 4), 5),
            *(f"identifierNumber{number}" for number in (1, 7, 13, 29, 31)),
        ],
    }
