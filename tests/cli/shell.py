"""The command, run as a shell runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPLANT = Path(sys.executable).with_name("replant")


def replant(*arguments: str, stdin: Any = b"") -> tuple[int, str, str]:
    if not isinstance(stdin, bytes):
        stdin = json.dumps(stdin).encode()
    done = subprocess.run([REPLANT, *arguments], input=stdin, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    assert b"should not have happened" not in done.stderr
    return done.returncode, done.stdout.decode(), done.stderr.decode()
