"""The model against facts that were read from sources, of what the proving ground cannot show.

There is one cloud, whose plugin and driver attach disks, and machines do not die. Each test names
its source.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from replant.gates.plugins import LIVES
from replant.gates.versions import Version
from replant.proof import Course, NodeGroup
from replant.proof.events import Act, Event, may_happen, progress
from replant.proof.world import CSI, IN_TREE, NONE, NOWHERE, Hold, Pod, Rules, World
from replant.routing import Process
from tests.proof.making import SEEN, Making

DISK, FILE, GCE = (f"kubernetes.io/{it}" for it in ("azure-disk", "azure-file", "gce-pd"))
OFF_NODE, ON_NODE = 0, 1


def mixed(plugin: str, version: Version = SEEN, **more: bool) -> Rules:
    """All controllers are on; a node is off, and one is on."""
    gate = LIVES[plugin].migration_gate
    making = Making(version, plugin)
    off = making.group("off", {gate: False})
    on = making.group("on", {gate: True}, driver=more.get("driver", True))
    moves = (making.nodes({gate: True}, "off", drain=False),)
    return Rules(making.course({gate: True}, (off, on), *moves), (0, 1))


def happens(rules: Rules, world: World, *acts: tuple[Act, int]) -> World:
    """One thing after the other, and nothing else."""
    for act, node in acts:
        found = [it for it in may_happen(rules, world) if (it.act, it.node) == (act, node)]
        assert found, f"{act} cannot happen on node {node}"
        world = found[0].world
    return world


def of(rules: Rules, world: World, act: Act) -> list[Event]:
    return [it for it in may_happen(rules, world) if it.act is act]


def everything(rules: Rules, *beginnings: World) -> Iterator[Event]:
    """All that Kubernetes may come to do by itself."""
    ahead, found = list(beginnings), set(beginnings)
    while ahead:
        for event in progress(rules, ahead.pop()):
            yield event
            if event.world not in found:
                found.add(event.world)
                ahead.append(event.world)


def running(rules: Rules, node: int) -> World:
    acts = [Act.BIND, Act.ATTACH, Act.MOUNT] if rules.attachable else [Act.BIND, Act.MOUNT]
    return happens(rules, rules.start, *((act, node) for act in acts))


def test_the_driver_of_azure_disk_takes_a_disk_from_the_node_that_has_it() -> None:
    """ControllerPublishVolume of kubernetes-sigs/azuredisk-csi-driver: it detaches it there first,
    whatever runs there, and knows nothing of what the in-tree plugin has noted."""
    rules = mixed(DISK)
    world = happens(rules, running(rules, OFF_NODE), (Act.BIND, ON_NODE))
    [taken] = of(rules, world, Act.ATTACH_TAKES)
    assert (taken.node, taken.yanks, taken.world.disk) == (OFF_NODE, True, ON_NODE)
    assert taken.world.nodes[OFF_NODE].in_tree is Hold.HELD
    assert taken.world.nodes[ON_NODE].csi is Hold.HELD
    off = world.nodes[OFF_NODE]
    # Nothing runs on a node that is dead, or before the pod does: then nobody is harmed.
    for harmless in (off._replace(alive=False), off._replace(pod=Pod.WAITING)):
        [taken] = of(
            rules, world._replace(nodes=(harmless, world.nodes[ON_NODE])), Act.ATTACH_TAKES
        )
        assert not taken.yanks
    # What the in-tree plugin was detaching is then detached.
    detaching = off._replace(pod=Pod.ABSENT, mounted=NONE, wanted=NONE, in_tree=Hold.LETTING_GO)
    [taken] = of(rules, world._replace(nodes=(detaching, world.nodes[ON_NODE])), Act.ATTACH_TAKES)
    assert taken.world.nodes[OFF_NODE].in_tree is Hold.FREE


def test_the_in_tree_plugin_of_azure_disk_takes_it_the_other_way() -> None:
    """azure_controller_common.go of kubernetes/legacy-cloud-providers: NewDanglingError."""
    rules = mixed(DISK)
    world = happens(rules, running(rules, ON_NODE), (Act.BIND, OFF_NODE))
    assert [it.act for it in progress(rules, world)] == [Act.ATTACH_FAILS]
    uncertain = happens(rules, world, (Act.ATTACH_FAILS, OFF_NODE))
    assert uncertain.nodes[ON_NODE].in_tree is Hold.UNCERTAIN
    [detach] = of(rules, uncertain, Act.DETACH)
    assert (detach.node, detach.side, detach.yanks) == (ON_NODE, IN_TREE, True)


def test_an_uncertain_attach_is_forgotten_with_its_controller() -> None:
    """actual_state_of_world.go of the attach/detach controller: it is kept in memory; at a start it
    is made from what nodes report and from VolumeAttachments (populateActualStateOfWorld)."""
    rules = mixed(DISK)
    world = happens(rules, running(rules, ON_NODE), (Act.BIND, OFF_NODE))
    uncertain = happens(rules, world, (Act.ATTACH_FAILS, OFF_NODE))
    restarted = happens(rules, uncertain, (Act.TAKE_OVER, NOWHERE))
    assert restarted.nodes[ON_NODE].in_tree is Hold.FREE


@pytest.mark.parametrize("side", [IN_TREE, CSI])
def test_gce_refuses_a_second_node_and_names_none(side: int) -> None:
    """gce_disks.go of kubernetes/legacy-cloud-providers has no NewDanglingError, and
    ControllerPublishVolume of the driver detaches nothing."""
    rules = mixed(GCE)
    first, second = (OFF_NODE, ON_NODE) if side == CSI else (ON_NODE, OFF_NODE)
    world = happens(rules, running(rules, first), (Act.BIND, second))
    assert list(progress(rules, world)) == []


@pytest.mark.parametrize("plugin", [DISK, GCE])
def test_only_the_plugin_of_ebs_waits_for_the_end_of_its_detach(plugin: str) -> None:
    """waitForAttachmentStatus of aws.go in kubernetes/legacy-cloud-providers; the others ask the
    cloud for the end of the operation that they began."""
    rules = mixed(plugin)
    world = happens(rules, running(rules, OFF_NODE), (Act.DELETE, OFF_NODE), (Act.BIND, ON_NODE))
    acts = {it.act for it in everything(rules, world)}
    assert Act.DETACHED in acts
    assert Act.DETACHED_UNNOTICED not in acts


def test_what_needs_no_attach_is_mounted_at_once_by_whom_the_kubelet_takes() -> None:
    """pkg/volume/azure_file has no attacher, and its CSIDriver says attachRequired: false."""
    rules = mixed(FILE)
    assert not rules.attachable
    for node, side in ((OFF_NODE, IN_TREE), (ON_NODE, CSI)):
        world = running(rules, node)
        assert (world.nodes[node].pod, world.nodes[node].mounted) == (Pod.RUNNING, side)
        assert (world.nodes[node].wanted, world.disk) == (NONE, NOWHERE)
        assert list(progress(rules, world)) == []
    absent = mixed(FILE, driver=False)
    assert list(progress(absent, happens(absent, absent.start, (Act.BIND, ON_NODE)))) == []


def test_a_kubelet_mounts_for_running_pods_too_and_forgets_what_others_mounted() -> None:
    """pkg/kubelet/volumemanager/populator adds the volumes of all pods of the node, by the
    kubelet's gates; what is mounted besides is cleaned up when no pod of that name is there."""
    rules = mixed(FILE)
    world = running(rules, OFF_NODE)
    world = happens(rules, world._replace(at=0), (Act.SWITCH_IN_PLACE, OFF_NODE))
    switched = world.nodes[OFF_NODE]
    assert (switched.pod, switched.mounted, switched.forgotten) == (Pod.RUNNING, NONE, IN_TREE)
    world = happens(rules, world, (Act.MOUNT, OFF_NODE))
    switched = world.nodes[OFF_NODE]
    assert (switched.pod, switched.mounted, switched.forgotten) == (Pod.RUNNING, CSI, IN_TREE)
    for began in (world, world._replace(nodes=(switched._replace(mounted=NONE), world.nodes[1]))):
        after = happens(rules, began, (Act.DELETE, OFF_NODE), (Act.UNMOUNT, OFF_NODE))
        assert after.nodes[OFF_NODE][5:8] == (Pod.ABSENT, NONE, NONE)


