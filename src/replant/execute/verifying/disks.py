"""Disks: each attached where its pod is, by the side that is asked there, and nowhere else."""

from __future__ import annotations

from replant.execute.census_model import Attachment, Disk, Node, Place, Pod
from replant.execute.verifying.comparison import (
    Comparison,
    Outcome,
    Problem,
    Problems,
    view_of,
)
from replant.routing import Side, detach
from replant.routing.names import csi_name, named
from replant.translate import driver_of


def drained(it: Comparison) -> Problems:
    """Pods that were on a node while it was switched: their disk may be gone from under them.

    Nothing else tells so. The side that had attached the disk detaches it as one that nobody uses,
    the other finds it attached and says so, and from then on all that is reported looks well.
    """
    before = {pod.uid for pod in it.before.census.pods if pod.uid}
    for pod in it.now.census.pods:
        if pod.uid not in before:
            continue
        switched = it.switched(pod.node)
        for disk in it.now.disks_of(pod):
            if disk.plugin in switched and not disk.native:
                title = it.title(disk.csi)
                yield Problem(
                    title,
                    f"{title} has been mounted by pod {pod.key} since before {pod.node} was "
                    "switched: one side mounted it, the other is asked now, and may have detached "
                    "it from under the pod, whatever is reported. See in the cloud whether it is "
                    f"attached to {pod.node}, and delete the pod so that it is mounted anew.",
                    Outcome.WRONG,
                )


def attached(it: Comparison) -> Problems:
    """Disks that are not where their pod is, or also somewhere else."""
    for pod in it.now.census.pods:
        node = it.now.nodes.get(pod.node)
        if node and pod.ready and not pod.leaving:
            for disk in it.now.disks_of(pod):
                if it.concerns(disk.plugin):
                    yield from _where_its_pod_is(it, disk, pod, node)
    for place in sorted(it.now.unused - it.before.unused):
        yield from _where_no_pod_is(it, place)


def _where_its_pod_is(it: Comparison, disk: Disk, pod: Pod, node: Node) -> Problems:
    title = it.title(disk.csi)
    route = it.attaching(disk, node)
    side = route.served_by
    expected = disk.csi if side is Side.CSI else disk.in_tree
    names = {disk.csi, disk.in_tree} & set(node.attached)
    if len(names) > 1:
        yield Problem(
            title,
            f"{title} is attached to {node.name} by both sides at once, under pod {pod.key}: one "
            "of them is about to detach it, whatever is reported afterwards. See in the cloud "
            "whether the disk is still attached there, and restart the pod.",
            Outcome.WRONG,
        )
    elif side is Side.NOBODY:
        yield Problem(
            title,
            f"{title} of pod {pod.key} can be attached to {node.name} by nobody: {route.reason} "
            + it.node_logs(node.name, disk.plugin),
        )
    elif expected not in names:
        by = driver_of(disk.plugin) if side is Side.CSI else disk.plugin
        instead = ", but by the other side" if names else ""
        yield Problem(
            title,
            f"{title} of pod {pod.key} is not attached to {node.name} by {by}{instead}. "
            + it.attach_logs(side, disk.plugin),
        )
    elif side is Side.CSI:
        yield from _held(it, disk, pod, node)


def _held(it: Comparison, disk: Disk, pod: Pod, node: Node) -> Problems:
    """What a driver has attached counts only with its VolumeAttachment."""
    attachment = it.now.held.get((node.name, disk.csi))
    if attachment and attachment.attached and not attachment.deleting:
        return
    title = it.title(disk.csi)
    if attachment is None:
        why = "has no VolumeAttachment"
    elif attachment.deleting:
        why = f"is being detached: its VolumeAttachment {attachment.name} is being deleted"
    else:
        why = f"is not attached: {attachment.error or 'its VolumeAttachment does not say why'}"
    yield Problem(
        title,
        f"{title} is reported attached to {node.name}, where pod {pod.key} runs, but {why}. "
        + it.attach_logs(Side.CSI, disk.plugin),
    )


def _where_no_pod_is(it: Comparison, place: Place) -> Problems:
    node, name = place
    attachment = it.now.held.get(place)
    side, plugin = named(name)
    if attachment:
        side, plugin = Side.CSI, named(csi_name(attachment.attacher, "")).plugin
    if not it.concerns(plugin):
        return
    title, doing = it.title(name), _doing(attachment)
    message = f"{title} is still attached to {node}, where no pod has it{doing}."
    yield Problem(title, f"{message} {it.attach_logs(side, plugin)}")


def _doing(attachment: Attachment | None) -> str:
    if attachment is None:
        return ""
    doing = "is being deleted" if attachment.deleting else "is not deleted"
    error = f", {attachment.error}" if attachment.error else ""
    return f" (VolumeAttachment {attachment.name} {doing}{error})"


def stranded(it: Comparison) -> Problems:
    """What the side has left that is no longer asked on a node."""
    for node in it.now.census.nodes:
        for name in node.attached:
            if (node.name, name) not in it.before.unused:
                yield from _by_the_other_side(it, node, name)
        for name in node.in_use:
            yield from _in_use(it, node, name)
    for place, attachment in it.now.held.items():
        node_of = it.now.nodes.get(attachment.node)
        if node_of and place[1] not in node_of.attached and place not in it.before.unused:
            yield from _by_the_other_side(it, node_of, place[1])


def _by_the_other_side(it: Comparison, node: Node, name: str) -> Problems:
    side, plugin = named(name)
    disk = it.disks.get(name)
    if (
        not it.concerns(plugin)
        or disk is None
        or it.attaching(disk, node).served_by in (side, Side.NOBODY)
    ):
        return
    title = it.title(name)
    who, other = (
        (driver_of(plugin), plugin) if side is Side.CSI else (plugin, driver_of(plugin))
    )  # fmt: skip
    lost = detach(view_of(plugin, native=disk.native), it.controller, side).served_by is Side.NOBODY
    never = "nobody detaches it any more" if lost else "it must be detached first"
    yield Problem(
        title,
        f"{title} was attached to {node.name} by {who}, but {other} is asked there now: {never}. "
        f"Drain {node.name}, and see in the cloud that the disk is free. "
        + it.attach_logs(side, plugin),
        Outcome.WRONG if lost else Outcome.NOT_YET,
    )


def _in_use(it: Comparison, node: Node, name: str) -> Problems:
    side, plugin = named(name)
    disk = it.disks.get(name)
    redirected = it.redirected(node.name)
    if not it.concerns(plugin) or disk is None or disk.native or redirected is None:
        return
    if (side is Side.CSI) is not (plugin in redirected):
        title = it.title(name)
        yield Problem(
            title,
            f"The kubelet of {node.name} still uses {title} as {name}, the name of the side that "
            "it was to leave: it does not run with its new gates. "
            + it.node_logs(node.name, plugin),
        )
