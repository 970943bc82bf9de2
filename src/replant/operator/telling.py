"""Tells people what keeps an object from going on: Events about it, each thing once in a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256

from replant.cluster.ports import EVENTS, Writer
from replant.errors import Conflict, ReplantError, printable
from replant.gardener.shoots import part
from replant.objects import Object

COMPONENT = "replant"
NAMESPACE = "default"
"""Where events about objects without a namespace have to be."""
_LONGEST = 1024
"""So long a message may be."""
AGAIN = 1800
"""Seconds after which a thing that still holds is said again: clusters forget Events in an hour."""


class Teller:
    """Writes Events. A thing about an object is told once in half an hour, however often it fails.

    The name of an Event is made from what it says and the half hour, so that who starts anew does
    not repeat it.
    """

    def __init__(
        self,
        writer: Writer,
        note: Callable[[str], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._writer = writer
        self._note = note
        self._now = now
        self._slot = 0
        self._told: set[str] = set()
        """What was said in this half hour."""

    async def tell(self, about: Object, reason: str, message: str) -> None:
        """Say it, unless it was said lately. A cluster that takes no Event is no reason to stop."""
        message = printable(message)[:_LONGEST]
        uid = str(part(about, "metadata", "uid") or "")
        name = str(part(about, "metadata", "name") or "")
        now = self._now()
        slot = int(now.timestamp()) // AGAIN
        if slot != self._slot:
            self._slot, self._told = slot, set()
        digest = sha256(f"{slot} {uid}{reason}{message}".encode()).hexdigest()[:16]
        said = f"{name}.{digest}"
        if said in self._told:
            return
        time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": said, "namespace": NAMESPACE},
            "involvedObject": {
                "apiVersion": str(about.get("apiVersion") or ""),
                "kind": str(about.get("kind") or ""),
                "name": name,
                "uid": uid,
            },
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": COMPONENT},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }
        try:
            await self._writer.create(EVENTS, event, namespace=NAMESPACE)
        except Conflict:
            pass  # told by who was here before us
        except ReplantError as error:
            self._note(f"an Event about {name} could not be written: {error}")
            return
        self._told.add(said)
