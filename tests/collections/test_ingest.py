"""``manage.py ingest``: files, folders and archives from this machine."""

from __future__ import annotations

import zipfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.access.models import User
from apps.collections.models import Collection, Document
from apps.jobs.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> tuple[str, str, str]:
    out, err, failure = StringIO(), StringIO(), ""
    try:
        call_command("ingest", *arguments, stdout=out, stderr=err)
    except CommandError as error:
        failure = str(error)
    return out.getvalue(), err.getvalue(), failure


def test_a_folder_a_file_and_an_archive(tmp_path: Path, ada: User) -> None:
    (tmp_path / "wiki/sub").mkdir(parents=True)
    (tmp_path / "wiki/a.md").write_text("# A")
    (tmp_path / "wiki/sub/b.rst").write_text("B\n=\n")
    (tmp_path / "wiki/.hidden.md").write_text("no")
    (tmp_path / "wiki/image.bin").write_bytes(b"\0")
    (tmp_path / "wiki/link.md").symlink_to("/etc/hostname")
    (tmp_path / "note.txt").write_text("note")
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.writestr("z.md", "# Z")
    assert "Add --create" in run("Wiki", str(tmp_path / "wiki"))[2]
    paths = [str(tmp_path / name) for name in ("wiki", "note.txt", "more.zip")]
    out, _, failure = run("Wiki", *paths, "--create")
    assert failure == "" and "created    sub/b.rst" in out
    keys = set(Document.objects.values_list("source_key", flat=True))
    assert keys == {"a.md", "sub/b.rst", "note.txt", "z.md"}
    assert Job.objects.filter(kind="upload", requested_by=ada).count() == 2
    assert Collection.objects.get().visibility == "private"
    out, _, _ = run("wiki", str(tmp_path / "wiki"), "--into", "old/")
    assert "created    old/a.md" in out
    out, _, _ = run(str(Collection.objects.get().pk), str(tmp_path / "wiki"))
    assert "0 created, 0 replaced, 2 unchanged" in out and "a.md" not in out


def test_bad_files_are_named_and_fail_the_command(tmp_path: Path, ada: User) -> None:
    (tmp_path / "good.md").write_text("# G")
    (tmp_path / "fake.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(200)))
    (tmp_path / "head.md").write_text("---\na:\n\t- b\n---\n# H")
    out, err, failure = run("Shelf", str(tmp_path), "--create")
    assert "head.md:3:1" in out and "fake.md" in err and failure == "1 files were left out."
    assert "no file or folder" in run("Shelf", str(tmp_path / "nothing"))[2]
    assert "no active account" in run("Shelf", str(tmp_path), "--as", "nobody")[2]
    User.objects.create_user("otto")
    assert "There is no collection" in run("Shelf", str(tmp_path), "--as", "otto")[2]
