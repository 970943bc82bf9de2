"""A digest of what a plan depends on: while it is the same, the plan fits the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from msgspec import to_builtins
from msgspec.json import encode

from replant.gates.plugins import LIVES
from replant.inventory.model import Inventory

_FORM = b"replant fingerprint 2"
"""Changes with what goes in, so that digests of two kinds are never taken for one."""


def fingerprint(inventory: Inventory) -> str:
    """Such as sha256:2c26b46b…; the same for the same cluster, in whatever order it was read.

    Versions, nodes, drivers, in-tree volumes and classes, and the control plane's flags go in.
    What changes by itself does not: pods, claims, attachments, cordons and nodes' readiness.
    An inventory that was narrowed down has a digest of its own.
    """
    digest = sha256(_FORM)
    # JSON has no line ends of its own, so no two lists of lines are the same text.
    for line in sorted(_lines(inventory)):
        digest.update(b"\n")
        digest.update(line)
    return f"sha256:{digest.hexdigest()}"


def _lines(inventory: Inventory) -> Iterator[bytes]:
    yield encode(("server", inventory.server))
    yield from _nodes(inventory)
    for driver, group_policy in inventory.drivers.items():
        yield encode(("driver", driver, group_policy))
    for volume in inventory.in_tree:
        yield encode(("volume", volume.name, volume.plugin, volume.driver))
    for it in inventory.classes:
        if it.provisioner in LIVES:
            # Whole, since a plan makes it again as it was read.
            yield encode(("class", to_builtins(it, order="sorted")))
    # Each setting once: a replica more or less, or one under a new name, changes nothing.
    yield from {
        encode((pod.component, sorted(pod.gates.items()), sorted(pod.flags.items())))
        for pod in inventory.control_plane
    }


def _nodes(inventory: Inventory) -> Iterator[bytes]:
    for node in inventory.nodes.keys() | inventory.csi_nodes.keys():
        version = inventory.kubelet_version(node)
        migrated = sorted(inventory.migrated_on(node))
        drivers = sorted(inventory.drivers_on(node))
        yield encode(("node", node, version, migrated, drivers))
