"""VolumeAttachments of inline volumes that the attach/detach controller has forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from replant.cluster.ports import NODES, VOLUME_ATTACHMENTS
from replant.errors import Conflict
from replant.execute.acts import Act
from replant.execute.emptying import FRESH
from replant.execute.steps.attachments import (
    FORGOTTEN,
    DeleteAttachment,
    ForgottenAttachments,
    FreshAttachment,
    LookAtAttachment,
)
from tests.execute.nodes import AWS, Nodes
from tests.inventory.clusters import EBS

DISK = f"kubernetes.io/csi/{EBS}^vol-1"
IN_TREE = f"{AWS}/aws://z/vol-1"
INLINE = {"inlineVolumeSpec": {"csi": {"driver": EBS, "volumeHandle": "vol-1"}}}


class Attached(Nodes):
    """A VolumeAttachment that its node does not list, and who looks for such."""

    def __init__(self, source: Any = None, **metadata: Any) -> None:
        super().__init__("a", "b")
        spec = {"attacher": EBS, "nodeName": "a", "source": source or INLINE}
        self.put(VOLUME_ATTACHMENTS, "csi-1", spec=spec, **metadata)
        self.forgotten = ForgottenAttachments(haste=1.0)

    def acts(self, now: float) -> list[Act]:
        return self.forgotten.decide(self.world, now).acts

    def waits(self, now: float) -> bool:
        return bool(self.forgotten.decide(self.world, now).waits)

    def looks(self, now: float, *on_node: str, **metadata: str) -> None:
        """A look at it shows it, and these volumes on its node."""
        (act,) = self.acts(now)
        assert isinstance(act, LookAtAttachment)
        body = {"metadata": {"name": "csi-1", "uid": "uid-csi-1", "resourceVersion": "9"}}
        body["metadata"] |= metadata
        self.forgotten.learn(act, FreshAttachment(body, frozenset(on_node)), now)


def test_it_is_deleted_once_it_was_forgotten_for_a_while_and_a_look_has_shown_it() -> None:
    it = Attached()
    assert it.acts(0) == []
    assert it.waits(0)
    assert it.acts(FORGOTTEN - 1) == []
    it.looks(FORGOTTEN)
    (act,) = it.acts(FORGOTTEN)
    assert isinstance(act, DeleteAttachment)
    assert act.target == "attachment csi-1"
    assert act.before["metadata"]["resourceVersion"] == "9"
    assert act.backup == act.before


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: Attached({"persistentVolumeName": "pv-1"}), id="of a volume"),
        pytest.param(lambda: Attached(deletionTimestamp="2026-01-01T00:00:00Z"), id="deleted"),
    ],
)  # fmt: skip
def test_another_is_the_controllers_own(made: Any) -> None:
    it = made()
    assert it.acts(0) == it.acts(2 * FORGOTTEN) == []
    assert not it.waits(0)


@pytest.mark.parametrize("name", [DISK, IN_TREE])
@pytest.mark.parametrize("is_attached", [True, False])
def test_one_that_its_node_lists_is_not_forgotten(name: str, *, is_attached: bool) -> None:
    it = Attached()
    if is_attached:
        it.node("a", volumesAttached=[{"name": name}])
    else:
        it.node("a", volumesInUse=[name])
    assert it.acts(0) == it.acts(2 * FORGOTTEN) == []
    assert not it.waits(0)


def test_one_that_is_listed_in_between_is_waited_for_anew() -> None:
    it = Attached()
    it.acts(0)
    it.node("a", volumesAttached=[{"name": DISK}])
    it.acts(FORGOTTEN - 1)
    it.node("a")
    assert it.acts(FORGOTTEN) == []
    assert it.acts(2 * FORGOTTEN - 1) == []
    it.looks(2 * FORGOTTEN)


@pytest.mark.parametrize("name", [DISK, IN_TREE])
def test_one_that_a_pod_there_uses_stays_and_nobody_waits_for_it(name: str) -> None:
    it = Attached()
    it.acts(0)
    it.looks(FORGOTTEN, name)
    assert it.acts(FORGOTTEN) == []
    assert not it.waits(FORGOTTEN)
    it.looks(2 * FORGOTTEN)
    (act,) = it.acts(2 * FORGOTTEN)
    assert isinstance(act, DeleteAttachment)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"uid": "another"}, id="made anew"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, id="being deleted"),
    ],
)
def test_one_that_is_another_by_now_stays(metadata: dict[str, str]) -> None:
    it = Attached()
    it.acts(0)
    it.looks(FORGOTTEN, **metadata)
    assert it.acts(FORGOTTEN) == []


def test_it_is_not_deleted_upon_an_old_look() -> None:
    it = Attached()
    it.acts(0)
    it.looks(FORGOTTEN)
    (act,) = it.acts(FORGOTTEN + FRESH + 1)
    assert isinstance(act, LookAtAttachment)


def test_it_is_looked_at_again_after_a_refusal() -> None:
    it = Attached()
    it.acts(0)
    it.looks(FORGOTTEN)
    (act,) = it.acts(FORGOTTEN)
    it.forgotten.learn(act, Conflict("it has changed"), FORGOTTEN)
    it.looks(FORGOTTEN + 1)


def test_nothing_is_done_where_the_node_is_gone() -> None:
    it = Attached()
    node = it.world.node("a")
    assert node is not None
    it.world.remove(NODES, node)
    assert it.acts(0) == it.acts(2 * FORGOTTEN) == []
