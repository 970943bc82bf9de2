"""What still uses a driver: it stays until nothing does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replant.drivers.catalog import Driver
from replant.errors import shown
from replant.objects import Object, name_of
from replant.translate.registry import BY_NAME

_NAMED = 3
"""So many of each kind are named; then they are counted."""
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Uses:
    """What uses a driver, each as a person calls it, such as ``PersistentVolume pv-1``."""

    names: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """All of it in a sentence."""
        by_kind: dict[str, list[str]] = {}
        for name in self.names:
            kind, _, called = name.partition(" ")
            by_kind.setdefault(kind, []).append(called)
        return "; ".join(_counted(kind, sorted(called)) for kind, called in by_kind.items())


def _counted(kind: str, called: list[str]) -> str:
    more = f" and {len(called) - _NAMED} more" if len(called) > _NAMED else ""
    return f"{len(called)} {kind} ({', '.join(shown(it) for it in called[:_NAMED])}{more})"


@dataclass(frozen=True, slots=True)
class World:
    """All that may use a driver."""

    volumes: Iterable[Object] = ()
    claims: Iterable[Object] = ()
    pods: Iterable[Object] = ()
    classes: Iterable[Object] = ()
    attachments: Iterable[Object] = ()
    snapshots: Iterable[Object] = ()
    """VolumeSnapshots and VolumeSnapshotContents, where the cluster has them."""
    csi_nodes: Iterable[Object] = ()


def uses_of(driver: Driver, world: World) -> Uses:
    """What uses a driver, in-tree volumes that are redirected to it among them."""
    in_tree = _in_tree_source(driver) if _redirected(driver, world) else ""
    volumes = [it for it in world.volumes if _of(driver, in_tree, it.get("spec") or {})]
    used = {it["metadata"]["name"] for it in volumes}
    own = {it["metadata"]["name"] for it in world.classes if it.get("provisioner") == driver.name}
    claims = [it for it in world.claims if _claims(it, used, own)]
    claimed = {(it["metadata"].get("namespace"), it["metadata"]["name"]) for it in claims}
    pods = [it for it in world.pods if _runs_on(driver, in_tree, it, claimed)]
    attachments = [
        it for it in world.attachments if (it.get("spec") or {}).get("attacher") == driver.name
    ]
    found = [*volumes, *claims, *pods, *attachments, *_snapshots(driver, world.snapshots)]
    return Uses(tuple(name_of(it) for it in found))


def _in_tree_source(driver: Driver) -> str:
    plugin = BY_NAME.get(driver.in_tree)
    return plugin.source if plugin else ""


def _redirected(driver: Driver, world: World) -> bool:
    key = "storage.alpha.kubernetes.io/migrated-plugins"
    for node in world.csi_nodes:
        listed = (node["metadata"].get("annotations") or {}).get(key, "")
        if driver.in_tree and driver.in_tree in listed.split(","):
            return True
    return False


def _of(driver: Driver, in_tree: str, spec: Object) -> bool:
    source = spec.get("csi") or {}
    return source.get("driver") == driver.name or bool(in_tree and spec.get(in_tree))


def _claims(claim: Object, volumes: set[str], classes: set[str]) -> bool:
    spec = claim.get("spec") or {}
    if spec.get("volumeName"):
        return spec["volumeName"] in volumes
    return spec.get("storageClassName") in classes


def _runs_on(
    driver: Driver, in_tree: str, pod: Object, claimed: set[tuple[str | None, str]]
) -> bool:
    if (pod.get("status") or {}).get("phase") in _FINISHED:
        return False
    metadata = pod["metadata"]
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if volume.get("ephemeral"):
            claim = f"{metadata['name']}-{volume.get('name')}"
        if claim and (metadata.get("namespace"), claim) in claimed:
            return True
        if _of(driver, in_tree, volume):
            return True
    return False


def _snapshots(driver: Driver, snapshots: Iterable[Object]) -> list[Object]:
    everything = list(snapshots)
    contents = [
        it
        for it in everything
        if it.get("kind") == "VolumeSnapshotContent"
        and (it.get("spec") or {}).get("driver") == driver.name
    ]
    names = {it["metadata"]["name"] for it in contents}
    bound = [
        it
        for it in everything
        if it.get("kind") == "VolumeSnapshot"
        and (it.get("status") or {}).get("boundVolumeSnapshotContentName") in names
    ]
    return contents + bound
