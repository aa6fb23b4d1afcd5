"""The samples of the first run: each is given once, and a deleted one never comes back.

A sample is a function that makes its source through the room that owns it. To add one, write the function and put it
into SAMPLES; nothing else here needs to change.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from apps.access.models import User
from apps.access.origin import Origin, acting
from apps.access.rules import Visibility
from apps.collections.curation import create_collection
from apps.collections.uploads import upload_document
from apps.markup.shared_pool import close_shared_pool
from apps.repos.models import Repository
from apps.repos.registration import move_local, register_repository, request_sync
from cograph_site.models import GivenSample

GUIDES = "local/cograph/docs"
CANONICAL = "Canonical sample"


def give(say: Callable[[str], None]) -> list[str]:
    """Give the samples that this deployment has not had yet; answers their names.

    One that fails is told of and tried again at the next start; it does not stop the start.
    """
    had = set(GivenSample.objects.values_list("name", flat=True))
    administrator = _administrator()
    if administrator is None:
        return []
    given = []
    for name, make in SAMPLES.items():
        if name in had:
            continue
        try:
            with transaction.atomic(), acting(Origin(how="system")):
                GivenSample.objects.create(name=name)
                make(administrator)
        except Exception as error:
            say(f"the sample {name} could not be made: {error}")
            continue
        say(f"added the sample {name}")
        given.append(name)
    return given


def decline() -> None:
    """Mark all samples as given, so that no later start brings them."""
    GivenSample.objects.bulk_create([GivenSample(name=name) for name in SAMPLES], ignore_conflicts=True)


def refresh_guides(say: Callable[[str], None]) -> None:
    """Bring the guides of a new version into their repository, while it is there."""
    repository = Repository.objects.filter(slug=GUIDES, deleted_at=None).first()
    folder = _guides_folder()
    administrator = _administrator()
    if repository is None or administrator is None or not _is_of_a_data_folder(repository, folder):
        return
    # A restored backup names the folder that it was taken from.
    has_moved = repository.git_url != str(folder)
    if not commit_guides(folder) and not has_moved:
        return
    with acting(Origin(how="system")):
        if has_moved:
            move_local(repository=repository, by=administrator, folder=folder)
        request_sync(repository=repository, by=administrator)
    say("the guides have changed; their repository is synced")


def _administrator() -> User | None:
    """Who gives the samples: the first administrator of this deployment."""
    return get_user_model().objects.filter(is_superuser=True, is_active=True).order_by("date_joined").first()


def _is_of_a_data_folder(repository: Repository, folder: Path) -> bool:
    """Whether this is the repository that `make_guides` made, here or in the data folder of before."""
    address = Path(repository.git_url)
    return repository.trusted_path and address.parts[-2:] == folder.parts[-2:]


def make_guides(by: User) -> None:
    """Cograph's own guides as a public repository: the first thing that can be searched."""
    folder = _guides_folder()
    commit_guides(folder)
    register_repository(
        by=by,
        git_url=str(folder),
        slug=GUIDES,
        trusted_path=True,
        visibility=Visibility.PUBLIC,
        description="Cograph's own guides for readers, operators and programs.",
        schedule="manual",
    )


def make_canonical(by: User) -> None:
    """A small collection of canonical pages: typed, linked, with one broken link and one page that is not there."""
    collection = create_collection(
        by=by,
        name=CANONICAL,
        visibility=Visibility.PUBLIC,
        description="Decisions, modules, a runbook, a standard and a rejected approach that name each other.",
    )
    folder = Path(__file__).parent / "canonical_sample"
    try:
        for path in sorted(folder.rglob("*.md")):
            key = path.relative_to(folder).as_posix()
            upload_document(collection=collection, by=by, source_key=key, raw=path.read_bytes())
    finally:
        close_shared_pool()


SAMPLES: Mapping[str, Callable[[User], None]] = {
    f"repository {GUIDES}": make_guides,
    f"collection {CANONICAL}": make_canonical,
}


def _guides_folder() -> Path:
    return settings.COGRAPH.data_path / "samples" / "docs"


def commit_guides(folder: Path) -> bool:
    """Copy the guides of this checkout into a git repository of their own; answers whether anything was new.

    The checkout itself need not be a git repository (an unpacked archive is none), and its code is no guide.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(settings.BASE_DIR / "docs", folder / "docs")
    if not (folder / ".git").exists():
        _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "add", "--all")
    if not _git(folder, "status", "--porcelain"):
        return False
    _git(folder, "commit", "--quiet", "--message=Guides of Cograph")
    return True


def _git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Cograph", "-c", "user.email=cograph@localhost", "-c", "commit.gpgsign=false"]
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HOME": str(folder),
    }
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
