"""Measures of a ranked list against judged answers (``retrieval.md`` 15.4). Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

METRICS = ("ndcg@10", "mrr@10", "recall@10", "recall@100")
RESAMPLES = 10_000
SEED = 20_240_229
AT_ONCE = 500


def measure(ranked: Sequence[str], judged: Mapping[str, int]) -> dict[str, float]:
    """The four measures of one question. Repeated keys count once, where they come first; what is not judged is 0.

    nDCG: linear gain, log2 discount, the ideal over all that is judged. Raises ValueError without a positive grade.
    """
    wanted = {key: grade for key, grade in judged.items() if grade > 0}
    if not wanted:
        raise ValueError("nothing is judged to answer the question")
    keys = list(dict.fromkeys(ranked))
    gained = sum(wanted.get(key, 0) / math.log2(place + 2) for place, key in enumerate(keys[:10]))
    best = sorted(wanted.values(), reverse=True)[:10]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
    first = next((place for place, key in enumerate(keys[:10], start=1) if key in wanted), 0)
    return {
        "ndcg@10": gained / ideal,
        "mrr@10": 1 / first if first else 0.0,
        "recall@10": sum(key in wanted for key in keys[:10]) / len(wanted),
        "recall@100": sum(key in wanted for key in keys[:100]) / len(wanted),
    }


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """By nearest rank; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean difference of two profiles over the same questions, with the interval that holds 95 of 100 resamples."""

    mean: float
    low: float
    high: float


def bootstrap(differences: Sequence[float]) -> Difference:
    """Paired bootstrap: 10,000 resamples of the questions, with a fixed seed."""
    if not differences:
        return Difference(0.0, 0.0, 0.0)
    values = np.array(differences)
    random = np.random.default_rng(SEED)
    means = np.concatenate(
        [
            values[random.integers(0, len(values), (AT_ONCE, len(values)))].mean(axis=1)
            for _ in range(RESAMPLES // AT_ONCE)
        ]
    )
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(float(values.mean()), float(low), float(high))
