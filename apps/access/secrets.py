"""Secrets at rest: Fernet with several keys, of which the first encrypts. Independent of Django's ``SECRET_KEY``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models, transaction

from apps.access import audit
from apps.access.errors import Conflict
from apps.access.key_files import ensure_key, read_key

if TYPE_CHECKING:
    from apps.access.models import User

_registered: list[tuple[type[models.Model], str]] = []


class SecretUnreadable(Conflict):
    """The key that encrypted a secret is gone."""

    default_message = "The stored secret cannot be read with the present keys: enter the credential again."


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """What ``rekey`` did: rows that now stand under the first key, and rows that no key reads."""

    rewritten: int
    unreadable: int


def key_path() -> Path:
    return Path(settings.COGRAPH.data_path) / "secrets.key"


def ensure_secrets_key() -> bool:
    """Make the key file when no key is set. True when it was made now, which `up` tells the operator."""
    if settings.COGRAPH.secrets_key:
        return False
    return ensure_key(key_path(), Fernet.generate_key().decode())[1]


def encrypt(text: str) -> bytes:
    ensure_secrets_key()
    box = _box()
    if box is None:
        raise RuntimeError("there is no key for secrets")
    return box.encrypt(text.encode())


def decrypt(stored: bytes | memoryview) -> str:
    """The plain text. Raises SecretUnreadable when no present key fits."""
    box = _box()
    if box is None:
        raise SecretUnreadable
    try:
        return box.decrypt(bytes(stored)).decode()
    except InvalidToken:
        raise SecretUnreadable from None


def register_secret(model: type[models.Model], field: str) -> None:
    """Tell ``rekey`` of a nullable binary column that holds encrypted text."""
    if (model, field) not in _registered:
        _registered.append((model, field))


@transaction.atomic
def rekey(*, by: User | None = None) -> Rekeyed:
    """Encrypt every registered secret with the first key. Unreadable ones stay as they are and are counted."""
    ensure_secrets_key()
    box = _box()
    if box is None:
        raise RuntimeError("there is no key for secrets")
    rewritten = unreadable = 0
    for model, field in _registered:
        rows: Any = model._base_manager.select_for_update().exclude(**{field: None})
        for row in rows.only("pk", field):
            try:
                fresh = box.rotate(bytes(getattr(row, field)))
            except InvalidToken:
                unreadable += 1
                continue
            model._base_manager.filter(pk=row.pk).update(**{field: fresh})
            rewritten += 1
    audit.record(audit.Act.SECRETS_REKEYED, by=by, after={"rewritten": rewritten, "unreadable": unreadable})
    return Rekeyed(rewritten, unreadable)


def _box() -> MultiFernet | None:
    keys = list(settings.COGRAPH.secrets_key)
    if not keys:
        from_file = read_key(key_path())
        keys = [from_file] if from_file else []
    return MultiFernet([Fernet(key) for key in keys]) if keys else None
