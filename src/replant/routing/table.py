"""All routes of one volume on one node."""

from __future__ import annotations

from replant.routing.attaching import attach, detach
from replant.routing.claims import delete, expand, provision
from replant.routing.limits import count
from replant.routing.model import AttachController, NodeView, Process, Route, Side, VolumeView
from replant.routing.mounting import mount, unmount


def routes(
    volume: VolumeView,
    *,
    controller: Process,
    scheduler: Process,
    kubelet: Process,
    node: NodeView,
    adc: AttachController = AttachController.UPSTREAM,
    attached_by: Side | None = None,
) -> list[Route]:
    """Every route that a volume has, in the order of Operation.

    One that needs no attach has no attach and detach. Detaching follows from ``attached_by``, or
    from who would attach it now; unmounting from who would mount it now.
    """
    found = [
        provision(volume.driver if volume.native else volume.plugin, controller),
        delete(volume, controller),
    ]
    if volume.attachable:
        attached = attach(volume, controller, node, adc)
        found += [attached, detach(volume, controller, attached_by or attached.served_by)]
    mounted = mount(volume, kubelet, node)
    found += [
        mounted,
        unmount(volume, kubelet, node, mounted.served_by),
        expand(volume, controller),
        count(volume, scheduler, node),
    ]
    return found
