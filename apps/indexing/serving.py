"""Which embedding profile serves, which one is being built, and the embedder that belongs to each."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.access.compiled import Rows
from apps.indexing.embedding import backends
from apps.indexing.embedding.backends import Embedder, EmbedderUnavailable, Traits
from apps.indexing.models import EmbeddingProfile, ProfileState

_USED: Rows[EmbeddingProfile] = Rows(
    lambda: EmbeddingProfile.objects.filter(state__in=(ProfileState.ACTIVE, ProfileState.NEXT))
)


def used_profiles() -> tuple[EmbeddingProfile | None, EmbeddingProfile | None]:
    """The active profile and the next one; there is at most one of each."""
    found = {profile.state: profile for profile in _USED.all()}
    return found.get(ProfileState.ACTIVE), found.get(ProfileState.NEXT)


def active_profile() -> EmbeddingProfile | None:
    return used_profiles()[0]


def next_profile() -> EmbeddingProfile | None:
    return used_profiles()[1]


def configured_profile(embedder: Embedder) -> EmbeddingProfile:
    """The profile of the set embedder. The first one of a deployment serves at once; a different one becomes the next,
    and an earlier one that was set again is taken up where it was left.
    """
    traits = embedder.traits()
    known = EmbeddingProfile.objects.filter(fingerprint=traits.fingerprint).first()
    if known is not None and known.state != ProfileState.RETIRED:
        return _tuned(known, traits)
    try:
        with transaction.atomic():
            return _begin(traits, known)
    except IntegrityError:  # another process was first
        return configured_profile(embedder)


def _begin(traits: Traits, known: EmbeddingProfile | None) -> EmbeddingProfile:
    first = active_profile() is None
    if not first:
        EmbeddingProfile.objects.filter(state=ProfileState.NEXT).update(state=ProfileState.RETIRED)
    profile = known or EmbeddingProfile(fingerprint=traits.fingerprint)
    area = settings.COGRAPH.embedding
    profile.backend = area.backend
    profile.options = {"url": area.url, "model": area.model, "dimension": area.dimension, "batch_size": area.batch_size}
    profile.label = traits.label
    profile.dimension = traits.dimension
    profile.weight = traits.weight
    profile.min_cosine = traits.min_cosine
    profile.max_tokens = traits.max_tokens
    profile.state = ProfileState.ACTIVE if first else ProfileState.NEXT
    profile.served_from = timezone.now() if first else None
    profile.save()
    return profile


def _tuned(profile: EmbeddingProfile, traits: Traits) -> EmbeddingProfile:
    if (profile.weight, profile.min_cosine) != (traits.weight, traits.min_cosine):
        profile.weight, profile.min_cosine = traits.weight, traits.min_cosine
        profile.save(update_fields=["weight", "min_cosine"])
    return profile


def embedder_of(profile: EmbeddingProfile) -> Embedder:
    """The embedder whose vectors ``profile`` holds, also after another one was set. Raises EmbedderUnavailable."""
    found = embedder_for(profile.backend, profile.options)
    if found is None:
        raise EmbedderUnavailable("No embedder is set.", lasting=True)
    return found


def embedder_for(backend: str, options: dict[str, Any]) -> Embedder | None:
    area = settings.COGRAPH.embedding
    if backend == area.backend and all(getattr(area, name) == value for name, value in options.items()):
        return backends.embedder()
    return backends.make(dataclasses.replace(area, backend=backend, **options))
