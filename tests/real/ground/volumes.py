"""Volumes, claims and pods that tests create."""

from __future__ import annotations

from dataclasses import dataclass

from replant.translate import api as translate
from tests.real.ground.api import Api, Object
from tests.real.ground.cloud import ZONE, Cloud
from tests.real.ground.image import NAME as IMAGE
from tests.real.ground.processes import wait_for


@dataclass(frozen=True)
class Volume:
    """A disk, the stored in-tree volume for it, and the claim that is bound to that."""

    api: Api
    cloud: Cloud
    disk: str
    name: str
    """The name of both the volume and the claim."""
    namespace: str = "default"

    @property
    def pv(self) -> Object:
        return self.api.get("PersistentVolume", self.name)

    @property
    def claim(self) -> Object:
        return self.api.get("PersistentVolumeClaim", self.name, self.namespace)

    @property
    def attachments(self) -> list[Object]:
        """The VolumeAttachments for it."""
        return [
            found
            for found in self.api.list("VolumeAttachment")
            if found["spec"]["source"].get("persistentVolumeName") == self.name
        ]

    @property
    def attached_to(self) -> str:
        """The instance that has its disk, by the word of the cloud."""
        return self.cloud.attached_to(self.disk)


def attachment_state(attachment: Object) -> str:
    """What a VolumeAttachment says of itself."""
    return "attached" if attachment.get("status", {}).get("attached") else "waiting"


def new_volume(
    api: Api, cloud: Cloud, name: str, namespace: str = "default", *, native: bool = False
) -> Volume:
    """A new disk, bound to a claim through an in-tree EBS volume, or a native CSI one."""
    volume = Volume(api, cloud, cloud.disk(), name, namespace)
    reference = {"name": name, "namespace": namespace}
    stored = pv_object(name, volume.disk, claimRef=reference)
    # The volume first: a claim whose volume is not there waits for the binder's next round.
    api.create(translate.pv_to_csi(stored) if native else stored)
    api.create(claim_object(name, namespace, volumeName=name, storageClassName=""))
    # The attach/detach controller looks at a pod's claim once, and again only a minute later.
    wait_for(lambda: volume.claim["status"]["phase"] == "Bound", f"{name} to be bound")
    return volume


def end_pod(api: Api, name: str) -> None:
    """Delete a pod and wait until its node has let it go."""
    api.delete("Pod", name, "default")
    wait_for(lambda: not api.find("Pod", name, "default"), f"the pod {name} to go")


def pv_object(name: str, disk: str, **spec: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "awsElasticBlockStore": _source(disk),
            "persistentVolumeReclaimPolicy": "Retain",
            **spec,
        },
    }


def claim_object(name: str, namespace: str = "default", **spec: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def inline_volume(name: str, disk: str) -> Object:
    """A disk in a pod's own list of volumes, without claim and PersistentVolume."""
    return {"name": name, "awsElasticBlockStore": _source(disk)}


def _source(disk: str) -> Object:
    return {"volumeID": f"aws://{ZONE}/{disk}", "fsType": "ext4"}


def pod_object(name: str, node: str = "", claim: str = "", command: str = "sleep 3600") -> Object:
    """A pod on a node, or on any, with the claim mounted at /data if there is one.

    The volume is named after the claim, and so like the PersistentVolume: otherwise a kubelet
    1.24 that was restarted takes two minutes to let go of it.
    """
    mounts = [{"name": claim, "mountPath": "/data"}] if claim else []
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            **({"nodeName": node} if node else {}),
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "volumes": volumes,
            "containers": [
                {
                    "name": "main",
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "command": ["/bin/sh", "-c", command],
                    "volumeMounts": mounts,
                }
            ],
        },
    }
