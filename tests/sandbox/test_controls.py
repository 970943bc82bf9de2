"""What can be done to a sandbox from outside, and how its time goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

from replant.errors import Refused
from replant.objects import Object
from replant.sandbox.clock import BEGINNING, FASTEST, LiveClock
from replant.sandbox.controls import Controls
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import CSI_NODES, LEASES, NODES, PODS
from replant.sandbox.scenario import Scenario
from replant.sandbox.server import Sandbox, open_port, serving
from tests.waiting import wait_until

PATIENCE = 10
"""Seconds for what takes a moment on a machine that is not busy."""

CONTROLLER, SCHEDULER, API_SERVER = "kube-controller-manager", "kube-scheduler", "kube-apiserver"
GATE, DRIVER, PLUGIN = "CSIMigrationAWS", "ebs.csi.aws.com", "kubernetes.io/aws-ebs"
ON, OFF = {GATE: True}, {GATE: False}
A_RESTART, A_WHILE = 4.0, 60.0
SCENARIO = {
    "apiVersion": "replant.dev/v1alpha1",
    "kind": "Scenario",
    "kubernetesVersion": "1.24.17",
    "controlPlane": {"replicas": 3, "gates": OFF, "flags": {"cloud-provider": "aws"}},
    "drivers": [DRIVER],
    "pools": [
        {
            "name": "workers",
            "count": 3,
            "gates": OFF,
            "drivers": [DRIVER],
            "labels": {"pool": "workers"},
        }
    ],
    "classes": [{"name": "gp2", "plugin": "aws-ebs"}],
    "workloads": [{"name": "db", "replicas": 3, "storageClass": "gp2"}],
}


def scenario(**changed: Any) -> Scenario:
    return msgspec.convert({**SCENARIO, **changed}, Scenario)


class World:
    """A sandbox whose clock is by hand, and what can be seen of it."""

    def __init__(self, **changed: Any) -> None:
        self.sandbox = Sandbox.of(scenario(**changed), by_hand=True)
        self.store = self.sandbox.store
        assert self.sandbox.api.controls is not None
        assert self.sandbox.cluster is not None
        self.controls: Controls = self.sandbox.api.controls
        self.cluster = self.sandbox.cluster

    def leader(self, component: str = CONTROLLER) -> str:
        """The host of the one that leads."""
        lease = self.store.get(LEASES, component, "kube-system")
        host, _, _process = lease["spec"]["holderIdentity"].partition("_")
        return str(host)

    def commands(self, component: str = CONTROLLER) -> list[list[str]]:
        return [
            it["spec"]["containers"][0]["command"]
            for it in self.store.list(PODS, "kube-system")
            if it["metadata"]["labels"]["component"] == component
        ]

    def starts(self, component: str = CONTROLLER) -> list[int]:
        return [it.starts for it in self.cluster.control_plane.components[component].all]

    def redirects(self, node: str) -> bool:
        annotations = self.store.get(CSI_NODES, node)["metadata"]["annotations"]
        return PLUGIN in annotations["storage.alpha.kubernetes.io/migrated-plugins"].split(",")

    def node_of(self, pod: str) -> str:
        return str(self.store.get(PODS, pod, "default")["spec"]["nodeName"])

    def on(self, node: str) -> list[str]:
        return [it["metadata"]["name"] for it in self.cluster.pods_on(node)]

    def all_run(self) -> bool:
        pods = self.store.list(PODS, "default")
        phases = [it["status"].get("phase") for it in pods]
        return phases == ["Running"] * 3

    def disks_on(self, node: str) -> int:
        return [it["attachedTo"] for it in self.controls.disks()["disks"]].count(node)


@pytest.fixture
def world() -> World:
    return World()


def gates_of(shown: Object) -> list[Any]:
    return [it["gates"] for it in shown["replicas"]]


def ready(shown: Object) -> list[bool]:
    return [it["ready"] for it in shown["replicas"]]


# The control plane


def test_what_there_is(world: World) -> None:
    assert world.controls.overview() == {
        "clock": {"now": "2024-01-01T00:01:00.000000Z", "speed": 0, "byHand": True},
        "nodes": 3,
        "components": [CONTROLLER, SCHEDULER, API_SERVER],
    }
    assert world.controls.component(CONTROLLER)["replicas"][0] == {
        "name": "kube-controller-manager-control-plane-0",
        "gates": OFF,
        "flags": {"cloud-provider": "aws"},
        "ready": True,
    }
    assert world.controls.component(SCHEDULER)["replicas"][0]["flags"] == {}


@pytest.mark.parametrize("component", [CONTROLLER, SCHEDULER, API_SERVER])
def test_replicas_are_switched_one_after_the_other(world: World, component: str) -> None:
    shown = world.controls.switch_component(component, ON)
    for done in (0, 1, 2):
        assert gates_of(shown) == [ON] * (done + 1) + [OFF] * (2 - done)
        assert ready(shown) == [it != done for it in range(3)]
        if component != API_SERVER:
            assert world.leader(component) != f"control-plane-{done}"
        world.cluster.run_for(3)
        shown = world.controls.component(component)

    assert (gates_of(shown), ready(shown)) == ([ON] * 3, [True] * 3)
    assert {it[1] for it in world.commands(component)} == {f"--feature-gates={GATE}=true"}
    assert world.starts(component) == [2, 2, 2]


def test_a_leader_is_moved_and_acts_by_its_own_gates(world: World) -> None:
    assert world.leader() == "control-plane-0"
    world.controls.switch_component(CONTROLLER, ON)
    world.cluster.run_for(1)
    assert world.leader() == "control-plane-1"
    leader = world.cluster.control_plane.leader
    assert leader is not None
    assert leader.process.gates == OFF
    world.cluster.run_for(A_WHILE)
    leader = world.cluster.control_plane.leader
    assert leader is not None
    assert leader.process.gates == ON


def test_what_is_so_already_is_left_alone(world: World) -> None:
    world.controls.switch_component(CONTROLLER, ON)
    world.controls.switch_component(CONTROLLER, ON)  # while the first is under way
    world.cluster.run_for(A_WHILE)
    version = world.store.version
    shown = world.controls.switch_component(CONTROLLER, ON, {"cloud-provider": "aws"})
    assert ready(shown) == [True] * 3
    world.cluster.run_for(A_WHILE)
    assert world.starts() == [2, 2, 2]
    assert world.store.version == version


def test_one_replica_that_differs_is_the_only_one_restarted(world: World) -> None:
    world.cluster.switch_controller(1, ON)
    world.cluster.run_for(A_RESTART)
    world.controls.switch_component(CONTROLLER, OFF)
    world.cluster.run_for(A_WHILE)
    assert world.starts() == [1, 3, 1]


def test_who_changes_their_mind_meanwhile_gets_what_they_asked_for_last(world: World) -> None:
    world.controls.switch_component(CONTROLLER, ON)
    world.cluster.run_for(1)
    world.controls.switch_component(CONTROLLER, OFF)
    world.cluster.run_for(A_WHILE)
    assert gates_of(world.controls.component(CONTROLLER)) == [OFF] * 3
    assert world.starts() == [3, 1, 1]


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ({"InTreePluginAWSUnregister": True}, {GATE: False, "InTreePluginAWSUnregister": True}),
        ({GATE: None}, {}),
        ({GATE: None, "NoSuchGate": None}, {}),
        ({}, OFF),
    ],
)
def test_gates_are_merged_into_what_is_given(
    world: World, gates: dict[str, bool | None], expected: dict[str, bool]
) -> None:
    world.controls.switch_component(CONTROLLER, gates)
    world.controls.switch_node("workers-0", gates)
    world.cluster.run_for(A_WHILE)
    assert gates_of(world.controls.component(CONTROLLER)) == [expected] * 3
    assert gates_of(world.controls.node("workers-0")) == [expected]


@pytest.mark.parametrize(
    ("adds", "removes", "expected"),
    [
        ({"cloud-config": "/etc/aws"}, {}, {"cloud-provider": "aws", "cloud-config": "/etc/aws"}),
        ({"cloud-provider": "external"}, {}, {"cloud-provider": "external"}),
        ({}, {"cloud-provider": "aws", "cloud-config": "gone already"}, {}),
        ({"v": "4"}, {"cloud-provider": "aws"}, {"v": "4"}),
    ],
)
def test_flags_come_go_and_survive_restarts(
    world: World, adds: dict[str, str], removes: dict[str, str], expected: dict[str, str]
) -> None:
    assert world.commands()[0][1:] == [f"--feature-gates={GATE}=false", "--cloud-provider=aws"]
    world.controls.switch_component(CONTROLLER, {}, adds, removes)
    world.cluster.run_for(A_WHILE)
    world.cluster.switch_controller(0, ON)
    world.cluster.run_for(A_RESTART)
    flags = [f"--{flag}={value}" for flag, value in expected.items()]
    assert [it[2:] for it in world.commands()] == [flags] * 3
    assert world.controls.component(CONTROLLER)["replicas"][0]["flags"] == expected


def test_of_lists_of_admission_plugins_only_elements_come_and_go(world: World) -> None:
    def flags() -> Any:
        world.cluster.run_for(A_WHILE)
        return world.controls.component(API_SERVER)["replicas"][0]["flags"]

    flag = "enable-admission-plugins"
    world.controls.switch_component(API_SERVER, {}, {flag: "NodeRestriction"})
    assert flags() == {flag: "NodeRestriction"}
    label = {flag: "PersistentVolumeLabel"}
    for _again in range(2):
        world.controls.switch_component(API_SERVER, {}, label)
        assert flags() == {flag: "NodeRestriction,PersistentVolumeLabel"}
    world.controls.switch_component(API_SERVER, {}, {}, label)
    assert flags() == {flag: "NodeRestriction"}
    world.controls.switch_component(API_SERVER, {}, {}, {flag: "NodeRestriction"})
    assert flags() == {}


@pytest.mark.parametrize(
    ("gates", "adds", "removes", "code", "said"),
    [
        ({"CSIMigrationAws": True}, {}, {}, 400, "would not start: CSIMigrationAws is no gate"),
        ({"CSIMigrationRBD": True, "X": True}, {}, {}, 400, "X is no gate of the migration"),
        ({"CSIMigrationOpenStack": False}, {}, {}, 400, "is locked to true at 1.24"),
        ({}, {"feature-gates": "A=true"}, {}, 400, "feature-gates is given as gates"),
        ({}, {"--v": "4"}, {}, 400, "--v is not the name of a flag"),
        ({}, {}, {"cloud-provider": "gce"}, 409, "--cloud-provider is aws, not gce"),
    ],
)
def test_what_a_component_would_not_take_is_done_to_none(
    world: World,
    gates: dict[str, bool | None],
    adds: dict[str, str],
    removes: dict[str, str],
    code: int,
    said: str,
) -> None:
    with pytest.raises(ApiError) as refused:
        world.controls.switch_component(CONTROLLER, gates, adds, removes)
    assert refused.value.code == code
    assert said in refused.value.message
    world.cluster.run_for(A_WHILE)
    assert world.starts() == [1, 1, 1]


def test_what_is_refused_for_one_replica_is_done_to_none(world: World) -> None:
    replicas = world.cluster.control_plane.components[CONTROLLER]
    last = replicas.all[-1]
    replicas.restart(last, replace(last.told, flags={"cloud-provider": "gce"}))
    world.cluster.run_for(A_RESTART)
    with pytest.raises(ApiError):
        world.controls.switch_component(CONTROLLER, {}, {}, {"cloud-provider": "aws"})
    world.controls.switch_component(CONTROLLER, ON)
    world.cluster.run_for(A_WHILE)
    flags = [
        it["flags"]["cloud-provider"] for it in world.controls.component(CONTROLLER)["replicas"]
    ]
    assert flags == ["aws", "aws", "gce"]


def test_however_often_it_is_asked_one_is_down_at_a_time_and_another_leads(world: World) -> None:
    for gates in (ON, {**OFF, "CSIMigrationRBD": True}, ON, ON):
        world.controls.switch_component(CONTROLLER, gates)
        for _half_a_second in range(3):
            assert ready(world.controls.component(CONTROLLER)).count(False) == 1
            assert world.cluster.control_plane.leader is not None
            world.cluster.run_for(0.5)
    world.cluster.run_for(A_WHILE)
    assert gates_of(world.controls.component(CONTROLLER)) == [{**ON, "CSIMigrationRBD": True}] * 3


def test_a_contradiction_is_taken_as_components_take_it(world: World) -> None:
    """A sandbox is for seeing what a wrong order does: it starts, whatever comes of it."""
    contradiction = {"CSIMigration": False, GATE: True}
    world.controls.switch_component(CONTROLLER, contradiction)
    world.cluster.run_for(A_WHILE)
    assert gates_of(world.controls.component(CONTROLLER)) == [contradiction] * 3


def test_while_the_only_scheduler_restarts_nothing_is_scheduled() -> None:
    world = World(controlPlane={"gates": OFF})
    world.controls.switch_component(SCHEDULER, ON)
    world.store.delete(PODS, "db-0", "default")
    world.cluster.run_for(2)
    assert "nodeName" not in world.store.get(PODS, "db-0", "default")["spec"]
    world.cluster.run_for(A_WHILE)
    assert world.all_run()


# Nodes


def test_a_kubelet_is_switched_under_pods_that_run_on(world: World) -> None:
    node = world.node_of("db-0")
    assert not world.redirects(node)
    written = world.controls.writes()["disks"]

    shown = world.controls.switch_node(node, ON)
    assert shown == {"replicas": [{"name": node, "gates": ON, "ready": False}]}
    world.cluster.run_for(1)
    assert not world.redirects(node)
    assert world.controls.switch_node(node, ON) == shown
    world.cluster.run_for(2)
    assert ready(world.controls.node(node)) == [True]
    assert world.redirects(node)

    after = world.controls.writes()
    assert after["yanked"] == []
    assert [it["writes"] for it in after["disks"]] == [it["writes"] + 3 for it in written]
    assert world.cluster.kubelets.all[node].starts == 2
    version = world.store.version
    assert ready(world.controls.switch_node(node, ON)) == [True]
    assert world.store.version == version


def test_a_pod_that_is_to_end_while_its_kubelet_restarts_ends_afterwards(world: World) -> None:
    node = world.node_of("db-0")
    uid = world.store.entry(PODS, "db-0", "default").uid
    world.store.delete(PODS, "db-0", "default")
    world.cluster.settle()
    world.controls.switch_node(node, {GATE: False, "InTreePluginAWSUnregister": False})
    world.cluster.run_for(2.5)
    assert world.store.entry(PODS, "db-0", "default").uid == uid
    world.cluster.run_for(A_WHILE)
    assert world.store.entry(PODS, "db-0", "default").uid != uid
    assert world.all_run()


def test_a_pod_that_was_about_to_end_when_its_node_died_ends_when_it_is_back(world: World) -> None:
    node = world.node_of("db-0")
    uid = world.store.entry(PODS, "db-0", "default").uid
    world.store.delete(PODS, "db-0", "default")
    world.cluster.settle()
    world.controls.kill(node)
    world.cluster.run_for(10)
    world.controls.revive(node)
    world.cluster.run_for(A_WHILE)
    assert world.store.entry(PODS, "db-0", "default").uid != uid
    assert world.all_run()


def test_a_node_dies_once_and_comes_back(world: World) -> None:
    node = world.node_of("db-0")
    for _again in range(2):
        assert ready(world.controls.kill(node)) == [False]
        world.cluster.run_for(30)
    (condition,) = world.store.get(NODES, node)["status"]["conditions"]
    assert condition["status"] == "Unknown"
    with pytest.raises(ApiError) as refused:
        world.controls.switch_node(node, ON)
    assert refused.value.code == 409
    assert "the machine is down" in refused.value.message

    for _again in range(2):
        assert ready(world.controls.revive(node)) == [True]
        world.cluster.run_for(10)
    (status,) = world.store.get(PODS, "db-0", "default")["status"]["containerStatuses"]
    assert status["restartCount"] == 1
    gaps = [gap for it in world.controls.writes()["disks"] for gap in it["gaps"]]
    (gap,) = gaps
    start, end = (datetime.fromisoformat(gap[it]) for it in ("start", "end"))
    assert end - start == timedelta(seconds=60)
    assert gap["podRan"] is False


def test_a_node_that_dies_while_its_kubelet_restarts_comes_back_with_the_new_gates(
    world: World,
) -> None:
    world.controls.switch_node("workers-0", ON)
    world.controls.kill("workers-0")
    world.cluster.run_for(A_WHILE)
    assert not world.redirects("workers-0")
    assert ready(world.controls.revive("workers-0")) == [True]
    assert world.redirects("workers-0")


def test_a_machine_is_replaced(world: World) -> None:
    world.controls.switch_component(CONTROLLER, ON)  # it would not attach to such a node before
    world.cluster.run_for(A_WHILE)
    node = world.node_of("db-0")
    labels = world.store.get(NODES, node)["metadata"]["labels"]
    disks = world.disks_on(node)
    assert disks == len(world.on(node)) > 0

    shown = world.controls.replace(node, ON)
    new = f"{node}-r1"
    assert shown == {"replicas": [{"name": new, "gates": ON, "ready": True}]}
    world.cluster.run_for(A_WHILE)
    assert not world.store.find(NODES, node)
    assert not world.store.find(CSI_NODES, node)
    assert world.redirects(new)
    hostname = {"kubernetes.io/hostname": new}
    assert world.store.get(NODES, new)["metadata"]["labels"] == {**labels, **hostname}
    assert world.all_run()
    assert (world.disks_on(node), world.on(node)) == (0, [])
    assert world.controls.overview()["nodes"] == 3

    assert world.controls.replace(new, {})["replicas"][0]["name"] == f"{node}-r2"
    assert gates_of(world.controls.node(f"{node}-r2")) == [ON]
    with pytest.raises(ApiError) as gone:
        world.controls.node(new)
    assert gone.value.code == 404


def test_a_dead_machine_can_be_replaced_and_its_disks_follow_its_pods(world: World) -> None:
    node = world.node_of("db-0")
    world.controls.kill(node)
    world.controls.replace(node, {})
    world.cluster.run_for(A_WHILE)
    assert world.all_run()
    assert world.disks_on(node) == 0
    assert world.controls.writes()["yanked"] == []


def test_a_wrong_order_yanks_a_disk_and_a_gap_says_so(world: World) -> None:
    """Nodes before controllers, pods still there: a disk goes while a pod writes to it."""
    for number in range(3):
        world.controls.switch_node(f"workers-{number}", ON)
    world.cluster.run_for(A_WHILE)
    world.controls.switch_component(CONTROLLER, ON)
    world.cluster.run_for(600)
    writes = world.controls.writes()
    gaps = {it["id"]: [gap["podRan"] for gap in it["gaps"]] for it in writes["disks"]}
    assert writes["yanked"] == sorted(disk for disk, ran in gaps.items() if any(ran))
    assert writes["yanked"]


# Over HTTP


@contextmanager
def served(sandbox: Sandbox) -> Iterator[httpx.Client]:
    with (
        closing(open_port(0)) as listening,
        serving(sandbox, listening) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=30) as http,
    ):
        yield http


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with served(Sandbox.of(scenario(), by_hand=True)) as client:
        yield client


def test_a_cluster_is_controlled_over_http(http: httpx.Client) -> None:
    assert http.get("/sandbox").json()["components"] == [CONTROLLER, SCHEDULER, API_SERVER]
    before = http.get("/sandbox/clock")
    assert before.status_code == 405
    asked = {"gates": {**ON, "X": None}, "addFlags": {"v": "2"}, "removeFlags": {"v": "2"}}
    begun = http.put(f"/sandbox/components/{CONTROLLER}", json=asked)
    assert begun.status_code == 202
    assert ready(begun.json()) == [False, True, True]
    begun = http.put("/sandbox/nodes/workers-0", json={"gates": ON})
    assert (begun.status_code, ready(begun.json())) == (202, [False])
    ran = http.post("/sandbox/clock", json={"runFor": 30}).json()
    assert int(ran["resourceVersion"]) >= int(
        http.get("/api/v1/pods").json()["metadata"]["resourceVersion"]
    )
    assert ran["now"] == http.get("/sandbox").json()["clock"]["now"]
    shown = http.get(f"/sandbox/components/{CONTROLLER}").json()
    assert (gates_of(shown), ready(shown)) == ([ON] * 3, [True] * 3)
    assert ready(http.get("/sandbox/nodes/workers-0").json()) == [True]

    assert ready(http.post("/sandbox/nodes/workers-0/kill").json()) == [False]
    assert ready(http.post("/sandbox/nodes/workers-0/revive").json()) == [True]
    replaced = http.post("/sandbox/nodes/workers-0/replace")
    assert replaced.status_code == 202
    assert replaced.json()["replicas"][0]["name"] == "workers-0-r1"
    copied = http.post("/sandbox/nodes/workers-1/copy", json={"gates": ON})
    assert copied.status_code == 202
    assert (gates_of(copied.json()), copied.json()["replicas"][0]["name"]) == (
        [ON],
        "workers-1-r1",
    )
    assert {it["detaching"] for it in http.get("/sandbox/disks").json()["disks"]} <= {True, False}
    assert len(http.get("/sandbox/writes").json()["disks"]) == 3


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "said"),
    [
        ("GET", "components/etcd", None, 404, 'component "etcd" not found: there are kube-'),
        ("PUT", "components/etcd", "{}", 404, 'component "etcd" not found'),
        ("GET", "nodes/nobody", None, 404, 'nodes "nobody" not found'),
        ("PUT", "nodes/nobody", "{}", 404, 'nodes "nobody" not found'),
        ("POST", "nodes/nobody/kill", None, 404, 'nodes "nobody" not found'),
        ("POST", "nodes/nobody/revive", None, 404, 'nodes "nobody" not found'),
        ("POST", "nodes/nobody/replace", None, 404, 'nodes "nobody" not found'),
        ("POST", "nodes/nobody/copy", None, 404, 'nodes "nobody" not found'),
        ("GET", "nodes", None, 404, "could not find"),
        ("POST", "nodes/workers-1/explode", None, 404, "could not find"),
        ("PUT", "nodes/workers-1", None, 400, "the body is not what belongs here"),
        ("PUT", "nodes/workers-1", "{", 400, "the body is not what belongs here"),
        ("PUT", "nodes/workers-1", "[]", 400, "Expected `object`, got `array`"),
        ("PUT", "nodes/workers-1", b"\xff", 400, "the body is not what belongs here"),
        ("PUT", "nodes/workers-1", '{"gate": {}}', 400, "unknown field `gate`"),
        ("PUT", "nodes/workers-1", '{"gates": {"A": "true"}}', 400, "got `str`"),
        ("PUT", "nodes/workers-1", '{"gates": {"A": true}}', 400, "kubelet 1.24.17 would not"),
        ("POST", "nodes/workers-1/replace", '{"gates": 1}', 400, "got `int`"),
        ("PUT", f"components/{CONTROLLER}", '{"addFlags": {"v": 4}}', 400, "at `$.addFlags"),
        ("DELETE", f"components/{CONTROLLER}", None, 405, "does not allow this method"),
        ("POST", "nodes/workers-1", None, 405, "does not allow this method"),
        ("GET", "nodes/workers-1/kill", None, 405, "does not allow this method"),
        ("PUT", "disks", "{}", 405, "does not allow this method"),
        ("POST", "clock", "{}", 400, "either runFor or speed"),
        ("POST", "clock", '{"runFor": 1, "speed": 1}', 400, "either runFor or speed"),
        ("POST", "clock", '{"runFor": -1}', 400, "`float` >= 0.0"),
        ("POST", "clock", '{"runFor": 1e300}', 400, "`float` <= 86400.0"),
        ("POST", "clock", '{"runFor": "1"}', 400, "at `$.runFor`"),
        ("POST", "clock", '{"speed": 20}', 409, "put forward by hand"),
    ],
)
def test_what_cannot_be_done_is_told_as_a_status(
    http: httpx.Client, method: str, path: str, body: str | None, code: int, said: str
) -> None:
    answer = http.request(method, f"/sandbox/{path}", content=body)
    told = answer.json()
    assert (answer.status_code, told["code"], told["kind"]) == (code, code, "Status")
    assert said in told["message"]


@pytest.mark.parametrize("path", ["", "/components/kube-scheduler", "/disks", "/nodes/one"])
def test_without_a_cluster_there_is_nothing_to_control(path: str) -> None:
    with served(Sandbox()) as http:
        answer = http.get(f"/sandbox{path}")
    assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
    assert "without a scenario" in answer.json()["message"]


# Time


def test_by_hand_requests_are_followed_up_but_no_time_passes() -> None:
    sandbox = Sandbox.of(scenario(), by_hand=True)
    with served(sandbox) as http:
        now = http.get("/sandbox").json()["clock"]["now"]
        path = "/apis/apps/v1/namespaces/default/statefulsets/db"
        patch = {"spec": {"replicas": 2}}
        headers = {"content-type": "application/merge-patch+json"}
        assert http.patch(path, json=patch, headers=headers).status_code == 200
        wait_until(
            lambda: "deletionTimestamp" in pod(http, "db-2")["metadata"], "the pod to be deleted"
        )
        assert pod(http, "db-2")["status"]["phase"] == "Running"
        assert http.get("/sandbox").json()["clock"]["now"] == now
        ran = http.post("/sandbox/clock", json={"runFor": 1.5}).json()["now"]
        assert datetime.fromisoformat(ran) - datetime.fromisoformat(now) == timedelta(seconds=1.5)
        assert pod(http, "db-2")["kind"] == "Status"


def pod(http: httpx.Client, name: str) -> Any:
    return http.get(f"/api/v1/namespaces/default/pods/{name}").json()


def test_at_a_hundred_times_the_speed_a_switch_of_all_takes_a_moment() -> None:
    with served(Sandbox.of(scenario(), speed=100)) as http:
        clock = http.get("/sandbox").json()["clock"]
        assert (clock["speed"], clock["byHand"]) == (100, False)
        assert http.post("/sandbox/clock", json={"runFor": 1}).status_code == 409
        began = time.monotonic()
        http.put(f"/sandbox/components/{CONTROLLER}", json={"gates": ON})

        def confirmed() -> bool:
            shown = http.get(f"/sandbox/components/{CONTROLLER}").json()
            return gates_of(shown) == [ON] * 3 and all(ready(shown))

        wait_until(confirmed, "all replicas to be switched", PATIENCE)
        assert time.monotonic() - began > 0.08  # nine seconds of its own
        now = http.get("/sandbox").json()["clock"]["now"]
        slower = http.post("/sandbox/clock", json={"speed": 0.5})
        assert slower.status_code == 200
        assert slower.json()["now"] >= now
        assert http.get("/sandbox").json()["clock"]["speed"] == 0.5
        for wrong in (0, -1, FASTEST + 1):
            refused = http.post("/sandbox/clock", json={"speed": wrong})
            assert refused.status_code == 400
            assert "speed is above 0" in refused.json()["message"]


def test_who_waits_for_a_slow_clock_is_woken_when_it_gets_faster() -> None:
    with served(Sandbox.of(scenario(), speed=0.001)) as http:
        http.put("/sandbox/nodes/workers-0", json={"gates": ON})
        for _look in range(3):  # by the second at the latest, whoever waits for the clock does so
            assert ready(http.get("/sandbox/nodes/workers-0").json()) == [False]
        http.post("/sandbox/clock", json={"speed": 100})
        wait_until(
            lambda: ready(http.get("/sandbox/nodes/workers-0").json()) == [True],
            "the kubelet to be ready",
            PATIENCE,
        )


def test_a_clock_keeps_going_forward_whatever_its_speed() -> None:
    clock = LiveClock(60, 50)
    assert (clock.by_hand, clock.speed) == (True, 0)
    assert clock.real_seconds_until(BEGINNING) is None
    clock.go_live()
    assert (clock.by_hand, clock.speed) == (False, 50)
    seen = [clock.now()]
    for speed in (1000, 0.001, 1, 500):
        clock.go_at(speed)
        seen.append(clock.now())
        time.sleep(0.01)
        seen.append(clock.now())
    assert seen == sorted(seen)
    clock.go_at(10)
    wait = clock.real_seconds_until(clock.now() + timedelta(seconds=5))
    assert wait == pytest.approx(0.5, abs=0.05)
    assert clock.real_seconds_until(BEGINNING) == 0


@pytest.mark.parametrize("speed", [0, -1, FASTEST * 2, float("nan"), float("inf")])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    with pytest.raises(Refused, match="A clock's speed is above 0"):
        Sandbox.of(scenario(), speed=speed)
