"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from replant.errors import InputError


class WholeFile:
    """A file that is there with all that belongs in it, or is what it was before."""

    def __init__(self, path: str) -> None:
        self._source = path
        # Behind a symlink, so that what it leads to is written, and it stays one.
        self._path = Path(path).expanduser().resolve()

    def refuse_unwritable(self) -> None:
        """InputError, now rather than when there is something to write, if it cannot be done."""
        if self._path.exists() and not self._path.is_file():
            raise InputError("is there, and is no file", source=self._source)
        self._draft(b"").unlink()

    def write(self, content: str) -> None:
        """Put the content there; InputError if it cannot be done."""
        draft = self._draft(content.encode("utf-8", "backslashreplace"))
        try:
            draft.replace(self._path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise self._unwritable(error) from error

    def _draft(self, content: bytes) -> Path:
        """The content beside the file, where a rename can put it in its place."""
        draft = self._path.with_name(f".{self._path.name[:100]}.{secrets.token_hex(4)}")
        try:
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise self._unwritable(error) from error
        return draft

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"cannot be written: {error.strerror or error}", source=self._source)
