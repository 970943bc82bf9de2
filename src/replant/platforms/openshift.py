"""Switches gates on OpenShift: the FeatureGate is changed, its operators do the rest.

What to change ``openshift_changes`` says, and ``openshift_state`` whether it has come about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec

from replant.cluster.ports import CSI_NODES, FEATURE_GATES, Reader, Resource, Writer
from replant.errors import Final, Forbidden, Missing, NotServed, Refused, printable
from replant.execute.actuators import KUBELETS, Place, Replica, Wanted
from replant.gates.featuresets import CUSTOM
from replant.gates.versions import Version
from replant.objects import Object
from replant.plan.courses import CONTROLLER
from replant.platforms.openshift_changes import (
    Change,
    Forget,
    Intent,
    Pause,
    Rules,
    SetFeatures,
    next_change,
    refuse_beginning,
    what_means_nothing,
)
from replant.platforms.openshift_state import (
    COMPONENTS,
    MIGRATED_PLUGINS,
    PAUSED_BY,
    Cluster,
    Features,
    Operator,
    Pool,
    allowed_sets,
    component_replicas,
    observed_gates,
    pool_replicas,
)

CLUSTER_OPERATORS = Resource("ClusterOperator", "clusteroperators", "config.openshift.io")
POOLS = Resource("MachineConfigPool", "machineconfigpools", "machineconfiguration.openshift.io")
DEFINITIONS = Resource(
    "CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io"
)
OPERATORS = {
    "kube-apiserver": Resource("KubeAPIServer", "kubeapiservers", "operator.openshift.io"),
    "kube-controller-manager": Resource(
        "KubeControllerManager", "kubecontrollermanagers", "operator.openshift.io"
    ),
    "kube-scheduler": Resource("KubeScheduler", "kubeschedulers", "operator.openshift.io"),
}
CLUSTER = "cluster"
_MOST = 10
"""Changes that one switch may take; each is decided upon what is seen after the one before."""

Tell = Callable[[str], None]


class OpenShift:
    """An actuator that asks the cluster's own operators."""

    def __init__(
        self, reader: Reader, writer: Writer, rules: Rules, tell: Tell = lambda _: None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._rules = rules
        self._tell = tell
        self._changing = asyncio.Lock()

    async def refuse_impossible(self, intent: Intent) -> None:
        """Refused, before anything is touched, where gates cannot be switched in this way."""
        refuse_beginning((await self._look())[0], self._rules, intent)

    async def observe(self, place: Place) -> tuple[Replica, ...] | None:
        """What the operators say; see Actuator."""
        seen, _features = await self._look()
        if place == KUBELETS:
            return pool_replicas(seen)
        return component_replicas(place.component, seen) if place.component in COMPONENTS else None

    async def switch(self, place: Place, wanted: Wanted) -> None:
        """Have the FeatureGate say so, and pools wait until it is their turn; see Actuator."""
        if place.node:
            raise Refused(
                f"{place.name} cannot be switched alone: the machine-config operator rolls all "
                "nodes by itself. Make the plan with --nodes platform."
            )
        async with self._changing:
            for _ in range(_MOST):
                seen, features = await self._look()
                change = next_change(place == KUBELETS, wanted, seen, self._rules)
                if change is None:
                    if why := what_means_nothing(wanted, seen):
                        self._tell(why)
                    return
                await self._make(change, seen, features)

    async def aclose(self) -> None:
        """There is nothing to leave behind."""

    async def _make(self, change: Change, seen: Cluster, features: Object) -> None:
        match change:
            case SetFeatures():
                if change.warning:
                    self._tell(change.warning)
                await self._writer.patch(FEATURE_GATES, CLUSTER, _patch(change.features, features))
            case Pause():
                mark = "replant" if change.paused else None
                for pool in _named(change.pools, seen):
                    patch = _marking(pool, mark) | {"spec": {"paused": change.paused}}
                    await self._writer.patch(POOLS, pool.name, patch)
            case Forget():
                for pool in _named(change.pools, seen):
                    await self._writer.patch(POOLS, pool.name, _marking(pool, None))

    async def _look(self) -> tuple[Cluster, Object]:
        """All of it, and the FeatureGate as it is; that one first, for the others follow it."""
        features = await self._get(FEATURE_GATES, CLUSTER)
        # Neither stays what it is when the cluster goes to another version.
        allowed = allowed_sets(await self._get(DEFINITIONS, "featuregates.config.openshift.io"))
        version = Version.parse(await self._reader.server_version())
        operators = {}
        for name, resource in OPERATORS.items():
            # Read before what it is about: a ClusterOperator that is older says nothing of it.
            operator = await self._get(resource, CLUSTER)
            said = await self._get(CLUSTER_OPERATORS, name)
            operators[name] = Operator.of(name, operator, said)
        pools = tuple(Pool.of(it) for it in await self._all(POOLS))
        listed = {it["metadata"]["name"]: _listed(it) for it in await self._all(CSI_NODES)}
        return (
            Cluster(Features.of(features), allowed, operators, pools, listed, version),
            features,
        )

    async def _get(self, resource: Resource, name: str) -> Object:
        try:
            body = await self._reader.get(resource, name)
        except (Missing, NotServed) as error:
            raise Final(
                f"{error}; is this cluster OpenShift? Another way to switch gates is chosen with "
                "--actuator"
            ) from error
        return _decoded(body, resource)

    async def _all(self, resource: Resource) -> list[Object]:
        found: list[Object] = []
        async for page in self._reader.list_pages(resource):
            if page.first:
                found = []
            found += _decoded(page.body, resource).get("items") or ()
        return found


async def controller_gates(reader: Reader) -> dict[str, bool] | None:
    """What kube-controller-manager is given, which its pods do not show; None if nobody says."""
    try:
        body = await reader.get(OPERATORS[CONTROLLER], CLUSTER)
    except (Forbidden, Missing, NotServed):
        return None
    return observed_gates(CONTROLLER, _decoded(body, OPERATORS[CONTROLLER]))


def _named(pools: Collection[str], seen: Cluster) -> list[Pool]:
    return [it for it in seen.pools if it.name in pools]


def _marking(pool: Pool, mark: str | None) -> Object:
    """Only as it was seen: whoever has paused it meanwhile is not to be taken for us."""
    return {"metadata": {**pool.seen_as, "annotations": {PAUSED_BY: mark}}}


def _patch(wanted: Features, now: Object) -> Object:
    # Once there is one, the API server has it be emptied and not be taken away.
    spec: Object = {"featureSet": wanted.feature_set}
    if wanted.feature_set == CUSTOM:
        lists = {"enabled": list(wanted.enabled), "disabled": list(wanted.disabled)}
        spec["customNoUpgrade"] = lists
    return {
        "metadata": {
            "uid": now["metadata"]["uid"],
            "resourceVersion": now["metadata"]["resourceVersion"],
            "annotations": wanted.marks,
        },
        "spec": spec,
    }


def _listed(csi_node: Object) -> frozenset[str]:
    text = (csi_node["metadata"].get("annotations") or {}).get(MIGRATED_PLUGINS) or ""
    return frozenset(it for it in text.split(",") if it)


def _decoded(body: bytes, resource: Resource) -> Object:
    try:
        return msgspec.json.decode(body, type=dict)
    except msgspec.DecodeError as error:
        raise Final(f"{resource.kind} cannot be read: {printable(str(error))}") from error
