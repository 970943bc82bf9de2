"""Keeps pods from nodes of one kind while nodes of the other kind hold their volumes.

Nodes of both kinds call the same disk by different names, so Kubernetes does not keep it from being
attached twice, and may detach it under the pod that has it (docs/observed.md). Each node therefore
has a taint that tells its kind. A pod that is not bound yet gets a toleration for one kind once
nothing of the other kind holds its volumes, or may come to hold them. Pods without such volumes get
tolerations for all nodes.

A node that is being switched has a taint for every plugin, whether kinds matter to it or not: some
pods tolerate a cordon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from replant.core.routing.dangling import is_taken_from_other_nodes
from replant.errors import ReplantError
from replant.execute.acts import Act, Decision, NodeAct, Wait
from replant.execute.census_model import Disk, disk_of, inline_disk
from replant.execute.patience import Patience
from replant.execute.steps.taints import NO_SCHEDULE, SWITCHING, is_being_switched, key_of
from replant.execute.targets import Target, targets, targets_of_version
from replant.execute.world import OVER, Key, Node, Pod, Taint, World
from replant.gates.versions import Version
from replant.objects import Object
from replant.plan.compose import SETTLE_SECONDS
from replant.plan.model import ChangeVersion, Plan, RollNodes
from replant.routing import Side
from replant.routing.names import csi_name, named

LOOK_AGAIN = 1.0
BOTH = frozenset((Side.IN_TREE.value, Side.CSI.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintNode(NodeAct):
    """Give a node these taints, instead of those that it has."""

    uid: str
    version: str
    taints: tuple[Taint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PodAct(Act):
    namespace: str
    pod: str
    uid: str

    @property
    def target(self) -> str:
        """What it is done to."""
        return f"pod {self.namespace}/{self.pod}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtUnboundPod(_PodAct):
    """See a pod that is not bound to a node, its claims and their volumes."""

    changes: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TolerateTaints(_PodAct):
    """Give a pod these tolerations, which include those that it has."""

    version: str
    tolerations: tuple[Object, ...]


@dataclass(frozen=True, slots=True)
class UnboundPod:
    """A pod that is not bound to a node, as it was at one moment; empty if it is bound or gone."""

    pod: Object = field(default_factory=dict)
    claims: Mapping[str, Object | None] = field(default_factory=dict)
    """By claim, with its namespace: the volume that it is bound to, if it is."""


@dataclass(frozen=True, slots=True)
class _Need:
    """A volume that a pod needs."""

    plugin: str
    """Nothing where that is not known yet: the claim has no volume."""
    claim: str
    names: frozenset[str]
    volume: str = ""


class SchedulingRestriction:
    """The taints of all nodes and the tolerations of pods, while nodes are switched."""

    def __init__(
        self,
        plugins: Iterable[str],
        targets: Iterable[Target],
        settle_seconds: float,
        patience: Patience,
        *,
        closed: Iterable[str] = (),
    ) -> None:
        """Without plugins there is nothing to keep pods from, and it does nothing.

        For those that are only ``closed`` nodes tell nothing but that they are being switched.
        """
        self._plugins = tuple(plugins)
        self._closed = tuple(closed)
        self._all = (*self._plugins, *self._closed)
        self._released: set[str] = set()
        """Nodes that have been switched, and may take pods again."""
        self._targets = {it.node: it for it in targets}
        self._settle_seconds = settle_seconds
        self._patience = patience
        self._tainted_since: float | None = None
        self._began = False
        self._idle: bool | None = None
        """Whether all nodes were as they should be when it was first asked."""
        self._unmarked: set[str] = set()
        """Nodes whose taints were not right when they were last seen."""
        self._looked: dict[str, tuple[float, UnboundPod]] = {}
        """By uid, when a pod was looked at and what was seen."""
        self._given: dict[str, tuple[Object, ...]] = {}
        """By uid, the tolerations that a pod has or is about to get."""
        self._confirmed: dict[str, tuple[Object, ...]] = {}
        """By uid, those that were written."""
        self._inline: dict[Key, tuple[str, frozenset[str]]] = {}
        """By pod, its uid and the names of the disks that it names by itself."""
        self._told: set[str] = set()

    def holds_up(self, world: World, now: float, decision: Decision) -> bool:
        """Whether no kubelet may be switched yet; what is to be done is in the decision."""
        if self._is_idle(world):
            return not self.ends(world, decision)  # an earlier run may have left taints
        if self._began:
            return False
        names = {it.metadata.name for it in world.nodes()}
        if not self._mark(names, world, decision):
            self._tainted_since = None
            return True
        if not self._plugins:
            self._began = True
            return False
        seen = self._serve(world, now, decision)
        if self._tainted_since is None:
            self._tainted_since = now
        until = self._tainted_since + self._settle_seconds
        if now < until or not seen:
            decision.wake = min(decision.wake, max(until - now, LOOK_AGAIN))
            decision.waits.append(
                Wait(
                    "the scheduler to hear of the taints",
                    "settling taints",
                    self._patience.switch + self._settle_seconds,
                )
            )
            return True
        strays = list(self._strays(world))
        decision.waits += strays
        self._began = not strays
        return not self._began

    def keep(self, touched: set[str], world: World, now: float, decision: Decision) -> None:
        """Have each node tell its kind, and let pods go where nothing keeps them from."""
        if self._is_idle(world) or not self._began:
            return
        self._mark(touched | self._unmarked, world, decision)
        if self._plugins:
            self._serve(world, now, decision)

    def release(self, node: str) -> None:
        """Have a node that has been switched tell its new kind."""
        if node not in self._released:
            self._released.add(node)
            self._unmarked.add(node)

    def is_closed(self, node: Node) -> bool:
        """Whether a node's taints say that it is being switched."""
        return any(is_being_switched(node, it) for it in self._all)

    def is_marked(self, node: Node, world: World) -> bool:
        """Whether a node's taints tell what it is."""
        return self._is_idle(world) or self._taints(node, world) == tuple(node.spec.taints or ())

    def ends(self, world: World, decision: Decision) -> bool:
        """Whether no taint is left; they are taken away once all nodes are alike."""
        for plugin in self._plugins:
            if wait := self._unlike(plugin, world):
                decision.waits.append(wait)
                return False
        keys = {key_of(it) for it in self._all}
        left = False
        for node in world.nodes():
            taints = tuple(node.spec.taints or ())
            kept = tuple(it for it in taints if it.key not in keys)
            if kept != taints:
                left = True
                decision.acts.append(_taint(node, kept, "all nodes are alike again"))
        return not left

    def add(self, target: Target) -> None:
        """Have another node switched: one that has joined."""
        self._targets[target.node] = target
        self._idle = None

    def learn(self, act: Act, outcome: object, now: float) -> None:
        """Note what was seen of a pod, and what it was given."""
        match act, outcome:
            case LookAtUnboundPod(), UnboundPod():
                self._looked[act.uid] = now, outcome
                names = [it.names for it in _needs(outcome) if not it.claim]
                if names:
                    key = act.namespace, act.pod
                    self._inline[key] = act.uid, frozenset().union(*names)
            case TolerateTaints(), None:
                self._confirmed[act.uid] = act.tolerations
            case ((LookAtUnboundPod() | TolerateTaints()), ReplantError()):
                self._looked.pop(act.uid, None)

    def _is_idle(self, world: World) -> bool:
        """Whether there is nothing to keep pods from: nodes are alike, and stay so."""
        if self._idle is None:
            self._idle = not any(
                self._unlike(plugin, world) or self._changes(plugin, world) for plugin in self._all
            )
        return self._idle

    def _changes(self, plugin: str, world: World) -> bool:
        """Whether a node is to change its kind."""
        return any(
            (plugin in world.csi_node(name).migrated) != (plugin in target.listed)
            for name, target in self._targets.items()
            if world.node(name)
        )

    # Nodes

    def _kind(self, node: Node, plugin: str, world: World) -> str:
        """What a node's kubelet takes, or that it is being switched."""
        name = node.metadata.name
        migrates = plugin in world.csi_node(name).migrated
        target = self._targets.get(name)
        if target and node.spec.unschedulable:
            is_held = name not in self._released and is_being_switched(node, plugin)
            if is_held or migrates != (plugin in target.listed):
                return SWITCHING
        return Side.CSI.value if migrates else Side.IN_TREE.value

    def _taints(self, node: Node, world: World) -> tuple[Taint, ...]:
        """The taints that a node should have."""
        wanted = {key_of(it): self._kind(node, it, world) for it in self._plugins}
        for it in self._closed:
            is_closed = self._kind(node, it, world) == SWITCHING
            wanted[key_of(it)] = SWITCHING if is_closed else ""
        kept = [
            it
            for it in node.spec.taints or ()
            if it.key not in wanted or (it.value, it.effect) == (wanted[it.key], NO_SCHEDULE)
        ]
        there = {it.key for it in kept}
        return (
            *kept,
            *(
                Taint(key=key, value=kind, effect=NO_SCHEDULE)
                for key, kind in wanted.items()
                if kind and key not in there
            ),
        )

    def _mark(self, names: set[str], world: World, decision: Decision) -> bool:
        """Whether these nodes tell their kind; those that do not are to be tainted."""
        self._unmarked = set()
        for node in filter(None, map(world.node, sorted(names))):
            taints = self._taints(node, world)
            if taints != tuple(node.spec.taints or ()):
                self._unmarked.add(node.metadata.name)
                why = "so that pods are kept from nodes of the other kind than their volumes'"
                decision.acts.append(_taint(node, taints, why))
        return not self._unmarked

    def _kinds_there(self, plugin: str, world: World) -> dict[str, list[str]]:
        """The nodes by their kind."""
        found: dict[str, list[str]] = defaultdict(list)
        for node in world.nodes():
            found[self._kind(node, plugin, world)].append(node.metadata.name)
        return found

    def _unlike(self, plugin: str, world: World) -> Wait | None:
        """What is waited for where nodes differ."""
        kinds = self._kinds_there(plugin, world)
        if len(kinds) < len(BOTH):
            return None
        fewest = min(kinds, key=lambda it: len(kinds[it]))
        return Wait(
            f"{', '.join(sorted(kinds[fewest])[:3])} to be like the other nodes: the kubelet takes "
            f"the {fewest} side of {plugin}. Drain it and switch its kubelet, or remove it",
            f"unlike {plugin} {fewest}",
            self._patience.switch,
            "the kubelet of that node",
        )

    def _strays(self, world: World) -> Iterator[Wait]:
        """Pods that tolerate nodes of a kind that is not there yet, from an earlier run."""
        for plugin in self._plugins:
            there = self._kinds_there(plugin, world).keys()
            for pod in world.pods_on(""):
                tolerated = self._tolerated(pod.metadata.uid, plugin)
                if len(there) == 1 and tolerated - there and self._needs_of(pod, plugin):
                    yield Wait(
                        f"pod {pod.name} to be bound or deleted: it tolerates nodes of a kind that "
                        "is not there yet",
                        f"stray {pod.metadata.uid}",
                        self._patience.drain,
                        "kube-scheduler",
                    )

    # Pods

    def _serve(self, world: World, now: float, decision: Decision) -> bool:
        """Give tolerations to the unbound pods that may have them; tells if all were looked at."""
        waiting = [it for it in world.pods_on("") if _is_waiting(it)]
        uids = {it.metadata.uid for it in waiting}
        for known in (self._looked, self._given, self._confirmed):
            for uid in known.keys() - uids:
                del known[uid]
        unseen = [it for it in waiting if it.metadata.uid not in self._looked]
        decision.acts += map(_look, unseen)
        if unseen:
            return False  # one that was not looked at may tolerate what another must not meet
        held = _Held(world)
        for pod in waiting:
            self._consider(pod, held, world, now, decision)
        return True

    def _consider(
        self, pod: Pod, held: _Held, world: World, now: float, decision: Decision
    ) -> None:
        uid = pod.metadata.uid
        at, seen = self._looked[uid]
        if not seen.pod:
            # It is bound or gone, or the API server lags and did not know it yet.
            decision.wake = min(decision.wake, LOOK_AGAIN)
            if now > at + LOOK_AGAIN:
                decision.acts.append(_look(pod))
            return
        wanted = list(self._tolerations(uid))
        for plugin in self._plugins:
            kinds = self._allowed(pod, plugin, held, world)
            if kinds is None:
                missing = [{"key": key_of(plugin), "operator": "Exists", "effect": NO_SCHEDULE}]
            else:
                missing = [_toleration(plugin, it) for it in sorted(kinds)]
                self._tell(pod, plugin, decision, withheld=not kinds)
            wanted += [it for it in missing if it not in wanted]
        # Whoever is considered next has to reckon with it, before it is written.
        self._given[uid] = tolerations = tuple(wanted)
        decision.wake = min(decision.wake, LOOK_AGAIN)
        if tolerations in (_own(seen), self._confirmed.get(uid)):
            return
        if now > at + LOOK_AGAIN:
            decision.acts.append(_look(pod))  # it may have another volume by now
            return
        decision.acts.append(
            TolerateTaints(
                why="nothing of the other kind holds its volumes",
                namespace=pod.metadata.namespace,
                pod=pod.metadata.name,
                uid=uid,
                version=seen.pod["metadata"]["resourceVersion"],
                tolerations=tolerations,
            )
        )

    def _tell(self, pod: Pod, plugin: str, decision: Decision, *, withheld: bool) -> None:
        if withheld and pod.metadata.uid not in self._told:
            self._told.add(pod.metadata.uid)
            decision.notes.append(
                f"pod {pod.name} is not scheduled until its volume is free: pods or nodes of the "
                f"other side of {plugin} hold it"
            )

    def _allowed(self, pod: Pod, plugin: str, held: _Held, world: World) -> frozenset[str] | None:
        """The kinds of nodes to which a pod may go; None where the plugin is nothing to it."""
        needs = self._needs_of(pod, plugin)
        if not needs:
            return None
        allowed = BOTH & self._kinds_there(plugin, world).keys()
        for need in needs:
            kinds = held.by(need)
            for other in self._sharing(need, world):
                if other.metadata.uid != pod.metadata.uid and other.status.phase not in OVER:
                    kinds |= self._kinds_of(other, plugin, world)
            if kinds:
                allowed = kinds if len(kinds) == 1 and kinds <= BOTH else frozenset()
        return allowed

    def _sharing(self, need: _Need, world: World) -> Iterator[Pod]:
        """The pods that need the same volume."""
        if need.claim:
            yield from world.pods_using(need.claim)
            return
        for key, (uid, names) in self._inline.items():
            pod = world.pod(key)
            if pod is not None and pod.metadata.uid == uid and names & need.names:
                yield pod

    def _kinds_of(self, pod: Pod, plugin: str, world: World) -> frozenset[str]:
        """The kinds of nodes on which a pod is, or to which it may go."""
        if not pod.spec.node_name:
            return self._tolerated(pod.metadata.uid, plugin)
        node = world.node(pod.spec.node_name)
        return frozenset((self._kind(node, plugin, world),)) if node else frozenset()

    def _needs_of(self, pod: Pod, plugin: str) -> list[_Need]:
        _at, seen = self._looked.get(pod.metadata.uid, (0.0, UnboundPod()))
        return [it for it in _needs(seen) if it.plugin in ("", plugin)]

    def _tolerations(self, uid: str) -> tuple[Object, ...]:
        _at, seen = self._looked.get(uid, (0.0, UnboundPod()))
        return self._given.get(uid, _own(seen))

    def _tolerated(self, uid: str, plugin: str) -> frozenset[str]:
        """The kinds that a pod tolerates by our taint of a plugin."""
        kinds: set[str] = set()
        for it in self._tolerations(uid):
            if it.get("key") == key_of(plugin):
                kinds |= BOTH if it.get("operator") == "Exists" else {str(it.get("value", ""))}
        return frozenset(kinds)


