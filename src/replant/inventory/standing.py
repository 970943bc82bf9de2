"""How far each plugin's migration is: what a person would otherwise look for by hand, joined."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from msgspec import Struct

from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.inventory.checks.reading import ABSENT
from replant.inventory.model import Inventory, Volume, source_of
from replant.inventory.storage_records import VolumeAttachment
from replant.routing import Process, Side, VolumeView
from replant.routing.model import MIGRATED_TO, PROVISIONED_BY
from replant.routing.names import csi_name, named
from replant.translate import driver_of, plugin_of

COMPONENTS = ("kube-controller-manager", "kube-scheduler")
"""Those that redirect, besides kubelets."""


class _Part(Struct, frozen=True, kw_only=True, rename="camel"):
    """Part of a standing, as it is written in JSON and YAML."""


class ReplicaStanding(_Part, frozen=True, kw_only=True):
    """One replica of a component, and what its gates come to for a plugin."""

    component: str
    replica: str
    redirects: bool | None
    """None where the version of the cluster is not known."""
    plugin_off: bool | None
    """Whether the in-tree plugin is not there in it."""
    gates: dict[str, bool]
    """What it is given of the gates that matter."""


class NodeStanding(_Part, frozen=True, kw_only=True):
    """A node, as far as a plugin is concerned."""

    name: str
    ready: bool
    migrated: bool
    """Whether its CSINode lists the plugin."""
    driver: bool
    """Whether the driver is registered there."""
    in_tree: int
    """How many volumes the in-tree plugin has attached to it."""
    csi: int
    """How many the driver has."""


class VolumeMark(_Part, frozen=True, kw_only=True):
    """A volume, and whether it is marked with ``migrated-to``."""

    name: str
    claim: str
    """Its namespace and name; empty where it is bound to none."""
    native: bool
    migrated_to: str
    """The driver that it is marked with; empty where it is not marked."""
    never_marked: bool


class VolumeStanding(_Part, frozen=True, kw_only=True):
    """How many volumes there are, by how they are stored and marked, and each of them."""

    in_tree: int
    marked: int
    """Those of them with ``migrated-to``."""
    never_marked: int
    """Those that nobody provisioned: these are never marked, and need not be."""
    native: int
    each: tuple[VolumeMark, ...]

    @property
    def not_marked(self) -> tuple[str, ...]:
        """Those that controllers which redirect would have marked."""
        return tuple(
            it.name for it in self.each if not (it.native or it.never_marked or it.migrated_to)
        )


class Stuck(_Part, frozen=True, kw_only=True):
    """Something that does not come to its end, and the logs that say why."""

    object: str
    node: str
    why: str
    logs: tuple[str, ...]


class PluginStanding(_Part, frozen=True, kw_only=True):
    """How far one plugin is."""

    plugin: str
    driver: str
    driver_installed: bool
    attachable: bool
    """Whether its volumes are attached at all, and not only mounted."""
    components: tuple[ReplicaStanding, ...]
    hidden: tuple[str, ...]
    """The components of which no replica can be seen."""
    nodes: tuple[NodeStanding, ...]
    volumes: VolumeStanding
    classes: tuple[str, ...]
    """Those that still name the in-tree plugin."""
    stuck: tuple[Stuck, ...]

    @property
    def migrated(self) -> tuple[str, ...]:
        """The nodes that redirect it."""
        return tuple(it.name for it in self.nodes if it.migrated)

    @property
    def not_migrated(self) -> tuple[str, ...]:
        """The nodes that do not."""
        return tuple(it.name for it in self.nodes if not it.migrated)

    @property
    def marking(self) -> bool:
        """Whether volumes are being marked: a controller that redirects does it at once."""
        return self.volumes.marked > 0 or any(
            it.redirects for it in self.components if it.component == COMPONENTS[0]
        )

    @property
    def without_driver(self) -> tuple[str, ...]:
        """The nodes where the driver is not registered."""
        return tuple(it.name for it in self.nodes if not it.driver)


class Standing(_Part, frozen=True, kw_only=True):
    """How far a cluster is."""

    server: str
    nodes: int
    plugins: tuple[PluginStanding, ...]
    unknown: dict[str, str]
    """The kinds that could not be read, and why: of these nothing is shown."""


def standing(inventory: Inventory, plugins: tuple[str, ...] = ()) -> Standing:
    """The standing of these plugins, or of all that the cluster has anything of."""
    chosen = plugins or tuple(it for it in LIVES if it in _in_use(inventory))
    attached = _attached(inventory)
    stuck = _stuck(inventory)
    needed = ("Node", "CSINode", "CSIDriver", "PersistentVolume", "StorageClass",
              "VolumeAttachment", "Pod")  # fmt: skip
    return Standing(
        server=str(inventory.server or ""),
        nodes=len(inventory.nodes),
        plugins=tuple(_plugin(inventory, it, attached, stuck[it]) for it in chosen),
        unknown={
            kind: "not in the files" if why == ABSENT else why
            for kind, why in inventory.unknown.items()
            if kind in needed
        },
    )


_Attached = Counter[tuple[str, str, Side]]
"""How many volumes of a plugin a side has attached to a node."""


def _in_use(inventory: Inventory) -> set[str | None]:
    stored = {_plugin_behind(volume) for volume in inventory.volumes}
    inline = {plugin_of(source_of(volume)) for _, volume in inventory.inline_uses()}
    return stored | inline | {it.provisioner for it in inventory.classes}


def _plugin_behind(volume: Volume) -> str:
    """The plugin of a volume, or the one whose driver it is a native volume of."""
    return volume.plugin or (named(csi_name(volume.driver, "")).plugin if volume.driver else "")


def _plugin(
    inventory: Inventory, plugin: str, attached: _Attached, stuck: list[Stuck]
) -> PluginStanding:
    driver = driver_of(plugin)
    seen = {pod.component for pod in inventory.control_plane}
    return PluginStanding(
        plugin=plugin,
        driver=driver,
        driver_installed=driver in inventory.drivers,
        attachable=VolumeView(plugin, driver, native=False, provisioned=False).attachable,
        components=tuple(_replicas(inventory, plugin)),
        hidden=tuple(it for it in COMPONENTS if it not in seen),
        nodes=tuple(
            NodeStanding(
                name=name,
                ready=inventory.ready(name),
                migrated=plugin in inventory.announced_by(name),
                driver=driver in inventory.drivers_on(name),
                in_tree=attached[plugin, name, Side.IN_TREE],
                csi=attached[plugin, name, Side.CSI],
            )
            for name in sorted(inventory.nodes)
        ),
        volumes=_volumes(inventory, plugin),
        classes=tuple(
            sorted(it.metadata.name for it in inventory.classes if it.provisioner == plugin)
        ),
        stuck=tuple(stuck),
    )


def _replicas(inventory: Inventory, plugin: str) -> Iterator[ReplicaStanding]:
    life = LIVES[plugin]
    mine = ("CSIMigration", life.migration_gate, *life.off_gates)
    for pod in sorted(inventory.control_plane, key=lambda it: (it.component, it.name)):
        if pod.component in COMPONENTS:
            process = _process(inventory.server, pod.gates)
            yield ReplicaStanding(
                component=pod.component,
                replica=pod.name,
                redirects=process.migrates(plugin) if process else None,
                plugin_off=not process.registered(plugin) if process else None,
                gates={gate: pod.gates[gate] for gate in mine if gate in pod.gates},
            )


def _process(server: Version | None, gates: dict[str, bool]) -> Process | None:
    return Process(server, gates) if server else None


def _volumes(inventory: Inventory, plugin: str) -> VolumeStanding:
    mine = [it for it in inventory.volumes if _plugin_behind(it) == plugin]
    each = tuple(_mark(it) for it in sorted(mine, key=lambda it: it.name))
    in_tree = [it for it in each if not it.native]
    return VolumeStanding(
        in_tree=len(in_tree),
        marked=sum(bool(it.migrated_to) for it in in_tree),
        never_marked=sum(it.never_marked for it in in_tree),
        native=len(each) - len(in_tree),
        each=each,
    )


def _mark(volume: Volume) -> VolumeMark:
    native = not volume.plugin
    return VolumeMark(
        name=volume.name,
        claim="/".join(volume.claim or ()),
        native=native,
        migrated_to=volume.annotations.get(MIGRATED_TO, ""),
        never_marked=not native and PROVISIONED_BY not in volume.annotations,
    )


def _attached(inventory: Inventory) -> _Attached:
    found: _Attached = Counter()
    for name, node in inventory.nodes.items():
        for it in (node.status.volumesAttached if node.status else None) or ():
            side, plugin = named(it.name)
            found[plugin, name, side] += 1
    return found


def _stuck(inventory: Inventory) -> dict[str, list[Stuck]]:
    """What does not come to its end, by plugin."""
    found: dict[str, list[Stuck]] = defaultdict(list)
    for attachment in inventory.attachments:
        plugin = named(csi_name(attachment.spec.attacher, "")).plugin
        if plugin and (why := _why_stuck(attachment)):
            found[plugin].append(_stuck_attachment(inventory, attachment, why))
    for volume in inventory.volumes:
        plugin = _plugin_behind(volume)
        for pod in inventory.users(volume) if plugin else ():
            if pod.waiting and pod.node:
                found[plugin].append(
                    Stuck(
                        object=f"Pod {pod.owner.namespace}/{pod.owner.name}",
                        node=pod.node,
                        why=f"It waits ({pod.waiting}), and has PersistentVolume {volume.name}.",
                        logs=tuple(_logs_of_node(inventory, pod.node, driver_of(plugin))),
                    )
                )
    return found


def _why_stuck(attachment: VolumeAttachment) -> str:
    """Why an attachment is not what it is to be; nothing for one that is."""
    status, deleting = attachment.status, attachment.metadata.deletionTimestamp is not None
    error = (status.detachError or status.attachError) if status else None
    told = f": {error.message}" if error and error.message else ""
    if deleting:
        return f"It is being detached{told or ', and nobody says why it is not'}."
    if status and status.attached:
        return ""
    return f"It is not attached{told or ', and nobody says why'}."


def _stuck_attachment(inventory: Inventory, attachment: VolumeAttachment, why: str) -> Stuck:
    spec = attachment.spec
    volume = spec.source.persistentVolumeName
    what = f" of PersistentVolume {volume}" if volume else ""
    pod = inventory.driver_pods.attacher(spec.attacher)
    attacher = f"the external-attacher of {spec.attacher}{f' in the pod {pod}' if pod else ''}"
    return Stuck(
        object=f"VolumeAttachment {attachment.metadata.name}{what}",
        node=spec.nodeName,
        why=why,
        logs=(attacher, *_logs_of_node(inventory, spec.nodeName, spec.attacher)),
    )


def _logs_of_node(inventory: Inventory, node: str, driver: str) -> Iterator[str]:
    yield f"the kubelet of {node}"
    if pod := inventory.driver_pods.on(node, driver):
        yield f"the driver's pod {pod} on {node}"
