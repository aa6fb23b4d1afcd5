"""Zip archives, read without trust: limits are counted while unpacking, names decide nothing on any disk.

Pure: bytes in, entries out. Rules: ``collections.md`` 3.3 to 3.5, ``access-and-jobs.md`` 31.
"""

from __future__ import annotations

import lzma
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from apps.collections.keys import ASSET_TYPES, BadKey, ending, is_document, normalise_key

PIECE_BYTES = 65_536
_SIDE_NAMES = frozenset({".ds_store", "thumbs.db", "desktop.ini"})
_ARCHIVE_ENDINGS = frozenset({".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".jar"})
_UTF8_FLAG = 0x800
_SHOWN_NAME_CHARS = 300
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What zipfile and its decompressors raise for bytes that are no sound archive."""


class BadArchive(ValueError):
    """An archive that is refused as a whole; ``limit`` names the limit it passes, if it is one."""

    def __init__(self, message: str, *, limit: str = "", too_large: bool = False) -> None:
        super().__init__(message)
        self.limit = limit
        self.too_large = too_large


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Bytes, a number of entries, and a ratio of unpacked to packed size."""

    packed: int
    unpacked: int
    ratio: int
    entries: int
    file: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive: its bytes, or why it is left out."""

    name: str
    """As people read it; the normalised key for entries that are taken."""
    raw: bytes = b""
    asset_type: str = ""
    error: str = ""
    """``unsafe_name``, ``link``, ``nested_archive``, ``too_large``, ``type``."""
    message: str = ""
    size: int = 0


def decoded_name(info: zipfile.ZipInfo) -> str:
    """UTF-8 when flagged or valid, else cp437; zipfile has decoded by the flag alone."""
    if info.flag_bits & _UTF8_FLAG:
        return info.orig_filename
    try:
        return info.orig_filename.encode("cp437").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return info.orig_filename


def is_side_file(name: str) -> bool:
    """What operating systems leave in archives, and folders."""
    segments = name.replace("\\", "/").split("/")
    last = segments[-1]
    return (
        name.endswith(("/", "\\"))
        or "__MACOSX" in segments[:-1]
        or last.startswith("._")
        or last.lower() in _SIDE_NAMES
    )


def read_archive(file: IO[bytes], packed_size: int, limits: ArchiveLimits) -> Iterator[Entry | None]:
    """The entries of an archive in its own order; None for each side file. Memory holds one entry at a time.

    Raises BadArchive when the whole is refused: no zip, encrypted, or over a limit.
    """
    if packed_size > limits.packed:
        raise BadArchive(
            f"The archive has {packed_size} bytes; at most {limits.packed} are allowed. Split it.",
            limit="packed size",
            too_large=True,
        )
    try:
        archive = zipfile.ZipFile(file)
    except _DAMAGED as error:
        raise BadArchive("This is no zip archive, or a damaged one. Make it anew.") from error
    with archive:
        infos = archive.infolist()
        if len(infos) > limits.entries:
            raise BadArchive(
                f"The archive has {len(infos)} entries; at most {limits.entries} are allowed. Split it.",
                limit="entries",
            )
        if any(info.flag_bits & 0x1 for info in infos):
            raise BadArchive("The archive is encrypted. Make one without a password.")
        total = 0
        for info in infos:
            name = decoded_name(info)
            if is_side_file(name):
                yield None
                continue
            refused = _refused(info, name)
            if refused is not None:
                yield refused
                continue
            key = normalise_key(name)
            try:
                raw, size = _unpack(archive, info, limits, total, packed_size)
            except BadArchive:
                raise
            except _DAMAGED as error:
                raise BadArchive(f"The entry {key} is damaged or packed in a way that cannot be read.") from error
            total += size
            if raw is None:
                yield Entry(key, error="too_large", message=_too_large(size, limits.file), size=size)
            else:
                yield Entry(key, raw=raw, asset_type=ASSET_TYPES.get(ending(key), ""), size=size)


def _too_large(size: int, limit: int) -> str:
    return f"The file has more than {limit} bytes. Split it, or raise COGRAPH_MARKUP__MAX_FILE_BYTES."


def _refused(info: zipfile.ZipInfo, name: str) -> Entry | None:
    path = name.replace("\\", "/")
    mode = info.external_attr >> 16
    # SECURITY: zip slip. Nothing is written to a path, but a climbing name must not become a key either.
    shown = name if len(name) <= _SHOWN_NAME_CHARS else f"{name[:_SHOWN_NAME_CHARS]}…"
    if path.startswith("/"):
        return Entry(shown, error="unsafe_name", message="The name is absolute. Store files below the archive's root.")
    try:
        key = normalise_key(name)
    except BadKey as error:
        return Entry(shown, error="unsafe_name", message=str(error))
    kind = stat.S_IFMT(mode)
    if kind == stat.S_IFLNK:
        return Entry(key, error="link", message="The entry is a link. Store the file itself.")
    if kind not in {0, stat.S_IFREG}:
        return Entry(key, error="link", message="The entry is a device or another special file.")
    if ending(key) in _ARCHIVE_ENDINGS:
        return Entry(key, error="nested_archive", message="The entry is an archive. Unpack it before you upload.")
    if not is_document(key) and ending(key) not in ASSET_TYPES:
        return Entry(key, error="type", message="Files of this type are not taken.", size=info.file_size)
    return None


def _unpack(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, limits: ArchiveLimits, before: int, packed_size: int
) -> tuple[bytes | None, int]:
    """The bytes of an entry, None when it is over the file limit, and its true size.

    SECURITY: a bomb lies in its headers, so sizes are counted while unpacking and the reading stops at the limit.
    """
    pieces: list[bytes] = []
    size = 0
    packed = max(info.compress_size, 1)
    with archive.open(info) as stream:
        while piece := stream.read(PIECE_BYTES):
            size += len(piece)
            if size > PIECE_BYTES and size > packed * limits.ratio:
                raise BadArchive(f"An entry unpacks to more than {limits.ratio} times its packed size.", limit="ratio")
            if before + size > limits.unpacked:
                raise BadArchive(
                    f"The archive unpacks to more than {limits.unpacked} bytes. Split it.",
                    limit="unpacked size",
                    too_large=True,
                )
            if before + size > packed_size * limits.ratio and before + size > PIECE_BYTES:
                raise BadArchive(f"The archive unpacks to more than {limits.ratio} times its size.", limit="ratio")
            if size <= limits.file:
                pieces.append(piece)
            else:
                pieces.clear()
    return (b"".join(pieces), size) if size <= limits.file else (None, size)
