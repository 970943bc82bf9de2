"""Finding and reading the bytes: a file, a folder, or standard input."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from replant.errors import InputError, printable

STDIN = "-"
SUFFIXES = (".json", ".yaml", ".yml")

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """One file's content, as UTF-8 without a byte order mark."""

    name: str
    data: bytes


def find(path: str, *, recursive: bool) -> Iterator[Path | str | InputError]:
    """What ``path`` stands for: itself, or the manifests in a folder, in the order of their names.

    A file that is named is read whatever it is called; in a folder only manifests are. What
    cannot be looked into comes as an error, and the rest goes on.
    """
    folder = Path(path)
    if path == STDIN or (path and not folder.is_dir()):
        yield STDIN if path == STDIN else folder
        return
    if not path:
        yield InputError("is no name of a file or folder", source="an empty path")
        return
    errors: list[OSError] = []
    files: list[Path | str] = []
    for here, below, names in os.walk(folder, onerror=errors.append):
        below.sort()
        found = (Path(here, name) for name in sorted(names))
        files += [file for file in found if file.suffix.lower() in SUFFIXES]
        if not recursive:
            break
    yield from files
    for error in errors:
        yield InputError(f"cannot be read: {error.strerror}", source=printable(error.filename))
    if not files and not errors:
        deeper = "" if recursive else " (folders below it are read with --recursive)"
        wanted = ", ".join(SUFFIXES)
        yield InputError(f"has no file that ends in {wanted}{deeper}", source=printable(path))


def read(path: Path | str, max_mib: int) -> Source:
    """Read one file or standard input, up to the limit."""
    name = "standard input" if path == STDIN else printable(str(path))
    limit = max_mib * 2**20
    try:
        if isinstance(path, str):
            data = _read_limited(sys.stdin.buffer, limit)
        else:
            with path.open("rb") as file:
                data = _read_limited(file, limit)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=name) from error
    if len(data) > limit:
        raise InputError(f"is larger than {max_mib} MiB (--max-size raises that)", source=name)
    return Source(name, _as_utf8(data, name))


def _read_limited(file: BinaryIO, limit: int) -> bytes:
    return file.read(limit + 1)


def _as_utf8(data: bytes, name: str) -> bytes:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            try:
                return data.decode(encoding).encode()
            except UnicodeError as error:
                raise InputError(f"is not valid {encoding}: {error}", source=name) from error
    if not data.isascii():
        _check_utf8(data, name)
    return data


def _check_utf8(data: bytes, name: str) -> None:
    """Look for broken bytes piece by piece: a second copy of a large file is not affordable."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start, piece in _pieces(data):
        try:
            decoder.decode(piece, final=start + len(piece) == len(data))
        except UnicodeDecodeError as error:
            reason = f"is not UTF-8: {error.reason} near byte {start + error.start}"
            raise InputError(reason, source=name) from error


def _pieces(data: bytes, size: int = 2**20) -> Iterator[tuple[int, memoryview]]:
    view = memoryview(data)
    for start in range(0, len(data), size):
        yield start, view[start : start + size]
