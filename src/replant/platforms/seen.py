"""What the API alone tells of gates: components by their pods, kubelets by their configuration.

Neither is always there: control planes of providers have no pods, and to ask kubelets takes
nodes/proxy. Then it is not known, which is not the same as none.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from replant.cluster.collect import CONTROL_PLANE, kubelet_gates
from replant.cluster.ports import PODS, Reader, Selected
from replant.errors import Final, Forbidden, NotServed, Unreachable, printable
from replant.execute.actuators import Place, Replica
from replant.inventory.controlplane import control_plane_pod
from replant.inventory.node_records import NodeCondition
from replant.inventory.pod_records import Pod


class ComponentPod(NamedTuple):
    """A replica of a component, and the node that it runs on."""

    node: str
    replica: Replica


class _PodStatus(msgspec.Struct, gc=False):
    conditions: list[NodeCondition] | None = None


class _Readiness(msgspec.Struct, gc=False):
    status: _PodStatus | None = None


class _Pods(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None = None


_PAGE = msgspec.json.Decoder(_Pods)
_POD = msgspec.json.Decoder(Pod)
_READINESS = msgspec.json.Decoder(_Readiness)


class Seen:
    """Looks at places through the API."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: set[str] = set()
        """Components that had pods: when these have none, they are down and not hidden."""

    async def observe(self, place: Place) -> tuple[Replica, ...] | None:
        """The replicas of a place; None if it cannot be told."""
        if place.node:
            return await self._kubelet(place.node)
        try:
            pods = await self.pods(place.component)
        except (Forbidden, NotServed):
            return None
        if pods:
            self._known.add(place.component)
        elif place.component not in self._known:
            return None
        return tuple(it.replica for it in pods)

    async def pods(self, component: str) -> list[ComponentPod]:
        """The pods of a component of the control plane, by node."""
        found: list[ComponentPod] = []
        selected = Selected(labels=f"component={component}")
        async for page in self._reader.list_pages(PODS, namespace=CONTROL_PLANE, selected=selected):
            if page.first:
                found.clear()
            found += _component_pods(page.body, component)
        return sorted(found, key=lambda it: (it.node, it.replica.name))

    async def _kubelet(self, node: str) -> tuple[Replica, ...] | None:
        try:
            return (Replica(node, kubelet_gates(await self._reader.node_config(node))),)
        except Unreachable:
            return ()  # as far as can be seen from here, it is down
        except (Final, ValueError):
            return None  # not allowed, or this kubelet does not tell


def _component_pods(page: bytes, component: str) -> list[ComponentPod]:
    try:
        raw = _PAGE.decode(page).items or ()
        return [it for body in raw if (it := _component_pod(body, component))]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = printable(str(error))
        raise Final(f"the pods of {component} in {CONTROL_PLANE} cannot be read: {why}") from error


def _component_pod(body: msgspec.Raw, component: str) -> ComponentPod | None:
    pod = control_plane_pod(_POD.decode(body))
    if pod is None or pod.component != component:
        return None
    replica = Replica(pod.name, pod.gates, pod.flags, _is_ready(_READINESS.decode(body)))
    return ComponentPod(pod.node, replica)


def _is_ready(pod: _Readiness) -> bool:
    conditions = (pod.status and pod.status.conditions) or ()
    return any(it.type == "Ready" and it.status == "True" for it in conditions)
