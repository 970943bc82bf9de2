"""What a machine must have for the proving ground."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

BUILD_SPACE = 15 * 10**9


def missing() -> list[str]:
    """What this machine lacks, each as a few words; empty when all is there."""
    if sys.platform != "linux":
        return ["Linux"]
    lacking = [] if os.geteuid() == 0 else ["root"]
    lacking += [
        f"{program} ({origin})"
        for program, origin in (
            ("go", "1.26 or newer"),
            ("setpriv", "util-linux"),
            ("unshare", "util-linux"),
            ("nsenter", "util-linux"),
            ("apt-get", "Debian or a relative, for containerd and runc"),
            ("dpkg-deb", "Debian or a relative"),
        )
        if not shutil.which(program)
    ]
    return lacking


def lack_of_space(folder: Path, wanted: int) -> str:
    """A sentence if a build into the folder might fill its disk, else nothing."""
    free = shutil.disk_usage(folder).free
    if free >= wanted:
        return ""
    return (
        f"Building Kubernetes wants {wanted / 1e9:.0f} GB of free disk and {folder} has "
        f"{free / 1e9:.1f} GB: make room, or set XDG_CACHE_HOME, GOCACHE and GOMODCACHE to another."
    )
