"""Both ways through the migration on an OpenShift, whose own operators do the work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from replant.cluster.ports import CSI_NODES, FEATURE_GATES, NODES, PODS, Resource
from replant.errors import Conflict, Halted, Refused
from replant.execute.actuators import Place, Wanted
from replant.execute.journal import State
from replant.execute.run import Result
from replant.gates.featuresets import CONTROL_PLANE_SET, CUSTOM, NODE_SET
from replant.gates.versions import Version
from replant.objects import Object
from replant.plan.model import Goal, NodeMethod, Plan
from replant.platforms.openshift import CLUSTER, POOLS, OpenShift
from replant.platforms.openshift_changes import Intent, Rules
from replant.platforms.openshift_state import (
    MIGRATED_PLUGINS,
    PAUSED_BY,
)
from replant.routing import AttachController
from tests.execute.living import Ground, ground, sandbox_of, small
from tests.faults.migrations import shipped

SETS = (CONTROL_PLANE_SET, NODE_SET)
UPSTREAM, NODE_DRIVEN = AttachController.UPSTREAM, AttachController.NODE_DRIVEN


def openshift(
    sets: tuple[str, ...] = SETS, adc: AttachController = UPSTREAM, **more: Any
) -> dict[str, Any]:
    scenario = small(3, kubernetesVersion="1.20.15", openshift={"featureSets": sets}, adc=adc)
    scenario["controlPlane"]["gates"] = scenario["pools"][0]["gates"] = {}
    return scenario | more


@dataclass
class Played:
    """An OpenShift, and all that its FeatureGate has said, in order."""

    ground: Ground
    adc: AttachController
    said: list[str] = field(default_factory=list)
    asked: list[asyncio.Future[Object]] = field(default_factory=list)

    async def plan(self, goal: Goal, **more: Any) -> Plan:
        wanted = {"platform": "openshift", "attach_controller": self.adc, **more}
        return await self.ground.plan(goal, wanted=wanted, method=NodeMethod.PLATFORM)

    async def get(self, resource: Resource, name: str = CLUSTER) -> Object:
        found: Object = msgspec.json.decode(await self.ground.reader.get(resource, name))
        return found

    async def all(self, resource: Resource) -> list[Object]:
        pages = self.ground.reader.list_pages(resource)
        return [it async for page in pages for it in msgspec.json.decode(page.body)["items"]]

    async def listed(self) -> set[str]:
        marks = [it["metadata"].get("annotations") or {} for it in await self.all(CSI_NODES)]
        return {it.get(MIGRATED_PLUGINS, "") for it in marks}

    async def yanked(self) -> list[str]:
        found: list[str] = (await self.ground.ask("/sandbox/writes"))["yanked"]
        return found

    async def apply(self, plan: Plan) -> Result:
        return await self.ground.applying().begin(plan, {})


WORDS = {True: "pause", False: "go on", None: "forget"}


@dataclass
class Noting:
    """A Writer that notes what the FeatureGate is told, and whether pools are paused."""

    writer: Any
    said: list[str]
    meanwhile: dict[str, Object] = field(default_factory=dict)
    """By kind, what somebody else makes of an object just before we write."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.writer, name)

    async def patch(
        self, resource: Resource, name: str, patch: Mapping[str, Any], *, namespace: str = ""
    ) -> Object:
        if resource is FEATURE_GATES:
            self.said.append(patch["spec"]["featureSet"] or "none")
        if resource is POOLS:
            paused = patch.get("spec", {}).get("paused")
            self.said.append(f"{name} {WORDS[paused]}")
        if meanwhile := self.meanwhile.pop(resource.kind, None):
            await self.writer.patch(resource, name, meanwhile)
        found: Object = await self.writer.patch(resource, name, patch, namespace=namespace)
        return found


@asynccontextmanager
async def played(
    scenario: dict[str, Any],
    folder: Path,
    *,
    no_upgrade: bool = False,
    adc: AttachController | None = None,
) -> AsyncIterator[Played]:
    """A scenario, with the attach/detach controller that it has or that is counted with."""
    adc = adc or scenario["adc"]
    with sandbox_of(scenario, folder) as kubeconfig:
        async with ground(kubeconfig) as it:
            said: list[str] = []
            it.writer = Noting(it.writer, said)
            rules = Rules(adc is NODE_DRIVEN, no_upgrade)
            it.actuator = OpenShift(it.reader, it.writer, rules, it.shown.note)
            yield Played(it, adc, said)


