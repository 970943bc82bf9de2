"""Small clusters, as dumps have them, to be scanned."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from replant.cluster.files import FileReader
from replant.gates.versions import Version
from replant.inventory.build import Builder
from replant.inventory.findings import Finding, ScanResult
from replant.inventory.model import Inventory
from replant.inventory.records import TYPES
from replant.inventory.scan import scan
from replant.inventory.selectors import Selector
from replant.manifests.sources import Source
from replant.objects import GROUPS

Object = dict[str, Any]

AWS = "kubernetes.io/aws-ebs"
EBS = "ebs.csi.aws.com"
EVERY_KIND = tuple(TYPES)


def obj(kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    metadata: Object = {"name": name, **fields.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    group = GROUPS[kind]
    return {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "metadata": metadata,
        **fields,
    }


def pv(name: str = "db", *, metadata: Object | None = None, **spec: Any) -> Object:
    if not any(key in spec for key in SOURCES):
        spec["awsElasticBlockStore"] = {"volumeID": "vol-1", "fsType": "ext4"}
    return obj("PersistentVolume", name, metadata=metadata or {}, spec=spec)


SOURCES = {
    "awsElasticBlockStore", "gcePersistentDisk", "cinder", "azureDisk", "azureFile",
    "vsphereVolume", "portworxVolume", "rbd", "csi", "nfs", "glusterfs",
}  # fmt: skip


def pvc(name: str = "data", namespace: str = "shop", **fields: Any) -> Object:
    return obj("PersistentVolumeClaim", name, namespace, **fields)


def storage_class(name: str = "gp2", provisioner: str = AWS, **fields: Any) -> Object:
    return obj("StorageClass", name, provisioner=provisioner, **fields)


def pod(name: str = "web-0", namespace: str = "shop", *, claim: str = "", **spec: Any) -> Object:
    status = spec.pop("status", {})
    metadata = spec.pop("metadata", {})
    if claim:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        spec["volumes"] = [*spec.get("volumes", []), volume]
    return obj("Pod", name, namespace, metadata=metadata, spec=spec, status=status)


CONTROLLER = "kube-controller-manager"


def component(*flags: str, component: str = CONTROLLER, on: str = "a") -> Object:
    """A replica of a component of the control plane, on that node, with these flags."""
    container = {"name": "c", "command": [component, *flags]}
    metadata = {"labels": {"component": component, "tier": "control-plane"}}
    return pod(
        f"{component}-{on}", "kube-system", metadata=metadata, containers=[container], nodeName=on
    )


def controller(gates: str) -> Object:
    """The controller-manager's pod, with these gates."""
    return component(f"--feature-gates={gates}")


def node(
    name: str = "n1", *, zone: str = "us-east-1a", attached: Iterable[str] = (), **fields: Any
) -> Object:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    status = {"volumesAttached": [{"name": it, "devicePath": ""} for it in attached]}
    status |= fields.pop("status", {})
    return obj("Node", name, metadata={"labels": labels | fields.pop("labels", {})},
               status=status, **fields)  # fmt: skip


def budget(name: str = "web", namespace: str = "shop", **fields: Any) -> Object:
    return obj("PodDisruptionBudget", name, namespace, **fields)


def csi_node(name: str = "n1", *drivers: str, migrated: str = "") -> Object:
    key = "storage.alpha.kubernetes.io/migrated-plugins"
    annotations = {key: migrated} if migrated else {}
    listed = [{"name": driver, "nodeID": name, "topologyKeys": []} for driver in drivers]
    return obj("CSINode", name, metadata={"annotations": annotations}, spec={"drivers": listed})


def driver(name: str = EBS) -> Object:
    return obj("CSIDriver", name, spec={})


def attachment(
    name: str = "csi-1", *, volume: str = "db", node: str = "n1", **fields: Any
) -> Object:
    source = {"persistentVolumeName": volume}
    spec = {"attacher": EBS, "nodeName": node, "source": source}
    status = fields.pop("status", {"attached": True})
    return obj("VolumeAttachment", name, spec=spec, status=status, **fields)


def claim_ref(name: str = "data", namespace: str = "shop") -> Object:
    return {"namespace": namespace, "name": name}


def inventory_of(
    objects: Iterable[Object], *, server: str = "1.24.17", namespace: str = "", selector: str = ""
) -> Inventory:
    """The inventory of a cluster that has these objects, and of every other kind none."""
    builder = Builder()
    complaints: list[object] = []
    reader = FileReader(builder, problem=complaints.append, note=complaints.append)
    for kind in EVERY_KIND:
        empty = {"apiVersion": "v1", "kind": f"{kind}List", "items": []}
        reader.read(Source("empty", json.dumps(empty).encode()))
    whole = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    reader.read(Source("dump", json.dumps(whole).encode()))
    assert complaints == []
    return builder.finish(
        server=Version.parse(server) if server else None,
        unknown=reader.unknown(),
        namespace=namespace,
        selector=Selector.parse(selector) if selector else None,
    )


def scanned(*objects: Object, target: str = "", **options: Any) -> ScanResult:
    wanted = Version.parse(target) if target else None
    return scan(inventory_of(objects, **options), target=wanted)


def found(result: ScanResult, finding_id: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.id == finding_id]
