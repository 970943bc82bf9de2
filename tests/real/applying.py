"""A cluster with workloads on in-tree disks, and `replant apply` as a process beside it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.real.attaching import GATE
from tests.real.ground import programs
from tests.real.ground.api import Object
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import ControllerDriver
from tests.real.ground.hooks import Hook
from tests.real.ground.nodes import DRIVER, IGNORES_SIGTERM, LightNode
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import claim_object, new_volume, pod_object
from tests.real.vigil import Vigil, claims

REPLANT = Path(sys.executable).with_name("replant")
PLUGIN = "kubernetes.io/aws-ebs"
CONTROLLER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
OFF = {GATE: False}
NODES, REPLICAS = 3, 3
SETTLE = 2
"""Seconds beyond what can be seen that a plan waits for here. By default ten, for clouds that are
slower than moto; it is data of the plan, which a person may change."""
ELECTION = (
    "--leader-elect=true",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
)
"""Quicker than by default, for every restart is waited for; test_leading.py has the default."""
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "gp2"},
    "provisioner": PLUGIN,
    "volumeBindingMode": "WaitForFirstConsumer",
}


class Run:
    """`replant apply`, under way."""

    def __init__(self, cluster: Cluster, *arguments: str) -> None:
        self.said = ""
        """What it has written to standard error."""
        self._cluster = cluster
        self._child = subprocess.Popen(
            [REPLANT, "apply", "--yes", "-o", "json", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._child.stderr
        for line in self._child.stderr:
            self.said += line

    def until_said(self, text: str) -> None:
        def said() -> bool:
            assert self._child.poll() is None, self.said
            return text in self.said

        try:
            wait_for(said, f"replant to say {text!r}", 180)
        except AssertionError:
            self.kill()
            raise AssertionError(f"{self.said}\n{self._cluster.told()}") from None

    def kill(self) -> None:
        self._child.kill()
        self.ended()

    def interrupt(self) -> None:
        self._child.send_signal(signal.SIGINT)

    def ended(self, timeout: float = 240) -> tuple[int, str]:
        """Its exit code and its standard output."""
        assert self._child.stdout
        assert self._child.stderr
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            told = self._cluster.told()
            self.kill()
            raise AssertionError(f"no end after {timeout} s: {self.said}\n{told}") from None
        self._reading.join()
        with self._child.stdout, self._child.stderr:
            return self._child.returncode, self._child.stdout.read()

    def done(self, timeout: float = 240) -> dict[str, Any]:
        """What it reports of a run that has come to its end."""
        code, report = self.ended(timeout)
        assert code == 0, f"{self.said}\n{self._cluster.told()}"
        result: dict[str, Any] = json.loads(report)
        assert {check["outcome"] for check in result["checks"]} == {"passed"}
        return result


class Cluster:
    """Real controllers and a real scheduler, light nodes, and workloads with three disks.

    They are a StatefulSet with the claims that it makes, or Deployments of one replica each, with
    claims of their own.
    """

    def __init__(
        self,
        plane: ControlPlane,
        cloud: Cloud,
        folder: Path,
        stack: ExitStack,
        *,
        gates: Mapping[str, bool],
        ends_after: int | None,
    ) -> None:
        """With ``ends_after`` there are Deployments, whose pods take so many seconds to end."""
        self.plane = plane
        self.cloud = cloud
        self.folder = folder
        self.api = plane.api
        self._gates: dict[str, dict[str, bool]] = {CONTROLLER: dict(gates), SCHEDULER: dict(gates)}
        self.start(CONTROLLER)
        self.start(SCHEDULER)
        stack.enter_context(ControllerDriver(plane, cloud, folder / "driver"))
        self.api.create(_object("storage.k8s.io/v1", "CSIDriver", DRIVER, spec={}))
        self._stack = stack
        self.nodes: list[LightNode] = []
        for _number in range(NODES):
            self.join(gates)
        self.before_restart: Callable[[LightNode], None] = lambda _node: None
        """What happens between the last look at a node and its kubelet's restart."""
        self.hook = stack.enter_context(Hook(folder, self.answer))
        self.role = plane.role_kubeconfig("apply")
        if ends_after is None:
            self._create_database()
        else:
            self._create_deployments(ends_after)
        wait_for(self._runs, "the workloads to run", 180)
        self.disks = {
            volume["spec"]["claimRef"]["name"]: volume["spec"]["awsElasticBlockStore"]["volumeID"]
            .rpartition("/")[2]
            for volume in self.volumes()
        }  # fmt: skip
        self.vigil = stack.enter_context(Vigil(self.api, cloud, self.nodes, self.disks))

    # What is there

    def volumes(self) -> list[Object]:
        return self.api.list("PersistentVolume")

    def specs(self) -> dict[str, Object]:
        return {it["metadata"]["name"]: it["spec"] for it in self.volumes()}

    def pods(self) -> list[Object]:
        return self.api.list("Pod", "default")

    def serves(self) -> bool:
        """Whether every pod runs, its disk attached where it is by the word of the cloud."""
        pods = self.pods()
        instances = {node.name: node.instance.id for node in self.nodes}
        attached = self.cloud.attachments(self.disks.values())
        return self._runs(pods) and all(
            attached[self.disks[claim]] == [instances[pod["spec"]["nodeName"]]]
            for pod in pods
            for claim in claims(pod)
        )

    def _runs(self, pods: list[Object] | None = None) -> bool:
        """Whether there are all pods that should be there, and each is ready."""
        return [_is_ready(pod) for pod in pods or self.pods()] == [True] * REPLICAS

    def sides(self) -> set[str]:
        """Under whose names nodes are told now that disks are attached."""
        nodes = self.api.list("Node")
        names = [it["name"] for node in nodes for it in node["status"].get("volumesAttached", [])]
        return {"csi" if "/csi/" in name else "in-tree" for name in names}

    def gates_of(self, name: str) -> Mapping[str, bool]:
        """Of a component, or of a node's kubelet."""
        return self._gates[name] if name in self._gates else self._node(name).gates

    @property
    def leader(self) -> str:
        """The kube-controller-manager that leads, by its Lease."""
        lease = self.api.get("Lease", CONTROLLER, "kube-system")
        holder: str = lease["spec"]["holderIdentity"]
        return holder

    def told(self) -> str:
        """How it stands, for a person who wonders what went wrong."""
        pods = [
            {
                "pod": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
                "node": pod["spec"].get("nodeName"),
                "ends": pod["metadata"].get("deletionTimestamp"),
                **{key: pod["status"].get(key) for key in ("phase", "conditions")},
            }
            for pod in self.pods()
        ]
        nodes = [
            {
                "node": node["metadata"]["name"],
                "gates": dict(self.gates_of(node["metadata"]["name"])),
                "cordoned": node["spec"].get("unschedulable"),
                "taints": node["spec"].get("taints"),
                **{key: node["status"].get(key) for key in ("volumesAttached", "volumesInUse")},
            }
            for node in self.api.list("Node")
        ]
        attachments = [
            {**it["spec"], **it.get("status", {})} for it in self.api.list("VolumeAttachment")
        ]
        events = [
            f"{it['involvedObject']['name']}: {it['reason']}: {it['message']}"
            for it in self.api.list("Event", "default")
        ]
        disks = self.cloud.attachments(self.disks.values())
        told = {"pods": pods, "nodes": nodes, "attachments": attachments, "disks": disks}
        return yaml.safe_dump({**told, "events": events[-20:]}, sort_keys=False)

    def _node(self, name: str) -> LightNode:
        return next(node for node in self.nodes if node.name == name)

    def _create_database(self) -> None:
        self.api.create(CLASS)
        labels = {"app": "db"}
        template = pod_object("db")["spec"]
        # The real scheduler takes these for a wish to be put on cordoned nodes.
        del template["tolerations"]
        template["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        claim = claim_object("data", storageClassName="gp2")
        del claim["metadata"]["namespace"]
        self.api.create(
            _object(
                "policy/v1",
                "PodDisruptionBudget",
                "db",
                "default",
                spec={"maxUnavailable": 1, "selector": {"matchLabels": labels}},
            )
        )
        self.api.create(
            _object(
                "apps/v1",
                "StatefulSet",
                "db",
                "default",
                spec={
                    "replicas": REPLICAS,
                    "serviceName": "db",
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": template},
                    "volumeClaimTemplates": [claim],
                },
            )
        )

    def _create_deployments(self, ends_after: int) -> None:
        for number in range(REPLICAS):
            name = f"web-{number}"
            new_volume(self.api, self.cloud, name)
            labels = {"app": name}
            template = pod_object(name, claim=name)["spec"]
            del template["tolerations"]
            template["terminationGracePeriodSeconds"] = ends_after
            metadata = {"labels": labels, "annotations": {IGNORES_SIGTERM: "true"}}
            spec = {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": metadata, "spec": template},
            }
            self.api.create(_object("apps/v1", "Deployment", name, "default", spec=spec))

    # What is done to it

    def join(self, gates: Mapping[str, bool]) -> LightNode:
        """A node joins whose kubelet has these gates."""
        node = LightNode(
            self.api, self.cloud.instance(), self.plane.version, gates, [DRIVER], reports_late=True
        )
        self.nodes.append(self._stack.enter_context(node))
        return node

    def start(self, component: str) -> None:
        if component == CONTROLLER:
            gates = self._gates[component]
            self.plane.start_controller_manager(gates, self.cloud, ELECTION)
        else:
            self.plane.start_scheduler(self._gates[component])

    def answer(self, question: dict[str, Any]) -> object:
        """What the hook is asked: to see gates, or to switch them."""
        name = question.get("component") or question["node"]
        if question["verb"] == "observe":
            down = name in self._gates and not self.plane.runs(name)
            seen = {"name": name, "gates": dict(self.gates_of(name))}
            return {"replicas": [] if down else [seen]}
        gates = {**self.gates_of(name), **question["gates"]}
        given = {gate: on for gate, on in gates.items() if on is not None}
        if name in self._gates:
            self._gates[name] = given
            self.start(name)
        else:
            self.before_restart(self._node(name))
            self._node(name).restart(given)
        return {}

    # Replant

    def plan(self, goal: str, *more: str) -> Path:
        """A plan that Replant has made of the cluster as it is, in a file."""
        command = [
            str(REPLANT),
            "plan",
            goal,
            "--plugin",
            "aws-ebs",
            "--kubeconfig",
            str(self.role),
        ]
        options = ["--control-plane-gates", _gates_option(self._gates[CONTROLLER]), "-o", "yaml"]
        made = subprocess.run(
            [*command, *options, *more], capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stdout + made.stderr
        plan = yaml.safe_load(made.stdout)
        for step in plan["steps"]:
            if "settleSeconds" in step:
                step["settleSeconds"] = SETTLE
        path = self.folder / f"{goal}-{time.time():.0f}.yaml"
        path.write_text(yaml.safe_dump(plan))
        return path

    def apply(self, plan: Path) -> Run:
        hooks = ("--actuator", "hooks", "--hook", self.hook.command)
        return Run(self, str(plan), *hooks, "--kubeconfig", str(self.role))

    def undo(self) -> Run:
        return Run(self, "--undo", "--kubeconfig", str(self.role))


@contextmanager
def cluster(
    cloud: Cloud,
    folder: Path,
    *,
    gates: Mapping[str, bool] = OFF,
    ends_after: int | None = None,
) -> Iterator[Cluster]:
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(programs.OLD, folder))
        yield Cluster(plane, cloud, folder, stack, gates=gates, ends_after=ends_after)


def _gates_option(gates: Mapping[str, bool]) -> str:
    return ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())


def _object(version: str, kind: str, name: str, namespace: str = "", **rest: object) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    ready = {"type": "Ready", "status": "True"}
    return "deletionTimestamp" not in pod["metadata"] and any(
        ready.items() <= it.items() for it in conditions
    )
