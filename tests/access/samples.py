"""Sources of these tests' own, so that the rules are tested without the rooms above. Their tables live and die in the
transaction of one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models

from apps.access.grants import GroupGrant, UserGrant
from apps.access.querysets import ScopedQuerySet
from apps.access.registry import register_source, unregister_source
from apps.access.sources import Source


class Shelf(Source):
    kind: ClassVar[str] = "shelf"

    name = models.CharField(max_length=100)

    class Meta(Source.Meta):
        app_label = "samples"

    label_field = "name"

    @property
    def label(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/shelves/{self.pk}"


class ShelfUserGrant(UserGrant):
    content_object = models.ForeignKey(Shelf, on_delete=models.CASCADE)

    class Meta(UserGrant.Meta):
        app_label = "samples"


class ShelfGroupGrant(GroupGrant):
    content_object = models.ForeignKey(Shelf, on_delete=models.CASCADE)

    class Meta(GroupGrant.Meta):
        app_label = "samples"


class LeafQuerySet(ScopedQuerySet[Any]):
    scope = ("shelf",)


class Leaf(models.Model):
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE)
    text = models.TextField()

    objects = LeafQuerySet.as_manager()

    class Meta:
        app_label = "samples"

    def __str__(self) -> str:
        return self.text


class ThreadQuerySet(ScopedQuerySet[Any]):
    scope = ("start__shelf", "end__shelf")


class Thread(models.Model):
    start = models.ForeignKey(Leaf, on_delete=models.CASCADE, related_name="+")
    end = models.ForeignKey(Leaf, on_delete=models.CASCADE, related_name="+")

    objects = ThreadQuerySet.as_manager()

    class Meta:
        app_label = "samples"

    def __str__(self) -> str:
        return f"{self.start} - {self.end}"


MODELS = (Shelf, ShelfUserGrant, ShelfGroupGrant, Leaf, Thread)


@contextmanager
def tables() -> Iterator[None]:
    """The tables of the samples, inside the test's transaction."""
    with connection.schema_editor(atomic=False) as editor:
        for model in MODELS:
            editor.create_model(model)
    kind = ContentType.objects.get_for_model(Shelf)
    for codename, name in Shelf._meta.permissions:
        Permission.objects.create(content_type=kind, codename=codename, name=name)
    register_source(Shelf, user_grants=ShelfUserGrant, group_grants=ShelfGroupGrant)
    try:
        yield
    finally:
        unregister_source(Shelf)
        ContentType.objects.clear_cache()
