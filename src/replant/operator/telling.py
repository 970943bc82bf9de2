"""Tells people what keeps an object from going on: an Event about it, once for each thing."""

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


class Teller:
    """Writes Events. The same thing about the same object is told once, however often it fails.

    The name of an Event is made from what it says, so that who starts anew does not repeat it.
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
        self._told: dict[str, str] = {}
        """By the object: the last thing said about it."""

    async def tell(self, about: Object, reason: str, message: str) -> None:
        """Say it, unless it was said last. A cluster that does not take it is no reason to stop."""
        message = printable(message)[:_LONGEST]
        uid = str(part(about, "metadata", "uid") or "")
        name = str(part(about, "metadata", "name") or "")
        digest = sha256(f"{uid}{reason}{message}".encode()).hexdigest()[:16]
        if self._told.get(name) == digest:
            return
        time = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{digest}", "namespace": NAMESPACE},
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
        self._told[name] = digest
