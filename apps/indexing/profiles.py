"""Registry of gates: what a new embedding profile must pass before it may serve (``retrieval.md`` 15.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.indexing.models import EmbeddingProfile


@dataclass(frozen=True, slots=True)
class GateResult:
    """What one gate measured. ``numbers`` is one line for the administrator."""

    name: str
    passed: bool
    numbers: str = ""


Gate = Callable[["EmbeddingProfile"], "list[GateResult]"]
_gates: list[Gate] = []


def register_gate(gate: Gate) -> None:
    if gate not in _gates:
        _gates.append(gate)


def run_gates(profile: EmbeddingProfile) -> list[GateResult]:
    return [result for gate in _gates for result in gate(profile)]
