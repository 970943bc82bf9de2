"""Workloads that are without pods for a while, because their volumes must be free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from replant.core.convert.retention import deletes_claims_when_scaled
from replant.execute.acts import Act, Decision, Progress, Wait
from replant.execute.world import World
from replant.objects import Object
from replant.plan import model
from replant.plan.model import ScaleWorkloads

AGAIN = 2.0
"""So many seconds later a workload is looked at again whose pods have not gone yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _WorkloadAct(Act):
    workload: model.Scaling | model.TemplateChange

    @property
    def target(self) -> str:
        """What it is done to."""
        it = self.workload
        return f"{it.kind} {it.namespace}/{it.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtWorkload(_WorkloadAct):
    """See a workload; the outcome is the object, or None where there is none."""

    changes: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleWorkload(_WorkloadAct):
    """Have a workload run so many pods, as it was seen."""

    uid: str
    version: str
    replicas: int


class Scaling:
    """A ScaleWorkloads step under way: one workload after the other, each seen before the next."""

    def __init__(self, step: ScaleWorkloads, *, timeout: float) -> None:
        self._step = step
        self._timeout = timeout
        self._done = 0
        self._seen: Object | None = None
        self._gone = False
        self._looked = 0.0

    def decide(self, _world: World, now: float) -> Decision:
        """Scale the first that is not as it is to be, and wait for its pods to go."""
        while self._done < len(self._step.workloads):
            decision = self._of_one(self._step.workloads[self._done], now)
            if decision is not None:
                decision.progress = self._progress
                return decision
            self._done += 1
            self._seen, self._gone = None, False
        return Decision(done=True, progress=self._progress)

    @property
    def _progress(self) -> Progress:
        return Progress(self._done, len(self._step.workloads), "workloads")

    def _of_one(self, workload: model.Scaling, now: float) -> Decision | None:
        look = LookAtWorkload(why="to see how many pods it has", workload=workload)
        if self._gone:
            return None  # it needs no pods, nor has it any
        if self._seen is None:
            return Decision(acts=[look])
        if self._step.down and deletes_claims_when_scaled(self._seen["spec"]):
            return Decision(
                failed=f"{look.target} would delete its claims, and their disks with them, if it "
                "were scaled down: persistentVolumeClaimRetentionPolicy.whenScaled is Delete. Set "
                "it to Retain, and resume the run."
            )
        replicas = self._seen["spec"].get("replicas", 1)
        wanted = 0 if self._step.down else workload.replicas
        if replicas != wanted and replicas == (workload.replicas if self._step.down else 0):
            metadata = self._seen["metadata"]
            scale = ScaleWorkload(
                why=self._step.title, workload=workload, uid=metadata["uid"],
                version=metadata["resourceVersion"], replicas=wanted,
            )  # fmt: skip
            return Decision(acts=[scale])
        if not self._step.down:
            return None  # it has its pods again, or somebody has said how many
        if replicas:
            return Decision(
                failed=f"{look.target} is to have {replicas} pods by now, and the plan was made "
                f"for {workload.replicas}: somebody has scaled it. Make the plan anew."
            )
        if not (self._seen.get("status") or {}).get("replicas"):
            return None
        if now >= self._looked + AGAIN:
            return Decision(acts=[look])
        wait = Wait(f"the pods of {look.target} to be gone", look.target, self._timeout)
        return Decision(waits=[wait], wake=AGAIN)

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Take what was seen; after a write it must be seen anew."""
        if isinstance(act, LookAtWorkload):
            if not isinstance(outcome, Exception):
                self._seen = dict(outcome) if isinstance(outcome, Mapping) else None
                self._gone, self._looked = outcome is None, now
        else:
            self._seen = None
