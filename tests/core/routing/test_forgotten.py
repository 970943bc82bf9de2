"""Whether nothing on a node has the disk of an inline VolumeAttachment, by names."""

from __future__ import annotations

import pytest

from replant.core.routing.forgotten import is_forgotten

EBS = "kubernetes.io/csi/ebs.csi.aws.com^vol-1"
GCE = "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk-1"
AZURE = "kubernetes.io/csi/disk.csi.azure.com^/subscriptions/s/resourceGroups/g/disks/disk-1"


@pytest.mark.parametrize(
    ("name", "on_node", "expected"),
    [
        pytest.param(EBS, [], True, id="nothing there"),
        pytest.param(EBS, [EBS], False, id="the same name"),
        pytest.param(EBS, ["kubernetes.io/aws-ebs/aws://z/vol-1"], False, id="with a zone"),
        pytest.param(EBS, ["kubernetes.io/aws-ebs/vol-1"], False, id="in-tree"),
        pytest.param(EBS, ["kubernetes.io/aws-ebs/vol-10"], True, id="another disk"),
        pytest.param(EBS, ["kubernetes.io/cinder/vol-1"], True, id="another plugin"),
        pytest.param(EBS, ["kubernetes.io/csi/other.example^vol-1"], True, id="another driver"),
        pytest.param(GCE, ["kubernetes.io/gce-pd/disk-1"], False, id="GCE in-tree"),
        pytest.param(
            GCE,
            ["kubernetes.io/csi/pd.csi.storage.gke.io^projects/p/zones/z/disks/disk-1"],
            False,
            id="GCE, in a zone that is known",
        ),
        pytest.param(
            AZURE,
            ["kubernetes.io/azure-disk//subscriptions/s/resourceGroups/g/disks/disk-1"],
            False,
            id="Azure in-tree",
        ),
    ],
)  # fmt: skip
def test_every_name_of_its_disk_counts(name: str, on_node: list[str], *, expected: bool) -> None:
    assert is_forgotten(name, on_node) is expected
