"""The acts of ``replant demo``, each of which must end as it should."""

from __future__ import annotations

import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from replant.cli.demo_stage import Cluster, Pace, Part, Stage
from replant.cli.whole_files import WholeFile

PACES = {"fast": Pace(speed=80, pause=0), "slow": Pace(speed=12, pause=4)}
ACTS = 10
SCENARIO = "aws-20-nodes"
AT_ONCE = "4"
GATE = "CSIMigrationAWS=true"
CONTROLLER = "kube-controller-manager"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
FINDINGS, UNSAFE, RESUMABLE = 2, 3, 4

WRONG_ORDER = """\
apiVersion: replant.dev/v1alpha1
kind: MigrationOrder
plugin: aws-ebs
kubernetesVersion: "1.24"
from:
  controlPlane: {CSIMigrationAWS: false}
  nodes: {CSIMigrationAWS: false}
steps:
- controlPlane: {CSIMigrationAWS: true}
- nodes:
    drain: false
    gates: {CSIMigrationAWS: true}
"""


def play(pace: str, report: str) -> None:
    """The whole demonstration; an error if anything comes out otherwise."""
    WholeFile(report).refuse_unwritable()
    path = Path(report).expanduser().absolute()
    began = time.monotonic()
    with Stage(PACES[pace], ACTS) as stage:
        cluster = _bring_up(stage)
        _look_and_plan(stage)
        _interrupt_and_undo(stage, cluster)
        _kill_and_resume(stage, cluster, path)
        right = _see_that_all_wrote_on(stage, cluster)
        wrong = _do_it_wrong(stage)
    _sum_up(right, wrong, path, time.monotonic() - began)


def _bring_up(stage: Stage) -> Cluster:
    stage.act(
        "A cluster",
        "Twenty nodes on AWS, Kubernetes 1.24, databases on in-tree volumes that write once a "
        f"second. It is a sandbox, and {stage.pace.speed:g} of its seconds pass in one of ours.",
    )
    cluster = stage.sandbox("kubeconfig", SCENARIO)
    stage.await_("the sandbox to be up", cluster.is_up)
    stage.use(cluster)
    stage.tell(
        "Meanwhile, in another terminal: "
        f"kubectl --kubeconfig {cluster.kubeconfig} get nodes,pods -A"
    )
    return cluster


def _look_and_plan(stage: Stage) -> None:
    stage.act("Scan", "What is still in the tree? A scan only reads.")
    stage.run("scan", expect=FINDINGS, part=Part(8))
    stage.act(
        "Plan, and prove",
        "Steps in the only safe order, and a proof: a search through all that may happen.",
    )
    plan = ("plan", "enable", "--max-unavailable", AT_ONCE)
    writing = stage.begin_writing("plan.yaml", *plan, "-o", "yaml")
    stage.run(*plan)
    stage.finish(writing, 0)


def _interrupt_and_undo(stage: Stage, cluster: Cluster) -> None:
    half = len(_nodes(cluster)) // 2
    stage.act("Apply, and change our mind", "Half-way somebody presses Ctrl-C.")
    applying = stage.begin("apply", "plan.yaml", "--yes", "--actuator", "sandbox")
    stage.await_("half of the nodes", lambda: _switched(cluster) >= half)
    click.echo("^C")
    applying.send_signal(signal.SIGINT)
    stage.finish(applying, RESUMABLE)
    _check(_switched(cluster) >= half, "Half of the nodes should be switched by now.")
    stage.act("Look", "How far it is, and what is stuck: the cluster says so, not a file of ours.")
    stage.run("status")
    stage.act("Roll back", "Back to where it began, drained and in order, from wherever it is.")
    stage.run("apply", "--undo", "--yes", part=Part(2, 4))
    _check(_switched(cluster) == 0, "No node should be switched any more.")


