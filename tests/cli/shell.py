"""The command, run as a shell runs it."""

from __future__ import annotations

import json
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import pytest

from replant.cli.main import run
from tests.cli.command_server import REPLANT, CommandServer

__all__ = ["REPLANT", "replant", "replant_here"]

_SERVER = CommandServer()
in_forks = True
"""Whether commands run in forks; ``tests/conftest.py`` says it for each test."""


def replant(*arguments: str, stdin: Any = b"") -> tuple[int, str, str]:
    if not isinstance(stdin, bytes):
        stdin = json.dumps(stdin).encode()
    if in_forks:
        code, out, err = _SERVER.run(*map(str, arguments), stdin=stdin)
    else:
        ended = subprocess.run([REPLANT, *arguments], input=stdin, capture_output=True, check=False)
        code, out, err = ended.returncode, ended.stdout, ended.stderr
    assert b"Traceback" not in err
    assert b"should not have happened" not in err
    return code, out.decode(), err.decode()


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
