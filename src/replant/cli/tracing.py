"""Carries ``replant route`` out: finds volume, node and components, and asks for the routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from replant.errors import Final, InputError, shown
from replant.gates.history import LAST, gate_at, known_gates
from replant.gates.plugins import LIVES
from replant.gates.settings import Component, problems
from replant.gates.versions import Version
from replant.inventory.model import Inventory, Volume
from replant.routing import (
    FIRST,
    AttachController,
    NodeView,
    Operation,
    Process,
    Route,
    Side,
    VolumeView,
    marks,
    routes,
)

_VOLUME_WORDS = ("pv", "persistentvolume", "persistentvolumes")
_CLAIM_WORDS = ("pvc", "persistentvolumeclaim", "persistentvolumeclaims")
_NEAR = 3
"""So many names are offered for one that is not there."""
_NEEDED = ("PersistentVolume", "CSINode")


class GatesRefused(Final):
    """Gates that a component would not start with, or that contradict each other."""

    def __init__(self, found: list[str]) -> None:
        self.problems = found
        super().__init__("; ".join(found))


@dataclass(frozen=True, slots=True)
class Trace:
    """What was asked about, and the answer."""

    name: str
    node: str
    volume: VolumeView
    routes: list[Route]
    annotations: dict[str, str]

    @property
    def apart(self) -> str:
        """What to say where one side attaches and the other waits for it."""
        sides = {route.operation: route.served_by for route in self.routes}
        attached, mounted = sides.get(Operation.ATTACH), sides[Operation.MOUNT]
        if attached in (None, mounted) or Side.NOBODY in (attached, mounted):
            return ""
        return (
            f"attach and mount do not meet: the controller attaches by {attached}, the kubelet "
            f"waits for {mounted}, so a pod that starts on {self.node} never runs"
        )


class Tracer:
    """One run of the command."""

    def __init__(
        self,
        inventory: Inventory,
        gates: dict[str, dict[str, bool]],
        adc: AttachController,
        *,
        note: Callable[[str], None],
    ) -> None:
        self._inventory = inventory
        self._given = gates
        self._adc = adc
        self._note = note

    def trace(self, subject: str, node: str) -> Trace:
        """The routes of a volume, by its own or its claim's name, on a node."""
        inventory = self._inventory
        for kind in _NEEDED:
            if not inventory.knows(kind):
                why = inventory.unknown[kind]
                raise InputError(f"{why}; without them who serves cannot be told", source=kind)
        volume = self._volume(subject)
        view = self._view(volume)
        node = node or self._only_node(volume)
        self._check_node(node)
        controller, scheduler, kubelet = self._processes(node)
        node_view = NodeView(
            csi_node=node in inventory.csi_nodes,
            migrated=inventory.announced_by(node),
            drivers=inventory.drivers_on(node),
        )
        found = routes(
            view,
            controller=controller,
            scheduler=scheduler,
            kubelet=kubelet,
            node=node_view,
            adc=self._adc,
            attached_by=self._attached_by(volume, node),
        )
        return Trace(volume.name, node, view, found, marks(view, controller))

    def _volume(self, subject: str) -> Volume:
        word, slash, rest = subject.partition("/")
        if not slash or word.lower() in _VOLUME_WORDS:
            name = rest if slash else subject
        else:
            name = self._bound_to(rest if word.lower() in _CLAIM_WORDS else subject)
        volume = self._inventory.by_name.get(name)
        if volume is None:
            raise _not_found("PersistentVolume", name, self._inventory.by_name)
        return volume

    def _bound_to(self, claim: str) -> str:
        namespace, _, name = claim.rpartition("/")
        record = self._inventory.claims.get((namespace, name))
        if record is None:
            known = (f"{space}/{called}" for space, called in self._inventory.claims)
            raise _not_found("PersistentVolumeClaim", claim, known)
        if not record.spec.volumeName:
            raise InputError(
                "has no volume yet, so there is nothing to serve",
                source=f"PersistentVolumeClaim {shown(claim)}",
            )
        return record.spec.volumeName

    def _view(self, volume: Volume) -> VolumeView:
        if volume.without_driver:
            raise InputError(
                f"is of {volume.without_driver}, which left the tree without a CSI driver to take"
                " over: there is no other side to go to (see 'replant scan')",
                source=f"PersistentVolume {shown(volume.name)}",
            )
        return VolumeView.of(volume.as_object())

    def _only_node(self, volume: Volume) -> str:
        used = sorted({pod.node for pod in self._inventory.users(volume) if pod.node})
        if len(used) == 1:
            return used[0]
        where = f"is used on {', '.join(used)}" if used else "is used on no node"
        raise InputError(
            f"{where}: say which node to ask about, with --node",
            source=f"PersistentVolume {shown(volume.name)}",
        )

    def _check_node(self, node: str) -> None:
        known = self._inventory.nodes.keys() | self._inventory.csi_nodes.keys()
        if node not in known:
            raise _not_found("Node", node, known)

    def _processes(self, node: str) -> tuple[Process, Process, Process]:
        server = self._inventory.server
        if server is None:
            raise InputError(
                "is not known; say it with --server-version", source="the cluster's version"
            )
        kubelet_version = self._kubelet_version(node) or server
        controller = self._process(Component.CONTROLLER, server, self._seen(Component.CONTROLLER))
        scheduler = self._process(Component.SCHEDULER, server, self._seen(Component.SCHEDULER))
        seen = self._inventory.node_gates.get(node)
        if seen is None:
            seen = self._inferred(node, kubelet_version)
        return controller, scheduler, self._process(Component.KUBELET, kubelet_version, seen)

    def _process(self, component: Component, version: Version, seen: dict[str, bool]) -> Process:
        if not FIRST <= version.first_patch <= LAST:
            raise InputError(
                f"{version.of_minor} is not known here, only {FIRST.of_minor} to {LAST.of_minor}",
                source=f"{component.value}'s version",
            )
        given = self._given.get(component.value, {})
        gates = {gate: on for gate, on in seen.items() if gate in known_gates()} | given
        wrong = [each for each in problems(version, gates) if each.gate in given]
        if wrong:
            raise GatesRefused([f"{component.value} {version}: {each}" for each in wrong])
        return Process(version, gates)

    def _seen(self, component: Component) -> dict[str, bool]:
        seen = self._inventory.gates.get(component.value)
        if seen is None and not self._given.get(component.value):
            self._note(
                f"the gates of {component.value} are not to be seen, and taken for its defaults; "
                f"say them with --gates {component.value}:GATE=true"
            )
        return seen or {}

    def _inferred(self, node: str, version: Version) -> dict[str, bool]:
        """A kubelet's gates: it lists in its CSINode what it redirects."""
        if node not in self._inventory.csi_nodes:
            return {}
        listed = self._inventory.announced_by(node)
        gates = {life.migration_gate: plugin in listed for plugin, life in LIVES.items()}
        return {gate: on for gate, on in gates.items() if gate_at(gate, version)}

    def _kubelet_version(self, node: str) -> Version | None:
        record = self._inventory.nodes.get(node)
        info = record.status.nodeInfo if record and record.status else None
        try:
            return Version.parse(info.kubeletVersion or "") if info else None
        except ValueError:
            return None

    def _attached_by(self, volume: Volume, node: str) -> Side | None:
        for attachment in self._inventory.attachments:
            spec = attachment.spec
            if (spec.source.persistentVolumeName, spec.nodeName) == (volume.name, node):
                return Side.CSI
        record = self._inventory.nodes.get(node)
        status = record.status if record else None
        names = {it.name for it in status.volumesAttached or ()} if status else set()
        return Side.IN_TREE if names & set(_in_tree_names(volume)) else None


def _in_tree_names(volume: Volume) -> Iterable[str]:
    """The names that its in-tree plugin could have attached it under: by what its source says."""
    if not volume.plugin:
        return
    for source in volume.as_object()["spec"].values():
        if isinstance(source, dict):
            yield from (f"{volume.plugin}/{value}" for value in source.values())


def _not_found(kind: str, name: str, known: Iterable[str]) -> InputError:
    names = sorted(known)
    close = [it for it in names if name in it] or get_close_matches(name, names, cutoff=0.5)
    meant = (
        f"is it {' or '.join(map(shown, close[:_NEAR]))}?" if close else "nor one of a similar name"
    )
    return InputError(f"there is no such object; {meant}", source=f"{kind} {shown(name)}")
