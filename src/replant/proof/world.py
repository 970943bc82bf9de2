"""One disk, the nodes that it can be on, and all that Kubernetes remembers of it.

A world is small and hashable, since a search looks at very many. Sides are bits, so that a set of
sides is one number.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from replant.core.routing.dangling import attach_may_detach, driver_attach_detaches
from replant.gates.plugins import BASE_GATE
from replant.gates.settings import effective
from replant.proof.course import OVERTAKEN, Course, NodesMove, OldNodesJoin
from replant.routing import (
    AttachController,
    NodeView,
    Process,
    Side,
    VolumeView,
    attach,
    provision,
)
from replant.routing.restarts import needs_driver, takes_for_in_tree
from replant.translate import driver_of

NONE, IN_TREE, CSI = 0, 1, 2
"""Sets of sides: nobody, one or the other."""
BOTH = IN_TREE | CSI
NOWHERE = -1
"""Where a disk is that is attached to no node."""

BITS = {Side.NOBODY: NONE, Side.IN_TREE: IN_TREE, Side.CSI: CSI}
"""Each side as a set of sides."""


class Pod(IntEnum):
    """The pod on a node that uses the disk."""

    ABSENT = 0
    WAITING = 1
    """It is bound to the node and waits for its volume."""
    RUNNING = 2


class Hold(IntEnum):
    """Whether a side holds the disk on a node."""

    FREE = 0
    HELD = 1
    """Attached, and so written in the node's volumesAttached."""
    LETTING_GO = 2
    """The cloud was asked to detach it and has not finished; nothing is written any more."""
    UNNOTICED = 3
    """The cloud has finished, and the side that asked still waits for that. If the other side
    attaches the disk meanwhile, it waits until it takes its detach for failed."""
    UNCERTAIN = 4
    """An attach to another node failed because this node has the disk: the controller takes it for
    attached here, and nothing is written in the node's volumesAttached."""


class Presence(IntEnum):
    """Whether a node is in the cluster."""

    MEMBER = 0
    ABSENT = 1
    """It has not joined yet."""
    UNTAINTED = 2
    """It has joined while all other nodes have the taint of their kind."""


_HOLDING = (Hold.HELD, Hold.LETTING_GO)


class Node(NamedTuple):
    """A node, as far as the disk is concerned."""

    group: int
    kubelet: int
    """Which of the course's processes its kubelet is."""
    announced: bool
    """Whether its CSINode says that it redirects the plugin."""
    cordoned: bool = False
    alive: bool = True
    pod: Pod = Pod.ABSENT
    mounted: int = NONE
    """The sides by which its kubelet knows the disk as mounted."""
    forgotten: int = NONE
    """The sides by which it is mounted and the kubelet, given other gates, does not know it."""
    in_tree: Hold = Hold.FREE
    csi: Hold = Hold.FREE
    wanted: int = NONE
    """The sides by which the controller wants it attached here."""
    presence: Presence = Presence.MEMBER
    seen_empty: bool = False
    """Whether it was seen to be empty, and its kubelet is about to be restarted."""

    def holds(self, side: int) -> Hold:
        """How a side holds the disk here."""
        return self.in_tree if side == IN_TREE else self.csi

    def holding(self, side: int, hold: Hold) -> Node:
        """This node, with the disk held so by a side."""
        return self._replace(in_tree=hold) if side == IN_TREE else self._replace(csi=hold)

    @property
    def holder(self) -> int:
        """The sides that hold the disk here, or are letting it go."""
        return (self.in_tree in _HOLDING) * IN_TREE | (self.csi in _HOLDING) * CSI


