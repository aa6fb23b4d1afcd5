"""The personas and sources of the facts: who reads what is written down once, in ``World``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.db import connection
from django.test import Client

from apps.access.compiled import ReadableRows, readable_ids
from apps.access.grants import grant
from apps.access.models import User
from apps.access.sources import Source, Visibility, source_model
from tests.access import samples

Change = Callable[..., None]


@pytest.fixture
def configure(settings: Any) -> Change:
    """Change settings of the deployment: ``configure(public_read=True)``."""

    def change(**values: Any) -> None:
        settings.COGRAPH = dataclasses.replace(settings.COGRAPH, **values)

    return change


@pytest.fixture
def shelves(db: None) -> Iterator[None]:
    with samples.tables():
        yield


def make_collection(name: str, **values: Any) -> Source:
    """A collection: the real one where that room stands, else a sample with the same rights."""
    try:
        model = source_model("collection")
    except KeyError:
        return samples.Shelf.objects.create(name=name, **values)
    return model.objects.create(name=name, slug=name.lower(), **values)


def make_repository(name: str, **values: Any) -> Source:
    model = source_model("repository")
    return model.objects.create(
        slug=f"example.org/team/{name}", git_url=f"https://example.org/team/{name}.git", **values
    )


@dataclass(frozen=True, slots=True)
class World:
    anonymous: AnonymousUser
    dana: User
    wim: User
    olga: User
    otto: User
    stan: User
    ada: User
    ina: User
    docs: Group
    sources: dict[str, Source]

    def __getitem__(self, name: str) -> Source:
        return self.sources[name]

    def names(self, found: Any) -> set[str]:
        """The fact's names of the sources among ``found``."""
        keys = {source.pk for source in found}
        return {name for name, source in self.sources.items() if source.pk in keys}

    def models(self) -> set[type[Source]]:
        return {type(source) for source in self.sources.values()}

    def readable(self, viewer: Any) -> set[str]:
        """By the rule, which the SQL that is compiled once must agree with for whoever it is."""
        found = [source for model in self.models() for source in model.objects.visible_to(viewer)]
        compiled: set[Any] = set()
        for model in self.models():
            with connection.cursor() as cursor:
                cursor.execute(*readable_ids(model, viewer))
                compiled |= {id_ for (id_,) in cursor.fetchall()}
            compiled_rows = ReadableRows(lambda who, of=model: of.objects.visible_to(who)).all(viewer)  # type: ignore[misc]
            assert {row.pk for row in compiled_rows} == {source.pk for source in found if type(source) is model}
        assert compiled == {source.pk for source in found}
        return self.names(found)

    def writable(self, viewer: Any) -> set[str]:
        return self.names(source for model in self.models() for source in model.objects.writable_by(viewer))

    def manageable(self, viewer: Any) -> set[str]:
        return self.names(source for model in self.models() for source in model.objects.manageable_by(viewer))


@pytest.fixture
def world(shelves: None) -> World:
    make = User.objects.create_user
    dana, wim, olga, otto = make("dana"), make("wim"), make("olga"), make("otto")
    other = make("oskar")
    stan = make("stan", is_staff=True)
    ada = make("ada", is_staff=True, is_superuser=True)
    ina = make("ina", is_staff=True, is_superuser=True, is_active=False)
    docs = Group.objects.create(name="docs")
    dana.groups.add(docs)
    stan.user_permissions.set(Permission.objects.all())
    sources = {
        "Rp": make_repository("rp", visibility=Visibility.PUBLIC),
        "Rv": make_repository("rv", owner=olga),
        "Ra": make_repository("ra", owner=olga, visibility=Visibility.ADMIN_ONLY),
        "Cp": make_collection("Cp", visibility=Visibility.PUBLIC, owner=other),
        "Cv": make_collection("Cv", owner=olga),
        "Ca": make_collection("Ca", owner=olga, visibility=Visibility.ADMIN_ONLY),
        "Cx": make_collection("Cx", owner=other),
    }
    grant(source=sources["Rv"], to=docs, level="read", by=olga)
    grant(source=sources["Ra"], to=docs, level="read", by=ada)
    grant(source=sources["Cv"], to=wim, level="write", by=olga)
    return World(AnonymousUser(), dana, wim, olga, otto, stan, ada, ina, docs, sources)


@pytest.fixture
def with_token(db: None) -> Callable[..., Client]:
    """A client that sends a token with the given scopes."""
    from apps.access.tokens import create_token

    def make(user: User, *scopes: str) -> Client:
        _, text = create_token(user=user, name="a test", scopes=scopes)
        return Client(headers={"Authorization": f"Bearer {text}"})

    return make
