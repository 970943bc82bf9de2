"""What is told of attachments and pods that are not what they were when a step began."""

from __future__ import annotations

import pytest
from msgspec import convert

from replant.cluster.ports import NODES, PODS, VOLUME_ATTACHMENTS
from replant.execute.bystanders import Bystanders
from replant.execute.world import Attachment, Node, Pod, World
from replant.plan.model import VolumeSwap

HOT = VolumeSwap(name="db", driver="d", handle="h", claim="shop/data")
COLD = VolumeSwap(name="db", driver="d", handle="h", claim="shop/data", free_of=("x",))


def world(attached: str = "a1", pod: str = "p1", restarts: int = 0) -> World:
    """A volume that is attached to a node and used by a pod, with these uids; none where empty."""
    made = World()
    made.put(NODES, convert({"metadata": {"name": "n1"}}, Node))
    if attached:
        spec = {"nodeName": "n1", "source": {"persistentVolumeName": "db"}}
        found = {"metadata": {"name": "csi-1", "uid": attached}, "spec": spec}
        made.put(VOLUME_ATTACHMENTS, convert(found, Attachment))
    if pod:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        status = {"containerStatuses": [{"restartCount": 0}, {"restartCount": restarts}]}
        metadata = {"name": "web-0", "namespace": "shop", "uid": pod}
        found = {"metadata": metadata, "spec": {"volumes": volumes}, "status": status}
        made.put(PODS, convert(found, Pod))
    return made


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (world(), []),
        (world(attached=""), ["VolumeAttachment csi-1 of PersistentVolume db is gone"]),
        (world(attached="a2"), ["VolumeAttachment csi-1 of PersistentVolume db is gone"]),
        (world(pod="p2"), ["Pod shop/web-0, which used PersistentVolume db, is another one"]),
        (world(pod=""), ["Pod shop/web-0, which used PersistentVolume db, is gone"]),
        (world(restarts=1), ["Pod shop/web-0, which used PersistentVolume db, was restarted"]),
    ],
)
def test_what_is_not_as_it_was_is_told(now: World, told: list[str]) -> None:
    for volume, expected in ((HOT, told), (COLD, [])):
        before = Bystanders.of([volume], world())
        said = list(before.touched(Bystanders.of([volume], now), [volume]))
        assert [it.partition(" since the step began")[0] for it in said] == expected
