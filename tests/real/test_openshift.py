"""OpenShift's own definitions on real API servers: what we write they take, and what we read is so.

Nobody acts on the objects here. The sandbox plays the operators; this is about their API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import pytest
import yaml

from replant.cli.scanning import OPENSHIFT_APIS
from replant.cluster.live import LiveReader, connect
from replant.cluster.ports import Reader
from replant.cluster.writing import LiveWriter
from replant.errors import Refused as Impossible
from replant.errors import Retryable
from replant.execute.actuators import KUBELETS, Place, Replica, Wanted
from replant.gates.featuresets import CONTROL_PLANE_SET, CUSTOM, NODE_SET
from replant.gates.versions import Version
from replant.platforms.openshift import OPERATORS, OpenShift
from replant.platforms.openshift_changes import Rules, refuse_change
from replant.platforms.openshift_state import RENDERED, REVISIONS, Cluster, Features, allowed_sets
from tests.real.ground import programs
from tests.real.ground.api import PATHS, Api, Object, Refused
from tests.real.ground.controlplane import ROLES, ControlPlane
from tests.real.ground.processes import wait_for

USER = "openshift-switcher"
GATE, AWS = "CSIMigrationAWS", "kubernetes.io/aws-ebs"
CRD = "CustomResourceDefinition"
TIME = "2026-01-01T00:00:00Z"
ON, OFF = Wanted({GATE: True}), Wanted({GATE: False})
KCM = Place(component="kube-controller-manager")

T = TypeVar("T")


def conditions(**said: str) -> list[Object]:
    return [{"type": it, "status": on, "lastTransitionTime": TIME} for it, on in said.items()]


@dataclass
class Older:
    """A Reader of a server that passes for one whose gates can still be switched.

    The rules of the definitions are checked by newer ones only, which have no gates any more.
    """

    reader: LiveReader

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    async def server_version(self) -> str:
        return programs.OLD


@dataclass
class OpenShiftApi:
    """An API server that serves what OpenShift's does, and somebody with our roles."""

    plane: ControlPlane
    definitions: dict[str, Object]
    told: list[str] = field(default_factory=list)
    rendered: int = 0

    @property
    def api(self) -> Api:
        return self.plane.api

    def act(self, work: Callable[[OpenShift, LiveReader], Awaitable[T]], **rules: bool) -> T:
        async def run() -> T:
            kubeconfig = self.plane.kubeconfig(USER, "people")
            async with connect(str(kubeconfig)) as reader:
                how = Rules(**{"order_free": True, "no_upgrade": True, **rules})
                said = cast("Reader", Older(reader))
                it = OpenShift(said, LiveWriter(reader), how, self.told.append)
                return await work(it, reader)

        return asyncio.run(run())

    def switch(self, wanted: Wanted, place: Place = KCM, **rules: bool) -> None:
        self.act(lambda it, _: it.switch(place, wanted), **rules)

    def observe(self, place: Place) -> tuple[Replica, ...]:
        found = self.act(lambda it, _: it.observe(place))
        assert found
        return found

    def render(self) -> None:
        """Give the pool another configuration, as its operator does once kubelets' gates change."""
        self.rendered += 1
        change = {"spec": {"configuration": {"name": f"r{self.rendered}"}}}
        self.api.patch("MachineConfigPool", "worker", change)

    def features(self) -> Object:
        return self.api.get("FeatureGate", "cluster")

    def begin_anew(self) -> None:
        """With a FeatureGate that has never said anything."""
        self.api.delete("FeatureGate", "cluster")
        self.api.create(obj("FeatureGate", "cluster"))

    def allow(self, *more: str) -> None:
        """Have the definition know more feature sets: no release ever knew ours."""
        name = "featuregates.config.openshift.io"
        found = self.api.get(CRD, name)
        enum = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
            "properties"
        ]["featureSet"]["enum"]
        enum[:] = [it for it in enum if not it.startswith("CSIMigration")] + list(more)
        self.api.patch(CRD, name, {"spec": {"versions": found["spec"]["versions"]}})
        wait_for(lambda: self._takes(*more), "the definition to be served")

    def _takes(self, *feature_sets: str) -> bool:
        for it in feature_sets:
            try:
                self.api.create(
                    {**obj("FeatureGate", "try"), "spec": {"featureSet": it}}, dryRun="All"
                )
            except Refused:
                return False
        return True


