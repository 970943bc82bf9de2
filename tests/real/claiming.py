"""What the real controllers of claims and volumes do with in-tree EBS, as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tests.real.attaching import Row
from tests.real.ground.api import Api, Object
from tests.real.ground.cloud import Cloud, by_plugin
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.nodes import DRIVER
from tests.real.ground.processes import settled, wait_for
from tests.real.ground.volumes import claim_object, pv_object

PLUGIN = "kubernetes.io/aws-ebs"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
TOLD = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-resizer",
)
"""Annotations of a claim that say who is to act."""
_numbers = count()


def rows(plane: ControlPlane, cloud: Cloud, gates: Mapping[str, bool]) -> list[Row]:
    """One row for each operation, seen with the controller manager that runs now."""
    names = [_name() for _trial in TRIALS]
    trials = [trial(plane.api, cloud, name) for trial, name in zip(TRIALS, names, strict=True)]
    seen = settled(lambda: [look() for _operation, _volume, look in trials])
    for name in names:
        # The next gates would give to another who waits here in vain.
        plane.api.delete("PersistentVolumeClaim", name, "default")
        plane.api.delete("PersistentVolume", name)
        plane.api.delete("StorageClass", name)
    return [
        {
            "kcmGates": dict(gates),
            "operation": operation,
            "volume": volume,
            "servedBy": served_by(what),
            "seen": what,
        }
        for (operation, volume, _look), what in zip(trials, seen, strict=True)
    ]


def served_by(seen: Mapping[str, Any]) -> str:
    if seen["ec2Calls"]:
        return "in-tree"
    return "csi" if DRIVER in seen["annotations"].values() else "nobody"


Trial = tuple[str, str, Callable[[], dict[str, Any]]]


def provision(api: Api, cloud: Cloud, name: str) -> Trial:
    """A claim of an in-tree class."""
    api.create(storage_class(name))
    api.create(claim_object(name, storageClassName=name))

    def look() -> dict[str, Any]:
        # The call has no name of a disk in it, since it is EC2 that gives one.
        made = [call for call in cloud.all_calls() if call["claim"] == name]
        return _seen(api, name, made, api.get("PersistentVolumeClaim", name, "default"), TOLD)

    return "provision", "none yet", look


def delete_provisioned(api: Api, cloud: Cloud, name: str) -> Trial:
    """A volume that the in-tree plugin once made, and whose claim goes."""
    return "delete", "provisioned in-tree", _released(api, cloud, name, {PROVISIONED_BY: PLUGIN})


def delete_static(api: Api, cloud: Cloud, name: str) -> Trial:
    """A volume that a person made, and whose claim goes."""
    return "delete", "made by hand", _released(api, cloud, name, {})


def expand(api: Api, cloud: Cloud, name: str) -> Trial:
    """A bound claim that asks for more."""
    disk = cloud.disk()
    api.create({**storage_class(name), "allowVolumeExpansion": True})
    _bound(api, name, disk, {PROVISIONED_BY: PLUGIN}, storageClassName=name)
    more = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    api.patch("PersistentVolumeClaim", name, more, "default")

    def look() -> dict[str, Any]:
        claim = api.get("PersistentVolumeClaim", name, "default")
        return _seen(api, name, cloud.calls(disk), claim, TOLD)

    return "expand", "provisioned in-tree", look


def mark(api: Api, cloud: Cloud, name: str) -> Trial:
    """A bound volume that the in-tree plugin once made: is it marked as another's now?"""
    disk = cloud.disk()
    _bound(api, name, disk, {PROVISIONED_BY: PLUGIN})

    def look() -> dict[str, Any]:
        volume = api.get("PersistentVolume", name)
        return _seen(api, name, cloud.calls(disk), volume, (MIGRATED_TO,))

    return "mark", "provisioned in-tree", look


TRIALS = (provision, delete_provisioned, delete_static, expand, mark)


def storage_class(name: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": PLUGIN,
    }


def _released(
    api: Api, cloud: Cloud, name: str, annotations: dict[str, str]
) -> Callable[[], dict[str, Any]]:
    disk = cloud.disk()
    _bound(api, name, disk, annotations, persistentVolumeReclaimPolicy="Delete")
    api.delete("PersistentVolumeClaim", name, "default")

    def look() -> dict[str, Any]:
        volume = api.find("PersistentVolume", name)
        return _seen(api, name, cloud.calls(disk), volume, (MIGRATED_TO,))

    return look


def _bound(api: Api, name: str, disk: str, annotations: dict[str, str], **spec: str) -> None:
    volume = pv_object(name, disk, claimRef={"name": name, "namespace": "default"}, **spec)
    volume["metadata"]["annotations"] = annotations
    api.create(volume)
    class_name = spec.get("storageClassName", "")
    api.create(claim_object(name, volumeName=name, storageClassName=class_name))
    wait_for(
        lambda: api.get("PersistentVolumeClaim", name, "default")["status"]["phase"] == "Bound",
        f"{name} to be bound",
    )


def _seen(
    api: Api,
    name: str,
    calls: list[dict[str, Any]],
    obj: Object | None,
    annotations: tuple[str, ...],
) -> dict[str, Any]:
    """What anyone can see of it from outside; events only by their reason, without repeats."""
    events = (event for event in api.list("Event") if event["involvedObject"]["name"] == name)
    there = (obj or {}).get("metadata", {}).get("annotations", {})
    return {
        "ec2Calls": sorted({call["action"] for call in calls if by_plugin(call)}),
        "annotations": {key: there[key] for key in annotations if key in there},
        "phase": obj["status"]["phase"] if obj else "gone",
        "events": sorted({event["reason"] for event in events}),
    }


def _name() -> str:
    """One for the claim, the volume and the class of a trial."""
    return f"claim-{next(_numbers)}"
