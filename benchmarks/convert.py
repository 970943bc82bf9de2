"""Volumes replaced on real controllers, and what other tools do for the same end, in one run.

It needs the proving ground (`make real-binaries`). Counted is the step itself, by the journal: not
reading the cluster before it, nor verifying it afterwards, nor volumes that are held back and wait.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
from tests.real import converting
from tests.real.converting import Ground, watched_claims
from tests.real.ground import programs, run
from tests.real.ground.api import Api, Object
from tests.real.ground.cloud import Cloud
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import claim_object

from replant.execute.journal.configmaps import PART

VOLUMES = 500
OTHERS_VOLUMES = 96
"""The way of others is slow: many of their claims wait for the controllers' next round."""
AT_ONCE = 16
RATE, WRITES, UNBOUND = 40, 6, 0.250
"""What is wanted: volumes a second at least, writes a volume and seconds at most."""
PROCESSORS = os.cpu_count() or 1
_WRITTEN = ("persistentvolumes", "persistentvolumeclaims")
_CHANGES = ("create", "patch", "delete", "update")


def main() -> None:
    """Print a line for each way, on each version; those that are named, or both."""

    def say(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    with run.folder(say) as folder, Cloud(folder) as cloud:
        for version in sys.argv[1:] or (programs.OLD, programs.newest()):
            with converting.ground(version, folder / version, cloud, VOLUMES) as ground:
                for what, volumes, seconds, unbound, writes, spent in ways(ground):
                    each = spent / volumes
                    say(
                        f"{version} {what}: {volumes / seconds:.0f} volumes/s (wanted {RATE}), "
                        f"{writes:.2f} writes each (wanted at most {WRITES}); claims not "
                        f"Bound for {unbound.worst(0.5) * 1000:.0f} ms in the middle and "
                        f"{unbound.worst(0.99) * 1000:.0f} ms at the 99th percentile "
                        f"(wanted {UNBOUND * 1000:.0f}), at the worst "
                        f"{unbound.worst(1) * 1000:.0f}. "
                        f"The control plane's own work for each was {each * 1000:.0f} ms of the "
                        f"processor: {PROCESSORS} of them can do {PROCESSORS / each:.0f} a second"
                    )


def ways(ground: Ground) -> Iterator[tuple[str, int, float, converting.Unbound, float, float]]:
    """There and back, and the way of others, each with what came of it.

    That is volumes and seconds, claims, writes for each, and the control plane's seconds of the
    processor.
    """
    for what, step, options in (
        ("convert", "convert-volumes", ()),
        ("convert --undo", "restore-volumes", ("--undo",)),
    ):
        before = writes(ground)
        with watched_claims(ground.api) as unbound, sampled(ground) as spent:
            ground.convert("--parallel", str(AT_ONCE), *options)
        volumes, began, ended = step_of(ground, step)
        written = (writes(ground) - before) / VOLUMES
        yield what, volumes, ended - began, unbound, written, at(spent, ended) - at(spent, began)
    with (
        counted(ground.api) as count,
        watched_claims(ground.api) as unbound,
        sampled(ground) as spent,
    ):
        began = time.time()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            chosen = list(ground.volumes().values())[:OTHERS_VOLUMES]
            list(pool.map(lambda it: deleted_and_made(ground.api, it), chosen))
        ended = time.time()
    work = at(spent, ended) - at(spent, began)
    peer = "claims and volumes deleted and made again"
    yield peer, OTHERS_VOLUMES, ended - began, unbound, count[0] / OTHERS_VOLUMES, work


def deleted_and_made(api: Api, volume: Object) -> None:
    """What a peer does for each claim: both go, and both come."""
    name = volume["metadata"]["name"]
    native = converting.twin_of(volume)
    native["spec"]["claimRef"] = {"name": name, "namespace": "default"}
    retain = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
    api.patch("PersistentVolume", name, retain)
    api.delete("PersistentVolumeClaim", name, "default")
    wait_for(lambda: not api.find("PersistentVolumeClaim", name, "default"), name, 60)
    api.delete("PersistentVolume", name)
    wait_for(lambda: not api.find("PersistentVolume", name), name, 60)
    # The volume first: a claim that comes before it waits for the controllers' next round.
    api.create(native)
    api.create(claim_object(name, volumeName=name, storageClassName=""))
    wait_for(
        lambda: api.get("PersistentVolumeClaim", name, "default")["status"].get("phase") == "Bound",
        name,
        60,
    )


@contextmanager
def counted(api: Api) -> Iterator[list[int]]:
    """Count the writes of whoever uses an Api."""
    count, names = [0], ("create", "patch", "delete")
    before = {name: getattr(api, name) for name in names}

    def counting(name: str) -> Any:
        def asked(*arguments: Any, **more: Any) -> Any:
            count[0] += 1
            return before[name](*arguments, **more)

        return asked

    for name in names:
        setattr(api, name, counting(name))
    try:
        yield count
    finally:
        for name in names:
            delattr(api, name)


def writes(ground: Ground) -> int:
    """How often Replant has written to a volume or a claim so far, by the API server's audit."""
    return sum(
        it["objectRef"]["resource"] in _WRITTEN
        and it["verb"] in _CHANGES
        and it["responseStatus"]["code"] < 400
        for it in ground.plane.asked_by_roles()
        if "objectRef" in it
    )


@contextmanager
def sampled(ground: Ground) -> Iterator[list[tuple[float, float]]]:
    """What the control plane has had of the processor, five times a second, by the clock."""
    samples: list[tuple[float, float]] = []
    over = Event()

    def sample() -> None:
        while True:
            samples.append((time.time(), control_plane_seconds(ground)))
            if over.wait(0.2):
                return

    thread = Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def at(samples: list[tuple[float, float]], when: float) -> float:
    """The sample nearest to a time."""
    return min(samples, key=lambda it: abs(it[0] - when))[1]


def control_plane_seconds(ground: Ground) -> float:
    """The processor's time that etcd, API server and controller manager have had so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    seconds = 0.0
    for pid in ground.plane.pids():
        # Behind the name, which may have anything in it: user time is field 14, system time 15.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / ticks
    return seconds


def step_of(ground: Ground, step: str) -> tuple[int, float, float]:
    """How many volumes a step has replaced, and when it began and ended, by its journal."""
    entries = [
        entry
        for log in ground.api.list("ConfigMap", "replant-system")
        if log["metadata"].get("labels", {}).get(PART) == "log"
        for batch in log["data"].values()
        for entry in msgspec.json.decode(batch)
        if entry.get("step") == step
    ]
    began, ended = (
        datetime.fromisoformat(entry["at"]).timestamp()
        for mark in ("step", "step-done")
        for entry in entries
        if entry["mark"] == mark
    )
    return len({it["target"] for it in entries if it["mark"] == "act"}), began, ended


if __name__ == "__main__":
    main()
