"""One Replant at a time: a Lease in the cluster that whoever acts renews.

It keeps two people from working against each other, and tells others who is at work and what that
one waits for. It is not what makes a run safe: that is looking, and preconditions on every write.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Container, Mapping

from msgspec import DecodeError, Struct, field
from msgspec.json import Decoder

from replant.cluster.ports import LEASES, Reader, Writer
from replant.errors import Conflict, Final, Missing, Refused
from replant.execute.insisting import Notice, insist
from replant.execute.namespace import NAMESPACE, ensure_namespace
from replant.execute.timing import Timing, read, written
from replant.objects import Object

NAME = "replant-apply"
DURATION, RENEWAL = 15.0, 5.0
TRIES = 5
"""So often a conflict is believed to be nobody else's doing, where none else is seen."""
STATUS, WAITS = "replant.dev/status", "replant.dev/waiting-for"
UNFINISHED = "replant.dev/unfinished-elsewhere"
"""Names a run that nobody finds in the cluster's own journal, and where its journal is."""


class _Meta(Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(Struct, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None


class Held(Struct):
    """A Lease as it is."""

    metadata: _Meta = field(default_factory=_Meta)
    spec: _Spec = field(default_factory=_Spec)

    @property
    def holder(self) -> str:
        """Who is at work; nobody, where it was given back."""
        return self.spec.holder_identity or ""

    @property
    def elsewhere(self) -> str:
        """An unfinished run whose journal is not in the cluster, and where that is; or nothing."""
        return (self.metadata.annotations or {}).get(UNFINISHED, "")


_HELD = Decoder(Held)


class Lease:
    """Our hold on a cluster, while we have it."""

    def __init__(
        self, reader: Reader, writer: Writer, timing: Timing, notice: Notice, name: str = NAME
    ) -> None:
        self.name = name
        self._reader = reader
        self._writer = writer
        self._timing = timing
        self._notice = notice
        self.holder = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._version = ""
        self._renewed = 0.0
        self._elsewhere = ""

    @property
    def due(self) -> float:
        """Seconds until it should be renewed."""
        return self._renewed + RENEWAL - self._timing.now()

    async def acquire(self) -> None:
        """Take it; Refused while another is at work."""
        await ensure_namespace(self._reader, self._writer, self._timing, self._notice)
        held = await self._look()
        if held is not None and held.holder and held.holder != self.holder:
            held = await self._see_dead(held)
        if held is not None:
            self._elsewhere = held.elsewhere
        await self._write({})

    async def renew(self, status: Mapping[str, str]) -> None:
        """Keep it, and say what is being done; Refused if another has taken it."""
        await self._write(status)

    async def mark(self, elsewhere: str) -> None:
        """Tell of a run whose journal is not in the cluster; empty when it has come to its end."""
        if elsewhere != self._elsewhere:
            self._elsewhere = elsewhere
            await self._write({})

    def refuse_beside(self, run_id: str = "") -> None:
        """Refused while another run is unfinished whose journal is not in the cluster."""
        refuse_elsewhere(self._elsewhere, (run_id,), self.name)

    async def release(self) -> None:
        """Give it back, if it is still ours."""
        await self._write({}, holder="")

    async def _look(self) -> Held | None:
        held = await insist(lambda: look(self._reader, self.name), self._timing, self._notice)
        self._version = held.metadata.resource_version if held else ""
        return held

    def _annotations(self, status: Mapping[str, str]) -> dict[str, str | None]:
        return {**status, UNFINISHED: self._elsewhere or None}

    async def _see_dead(self, held: Held) -> Held | None:
        """Wait until whoever holds it would have renewed it, by our own clock and not by theirs.

        Gives it as it is by then: who came to an end meanwhile may have left another word.
        """
        version, until = held.metadata.resource_version, self._timing.now() + DURATION
        self._notice(
            f"Replant on {held.holder} may be at work in this cluster; waiting for up to "
            f"{DURATION:g} s to see whether it is"
        )
        while self._timing.now() < until:
            await self._timing.sleep(1.0)
            seen = await self._look()
            if seen is None or not seen.holder:
                return seen
            if seen.metadata.resource_version != version:
                raise Refused(
                    f"Replant on {seen.holder} is at work in this cluster. Only one can be: wait "
                    "until it ends, or end it; what it has begun can then be resumed."
                )
        return held

    async def _write(self, status: Mapping[str, str], holder: str | None = None) -> None:
        holder = self.holder if holder is None else holder
        now = written(self._timing.now())
        spec = {
            "holderIdentity": holder or None,
            "leaseDurationSeconds": int(DURATION),
            "renewTime": now,
        }

        async def ask() -> Object:
            metadata = {"annotations": self._annotations(status)}
            if not self._version:
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
                there = {name: it for name, it in metadata["annotations"].items() if it}
                made = {**body, "metadata": {"name": self.name, "annotations": there}}
                return await self._writer.create(LEASES, made, namespace=NAMESPACE)
            patch = {"metadata": {**metadata, "resourceVersion": self._version}, "spec": spec}
            return await self._writer.patch(LEASES, self.name, patch, namespace=NAMESPACE)

        for _try in range(TRIES):
            known = self._version
            try:
                lease = await insist(ask, self._timing, self._notice)
            except (Conflict, Missing):
                held = await self._look()
                if held and held.holder == holder and held.spec.renew_time == now:
                    break  # our own write came through, and only its answer was lost
                if self._version != known and not (held and held.holder == self.holder):
                    whom = f" by {held.holder}" if held and held.holder else ""
                    raise Refused(
                        f"The cluster was taken over{whom}; this Replant stops."
                    ) from None
            else:
                self._version = lease["metadata"]["resourceVersion"]
                break
        else:
            raise Refused(
                f"The Lease {NAMESPACE}/{self.name} cannot be written; this Replant stops."
            )
        self._renewed = self._timing.now()


async def look(reader: Reader, name: str = NAME, namespace: str = NAMESPACE) -> Held | None:
    """Replant's own Lease, or another; None if there is none."""
    try:
        return _HELD.decode(await reader.get(LEASES, name, namespace=namespace))
    except Missing:
        return None
    except DecodeError as error:
        raise Final(f"the Lease {namespace}/{name} cannot be read: {error}") from None


def refuse_elsewhere(marked: str, known: Container[str], name: str = NAME) -> None:
    """Refused while a Lease tells of a run that is unfinished elsewhere, but for those known."""
    if marked and marked.partition(" ")[0] not in known:
        raise Refused(
            f"An unfinished run has its journal in a file: {marked}. Go on with it there "
            "(--resume --journal FILE), or take it back (--undo), before anything else is done. "
            "If the file is lost and the cluster is as you want it, remove the annotation "
            f"{UNFINISHED} from the Lease {NAMESPACE}/{name}."
        )


def is_live(held: Held, now: float) -> bool:
    """Whether somebody seems to be at work, by the time that was written down."""
    return bool(held.holder) and now - read(held.spec.renew_time or "") < 2 * DURATION
