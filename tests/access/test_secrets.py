"""Secrets at rest and redaction (fact 58, rules 29 and 30)."""

from __future__ import annotations

import base64
import io
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from apps.access import secrets
from apps.access.key_files import ensure_key
from apps.access.models import AuditRecord
from apps.access.redact import redact
from tests.access.conftest import make_repository


@pytest.fixture
def folder(tmp_path: Path, configure: Any) -> Path:
    configure(data_dir=str(tmp_path / "data"), secrets_key=())
    return tmp_path / "data"


def test_a_key_file_is_made_for_its_owner_only(folder: Path) -> None:
    assert secrets.ensure_secrets_key() is True
    assert secrets.ensure_secrets_key() is False
    path = secrets.key_path()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [one.name for one in folder.iterdir()] == ["secrets.key"]


def test_two_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    path = tmp_path / "a" / "key"
    found: list[tuple[str, bool]] = []
    threads = [threading.Thread(target=lambda n=n: found.append(ensure_key(path, f"key-{n}"))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({key for key, _ in found}) == 1
    assert sum(made for _, made in found) == 1


def test_what_is_encrypted_reads_back_and_shows_nothing(folder: Path) -> None:
    stored = secrets.encrypt("tok3n")
    assert b"tok3n" not in stored
    assert secrets.decrypt(memoryview(stored)) == "tok3n"


def test_access_fact_58_a_lost_key_asks_for_the_credential_again(folder: Path, configure: Any) -> None:
    stored = secrets.encrypt("tok3n")
    secrets.key_path().unlink()
    with pytest.raises(secrets.SecretUnreadable) as refused:
        secrets.decrypt(stored)
    assert "enter the credential again" in refused.value.message
    configure(secrets_key=(Fernet.generate_key().decode(),))
    with pytest.raises(secrets.SecretUnreadable):
        secrets.decrypt(stored)


def test_several_keys_read_and_the_first_writes(folder: Path, configure: Any) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    configure(secrets_key=(old,))
    stored = secrets.encrypt("tok3n")
    configure(secrets_key=(new, old))
    assert secrets.decrypt(stored) == "tok3n"
    assert Fernet(new).decrypt(secrets.encrypt("x")) == b"x"


def test_rekey_moves_every_secret_to_the_first_key(db: None, folder: Path, configure: Any) -> None:
    old, new, lost = (Fernet.generate_key().decode() for _ in range(3))
    configure(secrets_key=(old,))
    good = make_repository("good", credential=secrets.encrypt("tok3n"))
    configure(secrets_key=(lost,))
    bad = make_repository("bad", credential=secrets.encrypt("gone"))
    make_repository("none")
    secrets.register_secret(type(good), "credential")
    configure(secrets_key=(new, old))
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 secrets"):
        call_command("rekey_secrets", stdout=out)
    assert "1 secrets" in out.getvalue()
    configure(secrets_key=(new,))
    for row in (good, bad):
        row.refresh_from_db()
    assert secrets.decrypt(good.credential) == "tok3n"  # type: ignore[attr-defined]
    record = AuditRecord.objects.get(act="secrets_rekeyed")
    assert (record.how, record.after) == ("command", {"rewritten": 1, "unreadable": 1})


@pytest.mark.parametrize(
    "text",
    [
        "fatal: unable to access 'https://me:tok3n-value@example.org/a.git/': no route",
        "https://tok3n-value@example.org/a",
        "ssh://git:p@tok3n-value@host/a",
        "Authorization: Basic tok3n-value",
        "authorization: bearer tok3n-value",
        "header was Bearer tok3n-value.",
        "cgr_tok3n-value",
    ],
)
def test_redaction_by_form(text: str) -> None:
    assert "tok3n-value" not in redact(text)


def test_redaction_of_known_values_in_every_form() -> None:
    secret = "p@ss/w:rd 1"
    for form in (secret, "p%40ss%2Fw%3Ard%201", "p%40ss/w%3Ard%201", base64.b64encode(secret.encode()).decode()):
        assert form.rstrip("=") not in redact(f"failed with {form} at once", [secret])
    key = "-----BEGIN KEY-----\nabcdefghijkl\nmnopqrstuvwx\n-----END KEY-----"
    assert "mnopqrstuvwx" not in redact("line mnopqrstuvwx was bad", [key])
    assert redact("a cat sat", ["", "a", "at"]) == "a cat sat"


def test_redaction_keeps_what_is_no_secret() -> None:
    text = "see https://example.org/a@b and write to me@example.org about the basic authorization"
    assert redact(text) == text
