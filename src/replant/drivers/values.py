"""Which images drivers run: one file says it, and where a mirror has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replant.drivers.catalog import DRIVERS
from replant.errors import InputError, shown
from replant.objects import Object

SIDECARS = (
    "csi-provisioner",
    "csi-attacher",
    "csi-resizer",
    "csi-snapshotter",
    "csi-node-driver-registrar",
    "livenessprobe",
)
HELPERS = ("csi-driver-nfs", "vsphere-syncer")
"""What single drivers need beside their own."""
IMAGES = (
    *SIDECARS,
    *HELPERS,
    *(it.backend for it in DRIVERS.values() if not it.own_operator),
)
"""Every image that a values file has to name."""


@dataclass(frozen=True, slots=True)
class Values:
    """What a values file says."""

    images: Mapping[str, str]
    mirror: str = ""
    """Instead of each image's registry; "" for the registries that images name themselves."""

    def image(self, name: str) -> str:
        """Where an image is taken from."""
        image = self.images[name]
        return f"{self.mirror}/{image.partition('/')[2]}" if self.mirror else image


def values_of(data: object, source: str = "values") -> Values:
    """What the document of a values file says; InputError if something is missing or unknown."""
    if not isinstance(data, dict):
        raise InputError("is not a mapping with images", source=source)
    unknown = sorted(str(it) for it in data.keys() - {"images", "mirror"})
    if unknown:
        raise InputError(f"says {shown(', '.join(unknown))}, which means nothing", source=source)
    mirror = data.get("mirror") or ""
    if not isinstance(mirror, str):
        raise InputError("mirror is not a text such as registry.example:5000/csi", source=source)
    return Values(_images(data.get("images"), source), mirror.rstrip("/"))


def _images(written: object, source: str) -> Mapping[str, str]:
    images: Object = written if isinstance(written, dict) else {}
    if strange := sorted(str(it) for it in images.keys() - set(IMAGES)):
        raise InputError(f"images.{shown(strange[0])} is used by nothing", source=source)
    for name in IMAGES:
        image = images.get(name)
        if not isinstance(image, str) or not image:
            raise InputError(f"images.{name} is missing", source=source)
        registry, _, rest = image.partition("/")
        if not rest or ("." not in registry and ":" not in registry and registry != "localhost"):
            raise InputError(
                f"images.{name} is {shown(image)!r}, which does not begin with a registry",
                source=source,
            )
    return {name: images[name] for name in IMAGES}