def obj(kind: str, name: str, **spec: Any) -> Object:
    _, group, version, _ = PATHS[kind].split("/")
    metadata = {"name": name}
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module", params=["old", "new"])
def openshift(request: pytest.FixtureRequest) -> Iterator[OpenShiftApi]:
    plane: ControlPlane = request.getfixturevalue(request.param)
    api, recipe = plane.api, programs.openshift()
    definitions = {it: yaml.safe_load(recipe.program(it).read_text()) for it in recipe.programs}
    kinds = {"CustomResourceDefinition": "apis/apiextensions.k8s.io/v1/customresourcedefinitions"}
    for it in definitions.values():
        spec = it["spec"]
        path = f"apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        kinds[spec["names"]["kind"]] = path
    made: list[Object] = []

    def make(it: Object) -> None:
        made.append(api.create(it))

    with pytest.MonkeyPatch.context() as patch:
        for kind, path in kinds.items():
            patch.setitem(PATHS, kind, path)
        try:
            assert not asyncio.run(serves(plane))
            for it in definitions.values():
                make(it)
            for kind, path in kinds.items():
                wait_for(lambda path=path: is_served(api, path), f"{kind} to be served")  # type: ignore[misc]
            for it in roles():
                make(it)
            for it in first():
                put(api, it)
            make(csi_node())
            yield OpenShiftApi(plane, definitions)
        finally:
            for it in reversed(made):
                api.delete(it["kind"], it["metadata"]["name"])
            names = [it["metadata"]["name"] for it in made if it["kind"] == CRD]
            wait_for(lambda: not any(api.find(CRD, it) for it in names), "definitions to go")


def put(api: Api, it: Object) -> None:
    """Make an object, and write its status as its operator does: nodes first, then revisions."""
    status = it.pop("status", None)
    api.create(it)
    kind, name = it["kind"], it["metadata"]["name"]
    if status and "nodeStatuses" in status:
        nodes = [{"nodeName": node["nodeName"]} for node in status["nodeStatuses"]]
        api.patch(kind, name, {"status": {**status, "nodeStatuses": nodes}}, "", "status")
    if status:
        api.patch(kind, name, {"status": status}, "", "status")


def is_served(api: Api, path: str) -> bool:
    try:
        api.text(path)
    except Refused:
        return False
    return True


async def serves(plane: ControlPlane) -> bool:
    async with connect(str(plane.kubeconfig())) as reader:
        return OPENSHIFT_APIS in await reader.groups()


def roles() -> Iterator[Object]:
    """The shipped role, and of that of apply the list of CSINodes: nothing else."""
    shipped = next(yaml.safe_load_all((ROLES / "openshift.yaml").read_text()))
    apply = yaml.safe_load_all((ROLES / "apply.yaml").read_text())
    rules = next(it["rules"] for it in apply if it["kind"] == "ClusterRole")
    storage = [it for it in rules if "csinodes" in it["resources"]]
    assert storage
    role = {**shipped, "metadata": {"name": USER}, "rules": shipped["rules"] + storage}
    yield role
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }


def first() -> Iterator[Object]:
    """A control plane that is at rest, but for one node of one component, and a pool."""
    yield obj("FeatureGate", "cluster")
    for component, resource in OPERATORS.items():
        where = "apiServerArguments" if component == "kube-apiserver" else "extendedArguments"
        config = {where: {"feature-gates": ["Other=true", f"{GATE}=false"]}}
        behind = 6 if component == "kube-controller-manager" else 7
        nodes = [
            {"nodeName": "m0", "currentRevision": 7, "targetRevision": 0},
            {"nodeName": "m1", "currentRevision": behind, "targetRevision": 0},
        ]
        spec: Object = {"managementState": "Managed", "observedConfig": config}
        if component != "kube-scheduler":
            spec["forceRedeploymentReason"] = ""
        status = {"latestAvailableRevision": 7, "nodeStatuses": nodes, "readyReplicas": 0}
        yield {**obj(resource.kind, "cluster", **spec), "status": status}
        said = conditions(Available="True", Progressing="False", Degraded="False")
        yield {**obj("ClusterOperator", component), "status": {"conditions": said}}
    counts = {
        f"{it}MachineCount": n
        for it, n in {"updated": 2, "ready": 2, "unavailable": 1, "degraded": 0}.items()
    }
    status = {
        "observedGeneration": 1, "machineCount": 3, **counts, "configuration": {"name": "b"},
        "conditions": conditions(Updated="False", Updating="True"),
    }  # fmt: skip
    spec = {"paused": False, "configuration": {"name": "c"}}
    yield {**obj("MachineConfigPool", "worker", **spec), "status": status}


