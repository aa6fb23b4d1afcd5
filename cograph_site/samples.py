"""The samples of the first run: each is given once, and a deleted one never comes back.

A sample is a function that makes its source through the room that owns it. To add one, write the function and put it
into SAMPLES; nothing else here needs to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.db import transaction

from cograph_site.models import GivenSample

SAMPLES: Mapping[str, Callable[[], None]] = {}


def give(say: Callable[[str], None]) -> list[str]:
    """Give the samples that this deployment has not had yet; answers their names.

    One that fails is told of and tried again at the next start; it does not stop the start.
    """
    had = set(GivenSample.objects.values_list("name", flat=True))
    given = []
    for name, make in SAMPLES.items():
        if name in had:
            continue
        try:
            with transaction.atomic():
                GivenSample.objects.create(name=name)
                make()
        except Exception as error:
            say(f"the sample {name} could not be made: {error}")
            continue
        given.append(name)
    return given


def decline() -> None:
    """Mark all samples as given, so that no later start brings them."""
    GivenSample.objects.bulk_create([GivenSample(name=name) for name in SAMPLES], ignore_conflicts=True)
