"""What does not survive a round trip, by name: the one place that says so.

A field that is not listed here comes back as it was; the tests hold every plugin to that, both
ways. People are shown these lines, so each says what happens to the field and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Start(StrEnum):
    """The form in which a volume sets out; it goes to the other one and comes back."""

    IN_TREE = "in-tree"
    CSI = "csi"


@dataclass(frozen=True, slots=True)
class Loss:
    """One field, with everything below it, that may come back changed."""

    plugin: str
    start: Start
    field: str
    why: str


_LABELS = (
    "metadata.labels.topology.kubernetes.io/zone",
    "metadata.labels.topology.kubernetes.io/region",
    "metadata.labels.failure-domain.beta.kubernetes.io/zone",
    "metadata.labels.failure-domain.beta.kubernetes.io/region",
)
_RBD_ANNOTATIONS = (
    "metadata.annotations.rbd.csi.ceph.com/volume-handle",
    "metadata.annotations.clusterID",
    "metadata.annotations.imageFeatures",
    "metadata.annotations.imageFormat",
    "metadata.annotations.journalPool",
)
_SECRETS = (
    "spec.csi.controllerExpandSecretRef",
    "spec.csi.controllerPublishSecretRef",
    "spec.csi.nodeExpandSecretRef",
    "spec.csi.nodePublishSecretRef",
    "spec.csi.nodeStageSecretRef",
)

_AFFINITY_WHY = (
    "no requirement is lost, but beta keys come back as stable ones, and zones and regions that "
    "only labels or zone names said are added"
)
_LABEL_WHY = "added where the affinity says it and the volume had no such label"
_ATTRIBUTES_WHY = "the in-tree source has no such map; only what it has a field for comes back"
_SECRET_WHY = "the in-tree source has no field for this secret"  # noqa: S105


def _rows() -> list[Loss]:
    rows: list[Loss] = []

    def lose(plugin: str, start: Start, why: str, *fields: str) -> None:
        rows.extend(Loss(f"kubernetes.io/{plugin}", start, field, why) for field in fields)

    for plugin in ("aws-ebs", "gce-pd", "cinder", "vsphere-volume"):
        for start in Start:
            lose(plugin, start, _AFFINITY_WHY, "spec.nodeAffinity")
            # A Cinder region cannot be told from its zone, so none is added.
            added = [label for label in _LABELS if plugin != "cinder" or "zone" in label]
            lose(plugin, start, _LABEL_WHY, *added)
    for plugin in ("aws-ebs", "gce-pd", "cinder", "azure-disk", "azure-file", "vsphere-volume"):
        lose(plugin, Start.CSI, _ATTRIBUTES_WHY, "spec.csi.volumeAttributes")
        secrets = [s for s in _SECRETS if plugin != "azure-file" or "nodeStage" not in s]
        lose(plugin, Start.CSI, _SECRET_WHY, *secrets)

    in_tree, csi = Start.IN_TREE, Start.CSI
    lose(
        "aws-ebs",
        in_tree,
        "aws://ZONE/ is dropped: EC2 knows only the ID behind it",
        "spec.awsElasticBlockStore.volumeID",
    )
    for start in Start:
        lose(
            "gce-pd",
            start,
            "the driver takes one access mode; what writes becomes ReadWriteOnce",
            "spec.accessModes",
        )
    lose(
        "gce-pd",
        csi,
        "in-tree knows only the disk's name: the project becomes UNSPECIFIED and "
        "the place comes from labels",
        "spec.csi.volumeHandle",
    )
    lose(
        "cinder",
        in_tree,
        "the driver takes its credentials from its own configuration",
        "spec.cinder.secretRef",
    )
    lose(
        "azure-disk",
        in_tree,
        "comes back as the last part of the disk's URI",
        "spec.azureDisk.diskName",
    )
    lose(
        "azure-disk",
        in_tree,
        "comes back as Managed, the only kind that the driver has",
        "spec.azureDisk.kind",
    )
    lose("azure-disk", csi, "the fstype attribute wins over the field", "spec.csi.fsType")
    lose(
        "azure-file",
        in_tree,
        "comes back as the claim's namespace where it was not set",
        "spec.azureFile.secretNamespace",
    )
    lose(
        "azure-file",
        csi,
        "made anew of account, share, volume name and secret namespace",
        "spec.csi.volumeHandle",
    )
    lose("azure-file", csi, "the mount is always cifs", "spec.csi.fsType")
    lose(
        "azure-file",
        csi,
        "added, with the namespace default where none was said",
        "spec.csi.nodeStageSecretRef",
    )
    lose(
        "azure-file",
        csi,
        "keeps the resource group that the handle named",
        "metadata.annotations.kubernetes.io/azure-file-resource-group",
    )
    lose(
        "vsphere-volume",
        in_tree,
        "the path becomes the handle, and only a volume that the "
        "driver made for the in-tree plugin says its path again: keep a backup",
        "spec.vsphereVolume.volumePath",
    )
    lose(
        "vsphere-volume",
        in_tree,
        "a policy acts when a volume is made",
        "spec.vsphereVolume.storagePolicyName",
        "spec.vsphereVolume.storagePolicyID",
    )
    lose(
        "vsphere-volume",
        csi,
        "the volume's ID becomes its path; a volume whose attributes say "
        "no path has no in-tree form that works",
        "spec.csi.volumeHandle",
    )
    lose("vsphere-volume", csi, "the in-tree source has no such field", "spec.csi.readOnly")
    lose(
        "portworx-volume",
        in_tree,
        "the driver takes it from the pod's mount",
        "spec.portworxVolume.readOnly",
    )
    lose("portworx-volume", csi, "not carried over by the way to CSI", "spec.csi.readOnly")
    lose("portworx-volume", csi, _ATTRIBUTES_WHY, "spec.csi.volumeAttributes")
    lose(
        "portworx-volume",
        csi,
        "made anew of the openstorage.io annotations, all five alike",
        *_SECRETS,
    )
    for start in Start:
        lose(
            "rbd", start, "one mode, by readOnly: ReadOnlyMany or ReadWriteOnce", "spec.accessModes"
        )
        lose(
            "rbd",
            start,
            "keeps for the way back what the in-tree source has no field for",
            *_RBD_ANNOTATIONS,
        )
    lose(
        "rbd",
        in_tree,
        "the driver finds the monitors by the hash of them: keep a backup",
        "spec.rbd.monitors",
    )
    lose(
        "rbd",
        in_tree,
        "comes back as admin: the driver takes the user from the secret",
        "spec.rbd.user",
    )
    lose("rbd", in_tree, "the driver takes the key from the secret", "spec.rbd.keyring")
    lose("rbd", in_tree, "said by the access mode alone", "spec.rbd.readOnly")
    lose("rbd", csi, "said by the access mode alone", "spec.csi.readOnly")
    lose("rbd", csi, _ATTRIBUTES_WHY, "spec.csi.volumeAttributes")
    lose(
        "rbd",
        csi,
        "the in-tree source has one secret, the one for staging",
        *(secret for secret in _SECRETS if "nodeStage" not in secret),
    )
    return rows  # fmt: skip


LOSSES: tuple[Loss, ...] = tuple(_rows())


def losses(plugin_name: str, start: Start) -> tuple[Loss, ...]:
    """What a volume of this plugin, by its full name, may lose on the way there and back."""
    return tuple(loss for loss in LOSSES if (loss.plugin, loss.start) == (plugin_name, start))
