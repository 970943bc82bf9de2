"""Amazon EBS."""

from __future__ import annotations

import re

from replant.errors import shown
from replant.objects import Object
from replant.translate import classes, topology
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, sparse
from replant.translate.numbers import decimal, percent_decoded
from replant.translate.plugin import READ_WRITE_ONCE, InlineVolume, Plugin

ZONE_KEY = "topology.ebs.csi.aws.com/zone"
URL_PREFIX = "aws://"

_URL = re.compile(
    r"(?P<zone>[A-Za-z0-9\-._~!$&'()*+,;=]*)(?P<path>/[^?#\x00-\x1f\x7f]*)"
    r"(\?[^#\x00-\x1f\x7f]*)?(#([^%]|%[0-9A-Fa-f]{2})*)?"
)
_VOLUME_ID = re.compile(r"vol-[^/]*")


class AwsEbs(Plugin):
    """``aws-ebs``: a volume ID, bare or behind ``aws://zone/``."""

    name = "kubernetes.io/aws-ebs"
    driver = "ebs.csi.aws.com"
    source = "awsElasticBlockStore"

    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        topology.to_csi(draft.topology, ZONE_KEY)
        return self._csi(source)

    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        partition = 0
        attributes = csi.text_map("volumeAttributes")
        if "partition" in attributes:
            partition = decimal(csi, "volumeAttributes.partition", attributes["partition"])
        topology.to_in_tree(draft.topology, ZONE_KEY, region_of)
        return {
            "volumeID": csi.required_text("volumeHandle"),
            **sparse(fsType=csi.text("fsType"), partition=partition, readOnly=csi.flag("readOnly")),
        }

    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:  # noqa: ARG002
        """See Plugin."""
        csi = self._csi(source)
        return InlineVolume(f"{self.driver}-{csi['volumeHandle']}", csi, READ_WRITE_ONCE)

    def class_to_csi(self, draft: ClassDraft) -> None:
        """See Plugin."""
        classes.zones_to_topologies(draft, ZONE_KEY)
        parameters = classes.csi_fs_type(draft.parameters)
        if any(key.lower() == "iopspergb" for key in draft.parameters):
            # The in-tree plugin raised too small a value to EC2's minimum; the driver fails
            # unless it is allowed to do the same.
            allow = "allowautoiopspergbincrease"
            parameters = [pair for pair in parameters if pair[0] != allow] + [(allow, "true")]
        draft.replace_parameters(parameters)

    def _csi(self, source: Fields) -> Object:
        partition = str(source.number("partition"))
        return self.csi_source(volume_id(source), source, {"partition": partition})


def volume_id(source: Fields) -> str:
    """EC2's own ID of the volume, without the ``aws://zone/`` that may stand before it."""
    written = source.required_text("volumeID")
    if not written.startswith(URL_PREFIX):
        return written
    url = _URL.fullmatch(written, len(URL_PREFIX))
    path = percent_decoded(url["path"]) if url else None
    found = _VOLUME_ID.fullmatch(path.strip("/")) if path is not None else None
    if found is None:
        source.refuse("volumeID", f"is not aws://ZONE/vol-ID: {shown(written)}")
    return found[0]


def region_of(zones: list[str]) -> str:
    """The region of availability, local and wavelength zones.

    They look like us-west-2a, us-gov-east-1a, us-west-2-lax-1a and us-east-1-wl1-bos-wlz-1.
    """
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) in (3, 4) and len(parts[-1]) == 2:
            regions.add("-".join(parts)[:-1])
        elif len(parts) in (5, 7):
            regions.add("-".join(parts[:3]))
        else:
            raise ValueError(f"{shown(zone)} is not an AWS zone")
    return topology.one_region(regions)
