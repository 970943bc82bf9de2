"""What happens to a volume on its way, in sentences: so that a person can follow its harm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Protocol

from replant.swap import moves, twin
from replant.swap.actors import Act, Event
from replant.swap.conduct import Mind
from replant.swap.world import Held, Phase, Reacts, Stage, World


class Harm(StrEnum):
    """What must not come of a swap."""

    LOST = "lost"
    DELETED = "deleted"
    CHANGED = "changed"
    UNBOUND = "unbound"
    STUCK = "stuck"
    SWITCHED = "switched"
    DETACHED = "detached"


class Happened(Protocol):
    """One thing that happens, and the world before it."""

    @property
    def before(self) -> World:
        """The world before it."""

    @property
    def event(self) -> Event:
        """What happens."""


def tell(mind: Mind, path: Sequence[Happened], harm: Harm) -> Iterator[str]:
    """The story of some events, and what is bad about its end."""
    for it in path:
        yield _sentence(mind, it.before, it.event)
    last = path[-1].event.world if path else None
    yield f"{harm.value.capitalize()}: {_end(mind, last, harm)}."


def _sentence(mind: Mind, before: World, event: Event) -> str:
    after = event.world
    deleter = _deleter(mind, before)
    phase = after.volume.phase.value if after.volume else ""
    lost = after.claim is not None and after.claim.phase is Phase.LOST
    way = "native" if mind.case.back else "in-tree"
    told = {
        Act.LOOK: "Replant looks at the volume and its claim",
        Act.WRITE: "The journal has the whole of the volume, and is synced",
        Act.REFUSED: "The API server refuses it: things are not as Replant saw them",
        Act.BEGIN_ANEW: "Replant begins anew with this volume",
        Act.RESUME: "Replant is killed here, and started again to go on",
        Act.UNDO: f"Replant is stopped here, and told to go back to the {way} volume",
        Act.SAY_VOLUME: f"The controller of volumes says that the volume is {phase}",
        Act.SAY_CLAIM: "The controller of volumes looks at the claim and says that it is "
        + ("Lost: it knows no volume of that name" if lost else "Bound"),
        Act.MISS_CLAIM: "The controller of volumes looks at the claim, fails, and leaves it for "
        "its next round",
        Act.UNPROTECT: "The protection of volumes lets the volume go, for no claim has it",
        Act.LET_GO: f"{deleter.capitalize()} takes its finalizer off the volume",
        Act.DESTROY: f"{deleter.capitalize()} finds the volume Released with policy Delete, and "
        "deletes its disk",
        Act.DELETE_CLAIM: "Somebody deletes the claim; no pod uses it, and it goes",
        Act.DELETE_USED_CLAIM: "Somebody deletes the claim; a pod uses it, and it stays for now",
        Act.CLAIM_GOES: "No pod uses the claim any more, and it goes",
        Act.NEW_CLAIM: "Somebody makes another claim of the same name",
        Act.DELETE_VOLUME: "Somebody deletes the volume",
        Act.LABEL: "Somebody gives the volume a label",
        Act.ADD_FINALIZER: "Another controller gives the volume its finalizer",
        Act.LOOK_AGAIN: "Replant looks at nodes, controllers and attachments, right before it "
        + ("deletes" if before.volume else "creates"),
        Act.SWITCH: "Somebody switches a node or the controllers, which no longer redirect",
        Act.RESTART_KUBELET: "The kubelet is restarted, finds no volume for the pod, and "
        "unmounts it",
        Act.RESTART_CONTROLLERS: "The kube-controller-manager is restarted, and finds no "
        "volume for the pod",
        Act.POD_ENDS: "The pod ends",
        Act.DETACH: "The external-attacher detaches the disk from the node",
        Act.RECLAIM: f"The other controller sees {_seen(mind)}, and deletes its disk",
    }
    said = _change(mind.move(before)) if event.act is Act.CHANGE else told[event.act]
    if event.unanswered:
        said += ", and does not hear that it was done"
    if after.held is Held.DETACHING and before.held is not Held.DETACHING:
        said += "; the attach/detach controller deletes the VolumeAttachment"
    return f"{said}{_and_then(before, after)}."


def _change(move: moves.Move) -> str:
    match move:
        case moves.Create(volume):
            form = "native" if twin.is_native(volume) else "in-tree"
            return f"Replant creates the {form} volume with policy {twin.policy(volume)}"
        case moves.Delete():
            return "Replant deletes the volume"
        case moves.Nudge() | moves.Await():
            return "Replant writes to the claim, so that the controllers look at it"
        case moves.Patch(patch) if "spec" in patch:
            policy = patch["spec"]["persistentVolumeReclaimPolicy"]
            return f"Replant gives the volume the policy {policy}"
    return "Replant takes the finalizers off the volume"


def _and_then(before: World, after: World) -> str:
    """What Replant concludes at once, and what goes by itself."""
    gone = "; it is gone" if before.volume and not after.volume and after.disk else ""
    if after.replant.stage is before.replant.stage:
        return gone
    ends = {Stage.DONE: "; Replant is done with it", Stage.STUCK: "; Replant sees no way on"}
    return gone + ends.get(after.replant.stage, "")


def _seen(mind: Mind) -> str:
    match mind.case.other_controller:
        case Reacts.ABSENCE:
            return "that the volume is gone"
        case Reacts.POLICY:
            return "that the volume has another policy"
    return "that the volume is being deleted"


def _deleter(mind: Mind, world: World) -> str:
    native = world.volume is not None and world.volume.native
    driver_s = native or mind.case.redirected
    return "the driver's provisioner" if driver_s else "the in-tree plugin"


def _end(mind: Mind, last: World | None, harm: Harm) -> str:
    policy = "Delete" if mind.case.deletes else "Retain"
    match harm:
        case Harm.DELETED:
            if last and last.claim and last.claim.own:
                return "the disk is deleted although its claim is there"
            return (
                "the disk is deleted although nobody deleted the claim while its volume was there "
                "and said that the disk goes with it"
            )
        case Harm.CHANGED:
            if last and last.volume and last.volume.labelled != last.labelled:
                return "the volume is done, and lacks the label that somebody has given it"
            return f"the volume is done, and its policy is not {policy}, as it was"
        case Harm.STUCK:
            if last and last.replant.stage is Stage.STUCK:
                return "Replant gives up, and nobody has done anything that would explain it"
    return _ENDS[harm]


_ENDS = {
    Harm.LOST: "neither a volume nor the journal names the disk",
    Harm.SWITCHED: "the volume is deleted although a node or the controllers no longer redirect "
    "its plugin: its disk would be attached twice, or detached under its pod",
    Harm.DETACHED: "the disk is detached under the pod, which still writes to it",
    Harm.UNBOUND: "Replant is done, and the claim stays Lost unless the controllers look again",
    Harm.STUCK: "Replant never comes to an end from here, though nobody disturbs it any more",
}
