"""Nodes, volumes, claims and classes: what they say is what the plan leaves, and nothing else."""

from __future__ import annotations

import msgspec

from replant.execute.census import class_digest
from replant.execute.verifying.comparison import Comparison, Outcome, Problem, Problems
from replant.inventory.storage_records import StorageClass
from replant.objects import STORAGE_CLASS
from replant.plan.courses import CONTROLLER
from replant.plan.model import (
    AnnotateVolumes,
    CreateObjects,
    ReplaceClasses,
    RestoreVolumes,
    SwapVolumes,
)
from replant.routing import VolumeView, migrated_to
from replant.routing.names import csi_name
from replant.translate import driver_of


def nodes(it: Comparison) -> Problems:
    """Nodes that were ready and are not, or that are left cordoned."""
    for node in it.now.census.nodes:
        before = it.before.nodes.get(node.name)
        if not node.ready and (before is None or before.ready):
            yield Problem(
                f"Node {node.name}", f"Node {node.name} is not ready. {it.node_logs(node.name)}"
            )
        elif node.cordoned and before and not before.cordoned:
            yield Problem(
                f"Node {node.name}",
                f"Node {node.name} is cordoned and was not before: kubectl uncordon {node.name}",
            )


def announced(it: Comparison) -> Problems:
    """CSINodes that do not list what the kubelet is to redirect."""
    for node in it.now.census.nodes:
        redirected = it.redirected(node.name)
        if redirected is None:
            continue
        listed = frozenset(node.migrated) & frozenset(it.plan.plugins)
        missing, extra = sorted(redirected - listed), sorted(listed - redirected)
        if missing or extra:
            said = [f"does not list {', '.join(missing)}"] * bool(missing)
            said += [f"still lists {', '.join(extra)}"] * bool(extra)
            what = f"The CSINode of {node.name} " if node.csi_node else f"{node.name} has none and "
            why = (
                "its kubelet does not run with its new gates, or has not written it"
                if it.is_planned(node.name)
                else "it has joined with other gates since the plan was made. Drain it and switch "
                "its kubelet, or remove it, and give what creates nodes the new gates"
            )
            yield Problem(
                f"CSINode {node.name}",
                f"{what}{' and '.join(said)}: {why}. {it.node_logs(node.name)}",
            )


def drivers(it: Comparison) -> Problems:
    """Nodes that redirect to a driver which they do not have."""
    for node in it.now.census.nodes:
        for plugin in sorted(it.redirected(node.name) or ()):
            driver = driver_of(plugin)
            if driver not in node.drivers:
                yield Problem(
                    f"Node {node.name}",
                    f"{driver} is not registered on {node.name}, which redirects {plugin} to it: "
                    f"no such volume can be mounted there. {it.node_logs(node.name, plugin)}",
                )


def marks(it: Comparison) -> Problems:
    """Volumes whose migrated-to is not what the controllers write."""
    for volume in it.now.census.volumes:
        disk, provisioner = volume.disk, volume.provisioned_by
        if disk is None or provisioner not in it.plan.plugins:
            continue  # what nobody provisioned is never marked
        view = VolumeView(disk.plugin, driver_of(disk.plugin), disk.native, True, provisioner)
        wanted = migrated_to(view, it.controller)
        if wanted != volume.migrated_to:
            is_said = f"is marked as migrated to {volume.migrated_to}"
            said = is_said if volume.migrated_to else "is not marked as migrated"
            must = f"must be marked with {wanted}" if wanted else "must not be"
            yield Problem(
                f"PersistentVolume {volume.name}",
                f"PersistentVolume {volume.name} {said} and {must}: {CONTROLLER} writes that "
                f"within a minute. Read the log of {CONTROLLER}.",
            )


def annotated(it: Comparison) -> Problems:
    """Volumes that do not have the annotations which the plan gives them."""
    for step in it.plan.steps:
        if not isinstance(step, AnnotateVolumes):
            continue
        for wanted in step.volumes:
            volume = it.now.volumes.get(wanted.name)
            for key, value in wanted.annotations.items() if volume else ():
                if volume and volume.annotations.get(key) != value:
                    must = f"must have {key}={value}" if value else f"must not have {key}"
                    yield Problem(
                        f"PersistentVolume {wanted.name}",
                        f"PersistentVolume {wanted.name} {must}, by the step {step.id} of the "
                        "plan: somebody has changed it since. Annotate it.",
                        Outcome.WRONG,
                    )


def volumes(it: Comparison) -> Problems:
    """Volumes whose spec is another one, but for those that the plan replaces by native ones.

    One that is gone was deleted with its claim, or its claim has lost it.
    """
    replaced = {
        volume.name: (isinstance(step, SwapVolumes), csi_name(volume.driver, volume.handle))
        for step in it.plan.steps
        if isinstance(step, SwapVolumes | RestoreVolumes)
        for volume in step.volumes
    }
    for before in it.before.census.volumes:
        now = it.now.volumes.get(before.name)
        if now and before.name in replaced:
            native, called = replaced[before.name]
            if now.disk is None or (now.disk.native, now.disk.csi) != (native, called):
                wanted = "native" if native else "in-tree"
                yield Problem(
                    f"PersistentVolume {before.name}",
                    f"PersistentVolume {before.name} is not the {wanted} volume that the plan "
                    "makes of it: the journal has the one that it was. Ask who wrote it (kubectl "
                    f"get pv {before.name} -o yaml --show-managed-fields).",
                    Outcome.WRONG,
                )
        elif now and now.digest != before.digest:
            yield Problem(
                f"PersistentVolume {before.name}",
                f"The spec of PersistentVolume {before.name} is not what it was, and the plan "
                "changes none: compare it with your backup, and ask who wrote it (kubectl get pv "
                f"{before.name} -o yaml --show-managed-fields).",
                Outcome.WRONG,
            )


def claims(it: Comparison) -> Problems:
    """Claims that have lost their volume."""
    for claim, volume in sorted(set(it.now.census.lost) - set(it.before.census.lost)):
        yield Problem(
            f"PersistentVolumeClaim {claim}",
            f"PersistentVolumeClaim {claim} has lost PersistentVolume {volume}: make the volume "
            f"again from your backup, with the same claimRef. Read the log of {CONTROLLER}.",
        )


def classes(it: Comparison) -> Problems:
    """Classes that are not what they were, or what the plan makes of them."""
    expected = dict(it.before.census.classes)
    for step in it.plan.steps:
        if isinstance(step, ReplaceClasses):
            for change in step.classes:
                after = msgspec.convert(change.after, StorageClass)
                expected[after.metadata.name] = class_digest(after)
        elif isinstance(step, CreateObjects):
            for made in step.objects:
                if made["kind"] == STORAGE_CLASS:
                    after = msgspec.convert(made, StorageClass)
                    expected[after.metadata.name] = class_digest(after)
    for name, digest in expected.items():
        now = it.now.census.classes.get(name)
        if now != digest:
            what = "is not what it should be" if now else "is gone"
            yield Problem(
                f"StorageClass {name}",
                f"StorageClass {name} {what}: compare it with the plan and with your backup, and "
                "make it again.",
                Outcome.WRONG,
            )