def test_there_and_back_in_the_right_order(tmp_path: Path) -> None:
    """The document's job: enable, the StatefulSets live; disable, and they live again."""

    async def story() -> None:
        async with played(openshift(), tmp_path) as it:
            plan = await it.plan(Goal.ENABLE)
            assert plan.proof
            assert plan.proof.safe
            done = await it.apply(plan)
            assert done.state is State.DONE
            assert it.ground.shown.steps == [
                "switch-control-plane", "switch-control-plane done", "roll-nodes",
                "roll-nodes done",
            ]  # fmt: skip
            assert it.said == [CONTROL_PLANE_SET, NODE_SET]
            (everywhere,) = await it.listed()
            assert "kubernetes.io/aws-ebs" in everywhere
            assert len(everywhere.split(",")) == 6

            back = await it.apply(await it.plan(Goal.DISABLE))
            assert back.state is State.DONE
            assert it.said[2:] == [CONTROL_PLANE_SET, "none"]
            assert await it.listed() == {""}
            assert (await it.get(FEATURE_GATES))["spec"]["featureSet"] == ""
            assert await it.yanked() == []
            assert {pod["status"]["phase"] for pod in await it.all(PODS)} == {"Running"}
            assert not any(node["spec"].get("unschedulable") for node in await it.all(NODES))

    asyncio.run(story())


def test_there_and_back_on_the_scenario_that_ships(tmp_path: Path) -> None:
    """Its release gives as off what is on by default, so that without a set it is off again.

    It does not show that the order is free, so by default it is kept.
    """

    async def story() -> None:
        scenario = shipped("openshift")
        scenario["pools"][0]["count"] = 3  # of six, which take twice as long
        async with played(scenario, tmp_path, adc=UPSTREAM) as it:
            before = await it.listed()
            assert not any("kubernetes.io/aws-ebs" in there for there in before)
            assert (await it.apply(await it.plan(Goal.ENABLE))).state is State.DONE
            assert it.said == [CONTROL_PLANE_SET, NODE_SET]
            (everywhere,) = await it.listed()
            assert "kubernetes.io/aws-ebs" in everywhere
            back = await it.apply(await it.plan(Goal.DISABLE))
            assert back.state is State.DONE
            assert it.said[2:] == [CONTROL_PLANE_SET, "none"]
            assert await it.listed() == before
            assert await it.yanked() == []
            assert {pod["status"]["phase"] for pod in await it.all(PODS)} == {"Running"}

    asyncio.run(story())


@pytest.mark.parametrize("sets", [SETS, ()], ids=["feature sets", "CustomNoUpgrade"])
def test_where_the_order_is_free_one_change_does_it(sets: tuple[str, ...], tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(sets, NODE_DRIVEN), tmp_path, no_upgrade=True) as it:
            done = await it.apply(await it.plan(Goal.ENABLE))
            assert it.said == ([NODE_SET] if sets else [CUSTOM])
            undone = await it.ground.applying().undo(done.run)
            assert undone.state is State.UNDONE
            assert it.said[1:] == (["none"] if sets else [CUSTOM])
            assert await it.listed() == {""}
            assert await it.yanked() == []

    asyncio.run(story())


def test_without_the_sets_pools_wait_for_the_control_plane(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(()), tmp_path, no_upgrade=True) as it:
            plan = await it.plan(Goal.ENABLE)
            done = await it.apply(plan)
            assert it.said == ["workers pause", CUSTOM, "workers go on"]
            assert any("never be left again" in note for note in it.ground.shown.notes)
            assert PAUSED_BY not in ((await it.all(POOLS))[0]["metadata"].get("annotations") or {})
            spec = (await it.get(FEATURE_GATES))["spec"]
            assert spec["customNoUpgrade"] == {"enabled": ["CSIMigrationAWS"], "disabled": []}
            assert await it.listed() == {"kubernetes.io/aws-ebs"}
            assert await it.yanked() == []
            # Nodes would have to go back before the control plane, and one list is for both.
            with pytest.raises(Halted, match="one list of gates"):
                await it.ground.applying().undo(done.run)
            assert await it.listed() == {"kubernetes.io/aws-ebs"}

    asyncio.run(story())


PAUSE, GO_ON = ({"spec": {"paused": it}} for it in (True, False))
SWITCHED = Place(component="kube-controller-manager"), Wanted({"CSIMigrationAWS": True})


