"""What is read of Clusters, which embed their Shoot, and of Shoots."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from replant.errors import InputError, shown
from replant.gardener.providers import Provider
from replant.gates.versions import Version
from replant.objects import Object, name_of

NEEDS_COMPLETE = "csi-migration.extensions.gardener.cloud/needs-complete-feature-gates"
FINISHED = "csi-migration.extensions.gardener.cloud/controller-finished"
"""On a Cluster: that they are there is what counts, not what they say."""
OVERRIDE = "alpha.csimigration.shoot.extensions.gardener.cloud/kubernetes-version"
"""On a Shoot: the version with which this one goes over to CSI."""


class Stage(Enum):
    """How far a shoot is: what its components have to be told follows from it."""

    NOT_USED = "CSI is not used"
    IN_PROGRESS = "CSI is used where it can be"
    COMPLETE = "CSI alone is used"


def part(obj: object, *path: str) -> object:
    """What lies at a path; None where there is nothing, or something that has no fields."""
    for step in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(step)
    return obj


def annotations_of(obj: object) -> Mapping[str, object]:
    """An object's annotations, none where it has none."""
    found = part(obj, "metadata", "annotations")
    return found if isinstance(found, Mapping) else {}


def shoot_of(cluster: Object) -> Object | None:
    """The Shoot that a Cluster embeds, if it does."""
    shoot = part(cluster, "spec", "shoot")
    return shoot if isinstance(shoot, dict) and shoot else None


def provider_type(shoot: Object) -> str:
    """Whose cloud a shoot is in."""
    found = part(shoot, "spec", "provider", "type")
    return found if isinstance(found, str) else ""


def version_of(shoot: Object) -> Version:
    """The version of a shoot's control plane; InputError if it cannot be read."""
    return _parsed(part(shoot, "spec", "kubernetes", "version"), shoot, "spec.kubernetes.version")


def migration_of(shoot: Object, provider: Provider) -> Version:
    """The minor with which this shoot goes over to CSI: its provider's, unless it says another."""
    override = annotations_of(shoot).get(OVERRIDE)
    if override is None:
        return provider.migration
    return _parsed(override, shoot, f"metadata.annotations[{OVERRIDE}]").first_patch


def stage_of(version: Version, migration: Version, *, needs_complete: bool) -> Stage:
    """How far a shoot of a version is."""
    minor = version.first_patch
    if minor < migration.first_patch:
        return Stage.NOT_USED
    if minor > migration.first_patch or needs_complete:
        return Stage.COMPLETE
    return Stage.IN_PROGRESS


def stage_of_cluster(cluster: Object, provider: Provider) -> tuple[Stage, Version]:
    """How far the shoot of a Cluster is, and its version; InputError if that cannot be told."""
    shoot = shoot_of(cluster)
    if shoot is None:
        raise InputError("it embeds no shoot in spec.shoot", source=name_of(cluster, "Cluster"))
    version = version_of(shoot)
    needs_complete = NEEDS_COMPLETE in annotations_of(cluster)
    return stage_of(version, migration_of(shoot, provider), needs_complete=needs_complete), version


def _parsed(written: object, shoot: Object, field: str) -> Version:
    try:
        return Version.parse(written if isinstance(written, str) else "")
    except ValueError:
        said = f"{shown(str(written))!r}" if written is not None else "missing"
        raise InputError(
            f"{field} is {said}, not a version such as 1.18 or v1.18.20",
            source=name_of(shoot, "Shoot"),
        ) from None
