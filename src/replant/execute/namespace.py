"""The one namespace in which Replant keeps what is its own."""

from __future__ import annotations

from contextlib import suppress

from replant.cluster.ports import NAMESPACES, Reader, Writer
from replant.errors import Conflict, Forbidden, Missing
from replant.execute.insisting import Notice, insist
from replant.execute.timing import Timing

NAMESPACE = "replant-system"


async def ensure_namespace(reader: Reader, writer: Writer, timing: Timing, notice: Notice) -> None:
    """Make the namespace, if it is not there."""

    async def ask() -> None:
        try:
            await reader.get(NAMESPACES, NAMESPACE)
        except (Missing, Forbidden):
            # Whoever may not look may still be allowed to make it.
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            with suppress(Conflict):
                await writer.create(NAMESPACES, made)

    await insist(ask, timing, notice)