class _Held:
    """By which names volumes are attached or in use, anywhere in a cluster."""

    def __init__(self, world: World) -> None:
        self._world = world

    @cached_property
    def _found(self) -> tuple[set[str], set[str]]:
        """Their names, and the volumes that have a VolumeAttachment."""
        names: set[str] = set()
        for node in self._world.nodes():
            names |= node.volumes
        volumes: set[str] = set()
        for it in self._world.attachments():
            source = it.spec.source
            if source.persistent_volume_name:
                volumes.add(source.persistent_volume_name)
            elif source.inline_volume_spec and source.inline_volume_spec.csi:
                csi = source.inline_volume_spec.csi
                names.add(csi_name(csi.driver, csi.volume_handle))
        return names, volumes

    def by(self, need: _Need) -> frozenset[str]:
        """The sides that hold a volume."""
        names, volumes = self._found
        sides = {named(it).side.value for it in need.names & names}
        if need.volume in volumes:
            sides.add(Side.CSI.value)  # only what the driver attaches has a VolumeAttachment
        return frozenset(sides)


def restriction(
    step: RollNodes | ChangeVersion, plan: Plan, patience: Patience
) -> SchedulingRestriction:
    """What a step keeps pods from: nodes that are being switched, and more if the plan says so."""
    version = Version.parse(plan.control_plane.version)
    plugins = [it for it in plan.plugins if is_taken_from_other_nodes(it, version)]
    kept = plugins if step.restrict_scheduling else []
    rest = [it for it in plan.plugins if it not in kept]
    if isinstance(step, ChangeVersion):
        found = targets_of_version(step, plan)
        return SchedulingRestriction(kept, found, SETTLE_SECONDS, patience, closed=rest)
    closed = rest if step.drain else ()
    return SchedulingRestriction(
        kept, targets(step, plan), step.settle_seconds, patience, closed=closed
    )


