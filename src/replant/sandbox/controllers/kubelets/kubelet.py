"""One kubelet: what it is told, the pods that it knows, and what its gates come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from replant.sandbox.controllers.base import Key
from replant.sandbox.controllers.volumes import Volume
from replant.sandbox.sides import NodeView, Process, Side, VolumeView, mount_side
from replant.sandbox.sides.gates import is_base_gate_on
from replant.translate import plugins


@dataclass(slots=True)
class Seat:
    """A pod on a node, as its kubelet knows it."""

    uid: str
    volumes: tuple[Volume, ...] | None = None
    """None while a claim is not bound."""
    unknown: bool = False
    """Whether a kubelet that has restarted could not find all of them."""
    written: tuple[Volume, ...] = ()
    """Those that its containers write to, whether or not the kubelet still knows them."""
    running: bool = False
    ending: bool = False
    restarts: int = 0


@dataclass(slots=True)
class Kubelet:
    """One kubelet, and what it is told by its command line."""

    node: str
    process: Process
    drivers: frozenset[str]
    csi_node: bool
    """Whether it may have a CSINode at all."""
    limit: int
    """How many volumes of a driver the node takes."""
    from_pods: frozenset[str] = frozenset()
    """Those of its drivers that are there only as long as pods of theirs are."""
    alive: bool = True
    died: int = 0
    starting: bool = False
    """Whether its process is still to come up, on a node that goes on running its pods."""
    starts: int = 1
    seats: dict[Key, Seat] = field(default_factory=dict)

    @property
    def works(self) -> bool:
        """Whether it looks after its pods at this moment."""
        return self.alive and not self.starting

    def in_use(self) -> list[str]:
        """The names that it reports: by its gates alone, whether or not a driver is there."""
        return sorted(
            {
                name
                for seat in self.seats.values()
                for volume in seat.volumes or ()
                if (name := _name_in_use(volume, self.process))
            }
        )


def _name_in_use(volume: Volume, process: Process) -> str:
    view = volume.view
    if not view.attachable:
        return ""
    if view.native or process.migrates(view.plugin):
        return volume.csi_name
    return volume.in_tree_name if process.registered(view.plugin) else ""


# Thousands of kubelets have the same gates.


@lru_cache(maxsize=1024)
def has_base_gate(process: Process) -> bool:
    """Whether a kubelet says in its CSINode what it redirects."""
    return is_base_gate_on(process.version, process.gates)


@lru_cache(maxsize=1024)
def redirected(process: Process) -> str:
    """The plugins that a kubelet redirects, as its CSINode lists them."""
    return ",".join(sorted(plugin for plugin in plugins() if process.migrates(plugin)))


@lru_cache(maxsize=4096)
def mounting_side(volume: VolumeView, process: Process, node: NodeView) -> Side:
    """Who mounts a volume."""
    return mount_side(volume, process, node)
