"""Workloads whose pods are to name claims instead of disks, or the other way round again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replant.execute.acts import (
    Act,
    Decision,
    LookAtLeader,
    Progress,
    RestartLeader,
    Wait,
)
from replant.execute.leading import Leading, new_leader
from replant.execute.scaling import LookAtWorkload
from replant.execute.world import World
from replant.objects import POD_SPEC_PATHS, Object
from replant.plan.model import RewriteTemplates, TemplateChange

AGAIN = 2.0
"""So many seconds later a workload is looked at again whose pods are being replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteTemplate(Act):
    """Give a workload, as it was seen, other volumes in its template: the whole list of them."""

    workload: TemplateChange
    found: Object
    volumes: tuple[Object, ...]

    @property
    def target(self) -> str:
        """What it is done to."""
        it = self.workload
        return f"{it.kind} {it.namespace}/{it.name}"

    @property
    def backup(self) -> Object | None:
        """The workload as it is, with its whole template."""
        metadata = {k: it for k, it in self.found["metadata"].items() if k != "managedFields"}
        return {**self.found, "kind": self.workload.kind, "metadata": metadata}


class Retemplating:
    """A RewriteTemplates step under way: one workload after the other, each rolled out first."""

    def __init__(self, step: RewriteTemplates, *, timeout: float) -> None:
        self._step = step
        self._timeout = timeout
        self._done = 0
        self._seen: Object | None = None
        self._gone = False
        self._looked = 0.0
        self._notes: list[str] = []
        self._free_since: float | None = None
        self._leading = self._new_leader()

    def decide(self, world: World, now: float) -> Decision:
        """Rewrite the first template that is not as it is to be, and wait for its pods."""
        while self._done < len(self._step.workloads):
            decision = self._of_one(self._step.workloads[self._done], world, now)
            if decision is not None:
                decision.progress = self._progress
                return decision
            self._done += 1
            self._seen, self._gone, self._free_since = None, False, None
            self._leading = self._new_leader()
        notes, self._notes = self._notes, []
        return Decision(done=True, notes=notes, progress=self._progress)

    def _new_leader(self) -> Leading | None:
        step = self._step
        return new_leader(step.id, self._timeout) if step.restart_controllers else None

    @property
    def _progress(self) -> Progress:
        return Progress(self._done, len(self._step.workloads), "workloads")

    def _of_one(self, change: TemplateChange, world: World, now: float) -> Decision | None:
        look = LookAtWorkload(why="to see its template and its pods", workload=change)
        if self._gone:
            self._notes.append(f"{look.target} is gone: it needs nothing")
            return None
        if self._seen is None:
            return Decision(acts=[look])
        volumes = _volumes(self._seen, change.kind)
        if odd := _unexpected(volumes, change):
            return Decision(
                failed=f"The volume {odd} of {look.target} is neither what the plan was made from "
                "nor what it is to become: somebody has changed it. Make the plan anew."
            )
        wanted = rewritten(volumes, change)
        if wanted != volumes:
            if held_up := self._held_up(change, look.target, world, now):
                return held_up
            act = RewriteTemplate(
                why=self._step.title, workload=change, found=self._seen, volumes=tuple(wanted)
            )
            return Decision(acts=[act])
        missing = unfinished(self._seen, change.kind)
        if not missing:
            return None
        decision = Decision(acts=[look]) if now >= self._looked + AGAIN else Decision()
        what = f"{look.target} to be rolled out ({missing})"
        decision.waits.append(Wait(what, look.target, self._timeout))
        decision.wake = AGAIN
        return decision

    def _held_up(
        self, change: TemplateChange, called: str, world: World, now: float
    ) -> Decision | None:
        """What is waited for until disks are free, and another leads than while they became so."""
        decision = Decision(wake=AGAIN)
        if held := self._not_free(change, world, now):
            what = f"the disks of {called} to be detached from {held}"
            timeout = self._timeout + self._step.settle_seconds
            decision.waits.append(Wait(what, called, timeout))
            return decision
        if change.free_of and self._leading and self._leading.holds_up(now, decision, world):
            return decision
        self._notes += decision.notes
        return None

    def _not_free(self, change: TemplateChange, world: World, now: float) -> str:
        """What still has a disk that must be free, or may have: nothing once all is settled."""
        if not change.free_of:
            return ""
        held = _held(change, world)
        if held:
            self._free_since = None
            return held
        if self._free_since is None:
            self._free_since = now
        return (
            ""
            if now >= self._free_since + self._step.settle_seconds
            else "their node, for some seconds more"
        )

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Take what was seen; after a write it must be seen anew."""
        if isinstance(act, LookAtLeader | RestartLeader):
            if self._leading:
                self._leading.learn(outcome, now)
        elif not isinstance(act, LookAtWorkload):
            self._seen = None
        elif not isinstance(outcome, Exception):
            self._seen = dict(outcome) if isinstance(outcome, Mapping) else None
            self._gone, self._looked = outcome is None, now


def rewritten(volumes: list[Object], change: TemplateChange) -> list[Object]:
    """A template's volumes, those of the change as they are to be and all others as they are."""
    after = {it.after["name"]: it.after for it in change.volumes}
    return [it if _is_already(it, after) else after[it["name"]] for it in volumes]


def _is_already(volume: Object, after: Mapping[str, Object]) -> bool:
    wanted = after.get(volume.get("name") or "")
    return wanted is None or volume == wanted


def _unexpected(volumes: list[Object], change: TemplateChange) -> str:
    """The volume that is neither as before nor as afterwards, or is not there at all."""
    there = {it.get("name"): it for it in volumes}
    for it in change.volumes:
        found = there.get(it.before["name"])
        if found not in (it.before, it.after):
            name: str = it.before["name"]
            return name
    return ""


def _volumes(workload: Object, kind: str) -> list[Object]:
    spec = workload
    for step in POD_SPEC_PATHS[kind]:
        spec = spec.get(step) or {}
    return list(spec.get("volumes") or ())


def _held(change: TemplateChange, world: World) -> str:
    """The node to which a disk that must be free is still attached, or is being detached from."""
    names = frozenset(change.free_of)
    # A claim and the volume that was made for it have the same name.
    claims = {
        volume.get("persistentVolumeClaim", {}).get("claimName")
        for it in change.volumes
        for volume in (it.before, it.after)
    }
    for node in world.nodes():
        name = node.metadata.name
        attached = (it.spec.source.persistent_volume_name for it in world.attachments_on(name))
        if node.volumes & names or any(it in claims for it in attached if it):
            return name
    return ""


def unfinished(workload: Object, kind: str) -> str:
    """What is missing until all pods are made of the template; nothing where all are.

    The same that ``kubectl rollout status`` looks at.
    """
    status = workload.get("status") or {}
    if status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0):
        return "its controller has not seen it yet"
    if kind in ("ReplicaSet", "ReplicationController"):
        return ""  # it replaces none: whoever changed its template has scaled it down
    if kind == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        counts = ("updatedNumberScheduled", "numberAvailable")
    else:
        wanted = workload["spec"].get("replicas", 1)
        ready = "availableReplicas" if kind == "Deployment" else "readyReplicas"
        counts = ("updatedReplicas", ready)
    for count in counts:
        if status.get(count, 0) < wanted:
            return f"{count} is {status.get(count, 0)} of {wanted}"
    old = status.get("replicas", 0) - status.get("updatedReplicas", 0)
    if kind != "DaemonSet" and wanted and old > 0:
        return f"{old} old pods are there"
    return ""
