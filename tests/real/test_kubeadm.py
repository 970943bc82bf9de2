"""Agents on the real node: they edit a static pod's manifest and a kubelet's file, as it runs."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
import yaml

from replant.cluster.live import connect
from replant.cluster.writing import LiveWriter
from replant.errors import Final, Retryable
from replant.execute.actuators import Place, Replica, Wanted, is_so
from replant.execute.namespace import NAMESPACE
from replant.platforms.agent_pods import LABEL, SECURITY, agent_pod
from replant.platforms.kubeadm import Kubeadm
from tests.real.ground import programs
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.machine import IMAGE, Machine
from tests.real.ground.processes import free_port, wait_for

SCHEDULER = Place(component="kube-scheduler")
GATE = "CSIMigrationAWS"
STATE = Path("/var/lib/replant")

T = TypeVar("T")


@dataclass
class Node:
    """A real node with a real scheduler in a static pod, and the actuator for it."""

    plane: ControlPlane
    machine: Machine
    told: list[str] = field(default_factory=list)

    @property
    def kubelet(self) -> Place:
        return Place(node=self.machine.name)

    @property
    def manifest(self) -> Path:
        return self.machine.manifests / "kube-scheduler.yaml"

    def with_actuator(
        self,
        act: Callable[[Kubeadm], Awaitable[T]],
        image: str = IMAGE,
        kubeconfig: Path | None = None,
    ) -> T:
        async def run() -> T:
            async with connect(str(kubeconfig or self.plane.kubeconfig())) as reader:
                pid = f"$(cat {self.machine.kubelet_pid})"
                kubeadm = Kubeadm(
                    reader,
                    LiveWriter(reader),
                    image,
                    restart_command=f"kill {pid}",
                    check_command=f"kill -0 {pid}",
                    manifests=str(self.machine.manifests),
                    kubelet_config=str(self.machine.kubelet_config),
                    tell=self.told.append,
                )
                try:
                    return await act(kubeadm)
                finally:
                    await kubeadm.aclose()

        return asyncio.run(run())

    def switch(self, place: Place, wanted: Wanted) -> None:
        self.with_actuator(lambda it: it.switch(place, wanted))

    def observe(self, place: Place) -> tuple[Replica, ...]:
        return self.with_actuator(lambda it: it.observe(place)) or ()

    def agents_left(self) -> list[str]:
        pods = self.plane.api.list("Pod", NAMESPACE, labelSelector=LABEL)
        return [it["metadata"]["name"] for it in pods]

    def copies(self) -> list[str]:
        return self.machine.ask("ls", f"{STATE}/backup").split()

    def command_line(self, program: str) -> str:
        """The arguments of the one process on the node that is called so."""
        [line] = self.machine.ask(
            "sh", "-c", f"for it in $(pidof {program}); do tr '\\0' ' ' < /proc/$it/cmdline; done"
        ).splitlines() or [""]
        return line


@pytest.fixture(scope="module")
def node(old: ControlPlane, ground: Path) -> Iterator[Node]:
    # The API server finds a kubelet by its node's name, to read logs and its configuration.
    name = machine_address()
    folder = ground / "node-kubeadm"
    with Machine(old, folder, name, {GATE: False}, address=name, supervised=True) as machine:
        node = Node(old, machine)
        # As whoever keeps a journal in it has made it: nothing says that pods may be privileged.
        if not old.api.find("Namespace", NAMESPACE):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            old.api.create(namespace)
        node.manifest.write_text(scheduler_manifest(old))
        wait_for(lambda: is_so(node.observe(SCHEDULER), Wanted({})), "the scheduler", 60)
        yield node
    old.api.delete("Node", name)


def machine_address() -> str:
    """The address that the machine would use to talk to others; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somewhere:
        somewhere.connect(("192.0.2.1", 9))
        address: str = somewhere.getsockname()[0]
        return address


def scheduler_manifest(plane: ControlPlane) -> str:
    """A scheduler as kubeadm runs it, but for the program and its libraries: the machine's."""
    program = programs.program(plane.version, "kube-scheduler")
    user = plane.kubeconfig("system:kube-scheduler", group="system:kube-scheduler")
    port = free_port()
    folders = {"/programs": program.parent, str(plane.folder): plane.folder}
    folders |= {str(it): it for it in (Path("/lib"), Path("/lib64")) if it.exists()}
    mounts = [{"name": f"n{n}", "mountPath": path} for n, path in enumerate(folders)]
    sources = enumerate(folders.values())
    volumes = [{"name": f"n{n}", "hostPath": {"path": str(path)}} for n, path in sources]
    return f"""\
# kept by hand
apiVersion: v1
kind: Pod
metadata:
  name: kube-scheduler
  namespace: kube-system
  labels: {{component: kube-scheduler, tier: control-plane}}
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 1
  containers:
  - name: kube-scheduler
    image: {IMAGE}
    imagePullPolicy: IfNotPresent
    command:
    - /programs/kube-scheduler
    - --kubeconfig={user}
    - --leader-elect=false   # there is one
    - --bind-address=127.0.0.1
    - --secure-port={port}
    readinessProbe:
      periodSeconds: 1
      httpGet: {{host: 127.0.0.1, path: /healthz, port: {port}, scheme: HTTPS}}
    volumeMounts: {json.dumps(mounts)}
  volumes: {json.dumps(volumes)}
"""


