"""vSphere virtual disks."""

from __future__ import annotations

from replant.objects import Object
from replant.translate.classes import CSI_FS_TYPE, FS_TYPE
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, sparse
from replant.translate.plugin import READ_WRITE_ONCE, InlineVolume, Plugin
from replant.translate.topology import Topology

ZONE_KEY = "topology.csi.vmware.com/zone"
REGION_KEY = "topology.csi.vmware.com/region"
STORAGE_POLICY = "storagepolicyname"
INITIAL_PATH = "initialvolumefilepath"
"""Where the driver says under which path it created a volume for the in-tree plugin."""

_PARAMETERS = {
    FS_TYPE: CSI_FS_TYPE,
    STORAGE_POLICY: STORAGE_POLICY,
    **{
        parameter: f"{parameter}-migrationparam"
        for parameter in (
            "cachereservation",
            "datastore",
            "diskformat",
            "diskstripes",
            "forceprovisioning",
            "hostfailurestotolerate",
            "iopslimit",
            "objectspacereservation",
        )
    },
}


class Vsphere(Plugin):
    """``vsphere-volume``: the path of the virtual disk is the handle."""

    name = "kubernetes.io/vsphere-volume"
    driver = "csi.vsphere.vmware.com"
    source = "vsphereVolume"
    parameters = frozenset(_PARAMETERS)

    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        topology = draft.topology
        zone, region = topology.spelling()
        for key, driver_key in ((zone, ZONE_KEY), (region, REGION_KEY)):
            if topology.asks_for(key):
                topology.rename(key, driver_key)
            elif key in topology.labels:
                topology.restrict(driver_key, [topology.labels[key]])
        return self._csi(source)

    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        topology = draft.topology
        zone, region = topology.spelling()
        topology.rename(ZONE_KEY, zone)
        topology.rename(REGION_KEY, region)
        _label_first(topology, zone)
        _label_first(topology, region)
        csi.required_text("volumeHandle")
        # The handle of a native volume is an ID that the in-tree plugin cannot use.
        path = csi.text_map("volumeAttributes").get(INITIAL_PATH, "")
        return {"volumePath": path, **sparse(fsType=csi.text("fsType"))}

    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:  # noqa: ARG002
        """See Plugin."""
        csi = self._csi(source)
        return InlineVolume(f"{self.driver}-{csi['volumeHandle']}", csi, READ_WRITE_ONCE)

    def class_to_csi(self, draft: ClassDraft) -> None:
        """See Plugin."""
        renamed = [
            (_PARAMETERS[key.lower()], value)
            for key, value in draft.parameters.items()
            if key.lower() in _PARAMETERS
        ]
        # Makes the driver answer with the path, which the in-tree form of the PV needs.
        draft.replace_parameters([*renamed, ("csimigration", "true")])
        draft.rename_zones(ZONE_KEY)

    def _csi(self, source: Fields) -> Object:
        policy = source.text("storagePolicyName")
        return {
            "driver": self.driver,
            "volumeHandle": source.required_text("volumePath"),
            **sparse(
                fsType=source.text("fsType"),
                volumeAttributes={STORAGE_POLICY: policy} if policy else None,
            ),
        }


def _label_first(topology: Topology, key: str) -> None:
    values = topology.values(key)
    if values:
        topology.label(key, values[0])