def _kill_and_resume(stage: Stage, cluster: Cluster, report: Path) -> None:
    nodes = len(_nodes(cluster))
    stage.act("Apply again, and die", "Half-way the machine that runs Replant is gone: kill -9.")
    applying = stage.begin("apply", "plan.yaml", "--yes", "--actuator", "sandbox")
    stage.await_("half of the nodes", lambda: _switched(cluster) >= nodes // 2)
    stage.type(f"kill -9 {applying.pid}")
    stage.kill(applying)
    stage.act(
        "Resume, and verify",
        "The journal is in the cluster: any other machine goes on, to an end that is verified.",
    )
    stage.run("apply", "--resume", "--yes", "--report", str(report), part=Part(6, 14))
    _check(_switched(cluster) == nodes, "Every node should be switched by now.")
    _check(report.is_file(), "There should be a report.")


def _see_that_all_wrote_on(stage: Stage, cluster: Cluster) -> str:
    stage.act("What the databases saw", "Did every one of them write on, all the time?")
    stage.await_("every database to write", lambda: not _stopped(_writes(cluster)))
    stage.run("sandbox", "writes", "--kubeconfig", str(cluster.kubeconfig), part=Part(6))
    writes = _writes(cluster)
    _check(not writes["yanked"], "No disk should have been yanked.")
    stage.end(cluster.process)
    disks, gap = writes["disks"], _longest_gap(writes)
    written = sum(disk["writes"] for disk in disks)
    return f"{len(disks)} disks, {written:,} writes, gaps of {gap:.0f} s at most, no disk yanked"


def _do_it_wrong(stage: Stage) -> str:
    stage.act(
        "The same cluster, the wrong order",
        "The controllers first, but no node is drained. It can be known beforehand what will "
        "happen:",
    )
    cluster = stage.sandbox("another", SCENARIO)
    (stage.folder / "no-drain.yaml").write_text(WRONG_ORDER)
    stage.run("verify", "no-drain.yaml", expect=UNSAFE)
    stage.tell("And it does happen:")
    stage.await_("the other sandbox to be up", cluster.is_up)
    stage.use(cluster)
    here = ("--kubeconfig", str(cluster.kubeconfig))
    _switch_controllers(stage, cluster, GATE)
    for node in _nodes_with_disks(cluster)[:2]:
        stage.run("sandbox", "switch", "--node", node, GATE, *here)
    _check(not _writes(cluster)["yanked"], "Nothing should be wrong yet.")
    stage.tell("Nothing seems wrong. Then, some day, the controllers restart, for another flag:")
    _switch_controllers(stage, cluster, "InTreePluginAWSUnregister=false")
    stage.await_("a disk to be yanked", lambda: bool(_writes(cluster)["yanked"]))
    stage.run("sandbox", "writes", *here, grep="YANKED|yes$")
    writes = _writes(cluster)
    yanked = set(writes["yanked"])
    _check(yanked <= _stopped(writes), "A database whose disk was yanked should not write.")
    return f"{len(yanked)} of {len(writes['disks'])} disks yanked under running databases"


def _switch_controllers(stage: Stage, cluster: Cluster, gate: str) -> None:
    here = ("--kubeconfig", str(cluster.kubeconfig))
    stage.run("sandbox", "switch", "--component", CONTROLLER, gate, *here, part=Part(2))
    name, _, value = gate.partition("=")

    def are_switched() -> bool:
        replicas = cluster.ask(f"/sandbox/components/{CONTROLLER}")["replicas"]
        wanted = value == "true"
        return all(it["ready"] and it["gates"].get(name) is wanted for it in replicas)

    stage.await_("the controllers to restart", are_switched)


def _sum_up(right: str, wrong: str, report: Path, seconds: float) -> None:
    click.echo()
    click.secho("== In short", bold=True)
    click.echo(f"Interrupted, rolled back, killed and resumed: {right}.")
    click.echo(f"Without a drain: {wrong}.")
    click.echo(f"How the run went: {report}")
    click.echo(f"All else is removed. It took {seconds:.0f} s.")


# What the clusters say


def _nodes(cluster: Cluster) -> list[Any]:
    return list(cluster.ask("/apis/storage.k8s.io/v1/csinodes")["items"])


def _switched(cluster: Cluster) -> int:
    """Nodes that say themselves that they redirect."""
    notes = (it["metadata"].get("annotations", {}) for it in _nodes(cluster))
    return sum("aws-ebs" in it.get(MIGRATED, "") for it in notes)


def _nodes_with_disks(cluster: Cluster) -> list[str]:
    disks = cluster.ask("/sandbox/disks")["disks"]
    return sorted({it["attachedTo"] for it in disks if it["attachedTo"]})


def _writes(cluster: Cluster) -> dict[str, Any]:
    return dict(cluster.ask("/sandbox/writes"))


def _stopped(writes: dict[str, Any]) -> set[str]:
    """Disks that nobody writes to now."""
    return {disk["id"] for disk in writes["disks"] if any(not gap["end"] for gap in disk["gaps"])}


def _longest_gap(writes: dict[str, Any]) -> float:
    gaps = (gap for disk in writes["disks"] for gap in disk["gaps"] if gap["end"])
    return max((_moment(it["end"]) - _moment(it["start"]) for it in gaps), default=0.0)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _check(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise click.ClickException(otherwise)
