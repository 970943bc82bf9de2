"""What a repository has to say once volumes are native: whole manifests, and patches.

Nothing here needs a cluster: a dump of the objects is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replant.core.convert.rbd_images import misread_image
from replant.errors import TranslationError
from replant.inventory.model import Inventory, Volume
from replant.objects import Object
from replant.plan.classes import ClassWay, class_change, twin_class
from replant.plan.convert import Asked, chosen_volumes, chosen_workloads, class_plugins
from replant.plan.deletion_secrets import deletion_secret
from replant.plan.inline import InlineChange, strategic_patch, unsuited_disk
from replant.plan.lost_fields import losses_of
from replant.plan.owners import OWNERS, owner_of_stored
from replant.plan.verdicts import ACCEPT_UNSUITED, about_to_go, unsuited
from replant.swap import twin
from replant.translate import dropped_parameters

_BY_SERVERS = frozenset(
    {
        "pv.kubernetes.io/bound-by-controller",
        "kubectl.kubernetes.io/last-applied-configuration",
        *OWNERS,
        "helm.toolkit.fluxcd.io/namespace",
        "kustomize.toolkit.fluxcd.io/namespace",
        "meta.helm.sh/release-namespace",
    }
)
"""Labels and annotations that controllers and the tools themselves write: no repository does."""


RETAINED = "Its reclaim policy is Retain, no longer Delete."
BY_HAND = (
    "It names no provisioner, so nobody deletes its disk once the in-tree plugin is gone; the "
    "driver would."
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object, or a patch of one, as a repository has it, and what a person should know of it."""

    obj: Object
    notes: tuple[str, ...]
    """Sentences, the first of which names what it takes the place of."""


@dataclass(frozen=True, slots=True)
class RepositoryChanges:
    """All that changes, in the order in which it is rolled out."""

    volumes: tuple[Manifest, ...]
    added: tuple[Manifest, ...]
    """Volumes and claims for disks that workloads name by themselves."""
    patches: tuple[Manifest, ...]
    classes: tuple[Manifest, ...]
    left: tuple[str, ...]
    """What stays as it is, and why."""


def repository_changes(asked: Asked, inventory: Inventory) -> RepositoryChanges:
    """What was asked for, as manifests; Refused where a volume that is named is not there."""
    chosen = chosen_volumes(asked, inventory)
    left: list[str] = []
    volumes = tuple(_volumes(asked, chosen, inventory, left))
    workloads, odd = chosen_workloads(asked, inventory)
    left += [it.message for it in odd]
    workloads = list(_suited(asked, workloads, left))
    plugins = [it.plugin for it in chosen if it.plugin]
    plugins += [disk.plugin for it in workloads for disk in it.disks]
    return RepositoryChanges(
        volumes,
        tuple(_added(workloads)),
        tuple(_patch(it) for it in workloads),
        tuple(_classes(asked, frozenset(class_plugins(asked, plugins)), inventory, left)),
        tuple(left),
    )


def _volumes(
    asked: Asked, chosen: list[Volume], inventory: Inventory, left: list[str]
) -> Iterator[Manifest]:
    for volume in chosen:
        if not volume.plugin:
            left.append(f"PersistentVolume {volume.name} has no in-tree source.")
            continue
        pv = volume.as_object()
        secret = deletion_secret(volume, inventory)
        try:
            after = twin.native(pv, secret.annotations)
        except TranslationError as error:
            left.append(str(error))
            continue
        misread = misread_image(after["spec"]["csi"])
        retained = volume.deletes and (misread or twin.PROVISIONED_BY not in volume.annotations)
        if retained:
            after = twin.held(after)
        handle = after["spec"]["csi"]["volumeHandle"]
        refusals = [*about_to_go(volume), (secret.unknown, secret.fix)]
        if not asked.accepted.unsuited:
            refusals.append((unsuited(volume.plugin, handle), ACCEPT_UNSUITED))
            refusals.append((misread, ACCEPT_UNSUITED))
        if refusal := next((it for it in refusals if it[0]), None):
            left.append(_left(f"PersistentVolume {volume.name}", *refusal))
            continue
        owner = owner_of_stored(volume.labels, volume.annotations)
        provisioned = twin.PROVISIONED_BY in volume.annotations
        whose = "No mark tells which tool writes it."
        if owner:
            whose = f"{owner} writes it."
        elif provisioned:
            whose = "It was provisioned: a repository has it only if somebody has put it there."
        first = f"In place of PersistentVolume {volume.name} ({volume.plugin}). {whose}"
        lost = (f"It no longer says {it}." for it in losses_of(volume.plugin, pv, after))
        retain = (f"{RETAINED} {misread or BY_HAND}",) if retained else ()
        yield Manifest(as_in_a_repository(after), (first, *lost, *retain))


