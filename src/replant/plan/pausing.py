"""Workloads that are without pods while something is done about their disks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from replant.inventory.findings import ObjectRef
from replant.inventory.model import Inventory
from replant.plan.model import ScaleWorkloads, Scaling, Step

_Item = TypeVar("_Item")


def together(
    items: Iterable[_Item], shared: Callable[[_Item], Iterable[Hashable]]
) -> list[list[_Item]]:
    """Items in groups: those that share something, with each other or through others."""
    groups: list[tuple[set[Hashable], list[_Item]]] = []
    for item in items:
        all_shared, members, apart = set(shared(item)), [item], []
        for group in groups:
            if group[0] & all_shared:
                all_shared |= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (all_shared, members)]
    return [members for _shared, members in groups]


def loses_claims(owners: Iterable[ObjectRef], inventory: Inventory) -> tuple[str, str] | None:
    """Why claims, and so their disks, may be deleted when these have no pods; and what to do."""
    owners = set(owners)
    for it in sorted(owners & inventory.deleting_claims, key=str):
        why = (
            f"scaled down, {it} would delete its claims, and their disks with them "
            "(persistentVolumeClaimRetentionPolicy.whenScaled is Delete)"
        )
        return why, "Set whenScaled of that StatefulSet to Retain until the volumes are native"
    for pod in inventory.pods:
        for name in pod.claims if pod.top in owners else ():
            claim = inventory.claims.get((pod.owner.namespace, name))
            for owner in (claim.metadata.ownerReferences if claim else None) or ():
                if owner.kind == "StatefulSet":
                    continue  # it keeps the claim until it is deleted itself
                why = (
                    f"PersistentVolumeClaim {pod.owner.namespace}/{name} belongs to {owner.kind} "
                    f"{owner.name}, and may be deleted with its disk when {pod.top} has no pods"
                )
                return why, (
                    f"Scale {pod.top} down yourself if you know that the claim stays, convert, and "
                    "scale it up again"
                )
    return None


def without_pods(
    owners: Sequence[ObjectRef], inventory: Inventory, work: Step, *, name: str, why: str, then: str
) -> Iterator[Step]:
    """A step between two others: one that scales workloads down, and one that scales them up."""
    called = ", ".join(map(str, owners))
    scalings = tuple(
        Scaling(kind=it.kind, namespace=it.namespace, name=it.name, replicas=replicas)
        for it in owners
        if (replicas := inventory.replicas[it])
    )
    if not scalings:
        yield work
        return
    yield ScaleWorkloads(
        id=f"scale-down-{name}",
        title=f"Scale {called} down",
        why=why,
        done_when="It has no pods.",
        undo="It is scaled up again.",
        workloads=scalings,
        down=True,
    )
    yield work
    yield ScaleWorkloads(
        id=f"scale-up-{name}",
        title=f"Scale {called} up again",
        why=then,
        done_when="It is to have as many pods as before.",
        undo="It is scaled down.",
        workloads=scalings,
        down=False,
    )
