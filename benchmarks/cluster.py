"""A cluster of any size, as the bytes of the pages that its API server would send."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.volumes import volume

Object = dict[str, Any]

PAGE = 500
NODES, PODS, VOLUMES = 5_000, 150_000, 50_000


def claim(serial: int) -> Object:
    return {
        "metadata": {
            "name": f"data-{serial}",
            "namespace": f"team-{serial % 40}",
            "uid": f"0eae679f-0000-4000-8000-{serial:012x}",
            "resourceVersion": str(3000 + serial),
            "creationTimestamp": "2021-03-04T05:06:07Z",
            "labels": {"app": f"app-{serial % 300}"},
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes",
                "volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com",
            },
            "finalizers": ["kubernetes.io/pvc-protection"],
            "managedFields": [_managed("kube-controller-manager", 6)],
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{serial % 500 + 1}Gi"}},
            "storageClassName": "standard",
            "volumeMode": "Filesystem",
            "volumeName": f"pvc-0eae679f-0000-4000-8000-{serial:012x}",
        },
        "status": {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": f"{serial % 500 + 1}Gi"},
        },
    }


def pod(serial: int) -> Object:
    """Every third pod has a claim."""
    volumes: list[Object] = [
        {
            "name": "kube-api-access-x7k2p",
            "projected": {
                "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}],
                "defaultMode": 420,
            },
        },
        {"name": "config", "configMap": {"name": f"config-{serial % 300}", "defaultMode": 420}},
    ]
    if serial % 3 == 0:
        reference = {"claimName": f"data-{serial // 3}"}
        volumes.append({"name": "data", "persistentVolumeClaim": reference})
    app = f"app-{serial % 300}"
    return {
        "metadata": {
            "name": f"{app}-5d4f8c7b9-{serial:05x}",
            "namespace": f"team-{serial // 3 % 40}",
            "uid": f"5c39c200-661f-4ccd-a268-{serial:012x}",
            "resourceVersion": str(9000 + serial),
            "creationTimestamp": "2024-03-04T05:06:07Z",
            "labels": {"app": app, "pod-template-hash": "5d4f8c7b9"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{app}-5d4f8c7b9",
                    "uid": "1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed("kube-controller-manager", 12), _managed("kubelet", 8)],
        },
        "spec": {
            "volumes": volumes,
            "containers": [
                {
                    "name": "app",
                    "image": f"registry.example.org/{app}:1.4.{serial % 10}",
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(6)],
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
                    "volumeMounts": [{"name": it["name"], "mountPath": "/x"} for it in volumes],
                }
            ],
            "restartPolicy": "Always",
            "serviceAccountName": "default",
            "nodeName": f"node-{serial % NODES}",
            "securityContext": {},
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "Initialized")],
            "podIP": "10.1.2.3",
            "containerStatuses": [
                {"name": "app", "ready": True, "state": {"running": {"startedAt": "2024-03-04"}}}
            ],
        },
    }


def node(serial: int) -> Object:
    return {
        "metadata": {
            "name": f"node-{serial}",
            "labels": {
                "kubernetes.io/hostname": f"node-{serial}",
                "topology.kubernetes.io/zone": "us-east-1a",
                "topology.kubernetes.io/region": "us-east-1",
            },
            "managedFields": [_managed("kubelet", 40)],
        },
        "spec": {"providerID": f"aws:///us-east-1a/i-{serial:017x}"},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.24.17"},
            "images": [{"names": [f"registry.example.org/app-{n}:1.4"]} for n in range(40)],
            "volumesAttached": [],
        },
    }


def csi_node(serial: int) -> Object:
    migrated = "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/cinder"
    key = "storage.alpha.kubernetes.io/migrated-plugins"
    drivers = [{"name": "ebs.csi.aws.com", "nodeID": f"i-{serial:017x}", "topologyKeys": []}]
    return {
        "metadata": {"name": f"node-{serial}", "annotations": {key: migrated}},
        "spec": {"drivers": drivers},
    }


def storage_class(serial: int) -> Object:  # noqa: ARG001
    return {"metadata": {"name": "standard"}, "provisioner": "kubernetes.io/aws-ebs"}


def driver(serial: int) -> Object:  # noqa: ARG001
    return {"metadata": {"name": "ebs.csi.aws.com"}, "spec": {"attachRequired": True}}


def _volume(serial: int) -> Object:
    whole = volume(serial)
    return {key: whole[key] for key in ("metadata", "spec", "status")}


KINDS: dict[str, tuple[str, Callable[[int], Object], int]] = {
    "PersistentVolume": ("v1", _volume, VOLUMES),
    "PersistentVolumeClaim": ("v1", claim, VOLUMES),
    "Pod": ("v1", pod, PODS),
    "Node": ("v1", node, NODES),
    "CSINode": ("storage.k8s.io/v1", csi_node, NODES),
    "StorageClass": ("storage.k8s.io/v1", storage_class, 1),
    "CSIDriver": ("storage.k8s.io/v1", driver, 1),
}


def write_dump(path: Path) -> None:
    """All of it as one List, as kubectl writes it."""
    with path.open("w") as file:
        file.write('{"apiVersion":"v1","items":[')
        separator = ""
        for kind, (version, make, count) in KINDS.items():
            for serial in range(count):
                item = {"apiVersion": version, "kind": kind, **make(serial)}
                file.write(separator + json.dumps(item, separators=(",", ":")))
                separator = ","
        file.write('],"kind":"List","metadata":{"resourceVersion":""}}')


def pages(kind: str) -> Iterator[bytes]:
    """The pages of a list; each but the last names the next by its number."""
    version, make, count = KINDS[kind]
    last = (count - 1) // PAGE
    for number in range(last + 1):
        items = [make(serial) for serial in range(number * PAGE, min(count, (number + 1) * PAGE))]
        metadata: Object = {"resourceVersion": "1"}
        if number < last:
            metadata["continue"] = str(number + 1)
        whole = {"kind": f"{kind}List", "apiVersion": version, "metadata": metadata, "items": items}
        yield json.dumps(whole, separators=(",", ":")).encode()


def _managed(manager: str, fields: int) -> Object:
    owned: Object = {f"f:field{n}": {".": {}, "f:inner": {}} for n in range(fields)}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2024-03-04T05:06:07Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": owned},
    }