def test_a_static_pod_is_run_anew_with_its_new_gates(node: Node) -> None:
    before = node.manifest.read_text()
    wanted = Wanted({GATE: False})
    node.switch(SCHEDULER, wanted)
    [replica] = node.observe(SCHEDULER)
    assert replica.name == f"kube-scheduler-{node.machine.name}"
    assert is_so((replica,), wanted)
    assert f"--feature-gates={GATE}=false" in node.command_line("kube-scheduler")
    last = before[before.index("    - --secure-port") :].splitlines(keepends=True)[0]
    flag = f"    - --feature-gates={GATE}=false\n"
    assert node.manifest.read_text() == before.replace(last, last + flag)
    assert list(node.machine.manifests.iterdir()) == [node.manifest]
    [copy] = [it for it in node.copies() if it.endswith("-kube-scheduler.yaml")]
    assert node.machine.ask("cat", f"{STATE}/backup/{copy}") == before
    assert node.told[-1].endswith(f"{STATE}/backup/{copy}")
    wait_for(lambda: not node.agents_left(), "the agents to be gone")
    labels = node.plane.api.get("Namespace", NAMESPACE)["metadata"]["labels"]
    assert labels[SECURITY] == "privileged"

    pid = node.machine.ask("pidof", "kube-scheduler")
    node.switch(SCHEDULER, wanted)
    assert node.machine.ask("pidof", "kube-scheduler") == pid, "it was so already"
    assert len(node.copies()) == 1

    node.switch(SCHEDULER, Wanted({GATE: None}))
    assert node.manifest.read_text() == before
    assert "feature-gates" not in node.command_line("kube-scheduler")


def test_a_kubelet_runs_with_its_new_gates(node: Node) -> None:
    assert node.observe(node.kubelet) == (Replica(node.machine.name, {GATE: False}),)
    before = node.machine.kubelet_config.read_text()
    wanted = Wanted({GATE: True, "CSIMigrationGCE": False})
    node.switch(node.kubelet, wanted)
    wait_for(lambda: is_so(node.observe(node.kubelet), wanted), "the kubelet to say so", 60)
    config = yaml.safe_load(node.machine.kubelet_config.read_text())
    assert config == {**yaml.safe_load(before), "featureGates": wanted.gates}
    assert not node.machine.ask("find", str(STATE), "-name", "restart-due")

    pid = node.machine.kubelet_pid.read_text()
    node.switch(node.kubelet, wanted)
    assert node.machine.kubelet_pid.read_text() == pid, "it was so already"

    back = Wanted({GATE: False, "CSIMigrationGCE": None})
    node.switch(node.kubelet, back)
    wait_for(lambda: is_so(node.observe(node.kubelet), back), "the kubelet to say so", 60)


def test_a_kubelet_that_does_not_start_has_its_file_back(node: Node) -> None:
    before = node.machine.kubelet_config.read_text()
    with pytest.raises(Final, match="does not stay up with it; the file is as it was"):
        node.switch(node.kubelet, Wanted({"NoSuchGate": True}))
    assert node.machine.kubelet_config.read_text() == before
    wait_for(lambda: node.observe(node.kubelet), "the kubelet to answer", 60)
    assert not node.machine.ask("find", str(STATE), "-name", "restart-due")


def test_what_a_killed_run_left_is_removed(node: Node) -> None:
    node.switch(SCHEDULER, Wanted({GATE: None}))  # which makes the agents' account
    left = agent_pod(
        "replant-agent-left", node.machine.name, IMAGE, "sleep 600", {"FILE": "/"}, writes=False
    )
    left["spec"]["terminationGracePeriodSeconds"] = 1
    node.plane.api.create(left)
    node.switch(SCHEDULER, Wanted({GATE: None}))
    wait_for(lambda: not node.agents_left(), "the agents to be gone")


def test_the_role_that_is_shipped_is_enough(node: Node) -> None:
    user = node.plane.role_kubeconfig("apply")
    node.plane.apply_role("kubeadm")
    node.with_actuator(lambda it: it.switch(SCHEDULER, Wanted({"A": None})), kubeconfig=user)
    wait_for(lambda: not node.agents_left(), "the agents to be gone")


def test_an_image_that_is_not_there_is_told(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replant.platforms.agent.PULLING", 3)
    image = "127.0.0.1:9/nothing:1"
    with pytest.raises(Retryable, match=f"the image {image} cannot be had"):
        node.with_actuator(lambda it: it.switch(node.kubelet, Wanted({GATE: True})), image)
    wait_for(lambda: not node.agents_left(), "the agents to be gone")
