"""Volumes that an unfinished run has deleted and not created again: nothing is more urgent.

While a PersistentVolume is away, a kubelet that restarts unmounts its disk under the pod, and a
kube-controller-manager that restarts deletes the VolumeAttachment.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from replant.cluster.ports import (
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
    Reader,
    Resource,
    Selected,
    Writer,
)
from replant.core.convert.conditions import Disk
from replant.errors import Conflict, ReplantError
from replant.execute.journal import Run
from replant.execute.runtime.volumes import FEW, look_at
from replant.execute.steps.conditions import before_create
from replant.execute.swapping import Backups, ReplaceVolume, Swapping
from replant.execute.world import WATCHED, Attachment, Record, World
from replant.plan.model import RestoreVolumes, SwapVolumes
from replant.plan.undo import undone
from replant.swap import moves


async def missing_volumes(reader: Reader, run: Run) -> list[str]:
    """The names of the PersistentVolumes that the run has begun to replace, and that are away."""
    # Whoever only looks may list volumes, and not get one.
    return [it.swap.name for it in await _replacements(reader, run, back=False, few=0)]


async def create_missing(
    reader: Reader, writer: Writer, run: Run, *, back: bool, notice: Callable[[str], None]
) -> None:
    """Create the PersistentVolumes that are away, with the policy Retain; the run does the rest.

    ``back`` is whether the run is to be taken back: then they are created as they were before it.
    The API server refuses to create one that somebody has created meanwhile. Whatever else fails is
    tried again by the run, which says why it fails.
    """
    acts = await _replacements(reader, run, back=back)
    if not acts:
        return
    world = await _around(reader, [it.disk for it in acts])
    for act in acts:
        move = moves.next_move(act.swap, None, None, before_create(act.disk, world))
        if isinstance(move, moves.Await):
            notice(f"PersistentVolume {act.swap.name} is away, and waits for {move.what}")
        if not isinstance(move, moves.Create):
            continue
        try:
            await writer.create(PERSISTENT_VOLUMES, move.volume)
            notice(f"PersistentVolume {act.swap.name} was away, and is created")
        except Conflict:
            continue
        except ReplantError as error:
            notice(f"PersistentVolume {act.swap.name} is away, and cannot be created: {error}")


async def _replacements(
    reader: Reader, run: Run, *, back: bool, few: int = FEW
) -> list[ReplaceVolume]:
    found: list[ReplaceVolume] = []
    begun = Backups.of(run.entries).uids
    for planned in run.plan.steps:
        step = undone(planned) if back or run.undoing else planned
        if not isinstance(step, SwapVolumes | RestoreVolumes):
            continue
        saved = step.saved if isinstance(step, RestoreVolumes) else ()
        stage = Swapping(
            step, Backups.of(run.entries, saved), at_once=1, timeout=0,
            settled=bool(saved) or run.was_done,
        )  # fmt: skip
        volumes = [it for it in step.volumes if it.name in begun]
        seen = await look_at(reader, volumes, few) if volumes else {}
        acts = (stage.replacement(it, seen[it.name]) for it in volumes if not seen[it.name].volume)
        found += filter(None, acts)
    return found


async def _around(reader: Reader, disks: list[Disk]) -> World:
    """The VolumeAttachments of these disks that are being deleted, and the pods of their nodes."""
    world, names = World(), {it.name for it in disks}
    nodes = set[str]()
    for it in await _all(reader, VOLUME_ATTACHMENTS, Selected()):
        if isinstance(it, Attachment) and it.spec.source.persistent_volume_name in names:
            world.put(VOLUME_ATTACHMENTS, it)
            if it.metadata.deletion_timestamp:
                nodes.add(it.spec.node_name)
    for node in sorted(nodes):
        for pod in await _all(reader, PODS, Selected(fields=f"spec.nodeName={node}")):
            world.put(PODS, pod)
    return world


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


async def _all(reader: Reader, resource: Resource, selected: Selected) -> list[Record]:
    found: list[Record] = []
    async for page in reader.list_pages(resource, selected=selected):
        if page.first:
            found = []
        for raw in msgspec.json.decode(page.body, type=_List).items or ():
            found.append(msgspec.json.decode(raw, type=WATCHED[resource]))
    return found
