"""Google Compute Engine persistent disks."""

from __future__ import annotations

from replant.errors import TranslationError, shown
from replant.objects import Object
from replant.translate import classes, topology
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, sparse
from replant.translate.numbers import decimal
from replant.translate.plugin import (
    READ_ONLY_MANY,
    READ_WRITE_MANY,
    READ_WRITE_ONCE,
    InlineVolume,
    Plugin,
)

ZONE_KEY = "topology.gke.io/zone"
UNSPECIFIED = "UNSPECIFIED"
"""Stands in a handle for what the PV does not say; the attacher fills it in from the node."""

_HANDLE_PARTS = 6
_PROJECT, _SCOPE, _PLACE, _DISK = 1, 2, 3, 5


class GcePd(Plugin):
    """``gce-pd``: a disk's name; its zones come from the PV's labels."""

    name = "kubernetes.io/gce-pd"
    driver = "pd.csi.storage.gke.io"
    source = "gcePersistentDisk"

    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        topology.to_csi(draft.topology, ZONE_KEY)
        if draft.spec.data.get("accessModes") is not None:
            draft.access_modes = [_one_access_mode(draft.spec.texts("accessModes"))]
        return self._csi(source, *_scope(draft))

    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        handle = csi.required_text("volumeHandle").split("/")
        if len(handle) < _HANDLE_PARTS:
            csi.refuse("volumeHandle", "is not projects/PROJECT/zones/ZONE/disks/DISK")
        partition = csi.text_map("volumeAttributes").get("partition", "")
        number = decimal(csi, "volumeAttributes.partition", partition) if partition else 0
        topology.to_in_tree(draft.topology, ZONE_KEY, region_of)
        return {
            "pdName": handle[_DISK],
            **sparse(fsType=csi.text("fsType"), partition=number, readOnly=csi.flag("readOnly")),
        }

    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:  # noqa: ARG002
        """See Plugin."""
        return InlineVolume(
            name=f"{self.driver}-{source.required_text('pdName')}",
            csi=self._csi(source, "zones", UNSPECIFIED),
            access_mode=READ_ONLY_MANY if source.flag("readOnly") else READ_WRITE_ONCE,
        )

    def class_to_csi(self, draft: ClassDraft) -> None:
        """See Plugin."""
        classes.zones_to_topologies(draft, ZONE_KEY)
        draft.replace_parameters(classes.csi_fs_type(draft.parameters))

    def repair_handle(self, handle: str, node_id: str) -> str:
        """Fill in the project and place that the PV did not say from the node's ID."""
        parts = _parts(handle, "volumeHandle")
        if parts[_PROJECT] != UNSPECIFIED:
            return handle
        node = _parts(node_id, "nodeID")
        scope, place = parts[_SCOPE], parts[_PLACE]
        if scope not in ("zones", "regions"):
            raise _handle_error("volumeHandle", f"lies in zones or regions, not {shown(scope)}")
        if place == UNSPECIFIED:
            try:
                place = node[_PLACE] if scope == "zones" else region_of([node[_PLACE]])
            except ValueError as error:
                raise _handle_error("nodeID", str(error)) from None
        return f"projects/{node[_PROJECT]}/{scope}/{place}/disks/{parts[_DISK]}"

    def _csi(self, source: Fields, scope: str, place: str) -> Object:
        disk = source.required_text("pdName")
        handle = f"projects/{UNSPECIFIED}/{scope}/{place}/disks/{disk}"
        partition = source.number("partition")
        return self.csi_source(handle, source, {"partition": str(partition) if partition else ""})


def region_of(zones: list[str]) -> str:
    """The region of zones that look like us-central1-a."""
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise ValueError(f"{shown(zone)} is not a GCE zone")
        regions.add("-".join(parts[:2]))
    return topology.one_region(regions)


def _scope(draft: VolumeDraft) -> tuple[str, str]:
    """Where the disk lies, as its handle says it: zones/ZONE or regions/REGION."""
    labels = draft.labels
    label = topology.BETA_ZONE if labels.get(topology.BETA_ZONE) else topology.ZONE
    zones = labels.get(label, "").split(topology.MULTI_ZONE_DELIMITER)
    if len(zones) == 1:
        return "zones", zones[0] or UNSPECIFIED
    try:
        return "regions", region_of(zones)
    except ValueError as error:
        field = f"metadata.labels.{label}"
        raise TranslationError(str(error), obj=draft.spec.owner, field=field) from None


def _one_access_mode(modes: list[str]) -> str:
    """What the in-tree plugin really did: it attached for writing on one node unless told not to.

    It never looked at the access modes, so PVs exist that claim more; the driver would refuse
    them.
    """
    writes = READ_WRITE_ONCE in modes or READ_WRITE_MANY in modes
    return READ_ONLY_MANY if READ_ONLY_MANY in modes and not writes else READ_WRITE_ONCE


def _parts(handle: str, field: str) -> list[str]:
    parts = handle.split("/")
    if len(parts) < _HANDLE_PARTS:
        wanted = f"needs at least {_HANDLE_PARTS} parts between slashes, has {len(parts)}"
        raise _handle_error(field, wanted)
    return parts


def _handle_error(field: str, reason: str) -> TranslationError:
    return TranslationError(reason, obj=GcePd.driver, field=field)
