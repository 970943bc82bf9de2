"""What a cluster has come to: what is compared between two runs, and what must never be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from replant.execute.making import MADE_BY
from replant.gates.settings import effective
from replant.objects import Object
from replant.routing import VolumeView
from replant.sandbox.controllers.kubelets.kubelet import Kubelet
from replant.sandbox.resources import (
    CSI_NODES,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from replant.sandbox.server import Sandbox
from replant.swap.twin import SWAPPED
from replant.translate import inline_to_csi, plugin_of, pv_to_csi

LONGEST_DETACH = 30.0
"""So many seconds a disk may stay on a node after its pod has gone: to unmount, to be noticed and
to be detached takes 10 in the sandbox, and kube-controller-manager may restart meanwhile."""

SETTLED = 6.0
"""So many seconds at least pass between the last detach from a node and its switch: a plan waits
for 10 from when the API shows none, and the cloud may then need 2 more, seen a second later."""

_BY_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
_OVER = ("Succeeded", "Failed")


def state(sandbox: Sandbox) -> dict[str, Any]:
    """Everything that two runs to the same end must have in common."""
    controls, cluster = sandbox.api.controls, sandbox.cluster
    assert controls is not None
    assert cluster is not None
    return {
        **{f"component {it}": controls.component(it) for it in cluster.control_plane.components},
        **{f"kubelet {name}": _kubelet(it) for name, it in cluster.kubelets.all.items()},
        **{f"ready {it}": controls.node(it)["replicas"][0]["ready"] for it in cluster.kubelets.all},
        **{f"node {it}": found for it, found in _all(sandbox, NODES, "spec")},
        **{f"csinode {it}": found for it, found in _all(sandbox, CSI_NODES, "spec")},
        **{f"volume {it}": found for it, found in _all(sandbox, PERSISTENT_VOLUMES, "spec")},
        **{f"claim {it}": found for it, found in _all(sandbox, PERSISTENT_VOLUME_CLAIMS, "spec")},
        **{f"class {it}": found for it, found in _all(sandbox, STORAGE_CLASSES)},
        **{f"set {it}": found for it, found in _all(sandbox, STATEFUL_SETS, "spec")},
        **{f"pod {it}": ready for it, ready in _pods(sandbox)},
    }


def _kubelet(kubelet: Kubelet) -> dict[str, bool]:
    """What its gates come to: a plan knows them by its CSINode, where defaults do not show."""
    return effective(kubelet.process.version, kubelet.process.gates)


def _all(sandbox: Sandbox, resource: Resource, *parts: str) -> Iterator[tuple[str, Object]]:
    """Objects without what the server says, or only some parts of them besides metadata."""
    for obj in sandbox.store.list(resource):
        metadata = {k: v for k, v in obj["metadata"].items() if k not in _BY_THE_SERVER}
        _forget_what_may_differ(obj, metadata)
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        shown = {part: obj.get(part) for part in parts or obj}
        # Labels that are empty and none at all are the same to whoever patches.
        yield key, {**shown, "metadata": {k: v for k, v in metadata.items() if v}}


_OF_DRIVERS = ("external-attacher/", "external-provisioner.")


def _forget_what_may_differ(obj: Object, metadata: Object) -> None:
    """Leave out uids, which are others in every sandbox, and what drivers never take back."""
    claim = obj.get("spec", {}).get("claimRef", {})
    for it in ("uid", "resourceVersion"):
        claim.pop(it, None)
    if annotations := metadata.get("annotations"):
        others = {SWAPPED: "some volume", MADE_BY: "some run"}
        metadata["annotations"] = {k: others.get(k, v) for k, v in annotations.items()}
    finalizers = metadata.get("finalizers", ())
    metadata["finalizers"] = [it for it in finalizers if not it.startswith(_OF_DRIVERS)]


def _pods(sandbox: Sandbox) -> Iterator[tuple[str, bool]]:
    for pod in sandbox.store.list(PODS):
        conditions = pod.get("status", {}).get("conditions", [])
        ready = any(it["type"] == "Ready" and it["status"] == "True" for it in conditions)
        yield f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", ready


def differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What is not as wanted, in words."""
    return [
        f"{name} is {found.get(name)}, not {wanted.get(name)}"
        for name in sorted({*wanted, *found})
        if wanted.get(name) != found.get(name)
    ]


def leftovers(sandbox: Sandbox) -> list[str]:
    """What a run must not leave behind."""
    found = [
        f"the lease is held by {holder}"
        for lease in sandbox.store.list(LEASES, "replant-system")
        if (holder := lease["spec"].get("holderIdentity"))
    ]
    for node in sandbox.store.list(NODES):
        marks = node["metadata"].get("annotations", {})
        if any(it.startswith("replant.dev/") for it in marks):
            found.append(f"node {node['metadata']['name']} is annotated with {marks}")
    return found


