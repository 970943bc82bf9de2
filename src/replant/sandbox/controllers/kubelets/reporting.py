"""What a kubelet writes into its node, its CSINode and its pods."""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, World
from replant.sandbox.controllers.kubelets.kubelet import Kubelet, has_base_gate, redirected
from replant.sandbox.resources import CSI_NODES, NODES, PODS
from replant.translate import aws_ebs, azure_disk, cinder, gce_pd, vsphere

ZONE_KEYS = {
    aws_ebs.AwsEbs.driver: aws_ebs.ZONE_KEY,
    gce_pd.GcePd.driver: gce_pd.ZONE_KEY,
    azure_disk.AzureDisk.driver: azure_disk.ZONE_KEY,
    cinder.Cinder.driver: cinder.ZONE_KEY,
    vsphere.Vsphere.driver: vsphere.ZONE_KEY,
}
"""What drivers call a zone; with them a node has these labels too."""


def report_version(world: World, kubelet: Kubelet) -> None:
    """Have a node say which kubelet it has."""

    def write(obj: Object) -> None:
        version = f"v{kubelet.process.version}"
        obj["status"].setdefault("nodeInfo", {})["kubeletVersion"] = version

    world.change(NODES, ("", kubelet.node), write, "status")


def report_ready(world: World, node: str, status: str, reason: str) -> None:
    """Have a node say whether it is ready, or have it said of one that is silent."""
    time = world.store.time()

    def write(obj: Object) -> None:
        parts.put_condition(obj, parts.condition("Ready", status, time, reason=reason))

    world.change(NODES, ("", node), write, "status")


def report_in_use(world: World, kubelet: Kubelet) -> None:
    """Have a node say which volumes its pods use, unless it does."""
    names = kubelet.in_use()
    found = world.store.find(NODES, kubelet.node)
    if found is None or (parts.read_node(found.text).status.volumesInUse or []) == names:
        return

    def write(node: Object) -> None:
        node["status"].pop("volumesInUse", None)
        if names:
            node["status"]["volumesInUse"] = names

    world.change(NODES, ("", kubelet.node), write, "status")


def report_zone(world: World, kubelet: Kubelet) -> None:
    """Have a node say where it is in the words of its drivers too."""
    found = world.store.find(NODES, kubelet.node)
    zone = found.labels.get(parts.ZONE) if found else None
    keys = {ZONE_KEYS[it]: zone for it in kubelet.drivers if it in ZONE_KEYS}
    if found is None or not zone or keys.items() <= found.labels.items():
        return

    def write(obj: Object) -> None:
        obj["metadata"].setdefault("labels", {}).update(keys)

    world.change(NODES, ("", kubelet.node), write)


def report_drivers(world: World, kubelet: Kubelet, *, only_drivers: bool = False) -> None:
    """Say what is redirected here. With the base gate off it is left, if there is no driver."""
    process = kubelet.process
    if not kubelet.csi_node:
        return
    found = world.store.find(CSI_NODES, kubelet.node)
    if not has_base_gate(process) and not kubelet.drivers:
        if found is None:
            return
        only_drivers = True
    listed = redirected(process)
    drivers = [
        {
            "name": driver,
            "nodeID": kubelet.node,
            "topologyKeys": [key] if (key := ZONE_KEYS.get(driver)) else [],
            "allocatable": {"count": kubelet.limit},
        }
        for driver in sorted(kubelet.drivers)
    ]

    def write(obj: Object) -> None:
        obj["spec"] = {"drivers": drivers}
        if only_drivers:
            return
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations.pop(parts.MIGRATED_PLUGINS, None)
        if listed:
            annotations[parts.MIGRATED_PLUGINS] = listed

    if found is None:
        csi_node: Object = {"metadata": {"name": kubelet.node}}
        write(csi_node)
        world.store.create(CSI_NODES, csi_node)
    else:
        world.change(CSI_NODES, ("", kubelet.node), write)


def report_running(world: World, key: Key, restarts: int) -> None:
    """Have a pod say that it and its containers run."""
    time = world.store.time()

    def write(pod: Object) -> None:
        status = pod.setdefault("status", {})
        status["phase"] = "Running"
        status.setdefault("startTime", time)
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled"):
            parts.put_condition(pod, parts.condition(kind, "True", time))
        status["containerStatuses"] = [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": restarts,
                "state": {"running": {"startedAt": time}},
            }
            for container in pod["spec"].get("containers") or ()
        ]

    world.change(PODS, key, write, "status")