def test_a_pool_that_somebody_pauses_just_before_us_stays_theirs(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(()), tmp_path, no_upgrade=True) as it:
            writer = cast("Noting", it.ground.writer)
            writer.meanwhile["MachineConfigPool"] = PAUSE
            with pytest.raises(Conflict):
                await it.ground.actuator.switch(*SWITCHED)
            await it.ground.actuator.switch(*SWITCHED)
            assert it.said == ["workers pause", CUSTOM]
            (pool,) = await it.all(POOLS)
            assert pool["spec"]["paused"]
            assert PAUSED_BY not in (pool["metadata"].get("annotations") or {})

    asyncio.run(story())


def test_a_pool_that_somebody_let_go_on_is_no_longer_ours(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(()), tmp_path, no_upgrade=True) as it:
            writer = cast("Noting", it.ground.writer)
            await it.ground.actuator.switch(*SWITCHED)
            await writer.writer.patch(POOLS, "workers", GO_ON)
            await it.ground.actuator.switch(*SWITCHED)
            assert it.said == ["workers pause", CUSTOM, "workers forget"]
            (pool,) = await it.all(POOLS)
            assert PAUSED_BY not in (pool["metadata"].get("annotations") or {})

    asyncio.run(story())


def test_a_run_that_has_not_reached_the_nodes_goes_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(()), tmp_path, no_upgrade=True) as it:
            applying = it.ground.applying()
            it.ground.shown.when("1 of 2 components", lambda: applying.stop("enough"))
            with pytest.raises(Halted, match="enough"):
                await applying.begin(await it.plan(Goal.ENABLE), {})
            (run,) = await it.ground.journals().runs()
            await it.ground.applying().undo(run.id)
            assert it.said == ["workers pause", CUSTOM, CUSTOM, "workers go on"]
            spec = (await it.get(FEATURE_GATES))["spec"]
            assert spec["customNoUpgrade"] == {"enabled": [], "disabled": ["CSIMigrationAWS"]}
            assert any("stays CustomNoUpgrade" in note for note in it.ground.shown.notes)
            assert await it.listed() == {""}

    asyncio.run(story())


def test_without_consent_nothing_is_done(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(()), tmp_path) as it:
            assert isinstance(it.ground.actuator, OpenShift)
            with pytest.raises(Refused, match="Agree with --accept-no-upgrade"):
                await it.ground.actuator.refuse_impossible(Intent())
            assert it.said == []

    asyncio.run(story())


def test_a_pool_that_somebody_paused_is_waited_for_by_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(), tmp_path) as it:
            await it.ground.writer.patch(POOLS, "workers", {"spec": {"paused": True}})

            def go_on() -> None:
                change = it.ground.writer.patch(POOLS, "workers", {"spec": {"paused": False}})
                tasks.append(asyncio.get_running_loop().create_task(change))

            tasks: list[asyncio.Task[Object]] = []
            it.ground.shown.when_waiting("MachineConfigPool workers", go_on)
            await it.apply(await it.plan(Goal.ENABLE))
            (told,) = [it for it in it.ground.shown.waits if "it is paused" in it]
            assert "oc patch mcp/workers" in told
            assert "kubernetes.io/aws-ebs" in "".join(await it.listed())

    asyncio.run(story())


def test_it_is_resumed_wherever_it_was_stopped(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(), tmp_path) as it:
            applying = it.ground.applying()
            it.ground.shown.when("1 of 3 nodes", lambda: applying.stop("enough"))
            with pytest.raises(Halted, match="enough"):
                await applying.begin(await it.plan(Goal.ENABLE), {})
            (run,) = await it.ground.journals().runs()
            done = await it.ground.applying().resume(run.id)
            assert done.state is State.DONE
            assert it.said == [CONTROL_PLANE_SET, NODE_SET]
            await it.ground.applying().undo(run.id)
            assert it.said[2:] == [CONTROL_PLANE_SET, "none"]
            assert await it.listed() == {""}
            assert await it.yanked() == []

    asyncio.run(story())


