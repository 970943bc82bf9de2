"""PersistentVolumes as a real cluster has them, of all plugins, as many as wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

SOURCES: list[tuple[str, str, dict[str, str], Object]] = [
    (
        "awsElasticBlockStore",
        "aws-ebs",
        {"zone": "us-east-1a", "region": "us-east-1"},
        {"fsType": "ext4", "volumeID": "aws://us-east-1a/vol-{serial:017x}"},
    ),
    (
        "gcePersistentDisk",
        "gce-pd",
        {"zone": "us-central1-b", "region": "us-central1"},
        {"fsType": "ext4", "pdName": "gke-prod-pvc-{serial:012x}"},
    ),
    (
        "cinder",
        "cinder",
        {"zone": "nova", "region": "RegionOne"},
        {"fsType": "ext4", "volumeID": "06e7f417-0d27-04ff-4744-{serial:012x}"},
    ),
    (
        "azureDisk",
        "azure-disk",
        {"zone": "eastus-2", "region": "eastus"},
        {
            "cachingMode": "ReadOnly",
            "diskName": "kubernetes-dynamic-pvc-{serial:x}",
            "diskURI": "/subscriptions/486923be-0000/resourceGroups/mc_prod/providers/"
            "Microsoft.Compute/disks/kubernetes-dynamic-pvc-{serial:x}",
            "fsType": "ext4",
            "kind": "Managed",
            "readOnly": False,
        },
    ),
    (
        "azureFile",
        "azure-file",
        {},
        {
            "secretName": "azure-storage-account-f{serial:x}-secret",
            "secretNamespace": "team-a",
            "shareName": "kubernetes-dynamic-pvc-{serial:x}",
        },
    ),
    (
        "vsphereVolume",
        "vsphere-volume",
        {"zone": "zone-a", "region": "dc-1"},
        {"fsType": "ext4", "volumePath": "[vsanDatastore] kubevols/pvc-{serial:x}.vmdk"},
    ),
    ("portworxVolume", "portworx-volume", {}, {"fsType": "xfs", "volumeID": "9{serial:017d}"}),
    (
        "rbd",
        "rbd",
        {},
        {
            "image": "kubernetes-dynamic-pvc-{serial:x}",
            "keyring": "/etc/ceph/keyring",
            "monitors": ["10.0.0.1:6789", "10.0.0.2:6789", "10.0.0.3:6789"],
            "pool": "kube",
            "secretRef": {"name": "ceph-secret", "namespace": "kube-system"},
            "user": "kube",
        },
    ),
]


def volume(serial: int) -> Object:
    source, plugin, place, fields = SOURCES[serial % len(SOURCES)]
    labels = {f"topology.kubernetes.io/{key}": value for key, value in place.items()}
    expressions = [{"key": k, "operator": "In", "values": [v]} for k, v in labels.items()]
    annotations = {
        "pv.kubernetes.io/bound-by-controller": "yes",
        "pv.kubernetes.io/provisioned-by": f"kubernetes.io/{plugin}",
    }
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        source: {key: _filled(value, serial) for key, value in fields.items()},
        "capacity": {"storage": f"{serial % 500 + 1}Gi"},
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "name": f"data-{serial}",
            "namespace": f"team-{serial % 40}",
            "uid": f"0eae679f-0000-4000-8000-{serial:012x}",
        },
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": "standard",
        "volumeMode": "Filesystem",
    }
    metadata: Object = {
        "annotations": annotations,
        "creationTimestamp": "2021-03-04T05:06:07Z",
        "finalizers": ["kubernetes.io/pv-protection"],
        "name": f"pvc-0eae679f-0000-4000-8000-{serial:012x}",
        "resourceVersion": str(2000 + serial),
        "uid": f"3c39c200-661f-4ccd-a268-{serial:012x}",
    }
    if labels:
        metadata["labels"] = labels
        terms = [{"matchExpressions": expressions}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata["managedFields"] = [_managed(annotations, spec)]
    status = {"phase": "Bound"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def write_json_list(path: Path, count: int) -> None:
    with path.open("w") as file:
        file.write('{"apiVersion":"v1","kind":"PersistentVolumeList","metadata":{},"items":[')
        for serial in range(count):
            file.write("," if serial else "")
            file.write(json.dumps(volume(serial), separators=(",", ":")))
        file.write("]}")


def write_yaml_documents(path: Path, count: int) -> None:
    with path.open("w") as file:
        yaml.dump_all(_volumes(count), file, Dumper=yaml.CSafeDumper)


def _volumes(count: int) -> Iterator[Object]:
    return (volume(serial) for serial in range(count))


def _filled(value: Any, serial: int) -> Any:
    return value.format(serial=serial) if isinstance(value, str) else value


def _managed(annotations: Object, spec: Object) -> Object:
    owned = {
        "f:metadata": {"f:annotations": {".": {}, **{f"f:{key}": {} for key in annotations}}},
        "f:spec": {f"f:{key}": {} for key in spec},
    }
    return {
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
        "manager": "kube-controller-manager",
        "operation": "Update",
        "time": "2021-03-04T05:06:07Z",
    }
