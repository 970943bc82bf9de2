"""Killed at any write, left alone for a day, with many nodes, and in two clusters."""

from __future__ import annotations

from replant.cluster.answers import Answer, Request
from replant.drivers.operand import Split
from tests.faults.forking import Forks, Verdict
from tests.faults.injecting import Do, Fault, Killed, Process
from tests.operators.driving import CINDER, EBS, Operator, World, cloud, openshift, run
from tests.operators.test_drivers import (
    CONTROLLER,
    NAMESPACE,
    NODE,
    WELL,
    adopted,
    by_olm,
    lived,
    operand_uids,
    secret,
    whole_secret,
)

DAY = 86_400.0
MOST_WRITES = 60
LATE = 6
"""So many of the first writes also come through after whoever asked for them is dead."""


def test_killed_between_any_two_writes_an_adoption_comes_to_the_same_end() -> None:
    world, forks = by_olm(), Forks()
    before = operand_uids(world)
    writes = 0

    async def fork(process: Process, request: Request, do: Do) -> Answer:
        nonlocal writes
        writes += 1
        faults = [Fault.KILL_AFTER, *([Fault.KILL_LATE] if writes <= LATE else [])]
        for fault in faults:
            if forks.fork(f"{fault} {writes}: {request.method} {request.path}"):
                forks.case = f"{fault} {writes}: {request.method} {request.path}"
                return await process.suffer(fault, request, do)
        return await do()

    async def main() -> None:
        first = Operator(world, at_write=fork, keys=(EBS,))
        try:
            await first.live(150)
        except Killed:
            await Operator(world, keys=(EBS,)).live(150)
            forks.tell(Verdict(forks.case, problems(world, before)))

    run(main())
    assert problems(world, before) == []
    verdicts = forks.wait()
    assert [it for it in verdicts if it.problems] == []
    assert len(verdicts) == writes + LATE
    assert writes > 25


def problems(world: World, before: list[str]) -> list[str]:
    try:
        adopted(world)
        assert operand_uids(world) == before
    except AssertionError as error:
        return [str(error)]
    return []


def test_for_a_day_nothing_is_written() -> None:
    world = World(openshift())
    operator = lived(world, 300)
    assert world.clusterwide()["Available"] == WELL
    world.writes.clear()
    operator.step = 60
    run(operator.live(DAY))
    assert [str(it) for it in world.writes] == []


def test_nodes_come_and_go_while_a_driver_rolls_out() -> None:
    come_and_go(1_000)


def come_and_go(nodes: int) -> int:
    """Replace nodes while a driver rolls out, and then; how much was written."""
    pools = [{"name": "worker", "count": nodes, "zones": ["a", "b", "c"]}]
    world = World(cloud("aws", pools=pools))
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    world.create(secret())
    operator = Operator(world, keys=(EBS,))
    run(operator.live(5))
    for turn in range(3):
        for number in range(100):
            world.cluster.remove_node(f"worker-{turn * 100 + number}")
            world.cluster.add_node(f"new-{turn * 100 + number}")
        run(operator.live(10))
    run(operator.live(300))
    assert len(world.registered(EBS)) == nodes
    assert world.conditions("AWSEBSDriver")["Available"] == WELL
    assert world.conditions("AWSEBSDriver")["Progressing"][0] == "False"
    # What is written does not depend on how many nodes there are.
    written = len(world.writes)
    assert written < MOST_WRITES
    world.writes.clear()
    for number in range(20):
        world.cluster.remove_node(f"new-{number}")
        world.cluster.add_node(f"newer-{number}")
    run(operator.live(60))
    assert [str(it) for it in world.writes if not it.path.endswith("/status")] == []
    return written


def test_controllers_in_a_seed_and_nodes_in_a_shoot() -> None:
    split = Split("shoot--x--y", "shoot-access")
    seed, shoot = World(cloud("openstack", classes=())), World(cloud("aws"))
    seed.create(secret(namespace=split.namespace))
    run(Operator(seed, nodes=shoot, split=split, keys=(EBS,)).live(300))
    assert shoot.conditions("AWSEBSDriver")["Available"] == WELL
    assert shoot.registered(EBS) == shoot.names("Node")
    assert seed.get("Deployment", CONTROLLER, split.namespace)
    assert seed.names("DaemonSet") == seed.names("CSIDriver") == set()
    assert shoot.get("DaemonSet", NODE, NAMESPACE)
    assert shoot.names("Deployment") == shoot.names("PodDisruptionBudget") == set()
    assert {it.path.split("/")[-2] for it in seed.writes} == {"deployments", "poddisruptionbudgets"}
    template = seed.get("Deployment", CONTROLLER, split.namespace)["spec"]["template"]["spec"]
    mounted = [it["secret"]["secretName"] for it in template["volumes"] if "secret" in it]
    assert split.kubeconfig in mounted


def test_what_pods_of_a_seed_mount_is_there() -> None:
    split = Split("shoot--x--y", "shoot-access")
    seed, shoot = World(cloud("aws")), World(cloud("openstack", classes=()))
    space, credentials = whole_secret(CINDER)
    namespace = space["metadata"]["name"]
    shoot.create(credentials)
    there = {**credentials["metadata"], "namespace": split.namespace}
    seed.create({**credentials, "metadata": there})
    run(Operator(seed, nodes=shoot, split=split, keys=(CINDER,)).live(300))
    assert shoot.conditions("CinderDriver")["Available"] == WELL
    for world, place in ((seed, split.namespace), (shoot, namespace)):
        kept = [it for it in world.all("ConfigMap") if it["metadata"]["namespace"] == place]
        assert len(kept) == 1
