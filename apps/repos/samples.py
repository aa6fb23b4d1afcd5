"""Folders of this machine as repositories: the guides that come with the portal, and samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.access.rules import Visibility
from apps.repos.models import Repository
from apps.repos.registration import Registered, register_repository

if TYPE_CHECKING:
    from apps.access.models import User


def register_local(
    *, path: Path, slug: str, by: User, visibility: str = Visibility.PUBLIC, **settings: Any
) -> Registered | None:
    """Register the git repository at ``path`` as ``slug`` (``local/cograph/docs``) and queue its first sync.

    None when the slug is taken: the sample is added once. Raises Refusal as ``register_repository`` does.
    """
    if Repository.objects.live().by_slug(slug).exists():
        return None
    return register_repository(
        by=by, git_url=str(path), slug=slug, visibility=visibility, trusted_path=True, **settings
    )
