"""The catalogue of orders: each with what the proof tells of it.

`test_catalogue.py` demands the verdicts and compares them with docs/proof.md, and tests/real plays
the counter-examples on real components.
"""

from __future__ import annotations

from typing import NamedTuple

from replant.proof import BadState, Course
from replant.proof.orders import read_order
from tests.proof.making import OFF, ON, UNREGISTERED, Making, closed
from tests.proof.rows import CLOSED, SAFE, TABLES, UNSERVABLE, YANKED

AWS = Making()
WITH, WITHOUT = AWS.group("with", OFF), AWS.group("without", OFF, driver=False)
MIXED = (WITH, WITHOUT)
BOTH_OFF, BOTH_ON = (
    (AWS.group("a", OFF), AWS.group("b", OFF)),
    (AWS.group("a", ON), AWS.group("b", ON)),
)

COURSES: list[tuple[str, Course, BadState | None]] = [
    ("driver on some nodes", AWS.course(ON, MIXED, AWS.nodes(ON, "with", "without")), UNSERVABLE),
    ("driver on those that are switched", AWS.course(ON, MIXED, AWS.nodes(ON, "with")), SAFE),
    (
        "complete with a group left behind",
        AWS.course(ON, MIXED, AWS.nodes(ON, "with"), AWS.switch(UNREGISTERED)),
        UNSERVABLE,
    ),
    # So it is with a node that joins with an old image, and with one that nobody has switched.
    (
        "a node with old gates joins after completion",
        AWS.course(ON, (AWS.group("on", ON), AWS.group("joined", OFF)), AWS.switch(UNREGISTERED)),
        UNSERVABLE,
    ),
    (
        "group after group",
        AWS.course(
            OFF,
            BOTH_OFF,
            AWS.switch(ON),
            AWS.nodes(ON, "a"),
            AWS.nodes(ON, "b"),
            AWS.switch(UNREGISTERED),
        ),
        SAFE,
    ),
    (
        "one group without a drain",
        AWS.course(ON, BOTH_OFF, AWS.nodes(ON, "a"), AWS.nodes(ON, "b", drain=False)),
        YANKED,
    ),
    (
        "controller off while a group is on",
        AWS.course(ON, BOTH_ON, AWS.nodes(OFF, "a"), AWS.switch(OFF), AWS.nodes(OFF, "b")),
        UNSERVABLE,
    ),
    ("one node", AWS.course(ON, (AWS.group("one", OFF, size=1),), AWS.nodes(ON, "one")), SAFE),
    (
        "one node in place",
        AWS.course(ON, (AWS.group("one", OFF, size=1),), AWS.nodes(ON, "one", drain=False)),
        YANKED,
    ),
    ("two at once", AWS.course(ON, (WITH,), AWS.nodes(ON, "with"), at_once=2), SAFE),
    # volumesAttached is empty before the cloud has finished.
    (
        "a drain that does not wait for the cloud",
        AWS.course(ON, (WITH,), AWS.nodes(ON, "with"), drain_sees_cloud=False),
        YANKED,
    ),
]


class Entry(NamedTuple):
    """An order, or a course that no order can describe."""

    course: Course
    told: BadState | None


ENTRIES: dict[str, Entry] = {
    f"{table}: {name}": Entry(read_order(given), told)
    for table, rows in TABLES.items()
    for name, given, told in rows
}
ENTRIES |= {f"groups: {name}": Entry(course, told) for name, course, told in COURSES}
ENTRIES |= {f"closed: {name}": Entry(closed(given), told) for name, given, told in CLOSED}

COUNTER_EXAMPLES: dict[str, Entry] = {
    name: entry for name, entry in ENTRIES.items() if entry.told is not None
}

DOCUMENTED: dict[str, str] = {
    "controllers on; nodes on, not drained": "wrong: enable without a drain",
    "all on: nodes off, not drained; controllers off": "wrong: disable without a drain",
    "all on: `CSIMigration` itself off on nodes, not drained; controllers off":
        "base gate: off without a drain",
    "nodes on, not drained; controllers on": "wrong: kubelets before, in place",
    "1.22 to 1.23, nodes not drained (the default changes)":
        "versions: aws-ebs 1.22 to 1.23, in place",
    "all on: drained nodes off, without `restrictScheduling`; controllers off":
        "wrong: disable, and pods go anywhere",
    "controllers on; drained nodes on, without `restrictScheduling`":
        "wrong: enable, and pods go anywhere",
    "gce-pd: controllers on; drained nodes on, without `restrictScheduling`":
        "pods go anywhere: gce-pd",
    "all on: drained nodes off, no pod tolerates a cordon; controllers off": "closed: disable",
    "controllers on; drained nodes on, no pod tolerates a cordon": "closed: enable",
    "azure-disk: controllers on; drained nodes on, without `restrictScheduling`":
        "pods go anywhere: azure-disk",
    "controllers on; drained nodes on; `oldNodesJoin: true`": "wrong: enable, and old nodes join",
    "gce-pd: controllers on; drained nodes on; unregistered; `oldNodesJoin: true`":
        "wrong: enable and complete where disks are not taken, and old nodes join",
    "controllers on; drained nodes on, without `restartControllers`":
        "wrong: enable, and the controllers go on",
    "nodes are on already, controllers off: controllers on":
        "broken before: nodes on, mended by the controller",
    "the same: controllers on and unregistered":
        "broken before: nodes on, completed at once",
    "drained nodes on; controllers on": "wrong: kubelets before the controller",
    "all on: controllers off; drained nodes off": "wrong: controller off first",
    "controllers on and unregistered; drained nodes on":
        "wrong: complete before the nodes, in one step",
    "controllers unregistered but off": "wrong: unregister alone, controller",
    "controllers on; drained nodes on; `driverInstalled: false`": "driver missing: enable",
    "azure-file, never attached: controllers on; nodes on, not drained": "no attach: in place",
}  # fmt: skip
"""The rows of docs/proof.md's table of wrong orders, by their first column."""
EXAMPLES: dict[str, str] = {
    "enable": "right: enable and complete",
    "kubelet-first": "wrong: kubelets before the controller",
    "no-drain": "wrong: enable without a drain",
    "old-nodes-join": "wrong: enable, and old nodes join",
    "downgrade-openshift": "node-driven: downgrade",
}
"""The orders of examples/orders."""