def _own(seen: UnboundPod) -> tuple[Object, ...]:
    return tuple(seen.pod["spec"].get("tolerations") or ()) if seen.pod else ()


def _is_waiting(pod: Pod) -> bool:
    return not pod.metadata.deletion_timestamp and pod.status.phase not in OVER


def _needs(seen: UnboundPod) -> Iterator[_Need]:
    """The volumes of a pod that plugins of the migration serve, or may come to serve."""
    if not seen.pod:
        return
    for claim, volume in seen.claims.items():
        if volume is None:
            yield _Need("", claim, frozenset())
        elif (disk := disk_of(volume)) and not disk.native:
            yield _Need(disk.plugin, claim, _names(disk), volume["metadata"]["name"])
    namespace = seen.pod["metadata"].get("namespace", "")
    for volume in seen.pod["spec"].get("volumes") or ():
        if disk := inline_disk(volume, namespace):
            yield _Need(disk.plugin, "", _names(disk))


def _names(disk: Disk) -> frozenset[str]:
    return frozenset((disk.in_tree, disk.csi))


def _toleration(plugin: str, kind: str) -> Object:
    return {"key": key_of(plugin), "operator": "Equal", "value": kind, "effect": NO_SCHEDULE}


def _taint(node: Node, taints: tuple[Taint, ...], why: str) -> TaintNode:
    return TaintNode(
        why=why,
        node=node.metadata.name,
        uid=node.metadata.uid,
        version=node.metadata.resource_version,
        taints=taints,
    )


def _look(pod: Pod) -> LookAtUnboundPod:
    return LookAtUnboundPod(
        why="to see which volumes it needs",
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        uid=pod.metadata.uid,
    )