class Watchman:
    """Looks at the disks whenever time has passed, and remembers what was bad."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        assert sandbox.cluster is not None
        self._cluster = sandbox.cluster
        self._alone_since: dict[tuple[str, str], datetime] = {}
        self._last_used: dict[str, datetime] = {}
        """By node: when a disk was last seen there."""
        self._known: dict[tuple[str, str], str] = {}
        """By claim, its disk."""
        self.bad: set[str] = set()

    def look(self) -> None:
        now = self._sandbox.clock.now()
        used = self._used()
        alone = [it for it in self._cluster.cloud.attachments() if it not in used]
        self._last_used |= dict.fromkeys((on for _, on in self._cluster.cloud.attachments()), now)
        self._alone_since = {it: self._alone_since.get(it, now) for it in alone}
        for (disk, node), since in self._alone_since.items():
            if (now - since).total_seconds() > LONGEST_DETACH:
                self.bad.add(f"{disk} stays on {node}, where no pod uses it")
        for disk in self._cluster.writes.yanked():
            self.bad.add(f"{disk} was taken from a pod that ran")

    def kubelet_is_switched(self, node: str) -> None:
        """Nothing that moves may be on a node when its kubelet is given other gates."""
        there = [
            f"{disk} is attached" for disk, on in self._cluster.cloud.attachments() if on == node
        ]
        there += [
            f"{pod['metadata']['name']} is there"
            for pod in self._cluster.pods_on(node)
            if pod.get("status", {}).get("phase") not in _OVER
        ]
        self.bad |= {f"the kubelet of {node} is switched while {it}" for it in there}
        last = self._last_used.get(node)
        if last and (self._sandbox.clock.now() - last).total_seconds() < SETTLED:
            self.bad.add(f"the kubelet of {node} is switched right after a detach")

    def misplaced(self) -> list[str]:
        """The disks that are not exactly where their pods are, and attachments that lie."""
        used, attached = self._used(), set(self._cluster.cloud.attachments())
        found = [f"{disk} is not on {node}, where its pod is" for disk, node in used - attached]
        found += [f"{disk} is on {node} without its pod" for disk, node in attached - used]
        for it in self._sandbox.store.list(VOLUME_ATTACHMENTS):
            if not it.get("status", {}).get("attached"):
                found.append(f"VolumeAttachment {it['metadata']['name']} is not attached")
        return found

    def _used(self) -> set[tuple[str, str]]:
        disks = self._disks()
        return {
            (disk, pod["spec"]["nodeName"])
            for pod in self._sandbox.store.list(
                PODS, "", lambda it: it.fields["spec.nodeName"] != ""
            )
            if pod.get("status", {}).get("phase") not in _OVER
            for volume in pod["spec"].get("volumes") or ()
            if (disk := _used_by(pod, volume, disks))
        }

    def _disks(self) -> dict[tuple[str, str], str]:
        """The disks that are attached at all, by claim; a volume may be away for a moment."""
        for entry in self._sandbox.store.entries(PERSISTENT_VOLUMES):
            known = _DISKS.get((entry.name, entry.uid))
            if known is None:
                known = _DISKS[entry.name, entry.uid] = _disk(entry.value())
            claim, disk = known
            if disk:
                self._known[claim] = disk
        return self._known


def _used_by(pod: Object, volume: Object, disks: dict[tuple[str, str], str]) -> str:
    """The disk of a pod's volume, by its claim or by its own name; nothing where it has none."""
    if claim := volume.get("persistentVolumeClaim"):
        return disks.get(_claim(pod, claim["claimName"]), "")
    if plugin_of(volume) is None:
        return ""
    handle: str = inline_to_csi(volume, pod["metadata"]["namespace"])["spec"]["csi"]["volumeHandle"]
    return handle


_DISKS: dict[tuple[str, str], tuple[tuple[str, str], str]] = {}
"""What was translated already: the source of a volume never changes."""


def _disk(volume: Object) -> tuple[tuple[str, str], str]:
    claim = volume["spec"].get("claimRef") or {}
    view = VolumeView.of(volume)
    native = volume if view.native else pv_to_csi(volume)
    handle = native["spec"]["csi"]["volumeHandle"] if view.attachable else ""
    return (claim.get("namespace", ""), claim.get("name", "")), handle


def _claim(pod: Object, name: str) -> tuple[str, str]:
    return pod["metadata"]["namespace"], name