def test_a_machine_that_comes_back_has_nothing_mounted_and_starts_its_pods() -> None:
    """Mounts are the machine's memory; its kubelet starts the containers of the pods that the API
    server has for it, which wait for their volumes again. Nobody touches a dead machine's disk."""
    rules = mixed(FILE)
    world = running(rules, OFF_NODE)
    world = happens(rules, world._replace(at=0), (Act.SWITCH_IN_PLACE, OFF_NODE))
    world = happens(rules, world, (Act.MOUNT, OFF_NODE), (Act.DIE, OFF_NODE))
    assert of(rules, world, Act.DIE) == [
        it for it in of(rules, world, Act.DIE) if it.node == ON_NODE
    ]
    back = happens(rules, world, (Act.RETURN, OFF_NODE)).nodes[OFF_NODE]
    assert (back.alive, back.pod, back.mounted, back.forgotten) == (True, Pod.WAITING, NONE, NONE)
    gone = happens(rules, world, (Act.DELETE, OFF_NODE), (Act.RETURN, OFF_NODE)).nodes[OFF_NODE]
    assert (gone.alive, gone.pod, gone.mounted) == (True, Pod.ABSENT, NONE)


def test_a_dead_machine_does_nothing_and_gets_no_pods() -> None:
    """pkg/controller/nodelifecycle taints it as unreachable, and the scheduler binds no pod to a
    node with such a taint, or one that is unschedulable."""
    rules = mixed(FILE)
    world = happens(rules, rules.start, (Act.BIND, OFF_NODE), (Act.DIE, OFF_NODE))
    assert list(progress(rules, world)) == []
    dead = happens(rules, rules.start, (Act.DIE, OFF_NODE))
    assert [it.node for it in of(rules, dead, Act.BIND)] == [ON_NODE]


