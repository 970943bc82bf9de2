"""People and failures that get in the way of conversions, and what must hold all the same."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.real.applying import REPLICAS
from tests.real.attaching import GATE
from tests.real.converting import REPLANT
from tests.real.ground import programs
from tests.real.ground.api import Object, Refused
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.drivers import ControllerDriver
from tests.real.ground.nodes import DRIVER, IGNORES_SIGTERM, LightNode
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import Volume, new_volume, pod_object
from tests.real.vigil import yanked

VOLUMES = 40
"""Of which each of the first ones is used by a Deployment."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
CONTROLLER, API_SERVER = "kube-controller-manager", "kube-apiserver"
ATTEMPTS = 5
RESUMABLE, BLOCKED = 4, 3
NOTHING_TO_UNDO = "no volume is native by a conversion"
PAUSE = 0.4
"""Seconds between two deeds, at most twice as much."""
ENDS_AFTER = 5
AWAY = 6.0
"""Seconds that the API server is away."""
POLICIES = {"Delete": "Retain", "Retain": "Delete"}


@dataclass
class Fate:
    """What people have done to a volume."""

    volume: Volume
    claim_uid: str
    policy: str
    """What somebody gave it last."""
    may_go: bool = False
    """Whether its claim was deleted while its policy said that the disk goes with it."""
    is_unclaimed: bool = False


@dataclass
class Hostile:
    """A cluster with volumes, and a thread that does something to it all the time."""

    plane: ControlPlane
    cloud: Cloud
    nodes: list[LightNode]
    fates: dict[str, Fate]
    seed: int
    pool: ThreadPoolExecutor
    """Of one thread. What it has started ends with it, so it stays while the cluster does."""
    deeds: dict[str, int] = field(default_factory=dict)
    """By kind, how often it was done."""

    def __post_init__(self) -> None:
        self.api = self.plane.api
        self._random = random.Random(self.seed)  # noqa: S311
        self._stopped = threading.Event()

    @contextmanager
    def acting(self) -> Iterator[None]:
        acting = self.pool.submit(self._act)
        try:
            yield
        finally:
            self._stopped.set()
        acting.result()

    def _act(self) -> None:
        acts: dict[Callable[[Fate], None], int] = {
            self.delete_claim: 2,
            self.delete_pod: 6,
            self.label_volume: 8,
            self.annotate_claim: 8,
            self.change_policy: 6,
            self.roll_out: 6,
            self.restart_controller_manager: 1,
            self.restart_api_server: 1,
        }
        while not self._stopped.wait(PAUSE * self._random.uniform(0.2, 2)):
            (act,) = self._random.choices(list(acts), list(acts.values()))
            fate = self._random.choice(list(self.fates.values()))
            # An object may be gone, and the API server busy.
            with suppress(httpx.TransportError, Refused):
                act(fate)
                self.deeds[act.__name__] = self.deeds.get(act.__name__, 0) + 1

    # What people do

    def delete_claim(self, fate: Fate) -> None:
        """An answer may get lost, so what is judged is noted first."""
        if fate.is_unclaimed:
            return
        fate.is_unclaimed = True
        fate.may_go |= fate.policy == "Delete"
        self.api.delete("PersistentVolumeClaim", fate.volume.name, "default")

    def delete_pod(self, fate: Fate) -> None:
        for pod in self.api.list("Pod", "default", labelSelector=f"app={fate.volume.name}"):
            self.api.delete("Pod", pod["metadata"]["name"], "default")

    def roll_out(self, fate: Fate) -> None:
        at = {"kubectl.kubernetes.io/restartedAt": f"{time.time():.3f}"}
        change = {"spec": {"template": {"metadata": {"annotations": at}}}}
        self.api.patch("Deployment", fate.volume.name, change, "default")

    def label_volume(self, fate: Fate) -> None:
        label = {"metadata": {"labels": {"touched": f"{self._random.randrange(1000)}"}}}
        self.api.patch("PersistentVolume", fate.volume.name, label)

    def annotate_claim(self, fate: Fate) -> None:
        note = {"metadata": {"annotations": {"example.com/note": f"{self._random.random()}"}}}
        self.api.patch("PersistentVolumeClaim", fate.volume.name, note, "default")

    def change_policy(self, fate: Fate) -> None:
        """Give a volume the other policy than it seems to have."""
        volume = fate.volume.pv
        policy = POLICIES[volume["spec"]["persistentVolumeReclaimPolicy"]]
        version = volume["metadata"]["resourceVersion"]
        change = {
            "metadata": {"resourceVersion": version},
            "spec": {"persistentVolumeReclaimPolicy": policy},
        }
        # Whoever asks to keep or to delete a disk may have been heard, though no answer came.
        fate.may_go |= fate.is_unclaimed and policy == "Delete"
        self.api.patch("PersistentVolume", fate.volume.name, change)
        fate.policy = policy

    # What fails

    def restart_controller_manager(self, _fate: Fate) -> None:
        self.plane.restart_controller_manager()

    def restart_api_server(self, _fate: Fate) -> None:
        self.plane.kill_part(API_SERVER)
        time.sleep(self._random.uniform(0, AWAY))
        self.plane.restart_api_server()

    # What must hold

    def wrong(self) -> list[str]:
        """What is wrong with volumes, now that nobody does anything any more."""
        found = yanked(self.cloud, self.nodes)
        volumes = {it["metadata"]["name"]: it for it in self.api.list("PersistentVolume")}
        claims = {it["metadata"]["name"]: it for it in self.api.list("PersistentVolumeClaim")}
        for name, fate in self.fates.items():
            found += [
                f"{name}: {it}"
                for it in _wrong_with(fate, volumes.get(name), claims.get(name), self.cloud)
            ]
        return found


