"""Orders of switching, and whether each loses a volume.

What is expected follows from what Kubernetes does and was seen to do (docs/observed.md), not from
the model: of two bad states the yank is told, and otherwise the one that is reached first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replant.gates.plugins import LIVES
from replant.proof import BadState
from tests.proof.making import (
    BASE,
    COMPLETED,
    OFF,
    ON,
    STANDALONE,
    UNREGISTER,
    UNREGISTERED,
    Given,
    cp,
    drained,
    in_place,
    order,
)

SAFE = None
YANKED, DOUBLE = BadState.YANKED, BadState.DOUBLY_ATTACHED
MOUNTED = BadState.DOUBLY_MOUNTED
STRANDED, UNSERVABLE = BadState.STRANDED, BadState.UNSERVABLE
ALL_OFF: dict[str, Any] = {"cp": OFF, "nodes": OFF}
ALL_ON: dict[str, Any] = {"cp": ON, "nodes": ON}
OPENSHIFT: dict[str, Any] = {"adc": "node-driven"}
NO_DRIVER: dict[str, Any] = {"driverInstalled": False}
FILE_ON, FILE_OFF = {"CSIMigrationAzureFile": True}, {"CSIMigrationAzureFile": False}
FILE_UNREGISTERED = {**FILE_ON, "InTreePluginAzureFileUnregister": True}
FILES = {"plugin": "azure-file", "version": "1.24"}
PX_ON, PX_OFF = {"CSIMigrationPortworx": True}, {"CSIMigrationPortworx": False}
PORTWORX = {"plugin": "portworx-volume", "version": "1.25"}
TWO_ON, TWO_OFF = {**ON, "CSIMigrationGCE": True}, {**OFF, "CSIMigrationGCE": False}
GCE_ON, GCE_OFF = {"CSIMigrationGCE": True}, {"CSIMigrationGCE": False}
GCE_UNREGISTERED = {**GCE_ON, "InTreePluginGCEUnregister": True}
NO_BASE, WITH_BASE = {BASE: False}, {BASE: True}

FLIPS = [
    ("aws-ebs", "1.22", "1.23"),
    ("gce-pd", "1.22", "1.23"),
    ("azure-disk", "1.22", "1.23"),
    ("cinder", "1.20", "1.21"),
    ("vsphere-volume", "1.24", "1.25"),
    ("azure-file", "1.23", "1.24"),
    ("portworx-volume", "1.30", "1.31"),
]
"""Off by default in the first minor, on in the second."""

Row = tuple[str, Given, BadState | None]

RIGHT: list[Row] = [
    ("no steps", order(**ALL_OFF), SAFE),
    ("enable", order(cp(ON), drained(ON), **ALL_OFF), SAFE),
    ("disable", order(drained(OFF), cp(OFF), **ALL_ON), SAFE),
    ("controller on, nodes left off", order(cp(ON), **ALL_OFF), SAFE),
    ("enable and complete", order(cp(ON), drained(ON), cp(UNREGISTERED), **ALL_OFF), SAFE),
    ("complete", order(cp(UNREGISTERED), **ALL_ON), SAFE),
    # A kubelet that redirects never asks for the plugin that it no longer has.
    ("complete on nodes too", order(cp(UNREGISTERED), in_place(UNREGISTERED), **ALL_ON), SAFE),
    ("nodes unregister before the controller", order(in_place(UNREGISTERED), **ALL_ON), SAFE),
    (
        "back from complete",
        order(cp(ON), drained(OFF), cp(OFF), cp=UNREGISTERED, nodes=ON),
        SAFE,
    ),
    (
        "back from complete on nodes too",
        order(cp(ON), drained(OFF), cp(OFF), cp=UNREGISTERED, nodes=UNREGISTERED),
        SAFE,
    ),
    (
        "enable and complete, and old nodes join that are tainted",
        order(cp(ON), drained(ON), cp(UNREGISTERED), oldNodesJoin="tainted", **ALL_OFF),
        SAFE,
    ),
    (
        "disable, and old nodes join that are tainted",
        order(drained(OFF), cp(OFF), oldNodesJoin="tainted", **ALL_ON),
        SAFE,
    ),
    (
        "enable where disks are not taken, and old nodes join",
        order(
            cp(GCE_ON),
            drained(GCE_ON),
            plugin="gce-pd",
            oldNodesJoin=True,
            cp=GCE_OFF,
            nodes=GCE_OFF,
        ),
        SAFE,
    ),
    # They are as all others are.
    ("complete, and nodes join", order(cp(UNREGISTERED), oldNodesJoin=True, **ALL_ON), SAFE),
    (
        "enable and complete before 1.21",
        order(cp(ON), drained(ON), cp(COMPLETED), version="1.20", **ALL_OFF),
        SAFE,
    ),
]

WRONG: list[Row] = [
    ("kubelets before the controller", order(drained(ON), cp(ON), **ALL_OFF), UNSERVABLE),
    ("kubelets alone", order(drained(ON), **ALL_OFF), UNSERVABLE),
    # The pod that runs goes on; the next one never does.
    ("kubelets alone, in place", order(in_place(ON), **ALL_OFF), UNSERVABLE),
    ("kubelets before, in place", order(in_place(ON), cp(ON), **ALL_OFF), YANKED),
    (
        "two plugins at once, without a drain",
        order(cp(TWO_ON), in_place(TWO_ON), cp=TWO_OFF, nodes=TWO_OFF),
        YANKED,
    ),
    ("controller off first", order(cp(OFF), drained(OFF), **ALL_ON), UNSERVABLE),
    ("controller off first, in place", order(cp(OFF), in_place(OFF), **ALL_ON), YANKED),
    ("enable without a drain", order(cp(ON), in_place(ON), **ALL_OFF), YANKED),
    ("disable without a drain", order(in_place(OFF), cp(OFF), **ALL_ON), YANKED),
    (
        "drained there, in place back",
        order(cp(ON), drained(ON), in_place(OFF), **ALL_OFF),
        YANKED,
    ),
    # An in-tree detach that the driver has overtaken is begun anew half an hour later.
    (
        "enable, and the controllers go on",
        order(cp(ON), drained(ON, restarts=False), **ALL_OFF),
        YANKED,
    ),
    # A pod's successor is on a node of the other kind before the pod has ended.
    (
        "enable, and pods go anywhere",
        order(cp(ON), drained(ON, restricts=False), **ALL_OFF),
        YANKED,
    ),
    (
        "disable, and pods go anywhere",
        order(drained(OFF, restricts=False), cp(OFF), **ALL_ON),
        YANKED,
    ),
    # Nodes join with the gates that nodes had at first.
    (
        "enable, and old nodes join",
        order(cp(ON), drained(ON), oldNodesJoin=True, **ALL_OFF),
        YANKED,
    ),
    (
        "disable, and old nodes join",
        order(drained(OFF), cp(OFF), oldNodesJoin=True, **ALL_ON),
        YANKED,
    ),
    (
        "enable and complete, and old nodes join",
        order(cp(ON), drained(ON), cp(UNREGISTERED), oldNodesJoin=True, **ALL_OFF),
        YANKED,
    ),
    (
        "enable and complete where disks are not taken, and old nodes join",
        order(
            cp(GCE_ON),
            drained(GCE_ON),
            cp(GCE_UNREGISTERED),
            plugin="gce-pd",
            oldNodesJoin=True,
            cp=GCE_OFF,
            nodes=GCE_OFF,
        ),
        UNSERVABLE,
    ),
    (
        "complete before the nodes",
        order(cp(ON), cp(UNREGISTERED), drained(ON), **ALL_OFF),
        UNSERVABLE,
    ),
    (
        "complete before the nodes, in one step",
        order(cp(UNREGISTERED), drained(ON), **ALL_OFF),
        UNSERVABLE,
    ),
    (
        "complete before the nodes before 1.21",
        order(cp(COMPLETED), drained(ON), version="1.20", **ALL_OFF),
        UNSERVABLE,
    ),
    (
        "back from complete, nodes first",
        order(drained(OFF), cp(ON), cp(OFF), cp=UNREGISTERED, nodes=ON),
        UNSERVABLE,
    ),
    (
        "back from complete, controller off at once",
        order(cp(OFF), drained(OFF), cp=UNREGISTERED, nodes=ON),
        UNSERVABLE,
    ),
    ("unregister alone, controller", order(cp(STANDALONE), **ALL_OFF), UNSERVABLE),
    ("unregister alone, nodes", order(drained(STANDALONE), **ALL_OFF), UNSERVABLE),
    ("unregister alone, nodes in place", order(in_place(STANDALONE), **ALL_OFF), UNSERVABLE),
    (
        "unregister left behind on the way back",
        order(drained(STANDALONE), cp(OFF), **ALL_ON),
        UNSERVABLE,
    ),
]

BASE_GATE: list[Row] = [
    # A driver registers with each kubelet that starts, and the kubelet then writes its annotation.
    ("off on kubelets", order(drained(NO_BASE), cp(NO_BASE)), SAFE),
    ("off without a drain", order(in_place(NO_BASE), cp(NO_BASE)), YANKED),
    ("off on the controller first", order(cp(NO_BASE), drained(NO_BASE)), UNSERVABLE),
    ("on", order(cp(WITH_BASE), drained(WITH_BASE), cp=NO_BASE, nodes=NO_BASE), SAFE),
    # Without one the annotation stays behind, and the controller goes on believing it.
    ("off on kubelets, no driver", order(drained(NO_BASE), cp(NO_BASE), **NO_DRIVER), UNSERVABLE),
    (
        "on by the base gate, controller alone",
        order(cp(WITH_BASE), cp=NO_BASE, nodes=NO_BASE),
        SAFE,
    ),
    # Nothing of it is redirected by default at 1.22, with the base gate or without.
    ("off where the plugin's own is off", order(in_place(NO_BASE), version="1.22"), SAFE),
]

DRIVER_MISSING: list[Row] = [
    ("enable", order(cp(ON), drained(ON), **ALL_OFF, **NO_DRIVER), UNSERVABLE),
    ("the controller alone", order(cp(ON), **ALL_OFF, **NO_DRIVER), UNSERVABLE),
    ("nodes first", order(drained(ON), cp(ON), **ALL_OFF, **NO_DRIVER), UNSERVABLE),
    ("in place", order(in_place(ON), cp=ON, nodes=OFF, **NO_DRIVER), YANKED),
    (
        "in place, where nobody attaches without it",
        order(in_place(ON), version="1.23.17", cp=ON, nodes=OFF, **NO_DRIVER),
        YANKED,
    ),
    ("node-driven", order(drained(ON), **ALL_OFF, **NO_DRIVER, **OPENSHIFT), UNSERVABLE),
    (
        "no attach",
        order(cp(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES, **NO_DRIVER),
        UNSERVABLE,
    ),
    (
        "no attach, nodes first",
        order(drained(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES, **NO_DRIVER),
        UNSERVABLE,
    ),
    # It was broken before, and this mends it.
    ("back again", order(drained(OFF), cp(OFF), **ALL_ON, **NO_DRIVER), SAFE),
    ("untouched", order(**ALL_ON, **NO_DRIVER), SAFE),
]

NODE_DRIVEN: list[Row] = [
    ("enable", order(cp(ON), drained(ON), **ALL_OFF, **OPENSHIFT), SAFE),
    ("enable, nodes first", order(drained(ON), cp(ON), **ALL_OFF, **OPENSHIFT), SAFE),
    ("enable, nodes alone", order(drained(ON), **ALL_OFF, **OPENSHIFT), SAFE),
    ("disable", order(drained(OFF), cp(OFF), **ALL_ON, **OPENSHIFT), SAFE),
    ("disable, controller first", order(cp(OFF), drained(OFF), **ALL_ON, **OPENSHIFT), SAFE),
    ("in place", order(cp(ON), in_place(ON), **ALL_OFF, **OPENSHIFT), YANKED),
    ("in place, nodes first", order(in_place(ON), cp(ON), **ALL_OFF, **OPENSHIFT), YANKED),
    ("disable in place", order(cp(OFF), in_place(OFF), **ALL_ON, **OPENSHIFT), YANKED),
    ("complete after the nodes", order(cp(UNREGISTERED), **ALL_ON, **OPENSHIFT), SAFE),
    (
        "complete before the nodes",
        order(cp(UNREGISTERED), drained(ON), **ALL_OFF, **OPENSHIFT),
        UNSERVABLE,
    ),
    ("upgrade", order(cp("1.23"), drained("1.23"), version="1.22", **OPENSHIFT), SAFE),
    ("upgrade in place", order(cp("1.23"), in_place("1.23"), version="1.22", **OPENSHIFT), YANKED),
    ("downgrade", order(cp("1.22"), drained("1.22"), version="1.23", **OPENSHIFT), SAFE),
    (
        "downgrade in place",
        order(cp("1.22"), in_place("1.22"), version="1.23", **OPENSHIFT),
        YANKED,
    ),
]

NO_ATTACH: list[Row] = [
    (
        "kubelets first",
        order(drained(FILE_ON), cp(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES),
        SAFE,
    ),
    (
        "controller first",
        order(cp(FILE_ON), drained(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES),
        SAFE,
    ),
    ("controller off first", order(cp(FILE_OFF), drained(FILE_OFF), **FILES), SAFE),
    (
        "in place",
        order(cp(FILE_ON), in_place(FILE_ON), cp=FILE_OFF, nodes=FILE_OFF, **FILES),
        MOUNTED,
    ),
    ("back in place", order(in_place(FILE_OFF), **FILES), MOUNTED),
    # Only the kubelets touch the share, and theirs have the plugin still.
    ("complete before the nodes", order(cp(FILE_UNREGISTERED), nodes=FILE_OFF, **FILES), SAFE),
    (
        "portworx, kubelets first",
        order(drained(PX_ON), cp(PX_ON), cp=PX_OFF, nodes=PX_OFF, **PORTWORX),
        SAFE,
    ),
    ("portworx, in place", order(in_place(PX_ON), cp=PX_ON, nodes=PX_OFF, **PORTWORX), MOUNTED),
]

VERSIONS: list[Row] = [
    # On before and after: nothing flips, and a kubelet may be replaced in place.
    *(
        (
            f"{plugin} {before} to {after}",
            order(cp(after), in_place(after), plugin=plugin, version=before),
            SAFE,
        )
        for plugin, before, after in (
            ("aws-ebs", "1.17", "1.18"),
            ("aws-ebs", "1.24", "1.25"),
            ("aws-ebs", "1.26", "1.27"),
            ("aws-ebs", "1.30", "1.31"),
            ("gce-pd", "1.27", "1.28"),
            ("azure-disk", "1.26", "1.27"),
            ("cinder", "1.25", "1.26"),
            ("vsphere-volume", "1.28", "1.29"),
            ("vsphere-volume", "1.29", "1.30"),
            ("azure-file", "1.29", "1.30"),
            ("portworx-volume", "1.35", "1.36"),
            ("rbd", "1.29", "1.30"),
        )
    ),
    ("aws-ebs 1.27 to 1.26", order(in_place("1.26"), cp("1.26"), version="1.27"), SAFE),
    # Off as long as that was possible.
    ("off until 1.25", order(cp("1.25"), drained("1.25"), **ALL_OFF), SAFE),
    ("off until 1.25, in place", order(cp("1.25"), in_place("1.25"), **ALL_OFF), YANKED),
    (
        "kept off through 1.23",
        order(
            cp({"kubernetesVersion": "1.23", **OFF}),
            {"nodes": {"kubernetesVersion": "1.23", "gates": OFF}},
            version="1.22",
        ),
        SAFE,
    ),
    # What is not named falls back to the default, which is on.
    (
        "a gate that is not named",
        order({"nodes": {"gates": {UNREGISTER: False}}}, cp=ON, nodes=OFF),
        YANKED,
    ),
    (
        "rbd leaves, with its translation",
        order(cp("1.31"), plugin="rbd", version="1.30"),
        UNSERVABLE,
    ),
]

BROKEN_BEFORE: list[Row] = [
    ("nodes on, mended by the nodes", order(drained(OFF), cp=OFF, nodes=ON), SAFE),
    # It runs then, but both sides were seen to race for the disk.
    ("nodes on, mended by the controller", order(cp(ON), cp=OFF, nodes=ON), DOUBLE),
    # What was attached in-tree, in vain, nobody detaches.
    ("nodes on, completed at once", order(cp(UNREGISTERED), cp=OFF, nodes=ON), STRANDED),
    # Claims were not served before. Pods on nodes that are off ran, in-tree; now they never do.
    ("no driver, and nodes follow", order(drained(ON), cp=ON, nodes=OFF, **NO_DRIVER), UNSERVABLE),
    # What is attached once the plugin is registered, nobody detaches when that is undone.
    (
        "unregister alone, mended and undone",
        order(cp(OFF), drained(OFF), cp=STANDALONE, nodes=STANDALONE),
        STRANDED,
    ),
]

GOES_ANYWHERE: list[tuple[str, BadState | None]] = [
    ("azure-disk", YANKED),  # in the tree by its driver's attach, and the other way round
    ("cinder", YANKED),
    ("vsphere-volume", YANKED),
    ("gce-pd", SAFE),
    ("rbd", SAFE),  # the kubelet waits until no other node watches the image
]
"""Whether an attach takes a disk from the node that has it by its other name."""


def _flips() -> Iterator[Row]:
    """A default that flips needs a drain, there and back."""
    for plugin, before, after in FLIPS:
        up: dict[str, Any] = {"plugin": plugin, "version": before}
        down: dict[str, Any] = {"plugin": plugin, "version": after}
        hurt = MOUNTED if plugin in ("azure-file", "portworx-volume") else YANKED
        name = f"{plugin} {before} to {after}"
        yield name, order(cp(after), drained(after), **up), SAFE
        yield f"{name}, in place", order(cp(after), in_place(after), **up), hurt
        back = f"{plugin} {after} to {before}, in place"
        yield back, order(in_place(before), cp(before), **down), hurt


def _enabled(plugin: str, *, restricts: bool) -> Given:
    gate = LIVES[f"kubernetes.io/{plugin}"].migration_gate
    on, off = {gate: True}, {gate: False}
    begin: dict[str, Any] = {"plugin": plugin, "version": "1.23", "cp": off, "nodes": off}
    return order(cp(on), drained(on, restricts=restricts), **begin)


def _anywhere() -> Iterator[Row]:
    """A pod that tolerates a cordon harms with each plugin."""
    for plugin, _expected in GOES_ANYWHERE:
        yield plugin, _enabled(plugin, restricts=False), YANKED
        yield f"{plugin}, kept", _enabled(plugin, restricts=True), SAFE


CLOSED: list[Row] = [
    ("enable", order(cp(ON), drained(ON, restricts=False), **ALL_OFF), YANKED),
    ("disable", order(drained(OFF, restricts=False), cp(OFF), **ALL_ON), YANKED),
    *((plugin, _enabled(plugin, restricts=False), told) for plugin, told in GOES_ANYWHERE),
]
"""Where no pod tolerates a cordon, which no order says."""

TABLES: dict[str, list[Row]] = {
    "right": RIGHT,
    "wrong": WRONG,
    "base gate": BASE_GATE,
    "driver missing": DRIVER_MISSING,
    "node-driven": NODE_DRIVEN,
    "no attach": NO_ATTACH,
    "versions": [*VERSIONS, *_flips()],
    "pods go anywhere": list(_anywhere()),
    "broken before": BROKEN_BEFORE,
}
