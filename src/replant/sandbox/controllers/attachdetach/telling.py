"""What the attach/detach controller tells: nodes what is attached, and pods how it went."""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.attachdetach.decisions import Hold
from replant.sandbox.controllers.attachdetach.held import Held
from replant.sandbox.controllers.attachdetach.wanted import Wanted
from replant.sandbox.controllers.base import World
from replant.sandbox.controllers.recorder import NORMAL, WARNING
from replant.sandbox.resources import NODES, PODS

_COMPONENT = "attachdetach-controller"


class Telling:
    """Writes what is held into the status of nodes, and Events about pods that want it."""

    def __init__(self, world: World, wanted: Wanted, held: Held) -> None:
        self._world = world
        self._wanted = wanted
        self._held = held

    def report(self, node: str) -> None:
        """Have a node's status say what is attached there, unless it does."""
        held = self._held.on_nodes.get(node, {})
        names = [it for it, hold in held.items() if hold is Hold.HELD]
        found = self._world.store.find(NODES, node)
        if found is None or parts.read_node(found.text).attached == set(names):
            return

        def write(obj: Object) -> None:
            attached = [{"name": it, "devicePath": ""} for it in names]
            obj["status"].pop("volumesAttached", None)
            if attached:
                obj["status"]["volumesAttached"] = attached

        self._world.change(NODES, ("", node), write, "status")

    def attached(self, node: str, name: str) -> None:
        """A volume is there."""
        message = f'AttachVolume.Attach succeeded for volume "{self._title(name)}" '
        self._record(node, name, NORMAL, "SuccessfulAttachVolume", message)

    def failed(self, node: str, name: str, why: str) -> None:
        """A volume could not be attached."""
        message = f'AttachVolume.Attach failed for volume "{self._title(name)}" : {why}'
        self._record(node, name, WARNING, "FailedAttachVolume", message)

    def held_elsewhere(self, node: str, name: str) -> None:
        """A volume is not even asked for, since another node holds it."""
        message = (
            f'Multi-Attach error for volume "{self._title(name)}" Volume is already '
            f"exclusively attached to one node and can't be attached to another"
        )
        self._record(node, name, WARNING, "FailedAttachVolume", message)

    def _title(self, name: str) -> str:
        volume = self._wanted.volumes.get(name)
        return volume.pv if volume and volume.pv else name

    def _record(self, node: str, name: str, kind: str, reason: str, message: str) -> None:
        for pod in sorted(self._wanted.on_nodes.get(node, {}).get(name, ())):
            if entry := self._world.store.find(PODS, pod[1], pod[0]):
                self._world.recorder.record(entry, _COMPONENT, kind, reason, message)