def test_nobody_is_harmed_on_a_dead_machine() -> None:
    """What ran there runs no more, whatever the API server has of it."""
    rules = mixed(DISK)
    world = happens(rules, running(rules, OFF_NODE), (Act.DIE, OFF_NODE))
    unwanted = world.nodes[OFF_NODE]._replace(wanted=NONE)
    [detach] = of(rules, world._replace(nodes=(unwanted, world.nodes[ON_NODE])), Act.DETACH)
    assert (detach.node, detach.yanks) == (OFF_NODE, False)


def test_a_kubelet_that_takes_the_same_side_as_before_forgets_nothing() -> None:
    """pkg/kubelet/volumemanager/reconciler finds the mounts of the plugins that it has."""
    gate, (_older, unregister) = LIVES[DISK].migration_gate, LIVES[DISK].off_gates
    making = Making(SEEN, DISK)
    move = making.nodes({gate: True, unregister: True}, "on", drain=False)
    rules = Rules(making.course({gate: True}, (making.group("on", {gate: True}),), move), (0,))
    world = running(rules, 0)._replace(at=0)
    node = happens(rules, world, (Act.SWITCH_IN_PLACE, 0)).nodes[0]
    assert (node.mounted, node.forgotten) == (CSI, NONE)


def test_the_plugin_of_ebs_does_not_wait_for_a_disk_that_is_not_there() -> None:
    """DetachDisk of aws.go in kubernetes/legacy-cloud-providers: a disk that is not attached to the
    node counts as detached at once."""
    rules = mixed("kubernetes.io/aws-ebs")
    world = running(rules, OFF_NODE)
    node = world.nodes[OFF_NODE]._replace(
        pod=Pod.ABSENT, mounted=NONE, wanted=NONE, in_tree=Hold.LETTING_GO
    )
    for disk, acts in (
        (OFF_NODE, [Act.DETACHED, Act.DETACHED_UNNOTICED]),
        (ON_NODE, [Act.DETACHED]),
        (NOWHERE, [Act.DETACHED]),
    ):
        began = world._replace(disk=disk, nodes=(node, world.nodes[ON_NODE]))
        assert [it.act for it in progress(rules, began)] == acts


