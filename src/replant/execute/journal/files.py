"""A journal in a file of this machine: one run, a JSON text for each line, synced line by line."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from replant.errors import InputError, Refused
from replant.execute.census_model import Census
from replant.execute.journal.model import Entry, Header, Run, Summary
from replant.plan.model import Plan


class _First(msgspec.Struct, frozen=True):
    """The first line."""

    header: Header
    plan: Plan
    before: Census


class FileJournals:
    """The one run that a file holds."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def elsewhere(self) -> str:
        """The file, and the machine that has it."""
        return f"{self._path.resolve()} on {socket.gethostname()}"

    async def runs(self) -> list[Summary]:
        """The run of the file, if it is there."""
        if not self._path.exists():
            return []
        run, _ = self._read()
        header = run.header
        return [Summary(header.id, header.goal, header.started, run.state)]

    async def begin(self, run: Run) -> FileJournal:
        """Make the file; one that is there is not touched."""
        first = msgspec.json.encode(_First(run.header, run.plan, run.before)) + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"there can be no folder for the journal: {error.strerror}",
                source=str(self._path.parent),
            ) from error
        draft = self._path.with_name(f".{self._path.name}.{run.header.id}")
        try:
            with draft.open("xb") as file:
                file.write(first)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, self._path)  # unlike a rename, it never replaces what is there
        except FileExistsError:
            raise Refused(
                f"{self._path} holds a run already. Go on with it (--resume), or name another file."
            ) from None
        except OSError as error:
            raise InputError(
                f"the journal cannot be written: {error.strerror}", source=str(self._path)
            ) from error
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(self._path.parent)
        journal = FileJournal(self._path)
        journal.cut(len(first))
        return journal

    async def read(self, run_id: str) -> Run:
        """The run of the file."""
        run, _ = self._read()
        if run.header.id != run_id:
            raise Refused(f"{self._path} holds the run {run.header.id}, and not {run_id}.")
        return run

    async def open(self, run_id: str) -> tuple[Run, FileJournal]:
        """Read the file, and go on behind its last whole line."""
        journal = FileJournal(self._path)
        try:
            run = await self.read(run_id)
            journal.cut(self._read()[1])
        except BaseException:
            await journal.aclose()
            raise
        return run, journal

    def _read(self) -> tuple[Run, int]:
        try:
            data = self._path.read_bytes()
        except OSError as error:
            raise InputError(
                f"the journal cannot be read: {error.strerror}", source=str(self._path)
            ) from error
        # A last line without its end was being written when the machine stopped: nothing that it
        # says was done.
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if not lines:
            raise InputError("holds no run", source=str(self._path))
        try:
            first = msgspec.json.decode(lines[0], type=_First)
            entries = [msgspec.json.decode(line, type=Entry) for line in lines[1:]]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"is no journal: {error}", source=str(self._path)) from None
        return Run(first.header, first.plan, first.before, entries), len(whole)


class FileJournal:
    """The entries of the run in a file, which nobody else writes to meanwhile."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._size = 0
        """So many bytes of it are whole lines."""
        try:
            self._file: IO[bytes] = path.open("r+b", buffering=0)
        except OSError as error:
            raise InputError(
                f"the journal cannot be written: {error.strerror}", source=str(path)
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise Refused(f"Another Replant is writing to {path}.") from None

    def cut(self, size: int) -> None:
        """Go on behind so many bytes, and forget what is there."""
        self._file.truncate(size)
        self._file.seek(size)
        self._size = size

    async def write(self, entries: Sequence[Entry]) -> None:
        """Write and sync."""
        data = b"".join(msgspec.json.encode(it) + b"\n" for it in entries)
        try:
            # What a full disk has kept of an earlier try must not become part of a line.
            self.cut(self._size)
            rest = memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InputError(
                f"the journal cannot be written: {error.strerror}", source=self.where
            ) from error
        self._size += len(data)

    async def aclose(self) -> None:
        """Let others write."""
        self._file.close()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