def csi_node() -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": "openshift-worker",
            "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": AWS},
        },
        "spec": {"drivers": []},
    }


def test_it_is_known_by_its_apis(openshift: OpenShiftApi) -> None:
    assert OPENSHIFT_APIS in openshift.act(lambda _, reader: reader.groups())


def test_its_objects_say_how_far_it_is(openshift: OpenShiftApi) -> None:
    m0, m1 = openshift.observe(KCM)
    assert (m0.name, m0.gates, m0.ready) == ("m0", {"Other": True, GATE: False}, False)
    assert (m1.ready, m1.why) == (False, "m1 is at revision 6, and 7 is the latest")
    (pool,) = openshift.observe(KUBELETS)
    assert (pool.name, pool.ready, pool.why) == (
        "MachineConfigPool worker", False, "2 of 3 machines are updated, 2 ready",
    )  # fmt: skip


def test_its_definition_knows_none_of_the_sets(openshift: OpenShiftApi) -> None:
    known = allowed_sets(openshift.definitions["featuregates"])
    assert known == (CUSTOM, "DevPreviewNoUpgrade", "TechPreviewNoUpgrade", "")
    openshift.begin_anew()
    with pytest.raises(Impossible, match="Agree with --accept-no-upgrade"):
        openshift.switch(ON, no_upgrade=False)
    assert openshift.features()["spec"] == {}


def test_custom_gates_are_taken_there_and_back(openshift: OpenShiftApi) -> None:
    openshift.begin_anew()
    openshift.switch(ON)
    found = openshift.features()
    assert found["spec"] == {
        "featureSet": CUSTOM, "customNoUpgrade": {"enabled": [GATE], "disabled": []},
    }  # fmt: skip
    marks = dict.fromkeys(OPERATORS, 7)
    assert found["metadata"]["annotations"][REVISIONS] == ",".join(
        f"{name}={revision}" for name, revision in marks.items()
    )
    assert found["metadata"]["annotations"][RENDERED].startswith(f"{GATE}=true;worker=")
    with pytest.raises(Retryable, match="has not rendered the last change for it yet"):
        openshift.switch(OFF)
    openshift.render()
    openshift.switch(OFF)
    lists = openshift.features()["spec"]["customNoUpgrade"]
    assert lists == {"enabled": [], "disabled": [GATE]}
    assert any("never be left again" in it for it in openshift.told)
    assert any("stays CustomNoUpgrade" in it for it in openshift.told)


@pytest.mark.parametrize("change", [{"featureSet": ""}, {"featureSet": None}])
def test_the_real_server_lets_nobody_leave_custom_gates(
    openshift: OpenShiftApi, change: Object
) -> None:
    openshift.begin_anew()
    openshift.switch(ON)
    if openshift.plane.version == programs.OLD:
        # Such rules came with later versions of Kubernetes: here only we ourselves refuse it.
        openshift.api.patch("FeatureGate", "cluster", {"spec": change})
        return
    with pytest.raises(Refused, match=r"may not be changed|cannot be removed"):
        openshift.api.patch("FeatureGate", "cluster", {"spec": change})


def test_what_the_definition_does_not_know_is_refused_with_what_it_knows(
    openshift: OpenShiftApi,
) -> None:
    """By ourselves; the server says the same of who tries."""
    openshift.begin_anew()
    with pytest.raises(Impossible) as refusal:
        refused(openshift, NODE_SET)
    assert str(refusal.value) == (
        "The feature set CSIMigrationNode is not one that the FeatureGate of this cluster allows; "
        'these are: CustomNoUpgrade, DevPreviewNoUpgrade, TechPreviewNoUpgrade, "".'
    )
    with pytest.raises(Refused, match="Unsupported value"):
        openshift.api.patch("FeatureGate", "cluster", {"spec": {"featureSet": NODE_SET}})


