"""Which actuator ``replant apply`` switches gates with, and how it is come by."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from replant.cli.connecting import connected
from replant.errors import Refused
from replant.execute.engine import Display
from replant.execute.timing import RealTiming, Timing
from replant.plan.model import NodeMethod, Plan, RollNodes, SwitchControlPlane
from replant.routing import AttachController

if TYPE_CHECKING:
    from replant.cluster.live import LiveReader
    from replant.execute.actuators import Actuator
    from replant.platforms.openshift_changes import Intent


def choose_actuator(given: dict[str, Any], plan: Plan) -> None:
    """Note which is meant; Refused where none is, or not one for this plan."""
    from replant.cli.apply import ACTUATORS

    if given["actuator"] is None and not any(
        isinstance(it, SwitchControlPlane | RollNodes) for it in plan.steps
    ):
        given["actuator"] = "observe"  # there is nothing to switch
    if given["actuator"] is None:
        given["actuator"] = "hooks" if given["hook"] else plan.platform
    if given["actuator"] not in ACTUATORS:
        raise Refused(
            f"Nothing says how gates are switched on the platform {plan.platform}: name a way with "
            f"--actuator ({', '.join(ACTUATORS)}). docs/actuators.md explains each."
        )
    if given["actuator"] == "gardener" and not given.get("shoot"):
        raise Refused(
            "--actuator gardener sees a control plane in its seed: name the shoot with --shoot, "
            "and the seed with --kubeconfig and --context."
        )
    if given["actuator"] == "hooks" and not given["hook"]:
        raise Refused("--actuator hooks needs the command that switches gates: --hook COMMAND.")
    by_platform = any(
        isinstance(it, RollNodes) and it.method is NodeMethod.PLATFORM for it in plan.steps
    )
    if by_platform != (given["actuator"] == "openshift") and _switches_nodes(plan):
        raise Refused(
            f"--actuator {given['actuator']} cannot carry out what the plan says of nodes: "
            "--actuator openshift is for plans made with --nodes platform, and only that one is."
        )
    if given["actuator"] == "kubeadm" and not given["agent_image"]:
        raise Refused("--actuator kubeadm needs an image for its pods: --agent-image IMAGE.")


def _switches_nodes(plan: Plan) -> bool:
    return any(isinstance(it, RollNodes) for it in plan.steps)


async def timing_for(given: dict[str, Any], reader: LiveReader) -> Timing:
    """The time that a run goes by."""
    if given["actuator"] != "sandbox":
        return RealTiming()
    from replant.platforms.sandbox import timing_of

    return await timing_of(reader.connection)


@dataclass(frozen=True, slots=True)
class Job:
    """What an actuator is for."""

    plan: Plan
    new: bool
    """Whether the run begins: one that was begun goes on, or back, whatever it has met since."""
    besides: str = ""
    """What feature sets would do besides, if they are used."""

    @property
    def _switches(self) -> list[SwitchControlPlane | RollNodes]:
        return [it for it in self.plan.steps if isinstance(it, SwitchControlPlane | RollNodes)]

    def intent(self) -> Intent:
        """As far as OpenShift is concerned."""
        from replant.platforms.openshift_changes import Intent

        by_name = any(it.by_name for it in self._switches)
        if not self.new:
            return Intent(by_name)
        given = [
            it.gates
            for step in self._switches
            for it in (step.components if isinstance(step, SwitchControlPlane) else step.changes)
        ]
        off = {gate: None for gates in given for gate, on in gates.items() if on is False}
        return Intent(by_name, tuple(off), self.besides)


async def actuator_for(
    given: dict[str, Any], reader: LiveReader, display: Display, job: Job, held: AsyncExitStack
) -> Actuator:
    """The one that was chosen; Refused where it sees that it cannot do what it is for."""
    match given["actuator"]:
        case "gardener":
            from replant.cluster.live import PATIENT
            from replant.platforms.gardener import Gardener

            found = given["from_seed"]
            seed = await held.enter_async_context(connected(found.seed, display.note, PATIENT))
            return Gardener(reader, found.seat(seed), display.note)
        case "sandbox":
            from replant.platforms.sandbox import SandboxActuator

            return SandboxActuator(reader.connection)
        case "hooks":
            from replant.platforms.hooks import Hooks

            return Hooks(given["hook"])
        case "kubeadm":
            from replant.cluster.writing import LiveWriter
            from replant.platforms.kubeadm import Kubeadm

            return Kubeadm(reader, LiveWriter(reader), given["agent_image"], tell=display.note)
        case "openshift":
            from replant.cluster.writing import LiveWriter
            from replant.platforms.openshift import OpenShift
            from replant.platforms.openshift_changes import Rules

            order_free = job.plan.attach_controller is AttachController.NODE_DRIVEN
            rules = Rules(order_free, given["accept_no_upgrade"])
            openshift = OpenShift(reader, LiveWriter(reader), rules, display.note)
            await openshift.refuse_impossible(job.intent())
            return openshift
        case "observe":
            from replant.platforms.observe import Observe

            return Observe(reader, display.note)
    raise AssertionError(given["actuator"])