def _suited(asked: Asked, workloads: list[InlineChange], left: list[str]) -> Iterator[InlineChange]:
    """The workloads whose disks their drivers cope with."""
    for change in workloads:
        if why := unsuited_disk(change, asked.accepted):
            left.append(_left(str(change.owner), why, ACCEPT_UNSUITED))
        else:
            yield change


def _left(name: str, why: str, fix: str) -> str:
    return f"{name}: {why}" + (f" {fix}." if fix else "")


def as_in_a_repository(obj: Object) -> Object:
    """An object without what servers, controllers and GitOps tools write by themselves.

    A claim is named without its uid: a repository that is rolled out elsewhere means another.
    """
    metadata = {"name": obj["metadata"]["name"]}
    for part in ("labels", "annotations"):
        said = obj["metadata"].get(part) or {}
        if kept := {key: it for key, it in said.items() if key not in _BY_SERVERS}:
            metadata[part] = kept
    made = {**obj, "metadata": metadata}
    if claim := (obj.get("spec") or {}).get("claimRef"):
        kept = {key: it for key, it in claim.items() if key not in ("uid", "resourceVersion")}
        made["spec"] = {**obj["spec"], "claimRef": kept}
    return made


def _added(changes: list[InlineChange]) -> Iterator[Manifest]:
    seen = set()
    for change in changes:
        for obj in change.objects:
            key = obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]
            if key not in seen:
                seen.add(key)
                yield Manifest(obj, (f"New, for a disk that {change.owner} names by itself.",))


def _patch(change: InlineChange) -> Manifest:
    names = ", ".join(it.before["name"] for it in change.volumes)
    owner = change.owner
    how = "Not a whole manifest: merge it into that one, as a patch of kustomize or kubectl."
    if owner.kind == "Pod":
        how = "A pod's volumes cannot be changed: change its manifest, and make it again."
    elif owner.kind == "Job":
        how = "A job's template cannot be changed: change its manifest, and make it again."
    first = f"Patch of {owner}: the volume {names} becomes a claim."
    return Manifest(strategic_patch(change), (first, how))


def _classes(
    asked: Asked, plugins: frozenset[str], inventory: Inventory, left: list[str]
) -> Iterator[Manifest]:
    if asked.classes.way is ClassWay.LEAVE:
        return
    for storage_class in inventory.classes:
        name, plugin = storage_class.metadata.name, storage_class.provisioner
        if plugin not in plugins:
            continue
        try:
            after = class_change(storage_class).after
        except TranslationError as error:
            left.append(str(error))
            continue
        first = f"In place of StorageClass {name} ({plugin}): delete it, and make it again."
        if asked.classes.way is ClassWay.TWIN:
            after = twin_class(after, asked.classes.suffix)
            first = f"New, beside StorageClass {name} ({plugin})."
        dropped = dropped_parameters(plugin, storage_class.parameters or {})
        lost = [f"It no longer says {it}: the driver does not take it." for it in dropped]
        yield Manifest(as_in_a_repository(after), (first, *lost))
