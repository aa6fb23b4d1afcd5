"""Archives and keys: `collections.md` facts 21, 23 to 25, and the reported faults B041 and B042."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.collections.archives import ArchiveLimits, BadArchive, Entry, read_archive
from apps.collections.keys import BadKey, ending, normalise_key

LIMITS = ArchiveLimits(packed=1 << 20, unpacked=1 << 22, ratio=100, entries=100, file=100_000)


def zipped(*files: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return out.getvalue()


def entries(raw: bytes, limits: ArchiveLimits = LIMITS) -> list[Entry | None]:
    return list(read_archive(io.BytesIO(raw), len(raw), limits))


def taken(raw: bytes) -> dict[str, bytes]:
    return {entry.name: entry.raw for entry in entries(raw) if entry is not None and not entry.error}


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "  ",
        "/",
        "./",
        "a/../b.md",
        "..",
        "C:\\x.md",
        "a\x00.md",
        "a\nb.md",
        "x" * 1025,
        "./C:\\x.md",
        "/ ../a.md",
        "部" * 1000,
    ],
)
def test_collections_fact_21_bad_keys(raw: str) -> None:
    with pytest.raises(BadKey):
        normalise_key(raw)


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        (" ./docs//a.md ", "docs/a.md"),
        ("/a.md", "a.md"),
        ("b\\c.md", "b/c.md"),
        ("été.md", "été.md"),
        ("a..b.md", "a..b.md"),
        ("./ a.md", "a.md"),
        ("a.md /", "a.md"),
        ("./ /a.md", "a.md"),
    ],
)
def test_keys_are_normalised(raw: str, key: str) -> None:
    assert normalise_key(raw) == key


@given(st.text(max_size=80) | st.text(alphabet="./\\: aC", max_size=12))
def test_a_normalised_key_stays_as_it_is(raw: str) -> None:
    try:
        key = normalise_key(raw)
    except BadKey:
        return
    assert normalise_key(key) == key
    assert not key.startswith("/") and ".." not in key.split("/")


def test_endings() -> None:
    assert [ending(key) for key in ("a.MD", "b/c.tar.gz", ".md", "noext", "x.y/z")] == [".md", ".gz", "", "", ""]


def cp437(raw: bytes, name: str) -> bytes:
    """The same archive with one name stored in cp437 and no flag, as old programs do."""
    plain = name.encode("utf-8")
    old = name.encode("cp437")
    assert raw.count(plain) == 2
    padded = b"_" * (len(plain) - len(old)) + old
    changed = bytearray(raw.replace(plain, padded))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := changed.find(signature, at + 1)) >= 0:
            (flags,) = struct.unpack_from("<H", changed, at + offset)
            struct.pack_into("<H", changed, at + offset, flags & ~0x800)
    return bytes(changed)


def test_collections_fact_23_side_files_names_and_images() -> None:
    raw = zipped(
        ("a.md", b"# A"),
        ("__MACOSX/._a.md", b"junk"),
        (".DS_Store", b"junk"),
        ("sub/b.md", b"![i](../img/p.png)"),
        ("img/p.png", b"\x89PNG"),
        ("img/", b""),
    )
    found = entries(raw)
    assert [entry.name for entry in found if entry] == ["a.md", "sub/b.md", "img/p.png"]
    assert [entry.asset_type for entry in found if entry] == ["", "", "image/png"]
    assert found.count(None) == 3


def test_case_B041_cp437_names_are_read() -> None:
    raw = cp437(zipped(("éx.md", b"# E")), "éx.md")
    assert list(taken(raw)) == ["_éx.md"]


def test_case_B041_utf8_names_without_flag_are_read() -> None:
    raw = bytearray(zipped(("部署.md", b"# D")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(signature)
        (flags,) = struct.unpack_from("<H", raw, at + offset)
        struct.pack_into("<H", raw, at + offset, flags & ~0x800)
    assert list(taken(bytes(raw))) == ["部署.md"]


def test_collections_fact_24_unsafe_entries_are_refused_by_name() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("../../evil.md", "/abs.md", "C:\\x.md", "good.md"):
            archive.writestr(name, b"# x")
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "good.md")
        archive.writestr("inner.zip", b"PK")
        archive.writestr("run.exe", b"MZ")
    found = {entry.name: entry.error for entry in entries(out.getvalue()) if entry}
    assert found == {
        "../../evil.md": "unsafe_name",
        "/abs.md": "unsafe_name",
        "C:\\x.md": "unsafe_name",
        "good.md": "",
        "link.md": "link",
        "inner.zip": "nested_archive",
        "run.exe": "type",
    }


def test_collections_fact_25_bombs_and_junk_are_refused_whole() -> None:
    bomb = zipped(("zeros.md", b"0" * 3_000_000))
    with pytest.raises(BadArchive, match="times its packed size") as caught:
        entries(bomb)
    assert caught.value.limit == "ratio"
    with pytest.raises(BadArchive, match="101 entries; at most 100") as caught:
        entries(zipped(*((f"{n}.md", b"x") for n in range(101))))
    assert caught.value.limit == "entries"
    for junk in (b"", b"no zip at all", b"PK\x03\x04 cut"):
        with pytest.raises(BadArchive, match="no zip archive"):
            entries(junk)
    with pytest.raises(BadArchive, match="bytes; at most"):
        entries(b"x" * ((1 << 20) + 1))


def test_sizes_are_counted_and_not_believed() -> None:
    raw = bytearray(zipped(("a.md", b"0123456789" * 30_000)))
    at = raw.find(b"PK\x01\x02")
    struct.pack_into("<I", raw, at + 24, 5)  # the header claims 5 bytes
    try:
        found = entries(bytes(raw))
    except BadArchive:
        return
    assert all(entry is None or entry.error or len(entry.raw) <= LIMITS.file for entry in found)


def test_a_file_over_its_limit_costs_itself_only() -> None:
    raw = zipped(("big.md", os.urandom(150_000)), ("ok.md", b"# ok"))
    assert [(entry.name, entry.error) for entry in entries(raw) if entry] == [("big.md", "too_large"), ("ok.md", "")]


def test_an_encrypted_archive_is_refused() -> None:
    raw = bytearray(zipped(("a.md", b"# A")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(signature)
        (flags,) = struct.unpack_from("<H", raw, at + offset)
        struct.pack_into("<H", raw, at + offset, flags | 1)
    with pytest.raises(BadArchive, match="encrypted"):
        entries(bytes(raw))


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=3))
def test_no_damage_of_a_sound_archive_crashes_the_reader(hits: list[tuple[int, int]]) -> None:
    raw = bytearray(zipped(("é.md", b"# A\n" + bytes(range(256))), ("b/c.md", b"hello " * 40)))
    for place, value in hits:
        raw[place % len(raw)] = value
    with contextlib.suppress(BadArchive):
        entries(bytes(raw))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_entry_is_named(method: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("a.md", os.urandom(300))
    raw = bytearray(out.getvalue())
    raw[45:300] = b"\xff" * 255
    with pytest.raises(BadArchive, match=r"a\.md is damaged"):
        entries(bytes(raw))


def test_a_name_of_any_length_is_refused_by_name() -> None:
    [found, _] = entries(zipped(("x" * 60_000 + ".md", b"x"), ("ok.md", b"# ok")))
    assert found is not None
    assert (found.error, found.name) == ("unsafe_name", "x" * 300 + "…")


@given(st.binary(max_size=400))
def test_no_bytes_crash_the_reader(raw: bytes) -> None:
    with contextlib.suppress(BadArchive):
        entries(raw)
