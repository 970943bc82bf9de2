"""Events as sentences, so that a person can follow how a volume comes to harm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replant.proof.badness import Bad, Cause
from replant.proof.events import Act, Event, settled
from replant.proof.world import BOTH, CSI, IN_TREE, NONE, NOWHERE, Presence, Rules, World

_NAMES = "ABCD"
_KINDS = {NONE: "no", IN_TREE: "in-tree", CSI: "CSI", BOTH: "all"}


def tell(rules: Rules, events: Sequence[Event], problem: Bad) -> Iterator[str]:
    """The story of some events, and what is bad about its end."""
    before = settled(rules, rules.start)
    for event in events:
        yield _sentence(rules, before, event)
        before = event.world
    yield _end(before, problem)


def _sentence(rules: Rules, before: World, event: Event) -> str:
    node = _node(event.node)
    side = "the driver" if event.side == CSI else "the in-tree plugin"
    name = "CSI" if event.side == CSI else "in-tree"
    told = rules.course.moves[before.at].told if 0 <= before.at < len(rules.moves) else ""
    undone = "what it had before" if before.back else told
    cordoned = event.node != NOWHERE and before.nodes[event.node].cordoned
    seen_empty = event.node != NOWHERE and before.nodes[event.node].seen_empty
    after = event.world.nodes[event.node]
    untainted = event.node != NOWHERE and after.presence == Presence.UNTAINTED
    return {
        Act.GIVE: f"The control plane is given {undone}; its replicas restart one by one.",
        Act.CONFIRM: f"All replicas of the control plane have {undone}.",
        Act.CORDON: f"Replant cordons {node} and begins to drain it.",
        Act.SEE_EMPTY: f"Replant sees that {node} is empty, and is about to restart its kubelet.",
        Act.SWITCH: f"The kubelet of {node} is restarted with {undone}."
        if seen_empty
        else f"With {node} empty, its kubelet is restarted with {undone}.",
        Act.UNCORDON: f"Replant uncordons {node}.",
        Act.TAINT: "Replant taints each node with its kind.",
        Act.TAINT_JOINED: f"Replant taints {node}, which has joined, with its kind.",
        Act.UNTAINT: "Replant takes the taints from all nodes.",
        Act.TOLERATE: "Nothing of the other kind holds the disk: Replant gives a pod that needs it "
        f"a toleration for {_KINDS[event.side]} nodes.",
        Act.TOLERATING_POD_GOES: "The pod that tolerates a taint goes before it is bound.",
        Act.SWITCH_IN_PLACE: f"The kubelet of {node} is restarted in place with {undone}.",
        Act.RESTART: "Replant has another kube-controller-manager lead, which has forgotten "
        "what detaches it waits for.",
        Act.TURN_BACK: "Replant is stopped here, and told to undo what it has done.",
        Act.GO_ON: "Replant is stopped here, and told to go on after all.",
        Act.TAKE_OVER: f"A kube-controller-manager {_with_gates(rules, before, event.world)} "
        "starts and leads, and works out anew, from pods and nodes, what belongs where.",
        Act.TAKE_OVER_BLIND: f"The driver is missing on {node} for a while. A "
        f"kube-controller-manager {_with_gates(rules, before, event.world)} starts and leads, and "
        f"takes the pod on {node} for one that needs no disk.",
        Act.LOOK: "The controller looks at its pods again, and now wants the disk on "
        f"{node} under its {name} name.",
        Act.ATTACH: f"The controller has {side} attach the disk to {node}.",
        Act.ATTACH_FAILS: f"The controller has {side} attach the disk to {node}. The cloud answers "
        f"that {_node(before.disk)} has it; so the controller takes it for attached there under "
        f"its {name} name.",
        Act.ATTACH_TAKES: f"The controller has the driver attach the disk to "
        f"{_node(event.world.disk)}. The driver finds that {node} has it, and detaches it there.",
        Act.DETACH: f"The controller finds the {name} name not in use on {node}, and has {side} "
        "detach the disk.",
        Act.DETACHED: f"The cloud has detached the disk from {node}, as {side} asked.",
        Act.DETACHED_UNNOTICED: f"The cloud has detached the disk from {node}, as {side} asked, "
        "which looks only every few seconds and has not seen it yet.",
        Act.NOTICE: f"The detach from {node} ends for {side}: the disk is not attached there.",
        Act.DETACH_ANEW: f"For half an hour {side} has waited for its detach from {node}, since "
        "it saw the disk attached by the driver; now it begins anew, and detaches it there.",
        Act.DETACH_FORCED: f"For six minutes the controller has waited for {node} not to use the "
        f"disk under its {name} name any more; now it has {side} detach the disk anyway.",
        Act.BIND: f"A pod that needs the disk and tolerates the cordon comes to {node}."
        if cordoned
        else f"A pod that needs the disk comes to {node}.",
        Act.DELETE: f"The pod is {'evicted' if cordoned else 'deleted'} from {node}.",
        Act.MOUNT: f"The kubelet of {node} finds the disk under its {name} name and mounts it; "
        "the pod runs.",
        Act.UNMOUNT: f"The kubelet of {node} unmounts the disk.",
        Act.JOIN: f"{node[:1].upper()}{node[1:]} joins with the gates that nodes had at first"
        + (", and has no taint yet." if untainted else "."),
        Act.DIE: f"{node[:1].upper()}{node[1:]} dies.",
        Act.RETURN: f"{node[:1].upper()}{node[1:]} comes back.",
    }[event.act]


def _node(number: int) -> str:
    return f"node {_NAMES[number]}" if number != NOWHERE else ""


def _with_gates(rules: Rules, before: World, after: World) -> str:
    if not before.rolling:
        return "with the gates it was given"
    source, _target = rules.moves[before.at]
    return "with the old gates" if after.leader == source[NOWHERE] else "with the new gates"


def _end(world: World, problem: Bad) -> str:
    node = _node(problem.node)
    cordoned = problem.node != NOWHERE and world.nodes[problem.node].cordoned
    name, other = ("CSI", "in-tree") if problem.side == CSI else ("in-tree", "CSI")
    side = "driver" if problem.side == CSI else "in-tree plugin"
    because = {
        Cause.DETACHED_UNDER_POD: f"the {side} detaches the disk from {node} while a pod there "
        "runs on it",
        Cause.DETACHED_ANEW: f"the {side} detaches the disk from {node} while a pod there runs on "
        "it, half an hour after the driver overtook its detach",
        Cause.DETACHED_AT_LAST: f"the {side} detaches the disk from {node} while a pod there runs "
        "on it, since no pod was known to need it for six minutes",
        Cause.BOTH_SIDES: f"on {node} the in-tree plugin and the driver hold the disk at once, and "
        "either may take it from the other",
        Cause.MOUNTED_BY_BOTH: f"on {node} the volume is mounted by the in-tree plugin and by the "
        "driver at once, and the kubelet knows of one of the two mounts only",
        Cause.TWO_NODES: "a disk that one node may write to is attached to two",
        Cause.NO_PLUGIN_TO_DETACH: f"the {side} attached the disk to {node}, and the controller no "
        "longer has it to ask for a detach",
        Cause.NO_PLUGIN_TO_MOUNT: f"the kubelet of {node} has no in-tree plugin any more and does "
        "not redirect to the driver: the pod never runs",
        Cause.NO_DRIVER_TO_MOUNT: f"the kubelet of {node} redirects to a driver that is not there: "
        + ("it is never uncordoned" if cordoned else "the pod never runs"),
        Cause.NOBODY_ATTACHES: f"no side would attach the disk to {node}: the pod never runs",
        Cause.OTHER_SIDE_ATTACHES: f"the kubelet of {node} waits for the disk under its {name} "
        f"name, the controller attaches it under its {other} name: the pod never runs",
        Cause.NO_PROVISIONER: "a pod with a new claim never gets its volume: nobody provisions it",
    }[problem.cause]
    return f"{problem.state.value.capitalize()}: {because}."
