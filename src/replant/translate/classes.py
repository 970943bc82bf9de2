"""Rules that the StorageClasses of several plugins share."""

from __future__ import annotations

from replant.translate.drafts import ClassDraft

FS_TYPE = "fstype"
CSI_FS_TYPE = "csi.storage.k8s.io/fstype"


def csi_fs_type(parameters: dict[str, str]) -> list[tuple[str, str]]:
    """The parameters, the file system's one under its CSI name."""
    return [
        (CSI_FS_TYPE if key.lower() == FS_TYPE else key, value) for key, value in parameters.items()
    ]


def zones_to_topologies(draft: ClassDraft, topology_key: str) -> None:
    """Turn the parameters ``zone`` and ``zones`` into allowed topologies of the driver's key."""
    kept: dict[str, str] = {}
    zone_parameter = ""
    for key, value in draft.parameters.items():
        if key.lower() not in ("zone", "zones"):
            kept[key] = value
            continue
        if zone_parameter:
            draft.refuse(key, f"cannot be used together with {zone_parameter}")
        zone_parameter = key
        zones = [value] if key.lower() == "zone" else value.split(",")
        draft.allow_only(topology_key, zones, key)
    draft.parameters = kept
    draft.rename_zones(topology_key)
