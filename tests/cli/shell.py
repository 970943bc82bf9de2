"""The command, run as a shell runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from replant.cli.main import run

REPLANT = Path(sys.executable).with_name("replant")


def replant(*arguments: str, stdin: Any = b"") -> tuple[int, str, str]:
    if not isinstance(stdin, bytes):
        stdin = json.dumps(stdin).encode()
    done = subprocess.run([REPLANT, *arguments], input=stdin, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    assert b"should not have happened" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def replant_here(*arguments: str) -> tuple[int, str, str]:
    """The same in this process: to start one may take longer than all that it does."""
    out, said = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as here, redirect_stdout(out), redirect_stderr(said):
        here.setattr("sys.argv", ["replant", *arguments])
        with pytest.raises(SystemExit) as ended:
            run()
    assert "should not have happened" not in said.getvalue()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out.getvalue(), said.getvalue()
