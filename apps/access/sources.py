"""The abstract source: what a repository and a collection have in common for the rules of access."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.access.errors import NotFound
from apps.access.querysets import SourceQuerySet
from apps.access.registry import register_source, source_entries, source_model, source_models
from apps.access.rules import Right, Visibility

if TYPE_CHECKING:
    from apps.access.viewers import Viewer

__all__ = [
    "Source",
    "SourceQuerySet",
    "Visibility",
    "find_source",
    "register_source",
    "source_entries",
    "source_model",
    "source_models",
]


class Source(models.Model):
    """One repository or one collection. Everything below it inherits its readers.

    ``deleted_at`` hides the source from everyone at once; its rows are removed later by a job.
    """

    kind: ClassVar[str]
    visibility_right: ClassVar[Right] = Right.MANAGE
    """Right that switching between public and private takes."""
    delete_right: ClassVar[Right] = Right.MANAGE

    label_field: ClassVar[str]
    """Column of ``label``."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    visibility = models.CharField(max_length=10, choices=Visibility.choices, default=Visibility.PRIVATE)
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects: ClassVar[Any] = SourceQuerySet.as_manager()

    class Meta:
        abstract = True
        permissions = [("read", "May read the content"), ("write", "May read and change the content")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(visibility__in=Visibility.values), name="%(app_label)s_%(class)s_visibility_known"
            )
        ]

    def __str__(self) -> str:
        return self.label

    def get_absolute_url(self) -> str:
        raise NotImplementedError

    @property
    def label(self) -> str:
        """What people call it: a slug or a name."""
        raise NotImplementedError


def find_source(kind: str, id: object, viewer: Viewer, right: Right | str = Right.READ) -> Source:
    """The source that (kind, id) names, if ``viewer`` has ``right`` over it.

    Raises NotFound for an unknown kind, an absent and a hidden source alike; Forbidden when it is only readable.
    """
    try:
        model = source_model(kind)
    except KeyError:
        raise NotFound from None
    found: Source = model.objects.get_for(viewer, right, pk=id)
    return found
