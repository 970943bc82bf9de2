"""What a machine must have for the proving ground."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

KUBERNETES_SPACE = 15 * 10**9
GO = (1, 26)


def missing() -> list[str]:
    """What this machine lacks, each as a few words; empty when all is there."""
    if sys.platform != "linux":
        return ["Linux"]
    lacking = [] if os.geteuid() == 0 else ["root"]
    if go_version() < GO:
        lacking.append("Go 1.26 or newer")
    lacking += [
        f"{program} ({origin})"
        for program, origin in (
            ("setpriv", "util-linux"),
            ("unshare", "util-linux"),
            ("nsenter", "util-linux"),
            ("apt-get", "Debian or a relative, for containerd and runc"),
            ("dpkg-deb", "Debian or a relative"),
        )
        if not shutil.which(program)
    ]
    return lacking


def go_version() -> tuple[int, ...]:
    """The minor version of the machine's Go; nothing if it has none."""
    if not shutil.which("go"):
        return ()
    asked = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False)
    return tuple(int(number) for number in re.findall(r"\d+", asked.stdout)[:2])


def lack_of_space(folder: Path, wanted: int) -> str:
    """A sentence if a build into the folder might fill its disk, else nothing."""
    free = shutil.disk_usage(folder).free
    if free >= wanted:
        return ""
    return (
        f"Building wants {wanted / 1e9:.0f} GB of free disk and {folder} has "
        f"{free / 1e9:.1f} GB: make room, or set XDG_CACHE_HOME, GOCACHE and GOMODCACHE to another."
    )
