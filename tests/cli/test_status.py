"""``replant status``: what a person would look for by hand, halfway through a migration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.inventory.standing import Standing, standing
from replant.report.standing import SHOWN, JoinedStanding, RunStanding, document, text
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.cli.shell import replant
from tests.inventory.clusters import (
    AWS,
    EBS,
    Object,
    attachment,
    claim_ref,
    component,
    csi_node,
    driver,
    inventory_of,
    node,
    pod,
    pv,
    pvc,
    storage_class,
)
from tests.plan.clusters import Kubelet, objects_of
from tests.sandbox.test_scenarios import read

HALFWAY = """\
apiVersion: replant.dev/v1alpha1
kind: Scenario
kubernetesVersion: 1.24.17
controlPlane: {replicas: 2, gates: {CSIMigrationAWS: true}}
drivers: [ebs.csi.aws.com]
pools:
- {name: done, count: 2, gates: {CSIMigrationAWS: true}, drivers: [ebs.csi.aws.com]}
- {name: todo, count: 7, gates: {CSIMigrationAWS: false}, drivers: [ebs.csi.aws.com]}
- {name: bare, count: 1, gates: {CSIMigrationAWS: false}}
classes:
- {name: gp2, plugin: aws-ebs}
workloads:
- {name: db, replicas: 12, storageClass: gp2}
"""


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The kubeconfig of a cluster whose controllers and two nodes are switched."""
    folder = tmp_path_factory.mktemp("halfway")
    sandbox = Sandbox.of(read(HALFWAY, folder).scenario())
    config = folder / "config"
    with closing(open_port(0)) as listening, serving(sandbox, listening):
        write_kubeconfig(config, listening.getsockname()[1])
        yield str(config)


def status(config: str, *arguments: str) -> str:
    code, out, err = replant("status", "--kubeconfig", config, *arguments)
    assert (code, err) == (0, "")
    return out


@pytest.mark.workflow("status")
def test_at_a_glance(halfway: str) -> None:
    out = status(halfway)

    assert out.splitlines()[:2] == ["Kubernetes 1.24.17, 10 nodes", ""]
    assert f"{AWS} → {EBS}\n" in out
    assert "kube-controller-manager-control-plane-1  redirects  CSIMigrationAWS=true" in out
    assert "2 of 10 migrated; not yet: bare-0, todo-0, todo-1, todo-2, todo-3 and 3 more" in out
    assert "driver not registered on bare-0\n" in out
    assert "12 stored in-tree, 12 marked with migrated-to; 0 native" in out
    assert "still in-tree: gp2" in out
    assert "stuck" not in out
    assert "\x1b" not in out


def test_every_node_is_shown_where_it_is_asked_for(halfway: str) -> None:
    rows = [line.split() for line in status(halfway, "--nodes").splitlines()]
    by_name = {row[0]: row for row in rows if row and row[0].startswith(("done", "todo", "bare"))}

    assert len(by_name) == 10
    assert by_name["bare-0"][1:4] == ["yes", "no", "no"]
    assert by_name["done-1"][1:4] == ["yes", "yes", "yes"]
    assert {row[5] for name, row in by_name.items() if name.startswith("done")} == {"0"}
    assert {row[4] for name, row in by_name.items() if name.startswith("todo")} == {"0"}


def test_json_and_yaml_are_the_same_and_whole(halfway: str) -> None:
    told = json.loads(status(halfway, "-o", "json"))

    assert yaml.safe_load(status(halfway, "-o", "yaml")) == told
    (plugin,) = told["plugins"]
    assert [it["name"] for it in plugin["nodes"] if it["migrated"]] == ["done-0", "done-1"]
    assert sum(it["csi"] + it["inTree"] for it in plugin["nodes"]) == 12
    assert plugin["hidden"] == []
    each = plugin["volumes"].pop("each")
    assert plugin["volumes"] == {"inTree": 12, "marked": 12, "neverMarked": 0, "native": 0}
    assert len(each) == 12
    assert {it["migratedTo"] for it in each} == {EBS}
    assert min(it["claim"] for it in each) == "default/data-db-0"


def test_a_plugin_that_is_named_is_shown_whether_or_not_it_is_used(halfway: str) -> None:
    out = status(halfway, "--plugin", "gce-pd")

    assert "kubernetes.io/gce-pd → pd.csi.storage.gke.io, which is not installed" in out
    assert AWS not in out


def test_what_cannot_be_reached_fails(tmp_path: Path) -> None:
    code, out, err = replant("status", "--kubeconfig", str(tmp_path / "nothing.yaml"))

    assert (code, out) == (1, "")
    assert "nothing.yaml" in err


# From a dump


def of(*objects: Object, **options: Any) -> Standing:
    return standing(inventory_of(objects, **options))


