"""Many volumes of all plugins with their claims, and what becomes of them meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from replant.plan.deletion_secrets import DELETION_SECRET
from replant.swap import twin
from replant.translate import driver_of, plugins
from tests.real.ground import programs
from tests.real.ground.api import Api, Object
from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.nodes import LightNode
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import claim_object

REPLANT = Path(sys.executable).with_name("replant")
URI = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks"
ACCEPT = ("--accept-losses", "--accept-unsuited")
SOURCES: dict[str, Any] = {
    "aws-ebs": lambda n: {"awsElasticBlockStore": {"volumeID": f"aws://us-east-1a/vol-{n:017x}"}},
    "gce-pd": lambda n: {"gcePersistentDisk": {"pdName": f"disk-{n}", "fsType": "ext4"}},
    "cinder": lambda n: {"cinder": {"volumeID": f"cinder-{n}", "fsType": "ext4"}},
    "azure-disk": lambda n: {
        "azureDisk": {"diskName": f"d{n}", "diskURI": f"{URI}/d{n}", "kind": "Managed"}
    },
    "azure-file": lambda n: {
        "azureFile": {"shareName": f"share-{n}", "secretName": "s", "secretNamespace": "default"}
    },
    "vsphere-volume": lambda n: {"vsphereVolume": {"volumePath": f"[ds] kube/d{n}.vmdk"}},
    "portworx-volume": lambda n: {"portworxVolume": {"volumeID": f"px-{n}", "fsType": "ext4"}},
    "rbd": lambda n: {
        "rbd": {
            "monitors": ["10.0.0.1:6789"],
            "image": f"kubernetes-dynamic-pvc-{n}",
            "pool": "rbd",
            "secretRef": {"name": "ceph", "namespace": "default"},
        }
    },
}
ZONES = ("gce-pd",)
DELETED_WITH = {"rbd": dict.fromkeys(DELETION_SECRET, "ceph")}


def in_tree(number: int, policy: str = "Delete") -> Object:
    """One volume; each plugin in its turn."""
    plugin = list(SOURCES)[number % len(SOURCES)]
    name = f"disk-{number:04}"
    labels = {"topology.kubernetes.io/zone": "us-east-1a"} if plugin in ZONES else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "labels": {"test": "convert", **labels},
            "annotations": {
                "pv.kubernetes.io/provisioned-by": f"kubernetes.io/{plugin}",
                **DELETED_WITH.get(plugin, {}),
            },
        },
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": policy,
            "claimRef": {"name": name, "namespace": "default"},
            **SOURCES[plugin](number),
        },
    }


def twin_of(volume: Object) -> Object:
    """The native volume that takes its place."""
    return twin.native(volume)


@dataclass
class Unbound:
    """For how long claims were not Bound, as a watch was told."""

    seconds: list[float] = field(default_factory=list)
    """One for each time that a claim was not."""

    def worst(self, share: float) -> float:
        """So long it was at most, for this share of all; nothing where all stayed Bound."""
        if not self.seconds:
            return 0.0
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(len(self.seconds) * share))]


@contextmanager
def watched_claims(api: Api) -> Iterator[Unbound]:
    """Follow all claims while something is done to their volumes."""
    found, since, stop = Unbound(), dict[str, float](), threading.Event()
    client = api.client()

    def follow() -> None:
        path = "/api/v1/persistentvolumeclaims?watch=true"
        while not stop.is_set():
            # A watch may be ended by the server; the next one begins with all claims.
            with (
                suppress(httpx.HTTPError, OSError, RuntimeError),
                client.stream("GET", path, timeout=None) as answer,
            ):
                for line in answer.iter_lines():
                    hear(json.loads(line))

    def hear(told: Object) -> None:
        claim, now = told["object"], time.monotonic()
        name = claim["metadata"].get("name", "")
        if told["type"] == "DELETED" or claim.get("status", {}).get("phase") != "Bound":
            since.setdefault(name, now)
        elif name in since:
            found.seconds.append(now - since.pop(name))

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    time.sleep(0.5)
    yield found
    time.sleep(1)
    stop.set()
    now = time.monotonic()
    found.seconds += [now - it for it in since.values()]
    client.close()


@dataclass
class Ground:
    """A control plane, a node that redirects all plugins, and many volumes."""

    plane: ControlPlane
    role: Path
    count: int
    api: Api = field(init=False)

    def __post_init__(self) -> None:
        self.api = self.plane.api

    def replant(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [REPLANT, *arguments, "--kubeconfig", str(self.role)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        process = self.replant(*arguments)
        out, said = process.communicate(timeout=600)
        assert process.returncode == code, said[-4000:]
        return out

    def convert(self, *arguments: str, code: int = 0) -> str:
        return self.run(
            "convert", "-l", "test=convert", *ACCEPT, "--dry-run=false", "--yes",
            *arguments, code=code,
        )  # fmt: skip

    def volumes(self) -> dict[str, Object]:
        found = self.api.list("PersistentVolume", labelSelector="test=convert")
        return {it["metadata"]["name"]: it for it in found}

    def claims(self) -> dict[str, Object]:
        return {it["metadata"]["name"]: it for it in self.api.list("PersistentVolumeClaim")}

    def native(self) -> int:
        return sum("csi" in it["spec"] for it in self.volumes().values())

    def uids(self) -> dict[str, str]:
        return {name: it["metadata"]["uid"] for name, it in self.claims().items()}


@contextmanager
def ground(version: str, folder: Path, cloud: Cloud, count: int) -> Iterator[Ground]:
    """Real controllers, and as many volumes with their claims."""
    with ControlPlane(version, folder) as plane:
        old = version == programs.OLD
        gates = {"CSIMigrationAzureFile": True, "CSIMigrationvSphere": True}
        gates |= {"CSIMigrationPortworx": True, "CSIMigrationRBD": True, "CSIMigrationAWS": True}
        given = gates if old else {}
        # As rarely as by default: nobody may have to wait for them.
        plane.start_controller_manager(given, rounds="15s")
        plane.role_kubeconfig("apply")
        plane.apply_role("convert")
        drivers = [driver_of(it) for it in plugins()]
        for driver in drivers:
            plane.api.create(
                {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
                 "metadata": {"name": driver}, "spec": {}}
            )  # fmt: skip
        with LightNode(plane.api, cloud.instance(), version, given, drivers):
            made = [in_tree(number) for number in range(count)]
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(plane.api.create, made))
                claims = (
                    claim_object(it["metadata"]["name"], volumeName=it["metadata"]["name"],
                                 storageClassName="")
                    for it in made
                )  # fmt: skip
                list(pool.map(plane.api.create, claims))
            result = Ground(plane, plane.role_kubeconfig("apply"), count)
            wait_for(lambda: all_bound(result), "every claim to be Bound", 120)
            yield result


def all_bound(it: Ground) -> bool:
    claims = it.claims().values()
    return len(claims) == it.count and all(
        claim.get("status", {}).get("phase") == "Bound" for claim in claims
    )
