"""What a driver's objects are called, and where they stand.

By the one rule, unless a driver was adopted: then they keep the names that somebody else gave
them, and what a name must not change of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replant.drivers.catalog import Driver
from replant.drivers.kinds import Key
from replant.drivers.sameness import annotations_of
from replant.objects import Object

OPERAND = "replant.dev/adopted-operand"
"""The names of an operand that was adopted: on the CR at first, and then on the CSIDriver too.

A default driver's CR may be deleted and comes back as it was in the beginning.
"""

ADOPTED = "replant.dev/adopted"
"""On a CR that says ``adoption: Adopt``: the driver has been ours since.

Whoever claims it after that has it: to adopt it time and again would be a fight.
"""


@dataclass(frozen=True, slots=True)
class Names:
    """Of the operand."""

    namespace: str
    controller_namespace: str
    """The same, unless controllers run in another cluster."""
    controller: str
    node: str
    controller_account: str
    node_account: str
    controller_labels: Mapping[str, str] = field(default_factory=dict)
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """By which each finds its pods: a selector cannot be changed."""
    adopted: bool = False

    def written(self) -> str:
        """As an annotation keeps them."""
        return ",".join(f"{key}={getattr(self, key)}" for key in _KEPT)


_KEPT = ("namespace", "controller", "node", "controller_account", "node_account")


def names_of(
    driver: Driver, cr: Object | None, objects: Mapping[Key, Object], elsewhere: str = ""
) -> Names:
    """The names of a driver's operand, as far as its CR and what is there tell.

    ``elsewhere`` is the controllers' namespace if they run in another cluster.
    """
    keepers = (cr or {}, objects.get(("CSIDriver", "", driver.name), {}))
    kept = next(
        (annotations_of(it)[OPERAND] for it in keepers if OPERAND in annotations_of(it)), ""
    )
    pairs = dict(it.split("=", 1) for it in kept.split(",") if "=" in it)
    namespace = pairs.get("namespace") or driver.namespace
    controller = pairs.get("controller") or driver.controller_name
    node = pairs.get("node") or driver.node_name
    return Names(
        namespace,
        elsewhere or namespace,
        controller,
        node,
        pairs.get("controller_account") or f"{driver.controller_name}-sa",
        pairs.get("node_account") or f"{driver.node_name}-sa",
        _selector(objects.get(("Deployment", elsewhere or namespace, controller)), controller),
        _selector(objects.get(("DaemonSet", namespace, node)), node),
        adopted=bool(kept),
    )


def _selector(found: Object | None, name: str) -> Mapping[str, str]:
    selector = ((found or {}).get("spec") or {}).get("selector") or {}
    labels = selector.get("matchLabels")
    return labels if isinstance(labels, dict) and labels else {"app": name}