DRIVER_ON_NODE = pod(
    "ebs-csi-node-7", "csi", nodeName="n1",
    containers=[{"name": "registrar", "env": [
        {"name": "DRIVER_REG_SOCK_PATH", "value": f"/var/lib/kubelet/plugins/{EBS}/csi.sock"}]}],
)  # fmt: skip
ATTACHER = pod("ebs-csi-controller-3", "csi", nodeName="n2", containers=[{"name": "csi-attacher"}])
LOGS = (
    f"the external-attacher of {EBS} in the pod csi/ebs-csi-controller-3",
    "the kubelet of n1",
    "the driver's pod csi/ebs-csi-node-7 on n1",
)
DELETED: Object = {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}
NOTHING_ATTACHED = {"attached": False, "attachError": {"message": "no such disk"}}
DETACH_FAILS = {"attached": True, "detachError": {"message": "busy"}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, ""),
        ({"status": NOTHING_ATTACHED}, "It is not attached: no such disk."),
        ({"status": {"attached": False}}, "It is not attached, and nobody says why."),
        ({**DELETED, "status": DETACH_FAILS}, "It is being detached: busy."),
        ({**DELETED}, "It is being detached, and nobody says why it is not."),
    ],
)
def test_what_is_stuck_names_the_logs_to_read(given: Object, why: str) -> None:
    objects = (pv("db"), node("n1"), csi_node("n1", EBS), DRIVER_ON_NODE, ATTACHER)
    (plugin,) = of(*objects, attachment(**given)).plugins

    assert [it.why for it in plugin.stuck] == [why] * bool(why)
    if why:
        (stuck,) = plugin.stuck
        assert stuck.object == "VolumeAttachment csi-1 of PersistentVolume db"
        assert stuck.logs == LOGS
        assert f"read the log of {LOGS[0]}" in text(of(*objects, attachment(**given)))


def test_without_pods_of_the_driver_the_driver_itself_is_named() -> None:
    (plugin,) = of(pv("db"), attachment(status=NOTHING_ATTACHED)).plugins

    (stuck,) = plugin.stuck
    assert stuck.logs == (f"the external-attacher of {EBS}", "the kubelet of n1")


def test_a_pod_that_waits_for_its_volume_names_its_kubelet_and_its_drivers_pod() -> None:
    waiting = {"state": {"waiting": {"reason": "ContainerCreating"}}}
    status = {"phase": "Pending", "containerStatuses": [waiting]}
    found = of(
        pv("db", claimRef=claim_ref()),
        pvc("data"),
        pod("db-0", claim="data", nodeName="n1", status=status),
        DRIVER_ON_NODE,
    )

    (stuck,) = found.plugins[0].stuck
    assert stuck.object == "Pod shop/db-0"
    assert "ContainerCreating" in stuck.why
    assert stuck.logs == LOGS[1:]


def test_of_much_that_is_stuck_the_first_are_shown() -> None:
    many = [attachment(f"csi-{number}", **DELETED) for number in range(SHOWN + 3)]

    out = text(of(pv("db"), *many))

    assert out.count("VolumeAttachment csi-") == SHOWN
    assert "and 3 more (-o json has all)" in out


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ({"CSIMigrationAWS": False}, "in-tree    CSIMigrationAWS=false"),
        ({"CSIMigrationAWS": True}, "redirects  CSIMigrationAWS=true"),
        (
            {"CSIMigrationAWS": True, "InTreePluginAWSUnregister": True},
            "redirects, plugin off  CSIMigrationAWS=true,InTreePluginAWSUnregister=true",
        ),
    ],
)
def test_gates_are_shown_with_what_they_come_to(gates: dict[str, bool], said: str) -> None:
    objects = objects_of(AWS, gates=gates, server="1.24.17", kubelets=(Kubelet(),))

    lines = text(of(*objects)).splitlines()

    mine = [line for line in lines if "kube-controller-manager-" in line]
    assert len(mine) == 3
    assert all(" ".join(line.split()).endswith(" ".join(said.split())) for line in mine)


def test_replicas_that_differ_are_each_shown_and_what_is_hidden_is_said_so() -> None:
    one = component("--feature-gates=CSIMigrationAWS=true", on="a")
    other = component("--feature-gates=CSIMigrationAWS=false", on="b")
    (plugin,) = of(pv(), one, other).plugins

    assert [it.redirects for it in plugin.components] == [True, False]
    assert plugin.hidden == ("kube-scheduler",)
    assert "kube-scheduler: hidden" in text(of(pv(), one, other))


