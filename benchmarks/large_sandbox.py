"""A sandbox of 5,000 nodes: how long 20,000 pods with volumes take to come up, and what it holds.

All of it happens in one thread, so what is measured is the processor's time: who else is busy on
the machine does not count. The floor is a store alone that is given the same objects.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from replant.objects import Object
from replant.sandbox.clock import VirtualClock
from replant.sandbox.cluster import Cluster
from replant.sandbox.resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    Registry,
)
from replant.sandbox.store import Store
from replant.sandbox.upkeep import Upkeep

NODES_WANTED, VOLUMES, PODS_WANTED = 5_000, 50_000, 20_000
SECONDS, MIB = 30.0, 2048.0
DRIVER = "ebs.csi.aws.com"
TEAMS = 40


def volume(serial: int) -> Object:
    zone = f"us-east-1{'abc'[serial % 3]}"
    return {
        "metadata": {
            "name": f"pv-{serial}",
            "labels": {"topology.kubernetes.io/zone": zone},
            "annotations": {
                "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs",
                "pv.kubernetes.io/migrated-to": DRIVER,
            },
            "finalizers": ["kubernetes.io/pv-protection"],
        },
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "standard",
            "awsElasticBlockStore": {"volumeID": f"aws://{zone}/vol-{serial:017x}"},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": f"team-{serial % TEAMS}",
                "name": f"data-{serial}",
            },
        },
        "status": {"phase": "Bound"},
    }


def claim(serial: int) -> Object:
    return {
        "metadata": {
            "name": f"data-{serial}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            "finalizers": ["kubernetes.io/pvc-protection"],
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": "standard",
            "volumeName": f"pv-{serial}",
        },
        "status": {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "10Gi"},
        },
    }


def pod(serial: int) -> Object:
    reference = {"claimName": f"data-{serial}"}
    return {
        "metadata": {"name": f"app-{serial}", "labels": {"app": f"app-{serial % 300}"}},
        "spec": {
            "containers": [{"name": "app", "image": "registry.example.org/app:1.4"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": reference}],
        },
    }


def new_store(clock: VirtualClock) -> Store:
    numbers = count(1)
    store = Store(clock.now, lambda: f"{next(numbers):012x}-4000-8000-000000000000")
    Upkeep(store, Registry(), clock.now)
    return store


def fill(store: Store) -> None:
    for serial in range(TEAMS):
        store.create(NAMESPACES, {"metadata": {"name": f"team-{serial}"}})
    for serial in range(VOLUMES):
        namespace = f"team-{serial % TEAMS}"
        made = store.create(
            PERSISTENT_VOLUME_CLAIMS, claim(serial), namespace=namespace, as_it_was=True
        )
        bound = volume(serial)
        bound["spec"]["claimRef"]["uid"] = made.uid
        store.create(PERSISTENT_VOLUMES, bound, as_it_was=True)
    for serial in range(PODS_WANTED):
        store.create(PODS, pod(serial), namespace=f"team-{serial % TEAMS}")


@contextmanager
def timed(what: str, taken: list[float]) -> Iterator[None]:
    start = time.process_time()
    yield
    taken.append(time.process_time() - start)
    print(f"  {what:42} {taken[-1]:6.2f} s")


def main() -> None:
    print(f"sandbox, {NODES_WANTED:,} nodes, {VOLUMES:,} volumes, {PODS_WANTED:,} pods")
    # As everywhere where much is decoded at once: nothing of it is garbage before the end.
    gc.disable()
    floor: list[float] = []
    with timed("floor: a store alone takes these in", floor):
        fill(new_store(VirtualClock()))
    clock = VirtualClock()
    store = new_store(clock)
    cluster = Cluster(store, clock, gates={"CSIMigrationAWS": True}, replicas=3)
    cluster.run_driver(DRIVER)
    taken: list[float] = []
    with timed("nodes join", taken):
        for serial in range(NODES_WANTED):
            zone = f"us-east-1{'abc'[serial % 3]}"
            gates = {"CSIMigrationAWS": serial % 2 == 0}
            cluster.add_node(f"node-{serial}", gates, zone=zone, drivers=[DRIVER])
    with timed("volumes, claims and pods are created", taken):
        fill(store)
    with timed("pods run: 30 s of the cluster's time", taken):
        cluster.run_for(30)
    running = store.entries(PODS, "", lambda it: it.fields["status.phase"] == "Running")
    with_volumes = sum(1 for it in running if it.namespace != "kube-system")
    if with_volumes != PODS_WANTED:
        sys.exit(f"only {with_volumes} pods run")
    seconds = sum(taken)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  all together{'':30} {seconds:6.2f} s   (wanted: at most {SECONDS:.0f})")
    ratio = seconds / floor[0]
    print(f"  ratio{'':37} {ratio:6.2f}")
    print(f"  largest memory{'':28} {peak:6.0f} MiB (wanted: at most {MIB:.0f})")
    with timed("three controllers are restarted", []):
        for number in range(3):
            cluster.switch_controller(number, {"CSIMigrationAWS": True})
            cluster.run_for(5)
    with timed("an idle hour", []):
        cluster.run_for(3600)


if __name__ == "__main__":
    main()