class World(NamedTuple):
    """Everything that matters, at one moment."""

    at: int
    """The move that is being made; those before it are made."""
    back: bool
    """Whether it is being undone."""
    rolling: bool
    """Whether replicas of the controller still differ."""
    leader: int
    """Which of the course's processes the leading controller is."""
    disk: int
    """The node that it is attached to, as the cloud sees it."""
    nodes: tuple[Node, ...]
    tolerated: int = NONE
    """The kinds of nodes, by the side that their kubelets take, that a pod which uses the disk and
    is not bound to a node tolerates."""
    tainted: bool = False
    """Whether each node has the taint of its kind, so that only pods come that tolerate it.

    While some have it and others do not, nothing can happen that could not if none had: it takes
    all taints to switch a node, and no taints to go on to the next move.
    """


class Rules:
    """What Kubernetes does in a course: asked of routing once, looked up ever after."""

    def __init__(self, course: Course, groups: tuple[int, ...]) -> None:
        """Where nodes join, the last of the nodes is one that has not joined yet."""
        self.course = course
        self.groups = groups
        """The group of each node that is looked at."""
        self.processes: list[Process] = []
        volume = VolumeView(
            plugin=course.plugin, driver=driver_of(course.plugin), native=False, provisioned=True
        )
        self.attachable = volume.attachable
        self.overtaken = course.plugin in OVERTAKEN
        """Whether a detach of the in-tree plugin may be overtaken by an attach of the driver."""
        start, self.moves = self._moves()
        self.attach_may_detach = [
            attach_may_detach(course.plugin, it.version) for it in self.processes
        ]
        """By controller, whether an in-tree attach that fails may take the disk from a node."""
        self.driver_takes = driver_attach_detaches(course.plugin)
        self.needs_driver = [needs_driver(it.version) for it in self.processes]
        """By controller, whether it forgets the pods of a node whose driver is missing, and after a
        time detaches what no pod wants, in use or not."""
        self.takes_for_in_tree = [self._takes_for_in_tree(it) for it in self.processes]
        """By controller, whether it starts with the driver's attachments taken for the plugin's."""
        self.start = World(0, False, False, start[0], NOWHERE, self._nodes(start[1]))
        everything = range(len(self.processes))
        self.registered = [self.processes[it].registered(course.plugin) for it in everything]
        self.kubelet_wants = [
            CSI if self.processes[it].migrates(course.plugin) else IN_TREE for it in everything
        ]
        self.claims_served = [self._serves_claims(self.processes[it]) for it in everything]
        self._attaches = [
            [
                [self._side(volume, process, announced, driver) for driver in (False, True)]
                for announced in (False, True)
            ]
            for process in self.processes
        ]

    def driver_on(self, node: Node) -> bool:
        """Whether the driver is registered on a node."""
        return self.course.groups[node.group].driver

    def controller_wants(self, leader: int, node: Node) -> int:
        """The side by which a controller would attach the disk to a node."""
        return self._attaches[leader][node.announced][self.driver_on(node)]

    def is_blind(self, leader: int, node: Node) -> bool:
        """Whether a controller that starts while a node's driver is missing forgets its disk."""
        if self.course.drivers_stay or not self.driver_on(node):
            return False
        without, with_driver = self._attaches[leader][node.announced]
        return (without, with_driver) == (NONE, CSI)

    def can_attach(self, side: int, leader: int, node: Node) -> bool:
        """Whether a side that is asked to attach can do so."""
        if side == CSI:
            return self.course.driver and self.driver_on(node)
        return self.registered[leader]

    def can_detach(self, side: int, leader: int) -> bool:
        """Whether a side that is asked to detach can do so."""
        return self.course.driver if side == CSI else self.registered[leader]

    def can_mount(self, side: int, node: Node) -> bool:
        """Whether a kubelet that wants a side finds its plugin or driver."""
        return self.driver_on(node) if side == CSI else self.registered[node.kubelet]

    def announces(self, kubelet: int, announced: bool, *, driver: bool) -> bool:
        """What a CSINode says after this kubelet started, where it said ``announced`` before.

        With the base gate off a kubelet leaves its CSINode alone until a driver registers with it.
        """
        process = self.processes[kubelet]
        base = effective(process.version, process.gates).get(BASE_GATE, True)
        return process.migrates(self.course.plugin) if base or driver else announced

    def restricts(self, world: World) -> bool:
        """Whether the move in progress keeps pods from nodes of the other kind."""
        if not 0 <= world.at < len(self.moves):
            return False
        move = self.course.moves[world.at]
        return isinstance(move, NodesMove) and move.restricts

    def closes(self, world: World) -> bool:
        """Whether the move in progress keeps all pods from a node that is being switched."""
        if not 0 <= world.at < len(self.moves):
            return False
        move = self.course.moves[world.at]
        return isinstance(move, NodesMove) and move.closes

    def kind(self, node: Node) -> int:
        """The side that a node's kubelet takes."""
        return self.kubelet_wants[node.kubelet]

    def goal(self, world: World, node: Node | None = None) -> int | None:
        """What the move in progress, or its undoing, makes of the controller or of a node."""
        if not 0 <= world.at < len(self.moves) or (node and node.presence == Presence.ABSENT):
            return None
        source, target = self.moves[world.at]
        return (source if world.back else target).get(node.group if node else NOWHERE)

    def forgets(self, world: World) -> bool:
        """Whether whoever makes the move in progress has leaders forget their detaches in time."""
        if not 0 <= world.at < len(self.moves):
            return False
        move = self.course.moves[world.at]
        return isinstance(move, NodesMove) and move.forgets

    def _moves(
        self,
    ) -> tuple[tuple[int, list[int]], list[tuple[dict[int, int], dict[int, int]]]]:
        """The beginning, and each move as what it finds and what it makes, by group."""
        course = self.course
        index = {group.name: number for number, group in enumerate(course.groups)}
        now = {NOWHERE: self._intern(course.controller)}
        now |= {index[it.name]: self._intern(it.kubelet) for it in course.groups}
        start = (now[NOWHERE], [now[number] for number in range(len(course.groups))])
        moves = []
        for move in course.moves:
            if isinstance(move, NodesMove):
                known = {name: to for name, to in move.to.items() if name in index}
                target = {index[name]: self._intern(to) for name, to in known.items()}
            else:
                target = {NOWHERE: self._intern(move.to)}
            moves.append(({key: now[key] for key in target}, target))
            now |= target
        return start, moves

    def _nodes(self, kubelets: list[int]) -> tuple[Node, ...]:
        groups = self.course.groups
        nodes = [
            Node(it, kubelets[it], self.announces(kubelets[it], False, driver=groups[it].driver))
            for it in self.groups
        ]
        if self.course.old_nodes_join is not OldNodesJoin.NEVER:
            nodes[-1] = nodes[-1]._replace(presence=Presence.ABSENT)
        return tuple(nodes)

    def _intern(self, process: Process) -> int:
        if process not in self.processes:
            self.processes.append(process)
        return self.processes.index(process)

    def _takes_for_in_tree(self, controller: Process) -> bool:
        plugin = self.course.plugin
        upstream = self.course.attach_controller is AttachController.UPSTREAM
        redirects = controller.migrates(plugin) if upstream else controller.could_migrate(plugin)
        taken = takes_for_in_tree(controller.version, redirects=redirects)
        return taken and controller.registered(plugin)

    def _serves_claims(self, controller: Process) -> bool:
        served_by = provision(self.course.plugin, controller).served_by
        return self.course.driver if served_by is Side.CSI else served_by is Side.IN_TREE

    def _side(self, volume: VolumeView, process: Process, announced: bool, driver: bool) -> int:
        if not self.attachable:
            return NONE
        plugins, drivers = frozenset({volume.plugin}), frozenset({volume.driver})
        view = NodeView(
            csi_node=True,
            migrated=plugins if announced else frozenset(),
            drivers=drivers if driver else frozenset(),
        )
        adc: AttachController = self.course.attach_controller
        return BITS[attach(volume, process, view, adc).served_by]
