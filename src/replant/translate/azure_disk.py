"""Azure managed disks."""

from __future__ import annotations

from replant.errors import shown
from replant.objects import Object
from replant.translate import classes
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, sparse
from replant.translate.plugin import READ_WRITE_ONCE, InlineVolume, Plugin

ZONE_KEY = "topology.disk.csi.azure.com/zone"
MANAGED = "Managed"

_DISKS = "/providers/Microsoft.Compute/disks/"


class AzureDisk(Plugin):
    """``azure-disk``: the disk's URI is the handle; only managed disks have a driver."""

    name = "kubernetes.io/azure-disk"
    driver = "disk.csi.azure.com"
    source = "azureDisk"

    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:  # noqa: ARG002
        """See Plugin. The affinity stays: the driver knows Kubernetes' own zone key."""
        caching = source.maybe_text("cachingMode")
        return self._csi(source, {} if caching is None else {"cachingmode": caching})

    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:  # noqa: ARG002
        """See Plugin."""
        uri = csi.required_text("volumeHandle")
        attributes = {k.lower(): v for k, v in csi.text_map("volumeAttributes").items() if v}
        return {
            **sparse(cachingMode=attributes.get("cachingmode")),
            "diskName": _disk_name(csi, uri),
            "diskURI": uri,
            # Said even where empty: the API server would put its own defaults instead.
            "fsType": attributes.get("fstype", csi.text("fsType")),
            "kind": MANAGED,
            "readOnly": csi.flag("readOnly"),
        }

    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:  # noqa: ARG002
        """See Plugin."""
        csi = self._csi(source, sparse(cachingmode=source.text("cachingMode")))
        return InlineVolume(csi["volumeHandle"], csi, READ_WRITE_ONCE)

    def class_to_csi(self, draft: ClassDraft) -> None:
        """See Plugin."""
        classes.zones_to_topologies(draft, ZONE_KEY)
        # In regions without zones the in-tree plugin numbers fault domains; the driver says "".
        numbered = {zone: "" for zone in draft.zones(ZONE_KEY) if zone.isascii() and zone.isdigit()}
        if numbered:
            draft.map_zones(ZONE_KEY, numbered)

    def _csi(self, source: Fields, caching: dict[str, str]) -> Object:
        kind = source.maybe_text("kind")
        if kind is not None and kind.lower() != MANAGED.lower():
            source.refuse("kind", f"is {shown(kind) or 'empty'}: the driver has managed disks only")
        fs_type = source.maybe_text("fsType")
        attributes = {"kind": MANAGED, **caching}
        if fs_type is not None:
            attributes["fstype"] = fs_type
        return self.csi_source(source.required_text("diskURI"), source, attributes)


def _disk_name(csi: Fields, uri: str) -> str:
    if uri[:4].lower() == "http" and len(uri) > 4:
        start = uri.find("http")
        scheme = uri.find("://", start + 4) if start >= 0 else -1
        before, name = _around_last(uri, "/vhds/")
        if not name or scheme < 0 or scheme + 3 > len(before):
            csi.refuse("volumeHandle", f"is not http(s)://HOST/vhds/DISK: {shown(uri)}")
        return name
    before, name = _around_last(uri, _DISKS)
    subscription = before.find("/subscriptions/")
    group = before.find("/resourceGroups/", subscription + len("/subscriptions/"))
    if not name or subscription < 0 or group < 0:
        pattern = f"/subscriptions/ID/resourceGroups/GROUP{_DISKS}DISK"
        csi.refuse("volumeHandle", f"is not {pattern}: {shown(uri)}")
    return name


def _around_last(uri: str, separator: str) -> tuple[str, str]:
    """What stands before the last separator that something follows, and what follows it."""
    cut = uri.rfind(separator, 0, -1)
    return (uri[:cut], uri[cut + len(separator) :]) if cut >= 0 else ("", "")