def test_what_the_release_has_on_is_left_on_and_the_run_is_taken_back(tmp_path: Path) -> None:
    """A set hides what is so without it: that nodes go on redirecting is seen only afterwards."""

    async def story() -> None:
        async with played(openshift(kubernetesVersion="1.23.17"), tmp_path) as it:
            patch = {"spec": {"featureSet": NODE_SET}}
            await it.ground.writer.patch(FEATURE_GATES, CLUSTER, patch)
            await it.ground.timing.sleep(1200)
            applying = it.ground.applying()
            waited = "does not list kubernetes.io/aws-ebs no more yet"
            it.ground.shown.when_waiting(waited, lambda: applying.stop("enough"))
            with pytest.raises(Halted, match="enough"):
                await applying.begin(await it.plan(Goal.DISABLE), {})
            (run,) = await it.ground.journals().runs()
            undone = await it.ground.applying().undo(run.id)
            assert undone.state is State.UNDONE
            assert it.said[:2] == [NODE_SET, CONTROL_PLANE_SET]
            (everywhere,) = await it.listed()
            assert "kubernetes.io/aws-ebs" in everywhere
            assert await it.yanked() == []
            # Without the set it is known, and refused at once.
            await it.ground.writer.patch(FEATURE_GATES, CLUSTER, {"spec": {"featureSet": ""}})
            await it.ground.timing.sleep(1200)
            with pytest.raises(Halted, match="cannot be turned off: it is on by default"):
                await it.apply(await it.plan(Goal.DISABLE))

    asyncio.run(story())


# Down to a version that redirects less

VERSIONS = Resource("ClusterVersion", "clusterversions", "config.openshift.io")
DOWN = {"to": Version(1, 22)}


def go_to(it: Played, release: str) -> Callable[[], None]:
    """What oc adm upgrade does."""

    def ask() -> None:
        patch = {"spec": {"desiredUpdate": {"version": release}}}
        it.asked.append(asyncio.ensure_future(it.ground.writer.patch(VERSIONS, "version", patch)))

    return ask


def name_of(part: Object) -> str:
    return str(part["configuration"]["name"])


async def kubelets(it: Played) -> set[str]:
    return {node["status"]["nodeInfo"]["kubeletVersion"] for node in await it.all(NODES)}


def test_before_a_downgrade_the_nodes_set_keeps_volumes_where_they_are(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(kubernetesVersion="1.23.17"), tmp_path) as it:
            plan = await it.plan(Goal.DOWNGRADE, **DOWN)
            assert plan.proof
            assert plan.proof.safe
            assert [step.id for step in plan.steps] == [
                "keep-control-plane", "keep-nodes", "downgrade",
            ]  # fmt: skip
            go, pools = go_to(it, "4.9.17"), it.all(POOLS)
            (before,) = [name_of(pool["spec"]) for pool in await it.all(POOLS)]
            at_rest: list[asyncio.Future[list[Object]]] = []

            def begin() -> None:
                at_rest.append(asyncio.ensure_future(pools))
                go()

            it.ground.shown.when_waiting("to run Kubernetes 1.22", begin)
            done = await it.apply(plan)
            assert done.state is State.DONE
            # Nobody is asked to begin before every node has what is to be taken along.
            (pool,) = at_rest[0].result()
            assert name_of(pool["spec"]) == name_of(pool["status"]) != before
            assert it.said == [CONTROL_PLANE_SET, NODE_SET]
            assert await kubelets(it) == {"v1.22.17"}
            assert await it.ground.reader.server_version() == "1.22.17"
            (everywhere,) = await it.listed()
            assert "kubernetes.io/aws-ebs" in everywhere
            assert await it.yanked() == []
            # From there the way back is the usual one, nodes first.
            await it.apply(await it.plan(Goal.DISABLE))
            assert it.said[2:] == [CONTROL_PLANE_SET, "none"]
            assert await it.listed() == {"kubernetes.io/cinder"}  # which 1.22 has on by default
            assert await it.yanked() == []

    asyncio.run(story())


def test_where_the_order_is_free_nothing_has_to_come_before_a_downgrade(tmp_path: Path) -> None:
    async def story() -> None:
        scenario = openshift((), NODE_DRIVEN, kubernetesVersion="1.23.17")
        async with played(scenario, tmp_path) as it:
            plan = await it.plan(Goal.DOWNGRADE, **DOWN)
            assert plan.proof
            assert plan.proof.safe
            assert [step.id for step in plan.steps] == ["downgrade"]
            told = [check.message for check in plan.preflight if check.check == "downgrade"]
            assert "the control plane may safely go down before them" in told[0]
            it.ground.shown.when_waiting("to run Kubernetes 1.22", go_to(it, "4.9.17"))
            done = await it.apply(plan)
            assert done.state is State.DONE
            assert it.said == []
            assert await kubelets(it) == {"v1.22.17"}
            assert await it.listed() == {"kubernetes.io/cinder"}  # which 1.22 has on by default
            assert await it.yanked() == []

    asyncio.run(story())


