"""Volumes, nodes and components to ask about; and the history of gates, as the sources have it."""

from __future__ import annotations

from dataclasses import dataclass

from replant.gates.versions import Version
from replant.routing import NodeView, Process, VolumeView
from replant.translate import driver_of

NEVER = 99
MINORS = range(17, 37)


@dataclass(frozen=True)
class History:
    """Minors of 1.x: gate there, gate can no longer be off, in-tree code gone."""

    suffix: str
    gate_since: int
    always_on_since: int
    code_gone: int
    complete_since: int = 31


HISTORY = {
    "kubernetes.io/aws-ebs": History("AWS", 14, 25, 27),
    "kubernetes.io/gce-pd": History("GCE", 14, 25, 28),
    "kubernetes.io/cinder": History("OpenStack", 14, 24, 26),
    "kubernetes.io/azure-disk": History("AzureDisk", 15, 25, 27),
    "kubernetes.io/azure-file": History("AzureFile", 15, 27, 30),
    # Its lock came with 1.26.0, went with 1.26.4, and came again.
    "kubernetes.io/vsphere-volume": History("vSphere", 19, 27, 30),
    "kubernetes.io/portworx-volume": History("Portworx", 23, 33, 36, complete_since=36),
    "kubernetes.io/rbd": History("RBD", 23, NEVER, 31, complete_since=NEVER),
}
PLUGINS = tuple(HISTORY)
ATTACHABLE = tuple(
    plugin for plugin in PLUGINS if not plugin.endswith(("azure-file", "portworx-volume"))
)

AWS = "kubernetes.io/aws-ebs"
EBS = "ebs.csi.aws.com"


def last_patch(minor: int) -> Version:
    return Version(1, minor, 17)


def process(
    version: str | Version,
    plugin: str = AWS,
    *,
    on: bool,
    taken_away: bool = False,
    base: bool = True,
) -> Process:
    """A component with a plugin's gates on or off, and its in-tree code taken away by gate."""
    version = Version.parse(version) if isinstance(version, str) else version
    suffix = HISTORY[plugin].suffix
    off = f"InTreePlugin{suffix}Unregister"
    if version < Version(1, 21):
        off = f"CSIMigration{suffix}Complete"
    return Process(version, {"CSIMigration": base, f"CSIMigration{suffix}": on, off: taken_away})


def in_tree(plugin: str = AWS, *, provisioned: bool = True) -> VolumeView:
    return VolumeView(plugin, driver_of(plugin), native=False, provisioned=provisioned)


def native(plugin: str = AWS, *, provisioned: bool = True) -> VolumeView:
    return VolumeView(plugin, driver_of(plugin), native=True, provisioned=provisioned)


def node(*, listed: bool, driver: bool, plugin: str = AWS) -> NodeView:
    return NodeView(
        csi_node=True,
        migrated=frozenset({plugin} if listed else ()),
        drivers=frozenset({driver_of(plugin)} if driver else ()),
    )


BARE = NodeView(csi_node=False)
NODES = [BARE, *(node(listed=a, driver=d) for a in (False, True) for d in (False, True))]
