"""What counts as using a driver."""

from __future__ import annotations

from typing import Any

import pytest

from replant.drivers.removal import Uses, World, uses_of
from replant.objects import Object
from tests.drivers.world import EBS


def obj(kind: str, name: str, namespace: str = "", **rest: Any) -> Object:
    metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "metadata": {**metadata, **rest.pop("metadata", {})}, **rest}


NATIVE = obj("PersistentVolume", "native", spec={"csi": {"driver": EBS.name}})
OTHER = obj("PersistentVolume", "other", spec={"csi": {"driver": "x"}})
IN_TREE = obj("PersistentVolume", "in-tree", spec={"awsElasticBlockStore": {"volumeID": "v"}})
MIGRATED = obj(
    "CSINode",
    "n",
    metadata={
        "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "a,kubernetes.io/aws-ebs,b"}
    },
)
CLASS = obj("StorageClass", "gp3-csi", provisioner=EBS.name)


def claim(name: str, volume: str = "", class_: str = "") -> Object:
    spec = {"volumeName": volume, "storageClassName": class_}
    return obj("PersistentVolumeClaim", name, "shop", spec=spec)


def pod(called: str, phase: str = "Running", **volume: Any) -> Object:
    return obj("Pod", called, "shop", spec={"volumes": [volume]}, status={"phase": phase})


def of_claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


@pytest.mark.parametrize(
    ("world", "used_by"),
    [
        (World(), []),
        (World(volumes=[NATIVE, OTHER]), ["PersistentVolume native"]),
        # An in-tree volume is served by the driver only where it is redirected.
        (World(volumes=[IN_TREE]), []),
        (World(volumes=[IN_TREE], csi_nodes=[MIGRATED]), ["PersistentVolume in-tree"]),
        (
            World(volumes=[NATIVE], claims=[claim("a", "native"), claim("b", "other")]),
            ["PersistentVolume native", "PersistentVolumeClaim shop/a"],
        ),
        # A claim that still waits for its volume; one that is bound elsewhere has it already.
        (
            World(classes=[CLASS], claims=[claim("a", "", "gp3-csi"), claim("b", "x", "gp3-csi")]),
            ["PersistentVolumeClaim shop/a"],
        ),
        (
            World(
                classes=[CLASS],
                claims=[claim("a", "", "gp3-csi"), claim("p-v", "", "gp3-csi")],
                pods=[
                    pod("uses", **of_claim("a")),
                    pod("done", "Succeeded", **of_claim("a")),
                    pod("else", **of_claim("z")),
                    pod("p", name="v", ephemeral={"volumeClaimTemplate": {}}),
                ],
            ),
            [
                "PersistentVolumeClaim shop/a",
                "PersistentVolumeClaim shop/p-v",
                "Pod shop/uses",
                "Pod shop/p",
            ],
        ),
        (World(pods=[pod("inline", csi={"driver": EBS.name})]), ["Pod shop/inline"]),
        (
            World(
                pods=[pod("inline", awsElasticBlockStore={"volumeID": "v"})], csi_nodes=[MIGRATED]
            ),
            ["Pod shop/inline"],
        ),
        (
            World(
                attachments=[
                    obj("VolumeAttachment", "a", spec={"attacher": EBS.name}),
                    obj("VolumeAttachment", "b", spec={"attacher": "x"}),
                ]
            ),
            ["VolumeAttachment a"],
        ),
        (
            World(
                snapshots=[
                    obj("VolumeSnapshotContent", "c", spec={"driver": EBS.name}),
                    obj("VolumeSnapshotContent", "d", spec={"driver": "x"}),
                    obj("VolumeSnapshot", "monday", "shop",
                        status={"boundVolumeSnapshotContentName": "c"}),
                    obj("VolumeSnapshot", "sunday", "shop",
                        status={"boundVolumeSnapshotContentName": "d"}),
                ]
            ),
            ["VolumeSnapshotContent c", "VolumeSnapshot shop/monday"],
        ),
    ],
)  # fmt: skip
def test_uses(world: World, used_by: list[str]) -> None:
    assert list(uses_of(EBS, world).names) == used_by


def test_uses_in_a_sentence() -> None:
    many = Uses((*(f"Pod shop/p{n}" for n in range(5)), "PersistentVolume v"))
    assert many.message == "5 Pod (shop/p0, shop/p1, shop/p2 and 2 more); 1 PersistentVolume (v)"
