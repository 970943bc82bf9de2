"""OpenStack Cinder."""

from __future__ import annotations

from replant.objects import Object
from replant.translate import classes, topology
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, sparse
from replant.translate.plugin import READ_WRITE_ONCE, InlineVolume, Plugin

ZONE_KEY = "topology.cinder.csi.openstack.org/zone"


class Cinder(Plugin):
    """``cinder``: a volume ID is the handle."""

    name = "kubernetes.io/cinder"
    driver = "cinder.csi.openstack.org"
    source = "cinder"

    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        topology.to_csi(draft.topology, ZONE_KEY)
        return self._csi(source)

    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        # A Cinder region cannot be told from its zone, so it is left out.
        topology.to_in_tree(draft.topology, ZONE_KEY, region_of=None)
        return {
            "volumeID": csi.required_text("volumeHandle"),
            **sparse(fsType=csi.text("fsType"), readOnly=csi.flag("readOnly")),
        }

    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:  # noqa: ARG002
        """See Plugin."""
        csi = self._csi(source)
        return InlineVolume(f"{self.driver}-{csi['volumeHandle']}", csi, READ_WRITE_ONCE)

    def class_to_csi(self, draft: ClassDraft) -> None:
        """See Plugin."""
        # The driver takes "availability" as it is: it must not become a topology.
        draft.replace_parameters(classes.csi_fs_type(draft.parameters))
        draft.rename_zones(ZONE_KEY)

    def _csi(self, source: Fields) -> Object:
        return self.csi_source(source.required_text("volumeID"), source)
