"""What says which disk, share or folder a volume is: one such part, and what it must say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from replant.objects import Object
from replant.sandbox.refusals import (
    Cause,
    forbidden_value,
    invalid_value,
    required_value,
    unsupported_value,
)
from replant.sandbox.validation.names import driver_causes
from replant.sandbox.validation.reading import missing_causes

Check = Callable[[str, Object], Iterator[Cause]]


def source_causes(field: str, part: Object, sources: dict[str, Check]) -> Iterator[Cause]:
    """What is wrong with a volume's source, of which there may be one; none is no mistake here."""
    said = [name for name in sources if isinstance(part.get(name), dict)]
    for name in said[:1]:
        yield from sources[name](f"{field}.{_SHOWN.get(name, name)}", part[name])
    for name in said[1:]:
        yield forbidden_value(f"{field}.{name}", "may not specify more than 1 volume type")


def _needs(*names: str) -> Check:
    return lambda field, source: missing_causes(field, source, *names)


def _disk(identity: str) -> Check:
    """A disk that may have partitions."""

    def causes(field: str, source: Object) -> Iterator[Cause]:
        yield from missing_causes(field, source, identity)
        partition = source.get("partition", 0)
        if isinstance(partition, int) and not 0 <= partition <= _LAST_PARTITION:
            why = f"must be between 1 and {_LAST_PARTITION}, inclusive"
            yield invalid_value(f"{field}.partition", partition, why)

    return causes


def _folder(field: str, source: Object) -> Iterator[Cause]:
    path = source.get("path")
    if not path:
        yield required_value(f"{field}.path")
    elif ".." in str(path).split("/"):
        yield invalid_value(f"{field}.path", path, "must not contain '..'")


def _nfs(field: str, source: Object) -> Iterator[Cause]:
    yield from missing_causes(field, source, "server", "path")
    path = str(source.get("path") or "")
    if not path.startswith("/"):
        yield invalid_value(f"{field}.path", path, "must be an absolute path")


def _azure_disk(field: str, source: Object) -> Iterator[Cause]:
    yield from missing_causes(field, source, "diskName", "diskURI")
    caching, kind = source.get("cachingMode"), source.get("kind")
    if caching is not None and caching not in _CACHING:
        yield unsupported_value(f"{field}.cachingMode", caching, _CACHING)
    if kind is None:
        return
    if kind not in _DISK_KINDS:
        yield unsupported_value(f"{field}.kind", kind, _DISK_KINDS)
    uri = str(source.get("diskURI") or "")
    begins, form = _MANAGED_URI if kind == "Managed" else _BLOB_URI
    if not uri.startswith(begins):
        yield unsupported_value(f"{field}.diskURI", uri, [form])


def _csi_volume(field: str, source: Object) -> Iterator[Cause]:
    yield from driver_causes(f"{field}.driver", _text(source.get("driver")))
    yield from missing_causes(field, source, "volumeHandle")
    for secret in ("controllerPublishSecretRef", "controllerExpandSecretRef",
                   "nodePublishSecretRef"):  # fmt: skip
        if isinstance(source.get(secret), dict):
            yield from missing_causes(f"{field}.{secret}", source[secret], "name", "namespace")


def _csi_inline(field: str, source: Object) -> Iterator[Cause]:
    yield from driver_causes(f"{field}.driver", _text(source.get("driver")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_LAST_PARTITION = 255
_CACHING = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_URI = (
    "/subscriptions/",
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
)
_BLOB_URI = (
    "https://",
    "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
)
_SHOWN = {"gcePersistentDisk": "persistentDisk"}
"""What the API calls some of them when something is wrong inside."""

_SHARED: dict[str, Check] = {
    "hostPath": _folder,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _needs(),
    "nfs": _nfs,
    "rbd": _needs("monitors", "image"),
    "quobyte": _needs("registry", "volume"),
    "cephfs": _needs("monitors"),
    "iscsi": _needs("targetPortal", "iqn"),
    "cinder": _needs("volumeID"),
    "fc": _needs(),
    "flexVolume": _needs("driver"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "scaleIO": _needs("gateway", "system", "volumeName"),
}
OF_VOLUMES: dict[str, Check] = {
    **_SHARED, "local": _folder, "storageos": _needs(), "csi": _csi_volume,
}  # fmt: skip
"""Those of PersistentVolumes, in the order in which the API looks for them."""
OF_PODS: dict[str, Check] = {
    "emptyDir": _needs(),
    **_SHARED,
    "gitRepo": _needs("repository"),
    "secret": _needs("secretName"),
    "persistentVolumeClaim": _needs("claimName"),
    "downwardAPI": _needs(),
    "configMap": _needs("name"),
    "projected": _needs(),
    "storageos": _needs(),
    "csi": _csi_inline,
    "ephemeral": _needs("volumeClaimTemplate"),
}
"""Those of pods' own volumes."""
