"""Small clusters to plan for, and plans of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from replant.gates.plugins import migrated
from replant.gates.versions import Version
from replant.inventory.model import Inventory
from replant.plan.make import Wanted, make_plan
from replant.plan.model import Check, Goal, Plan, Weight
from replant.plan.preflight import preflight
from replant.plan.situation import situation
from replant.translate import driver_of
from tests.inventory.clusters import AWS, CONTROLLER, Object, component, csi_node, driver, node, pv
from tests.inventory.clusters import inventory_of as joined

SCHEDULER, API_SERVER = "kube-scheduler", "kube-apiserver"

SOURCES: dict[str, Object] = {
    AWS: {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    "kubernetes.io/gce-pd": {"gcePersistentDisk": {"pdName": "disk"}},
    "kubernetes.io/cinder": {"cinder": {"volumeID": "disk"}},
    "kubernetes.io/azure-disk": {
        "azureDisk": {"diskName": "disk", "diskURI": "/subscriptions/1", "kind": "Managed"}
    },
    "kubernetes.io/azure-file": {
        "azureFile": {"secretName": "key", "shareName": "share", "secretNamespace": "shop"}
    },
    "kubernetes.io/vsphere-volume": {"vsphereVolume": {"volumePath": "[store] disk.vmdk"}},
    "kubernetes.io/portworx-volume": {"portworxVolume": {"volumeID": "1"}},
    "kubernetes.io/rbd": {
        "rbd": {"image": "kubernetes-dynamic-pvc-1", "monitors": ["m"], "pool": "p"}
    },
}

CLOUDS = {
    AWS: "aws",
    "kubernetes.io/gce-pd": "gce",
    "kubernetes.io/cinder": "openstack",
    "kubernetes.io/azure-disk": "azure",
    "kubernetes.io/azure-file": "azure",
    "kubernetes.io/vsphere-volume": "vsphere",
}


@dataclass(frozen=True)
class Kubelet:
    """A node's kubelet; by default of the server's version, and with no gates given to it."""

    version: str = ""
    gates: dict[str, bool] = field(default_factory=dict)
    ready: str = "True"
    cordoned: bool = False
    drivers: tuple[str, ...] | None = None
    """By default the plugin's."""
    announces: bool | None = None
    """By default what its gates say."""


def written(gates: dict[str, bool]) -> str:
    pairs = ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())
    return f"--feature-gates={pairs}"


def objects_of(
    plugin: str = AWS,
    *extra: Object,
    server: str = "1.22.17",
    gates: dict[str, bool] | None = None,
    flags: Sequence[str] | None = None,
    kubelets: Iterable[Kubelet] = (Kubelet(), Kubelet()),
    replicas: int = 3,
    volume: bool = True,
    installed: bool = True,
) -> list[Object]:
    """A cluster with a volume of the plugin, its driver everywhere, and all that ``extra`` is."""
    name = driver_of(plugin)
    found = [pv("db", **SOURCES[plugin])] if volume else []
    found += [driver(name)] if installed else []
    cloud = [f"--cloud-provider={CLOUDS[plugin]}"] if plugin in CLOUDS else []
    for replica in "abcde"[:replicas]:
        given = [written(gates)] if gates else []
        found.append(component(*given, *(cloud if flags is None else flags), on=replica))
        found.append(component(*given, component=SCHEDULER, on=replica))
    for number, it in enumerate(kubelets, 1):
        version = it.version or server
        on = migrated(plugin, Version.parse(version), it.gates)
        status = {
            "nodeInfo": {"kubeletVersion": f"v{version}"},
            "conditions": [{"type": "Ready", "status": it.ready}],
        }
        spec = {"unschedulable": True} if it.cordoned else {}
        found.append(node(f"n{number}", status=status, spec=spec))
        announced = on if it.announces is None else it.announces
        drivers = (name,) if it.drivers is None else it.drivers
        found.append(csi_node(f"n{number}", *drivers, migrated=plugin if announced else ""))
    return [*found, *extra]


def inventory_of(
    plugin: str = AWS, *extra: Object, server: str = "1.22.17", asked: bool = False, **more: Any
) -> Inventory:
    """The same, joined; with ``asked`` kubelets have said what they are given."""
    found = joined(objects_of(plugin, *extra, server=server, **more), server=server)
    if asked:
        found.node_gates = {f"n{at}": it.gates for at, it in enumerate(more["kubelets"], 1)}
    return found


def planned(
    goal: str, plugin: str = AWS, *extra: Object, wanted: dict[str, Any] | None = None, **more: Any
) -> Plan:
    return make_plan(
        Wanted(**{"goal": Goal(goal), "plugins": (plugin,), **(wanted or {})}),
        inventory_of(plugin, *extra, **more),
    )


def looked(
    goal: str, plugin: str = AWS, *extra: Object, server: str = "1.22.17", **more: Any
) -> tuple[Check, ...]:
    """The preflight alone: nothing is proved, which takes most of the time."""
    now = situation(inventory_of(plugin, *extra, server=server, **more), (plugin,))
    return preflight(Goal(goal), now)


def ids(plan: Plan) -> list[str]:
    return [step.id for step in plan.steps]


def step_of(plan: Plan, step_id: str) -> Any:
    (found,) = (step for step in plan.steps if step.id == step_id)
    return found


def given_to(step: Any, name: str = CONTROLLER) -> dict[str, bool | None]:
    """The gates that a step gives a component."""
    (found,) = (it.gates for it in step.components if it.name == name)
    gates: dict[str, bool | None] = found
    return gates


def tripped(checks: Iterable[Check], name: str) -> list[tuple[Weight, str]]:
    """What a check found, apart from that all is well."""
    mine = (it for it in checks if it.check == name)
    return [(it.result, it.message) for it in mine if it.result is not Weight.PASSED]