def _wrong_with(
    fate: Fate, volume: Object | None, claim: Object | None, cloud: Cloud
) -> Iterator[str]:
    if not cloud.has(fate.volume.disk):
        if not fate.may_go:
            yield "its disk was deleted"
        return
    if volume is None:
        yield "no PersistentVolume names its disk"
        return
    if fate.volume.disk not in str(volume["spec"]):
        yield "its PersistentVolume names another disk"
    if fate.is_unclaimed:
        return
    if claim is None or claim["metadata"]["uid"] != fate.claim_uid:
        yield "its claim is another one, or gone"
    elif claim["status"]["phase"] != "Bound":
        yield f"its claim is {claim['status']['phase']}"
    if (policy := volume["spec"]["persistentVolumeReclaimPolicy"]) != fate.policy:
        yield f"its policy is {policy}, and should be {fate.policy}"


@contextmanager
def cluster(version: str, cloud: Cloud, folder: Path, seed: int) -> Iterator[tuple[Hostile, Path]]:
    """Real controllers, a driver that reclaims, and volumes, some of them used by Deployments."""
    gates = {GATE: True} if version == programs.OLD else {}
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(1))
        plane = stack.enter_context(ControlPlane(version, folder))
        cloud_of = cloud if gates else None
        plane.start_controller_manager(gates, cloud_of)
        plane.start_scheduler()
        plane.role_kubeconfig("apply")
        plane.apply_role("convert")
        driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "spec": {}}
        plane.api.create({**driver, "metadata": {"name": DRIVER}})
        nodes = [
            stack.enter_context(
                LightNode(plane.api, cloud.instance(), version, gates, [DRIVER], reports_late=True)
            )
            for _number in range(2)
        ]
        # It ends before the nodes do, whose pods it serves.
        stack.enter_context(ControllerDriver(plane, cloud, folder / "driver", provisions=True))
        fates = {}
        for number in range(VOLUMES):
            name = f"web-{number}"
            volume = new_volume(plane.api, cloud, name)
            policy = list(POLICIES)[number % 2]
            change = {
                "metadata": {
                    "labels": {"test": "hostile"},
                    "annotations": {PROVISIONED_BY: "kubernetes.io/aws-ebs"},
                },
                "spec": {"persistentVolumeReclaimPolicy": policy},
            }
            plane.api.patch("PersistentVolume", name, change)
            fates[name] = Fate(volume, volume.claim["metadata"]["uid"], policy)
            if number < 2 * REPLICAS:
                plane.api.create(_deployment(name))
        # As rarely as by default, once the claims need not wait for it any more.
        plane.start_controller_manager(gates, cloud_of, rounds="15s")
        hostile = Hostile(plane, cloud, nodes, fates, seed, pool)
        wait_for(lambda: len(_ready(hostile)) == 2 * REPLICAS, "the Deployments to run", 120)
        yield hostile, plane.role_kubeconfig("apply")


def _deployment(name: str) -> Object:
    labels = {"app": name}
    template = pod_object(name, claim=name)["spec"]
    del template["tolerations"]
    template["terminationGracePeriodSeconds"] = ENDS_AFTER
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {IGNORES_SIGTERM: "true"}},
                "spec": template,
            },
        },
    }


def _ready(hostile: Hostile) -> list[Object]:
    pods = hostile.api.list("Pod", "default")
    return [it for it in pods if it["status"]["phase"] == "Running"]


class Conversions:
    """Conversions there and back, killed at any moment and gone on with."""

    def __init__(self, role: Path, seed: int) -> None:
        self.codes: dict[int, int] = {}
        """By exit code, how many commands ended with it; -9 were killed."""
        self._role = role
        self._random = random.Random(seed)  # noqa: S311

    def run(self, *arguments: str, kill: bool = False) -> tuple[int, str]:
        command = [str(REPLANT), *arguments, "--yes", "--kubeconfig", str(self._role)]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=self._random.uniform(1, 6) if kill else 300)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            assert kill, f"{arguments} did not end: {said}"
        assert "Traceback" not in said
        code = process.returncode
        self.codes[code] = self.codes.get(code, 0) + 1
        return code, said

    def go_on(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for back in ((), ("--undo",)):
                kill = self._random.random() < 1 / 3
                selected = ("-l", "test=hostile", "--dry-run=false")
                self.run("convert", *back, *selected, kill=kill)
                self.run("apply", "--resume", kill=kill and self._random.random() < 1 / 2)

    def end(self) -> None:
        """Have no run unfinished, and every volume in-tree again."""
        for _attempt in range(ATTEMPTS):
            code, said = self.run("apply", "--resume")
            if code != RESUMABLE:
                break
        code, said = self.run("convert", "--undo", "-l", "test=hostile", "--dry-run=false")
        assert code in (0, BLOCKED) or NOTHING_TO_UNDO in said, said