PROVISIONED = {"pv.kubernetes.io/provisioned-by": AWS}
MARKED = pv(
    "marked",
    metadata={"annotations": {**PROVISIONED, "pv.kubernetes.io/migrated-to": EBS}},
    claimRef=claim_ref(),
)
UNMARKED = pv("unmarked", metadata={"annotations": PROVISIONED})
NATIVE = pv("native", csi={"driver": EBS, "volumeHandle": "vol-2"})
OTHER = pv("other", csi={"driver": "other", "volumeHandle": "x"})
ALL_SORTS = (MARKED, UNMARKED, pv("by-hand"), NATIVE, OTHER, driver())


def test_each_volume_is_shown_with_what_it_is_marked_with_where_it_is_asked_for() -> None:
    assert "shop/data" not in text(of(*ALL_SORTS))
    lines = text(of(*ALL_SORTS), volumes=True).splitlines()
    start = next(number for number, line in enumerate(lines) if "MIGRATED-TO" in line)
    assert [line.split() for line in lines[start + 1 : start + 5]] == [
        ["by-hand", "-", "in-tree", "-", "(made", "by", "hand)"],
        ["marked", "shop/data", "in-tree", EBS],
        ["native", "-", "native", "-"],
        ["unmarked", "-", "in-tree", "-"],
    ]


@pytest.mark.parametrize(
    ("objects", "named"),
    [
        (ALL_SORTS, True),
        ((UNMARKED,), False),
        ((UNMARKED, component("--feature-gates=CSIMigrationAWS=false")), False),
        ((UNMARKED, component("--feature-gates=CSIMigrationAWS=true")), True),
        ((MARKED, NATIVE, pv("by-hand")), False),
    ],
)
def test_volumes_that_should_be_marked_and_are_not_are_named(
    objects: tuple[Object, ...], named: bool
) -> None:
    assert ("not marked: unmarked\n" in text(of(*objects))) is named
    assert ("not marked" in text(of(*objects))) is named


def test_volumes_are_counted_by_how_they_are_stored_and_marked() -> None:
    (plugin,) = of(*ALL_SORTS).plugins

    assert (plugin.volumes.in_tree, plugin.volumes.marked) == (3, 1)
    assert (plugin.volumes.never_marked, plugin.volumes.native) == (1, 1)


def test_a_class_alone_is_shown_and_what_is_only_mounted_has_no_attachments() -> None:
    shares = of(storage_class("share", "kubernetes.io/azure-file"))

    assert [it.classes for it in shares.plugins] == [("share",)]
    assert "attached" not in text(shares)
    assert "attached" in text(of(storage_class()))
    assert "There is no volume and no class" in text(of())


RUN = RunStanding(
    id="r1", goal="enable", state="running", step="roll-nodes", done=3, total=20,
    waiting_for=("node n4: 2 volumes are still attached",), holder="host-1", since="10:02",
)  # fmt: skip


def test_a_run_stands_on_top() -> None:
    lines = text(of(pv()), RUN).splitlines()

    assert lines[:4] == [
        "Run r1, enable: running, step roll-nodes, 3 of 20 nodes done",
        "  held by   host-1 since 10:02",
        "  waits for node n4: 2 volumes are still attached",
        "",
    ]
    assert document(of(pv()), RUN)["run"]["waitingFor"] == RUN.waiting_for
    assert "run" not in document(of(pv()))


def test_a_volume_that_is_away_is_urgent() -> None:
    run = RunStanding(id="c1", goal="convert", state="broken off", away=("pv-1", "pv-2"))
    told = text(of(pv()), run)
    assert "  away      PersistentVolume pv-1, pv-2: deleted, and not created again\n" in told
    assert "replant apply --resume" in told
    assert "restart no kubelet" in told
    assert document(of(pv()), run)["run"]["away"] == ("pv-1", "pv-2")


@pytest.mark.parametrize(
    ("missing", "surplus", "said"),
    [((AWS,), (), f"does not redirect {AWS}"), ((), (AWS,), f"redirects {AWS}, which other")],
)
def test_nodes_that_have_joined_stand_on_top(
    missing: tuple[str, ...], surplus: tuple[str, ...], said: str
) -> None:
    joined = [JoinedStanding(f"n{it}", "enable-1", missing, surplus) for it in range(SHOWN + 2)]
    told = text(of(node("n1")), None, joined).splitlines()

    names = "n0, n1, n2, n3, n4 and 2 more"
    assert told[0] == f"Joined with other gates since run enable-1: {names}"
    assert told[1].startswith(f"  n0 {said}")
    assert "  1. kubectl cordon n0 n1 n2 n3 n4" in told
    assert document(of(node("n1")), None, joined)["joined"][0]["node"] == "n0"
    assert "joined" not in document(of(node("n1")))


def test_names_from_the_cluster_cannot_command_a_terminal() -> None:
    assert "\x1b" not in text(of(storage_class("gp2\x1b[31m")))
