"""Why a run is not begun, resumed or undone. All of it is said before anything is touched."""

from __future__ import annotations

from collections.abc import Sequence

from replant.errors import Blocked, Refused
from replant.execute.draining import DrainRules, drain
from replant.execute.journal import FORMAT, Run, State, Summary
from replant.execute.targets import targets
from replant.execute.world import World
from replant.gates.versions import Version
from replant.plan.model import Plan, RollNodes

IDENTITY = "kube-system"
"""The namespace whose uid tells clusters apart: it is there from the first moment to the last."""
_NAMED = 10


def refuse_second(runs: Sequence[Summary]) -> None:
    """Refused while a run is unfinished, whoever began it."""
    for run in runs:
        if run.state is State.UNFINISHED:
            raise Refused(
                f"The run {run.id} is unfinished. Go on with it (--resume), or take it back "
                "(--undo), before another is begun."
            )


def refuse_undrainable(plan: Plan, world: World, rules: DrainRules) -> None:
    """Refused if a drain would have to drop something."""
    refused = [
        refusal
        for step in plan.steps
        if isinstance(step, RollNodes) and step.drain
        for target in targets(step, plan)
        for refusal in drain(world.pods_on(target.node), rules).refused
    ]
    if refused:
        more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        raise Blocked(f"Nodes cannot be drained: {'; '.join(refused[:_NAMED])}{more}.")


def refuse_out_of_turn(run_id: str, runs: Sequence[Summary]) -> None:
    """Refused, unless a run is the last that has led to where the cluster is.

    Its way back is proved from where it ended, and not from where another has gone since.
    """
    known = {it.id: it for it in runs}
    meant = known.get(run_id)
    if meant is None:
        return  # whoever opens it says so
    if meant.state is State.UNDONE:
        raise Refused(f"The run {run_id} is undone: there is nothing left to do.")
    since = [
        it.id
        for it in known.values()
        if it.started > meant.started and it.state is not State.UNDONE
    ]
    if since:
        raise Refused(
            f"After the run {run_id} came {', '.join(since)}: take back the last one first, "
            "for the way back starts where a run has ended."
        )


def refuse_unlike(run: Run) -> None:
    """Refused if another version of Replant began a run whose journal means something else."""
    theirs = run.header.format
    if theirs != FORMAT:
        who = "an older" if theirs < FORMAT else "a newer"
        raise Refused(
            f"The run {run.header.id} was begun by {who} Replant, whose journal has the format "
            f"{theirs} and not {FORMAT}: go on with it, or take it back, with that one."
        )


def refuse_foreign(run: Run, cluster: str) -> None:
    """Refused if a journal in a file is of another cluster than the one that is meant."""
    if run.header.cluster and cluster and run.header.cluster != cluster:
        raise Refused(
            f"The run {run.header.id} belongs to another cluster, by the uid of its namespace "
            f"{IDENTITY}: that is {run.header.cluster}, and here {cluster}. Name the right "
            "one with --kubeconfig and --context."
        )


def refuse_upgraded(run: Run, server: Version, world: World) -> None:
    """Refused where a later minor runs than the plan was made for: its gates may be locked
    there, and a component that is given one all the same does not start.
    """
    plan = run.plan
    found = {"the control plane": (plan.control_plane.version, server)}
    for group in plan.groups:
        for node in filter(None, map(world.node, group.nodes)):
            if node.kubelet:
                place = f"the kubelet of {node.metadata.name}"
                found[place] = group.version, node.kubelet
    for place, (then, now) in found.items():
        if Version.parse(then).first_patch != now.first_patch:
            raise Refused(
                f"The run {run.header.id} was made for {then}, and {place} is {now} by now: "
                "what it has switched may be locked there. Make a plan for the cluster as it "
                "is (replant plan disable)."
            )


def chosen(runs: Sequence[Summary], run_id: str) -> Summary:
    """The run that is meant: the one that is named, or the only one that is unfinished."""
    if run_id:
        named = [it for it in runs if it.id == run_id]
        if not named:
            raise Refused(f"There is no run {run_id}. {_listed(runs)}")
        return named[0]
    unfinished = [it for it in runs if it.state is State.UNFINISHED]
    if len(unfinished) == 1:
        return unfinished[0]
    if not unfinished:
        how = "One that is done is taken back by its name: --undo --run ID. " if runs else ""
        raise Refused(f"There is no unfinished run. {how}{_listed(runs)}")
    raise Refused(f"Several runs are unfinished: say which with --run. {_listed(unfinished)}")


def _listed(runs: Sequence[Summary]) -> str:
    if not runs:
        return "The journal holds none."
    return "There are: " + "; ".join(f"{it.id} ({it.state}, {it.started})" for it in runs) + "."