def test_the_plugin_of_ebs_waits_until_its_detach_times_out() -> None:
    """waitForAttachmentStatus and DetachDisk of aws.go: after half an hour the detach fails and is
    begun anew; a disk that is free by then, or elsewhere, counts as detached."""
    rules = mixed("kubernetes.io/aws-ebs")
    world = running(rules, ON_NODE)._replace(at=0)
    world = world._replace(nodes=tuple(it._replace(in_tree=Hold.UNNOTICED) for it in world.nodes))
    events = [it for it in progress(rules, world) if it.act is not Act.LOOK]
    assert [(it.act, it.node) for it in events] == [
        (Act.NOTICE, OFF_NODE),  # the disk is elsewhere
        (Act.DETACH_ANEW, ON_NODE),
    ]
    [noticed, anew] = events
    assert noticed.world.nodes[OFF_NODE].in_tree is Hold.FREE
    assert anew.world.nodes[ON_NODE].in_tree is Hold.LETTING_GO
    assert anew.yanks
    # It takes half an hour, and by then the pod runs.
    waiting = world.nodes[ON_NODE]._replace(pod=Pod.WAITING)
    early = world._replace(nodes=(world.nodes[OFF_NODE], waiting))
    assert of(rules, early, Act.DETACH_ANEW) == []


def test_without_its_attacher_a_driver_attaches_nothing() -> None:
    """A VolumeAttachment is a wish; kubernetes-csi/external-attacher carries it out, and asks the
    CSINode for the name by which the driver knows the node."""
    gate = LIVES[DISK].migration_gate
    making = Making(SEEN, DISK)
    course = making.course({gate: True}, (making.group("on", {gate: True}),), driver=False)
    rules = Rules(course, (0,))
    assert list(progress(rules, happens(rules, rules.start, (Act.BIND, 0)))) == []
    absent = mixed(DISK, driver=False)
    world = happens(absent, running(absent, OFF_NODE), (Act.BIND, ON_NODE))
    assert list(progress(absent, world)) == []


@pytest.mark.parametrize(
    ("version", "side"),
    [(Version(1, 24, 11), NONE), (Version(1, 24, 12), CSI), (Version(1, 26, 2), NONE)],
    ids=str,
)
def test_a_missing_driver_was_an_error(version: Version, side: int) -> None:
    """isCSIMigrationSupportedOnNode in pkg/controller/volume/attachdetach/util: see sources.json
    of tests/routing."""
    rules = mixed(DISK, version, driver=False)
    assert rules.controller_wants(0, rules.start.nodes[ON_NODE]) == side
    there = mixed(DISK, version)
    assert there.controller_wants(0, there.start.nodes[ON_NODE]) == CSI


def test_a_kubelet_without_the_base_gate_in_its_code_announces_what_it_redirects() -> None:
    """pkg/volume/csi/nodeinfomanager: the gate CSIMigration went with 1.27."""
    kubelet = Process(Version(1, 30), {})
    course = Course(DISK, kubelet, (NodeGroup("n", kubelet, driver=True),), ())
    assert Rules(course, (0,)).start.nodes[0].announced