def test_we_do_not_try_to_leave_custom_gates(openshift: OpenShiftApi) -> None:
    openshift.begin_anew()
    openshift.switch(ON)
    spec = openshift.features()["spec"]
    openshift.allow(CONTROL_PLANE_SET, NODE_SET)
    for wanted in ("", NODE_SET):
        with pytest.raises(Impossible, match="CustomNoUpgrade, which can never be left again"):
            refused(openshift, wanted)
    # Though the sets are known by now: what is for ever is gone on with.
    openshift.switch(ON)
    assert openshift.features()["spec"] == spec
    with pytest.raises(Impossible, match="holds the cluster at its version"):
        openshift.switch(Wanted({GATE: True}, by_name=True))
    openshift.allow()


def refused(openshift: OpenShiftApi, feature_set: str) -> None:
    """Judge a change by what the server has now."""
    allowed = allowed_sets(openshift.api.get(CRD, "featuregates.config.openshift.io"))
    features, version = Features.of(openshift.features()), Version.parse(programs.OLD)
    refuse_change(Cluster(features, allowed, {}, (), {}, version), feature_set)


def test_a_pool_that_somebody_has_paused_stays_theirs(openshift: OpenShiftApi) -> None:
    openshift.begin_anew()
    openshift.api.patch("MachineConfigPool", "worker", {"spec": {"paused": True}})
    try:
        (seen,) = openshift.observe(KUBELETS)
        assert (seen.ready, seen.why) == (
            False,
            'it is paused: oc patch mcp/worker --type merge -p \'{"spec":{"paused":false}}\'',
        )
        openshift.switch(ON, order_free=False)
        pool = openshift.api.get("MachineConfigPool", "worker")
        assert pool["spec"]["paused"]
        assert "replant.dev/paused-by" not in (pool["metadata"].get("annotations") or {})
        assert openshift.features()["spec"]["featureSet"] == CUSTOM
    finally:
        openshift.api.patch("MachineConfigPool", "worker", {"spec": {"paused": False}})


def test_pools_are_held_and_let_go(openshift: OpenShiftApi) -> None:
    """Nodes have the gate already, so the control plane alone is switched: pools wait for it."""
    openshift.begin_anew()
    openshift.switch(ON, order_free=False)
    pool = openshift.api.get("MachineConfigPool", "worker")
    assert pool["spec"]["paused"]
    assert pool["metadata"]["annotations"] == {"replant.dev/paused-by": "replant"}
    (seen,) = openshift.observe(KUBELETS)
    assert seen.why == "it is paused by this run"
    with pytest.raises(Retryable, match="does not know the new gates yet"):
        openshift.switch(ON, KUBELETS, order_free=False)
    back = {"spec": {"paused": False}, "metadata": {"annotations": None}}
    openshift.api.patch("MachineConfigPool", "worker", back)


def test_where_the_definition_knows_the_sets_they_are_taken_and_emptied(
    openshift: OpenShiftApi,
) -> None:
    openshift.begin_anew()
    openshift.allow(CONTROL_PLANE_SET, NODE_SET)
    openshift.switch(ON, order_free=False)
    assert openshift.features()["spec"] == {"featureSet": CONTROL_PLANE_SET}
    with pytest.raises(Retryable, match="the control plane has not converged yet"):
        openshift.switch(ON, KUBELETS, order_free=False)
    openshift.switch(ON, KUBELETS)
    assert openshift.features()["spec"] == {"featureSet": NODE_SET}
    with pytest.raises(Retryable, match="the nodes first: CSIMigrationNode is still set"):
        openshift.switch(OFF, order_free=False)
    openshift.render()
    openshift.switch(OFF, KUBELETS, order_free=False)
    assert openshift.features()["spec"] == {"featureSet": CONTROL_PLANE_SET}
    with pytest.raises(Retryable, match="the CSINode of openshift-worker still lists"):
        openshift.switch(OFF, order_free=False)
    openshift.switch(OFF)
    assert openshift.features()["spec"] == {"featureSet": ""}
    openshift.allow()
