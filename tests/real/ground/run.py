"""One run's folder, and clearing away what killed runs left behind.

A run holds a lock on its folder for as long as it lives. A folder whose lock is free is a killed
run's: its processes are ended, its mounts undone, its control groups and files removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

MARK = "REPLANT_RUN"
"""The environment variable by which the processes of a run are known."""
CGROUPS = Path("/sys/fs/cgroup")


class Unusable(Exception):
    """The place for runs cannot be used; the message is one line that says why."""


def runs_folder() -> Path:
    """Short, because the paths of unix sockets must be."""
    return Path(tempfile.gettempdir()).resolve() / "replant-real"


@contextmanager
def folder(say: Callable[[str], None]) -> Iterator[Path]:
    """This run's own folder, after the leftovers of others are gone; it goes with the run."""
    runs_folder().mkdir(mode=0o700, exist_ok=True)
    there = runs_folder().lstat()
    if there.st_uid != os.geteuid() or stat.S_IMODE(there.st_mode) != 0o700:
        raise Unusable(
            f"{runs_folder()} is not a folder of ours alone: see who made it, remove it."
        )
    os.umask(0o077)  # keys and tokens are written
    mine = runs_folder() / str(os.getpid())
    with ExitStack() as held:
        # One at a time, so that nobody takes a run that is just beginning for a killed one.
        with (runs_folder() / "lock").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            clear_leftovers(say)
            mine.mkdir()
            lock = held.enter_context((mine / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield mine
        finally:
            clear(mine)


def clear_leftovers(say: Callable[[str], None]) -> None:
    for left in sorted(path for path in runs_folder().iterdir() if path.is_dir()):
        if _is_dead(left):
            say(f"clearing what the killed run {left.name} left behind")
            clear(left)


def _is_dead(left: Path) -> bool:
    try:
        with (left / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return True
    return True


def clear(run: Path) -> None:
    """End a run's processes, undo its mounts, and remove its control groups and files."""
    _end_processes(run)
    for mount in mounts_below(run):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
    if still := mounts_below(run):
        # Removing the folder would remove what lies behind the mount.
        raise Unusable(f"{still[0]} is left of a killed run and cannot be unmounted: see why.")
    _remove_cgroups(cgroup_name(run))
    shutil.rmtree(run, ignore_errors=True)


def processes_of(run: Path) -> list[int]:
    """All that were started in the run's folder or one below it, but for this one."""
    marks = f"{MARK}={run}".encode(), f"{MARK}={run}/".encode()
    return [
        pid
        for pid in _pids()
        if pid != os.getpid()
        and any(entry == marks[0] or entry.startswith(marks[1]) for entry in _environment(pid))
    ]


def mounts_below(run: Path) -> list[str]:
    """Innermost first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = (line.split()[1].encode().decode("unicode_escape") for line in lines)
    return sorted((p for p in points if p.startswith(f"{run}/")), reverse=True)


def cgroup_name(run: Path) -> str:
    """The control group below which everything of a run's real node is."""
    return f"replant-real-{run.name}"


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _end_processes(run: Path) -> None:
    for _attempt in range(50):
        left = processes_of(run)
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def _remove_cgroups(name: str) -> None:
    for top in [*CGROUPS.glob(name), *CGROUPS.glob(f"*/{name}")]:
        for group in sorted([top, *top.rglob("*")], reverse=True):
            if group.is_dir():
                _remove_cgroup(group)


def _remove_cgroup(group: Path) -> None:
    for _attempt in range(50):
        try:
            group.rmdir()
        except FileNotFoundError:
            return  # one controller may be there under two names
        except OSError:
            time.sleep(0.1)  # its processes have ended, but the kernel still counts them
        else:
            return