def test_a_downgrade_that_is_not_begun_is_undone(tmp_path: Path) -> None:
    async def story() -> None:
        async with played(openshift(kubernetesVersion="1.23.17"), tmp_path) as it:
            applying = it.ground.applying()
            waited = "to run Kubernetes 1.22"
            it.ground.shown.when_waiting(waited, lambda: applying.stop("enough"))
            with pytest.raises(Halted, match="enough"):
                await applying.begin(await it.plan(Goal.DOWNGRADE, **DOWN), {})
            (run,) = await it.ground.journals().runs()
            undone = await it.ground.applying().undo(run.id)
            assert undone.state is State.UNDONE
            assert it.said == [CONTROL_PLANE_SET, NODE_SET, CONTROL_PLANE_SET, "none"]
            (everywhere,) = await it.listed()
            assert "kubernetes.io/aws-ebs" in everywhere  # by default
            assert await it.yanked() == []

    asyncio.run(story())


@pytest.mark.parametrize("back", [False, True], ids=["on", "back"])
def test_a_downgrade_that_was_left_half_way_can_go_both_ways(tmp_path: Path, *, back: bool) -> None:
    async def story() -> None:
        async with played(openshift(kubernetesVersion="1.23.17"), tmp_path) as it:
            applying = it.ground.applying()
            shown = it.ground.shown

            def leave() -> None:
                if shown.steps[-1] == "downgrade":  # nodes are counted before it, too
                    applying.stop("enough")

            shown.when("1 of 3 nodes", leave)
            shown.when_waiting("to run Kubernetes 1.22", go_to(it, "4.9.17"))
            with pytest.raises(Halted, match="enough"):
                await applying.begin(await it.plan(Goal.DOWNGRADE, **DOWN), {})
            assert "v1.22.17" in await kubelets(it)
            (run,) = await it.ground.journals().runs()
            again = it.ground.applying()
            if back:
                shown.when_waiting("to run Kubernetes 1.23", go_to(it, "4.10.17"))
                assert (await again.undo(run.id)).state is State.UNDONE
                assert await kubelets(it) == {"v1.23.17"}
                assert it.said == [CONTROL_PLANE_SET, NODE_SET, CONTROL_PLANE_SET, "none"]
            else:
                assert (await again.resume(run.id)).state is State.DONE
                assert await kubelets(it) == {"v1.22.17"}
                assert it.said == [CONTROL_PLANE_SET, NODE_SET]
            (everywhere,) = await it.listed()
            assert "kubernetes.io/aws-ebs" in everywhere
            assert await it.yanked() == []

    asyncio.run(story())


def test_the_version_operator_takes_the_control_plane_first_and_is_held_by_custom_gates(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with played(openshift((), kubernetesVersion="1.23.17"), tmp_path) as it:
            timing, reader = it.ground.timing, it.ground.reader
            patch = {"spec": {"desiredUpdate": {"version": "4.11.17"}}}
            await it.ground.writer.patch(VERSIONS, "version", patch)
            seen = []
            for _ in range(120):
                await timing.sleep(5)
                pair = await reader.server_version(), *sorted(await kubelets(it))
                seen += [pair] if pair not in seen else []
            assert seen == [
                ("1.23.17", "v1.23.17"), ("1.24.17", "v1.23.17"),
                ("1.24.17", "v1.23.17", "v1.24.17"), ("1.24.17", "v1.24.17"),
            ]  # fmt: skip
            await it.ground.writer.patch(FEATURE_GATES, CLUSTER, {"spec": {"featureSet": CUSTOM}})
            patch = {"spec": {"desiredUpdate": {"version": "4.12.1"}}}
            await it.ground.writer.patch(VERSIONS, "version", patch)
            await timing.sleep(120)
            assert await reader.server_version() == "1.24.17"
            (said,) = (await it.get(VERSIONS, "version"))["status"]["conditions"]
            assert said == {"type": "Upgradeable", "status": "False"}

    asyncio.run(story())


def test_with_custom_gates_nothing_can_be_taken_along_on_a_downgrade(tmp_path: Path) -> None:
    async def story() -> None:
        scenario = openshift((), kubernetesVersion="1.23.17")
        async with played(scenario, tmp_path, no_upgrade=True) as it:
            with pytest.raises(Halted, match="Go back before the downgrade instead"):
                await it.apply(await it.plan(Goal.DOWNGRADE, **DOWN))
            assert it.said == []

    asyncio.run(story())
