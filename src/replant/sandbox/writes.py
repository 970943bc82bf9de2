"""Whether pods could write: what a change of gates may cost those whose data it is.

A pod that runs writes to each of its disks once a second, in a real cluster as here; here nobody
has to do it. What was written follows from when a pod ran and when its disk was attached to its
node, so 20,000 pods cost nothing while nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from replant.sandbox.clock import Clock
from replant.sandbox.cloud import Cloud


class Gap(NamedTuple):
    """A time without writes to a disk that had been written to before."""

    start: datetime
    end: datetime | None
    """None while it lasts."""
    pod_ran: bool
    """Whether a pod ran meanwhile that found its disk gone: nobody asked for that."""


@dataclass(slots=True)
class _Record:
    writers: dict[str, str] = field(default_factory=dict)
    """The pods that run on it, each with its node."""
    since: datetime | None = None
    """Since when it is written to."""
    seconds: float = 0
    stopped: datetime | None = None
    pod_ran: bool = False
    gaps: list[Gap] = field(default_factory=list)


class Writes:
    """What pods have written, disk by disk."""

    def __init__(self, clock: Clock, cloud: Cloud) -> None:
        self._clock = clock
        self._cloud = cloud
        self._records: dict[str, _Record] = {}
        cloud.listen(self._look)

    def start(self, disk: str, pod: str, node: str, *, attachable: bool = True) -> None:
        """A pod begins to write. What needs no attach is there wherever the pod is."""
        record = self._records.setdefault(disk, _Record())
        record.writers[pod] = node if attachable else ""
        self._look(disk)

    def stop(self, disk: str, pod: str) -> None:
        """A pod no longer writes, since it was told to end or its node has died."""
        record = self._records.get(disk)
        if record and record.writers.pop(pod, None) is not None:
            self._look(disk)

    def count(self, disk: str) -> int:
        """So many writes have reached a disk, one for each second."""
        record = self._records.get(disk)
        if record is None:
            return 0
        running = (self._clock.now() - record.since).total_seconds() if record.since else 0
        return int(record.seconds + running)

    def disks(self) -> list[str]:
        """The disks that pods have written to, or wanted to."""
        return list(self._records)

    def gaps(self, disk: str) -> list[Gap]:
        """The times without writes, oldest first, with the one that lasts, if one does."""
        record = self._records.get(disk)
        if record is None:
            return []
        if record.stopped is None:
            return list(record.gaps)
        return [*record.gaps, Gap(record.stopped, None, record.pod_ran)]

    def yanked(self) -> list[str]:
        """The disks that were gone, at some time, while a pod ran on them."""
        return [it for it in self._records if any(gap.pod_ran for gap in self.gaps(it))]

    def _look(self, disk: str) -> None:
        record = self._records.get(disk)
        if record is None:
            return
        now, place = self._clock.now(), self._cloud.attached_to(disk)
        writes = any(node in ("", place) for node in record.writers.values())
        if writes and record.since is None:
            record.since = now
            if record.stopped is not None:
                if now > record.stopped:
                    record.gaps.append(Gap(record.stopped, now, record.pod_ran))
                record.stopped, record.pod_ran = None, False
        elif not writes and record.since is not None:
            record.seconds += (now - record.since).total_seconds()
            record.since, record.stopped = None, now
        if not writes and record.writers and record.stopped is not None:
            record.pod_ran = True
