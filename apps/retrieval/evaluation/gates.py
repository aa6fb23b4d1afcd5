"""What a profile must reach before it may serve (``retrieval.md`` 15.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.access import rules
from apps.access.errors import Refusal
from apps.access.models import User
from apps.indexing.profiles import GateResult
from apps.indexing.serving import active_profile
from apps.retrieval.evaluation.running import Measured, evaluate, record
from apps.retrieval.models_evaluation import EvaluationGate

if TYPE_CHECKING:
    from uuid import UUID

    from apps.indexing.models import EmbeddingProfile


def check(profile: EmbeddingProfile) -> list[GateResult]:
    """One result for each gate; a set that cannot be run does not pass."""
    results: list[GateResult] = []
    runs: dict[UUID, tuple[Measured, Measured | None]] = {}
    for gate in EvaluationGate.objects.select_related("set__owner").order_by("set__name", "level", "metric"):
        name = str(gate)
        try:
            if gate.set.pk not in runs:
                runs[gate.set.pk] = _run(gate, profile)
            after, before = runs[gate.set.pk]
            value = after.metrics[gate.level][gate.metric]
        except (Refusal, KeyError) as problem:
            results.append(GateResult(name, passed=False, numbers=f"could not be measured ({problem})"))
            continue
        passed = value >= gate.minimum
        words = f"{value:.4f} of at least {gate.minimum:.4f}"
        if gate.largest_fall is not None and before is not None:
            fall = before.metrics[gate.level][gate.metric] - value
            passed = passed and fall <= gate.largest_fall
            words += f", falls by {fall:.4f} of at most {gate.largest_fall:.4f}"
        results.append(GateResult(name, passed=passed, numbers=words))
    return results


def _run(gate: EvaluationGate, profile: EmbeddingProfile) -> tuple[Measured, Measured | None]:
    viewer = _viewer(gate)
    after = evaluate(set_=gate.set, viewer=viewer, profile=profile)
    record(after, by=None)
    served = active_profile()
    if served is None or served.pk == profile.pk:
        return after, None
    return after, evaluate(set_=gate.set, viewer=viewer, profile=served)


def _viewer(gate: EvaluationGate) -> User:
    """Who asks: the owner of the set, while he administrates, else an administrator."""
    accounts = [gate.set.owner] if gate.set.owner is not None else []
    found = next((one for one in (*accounts, *User.objects.order_by("pk")) if rules.is_administrator(one)), None)
    if found is None:
        raise Refusal("There is no administrator.")
    return found
