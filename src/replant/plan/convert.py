"""The plan of a conversion: which volumes, which of them while in use, and what must stop first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from replant.errors import Refused
from replant.inventory.findings import ObjectRef
from replant.inventory.fingerprint import fingerprint
from replant.inventory.model import Inventory, Volume
from replant.inventory.selectors import Selector
from replant.plan.courses import proved
from replant.plan.make import attach_controller_of
from replant.plan.model import (
    API_VERSION,
    KIND,
    Check,
    Goal,
    Plan,
    ScaleWorkloads,
    Scaling,
    Step,
    SwapVolumes,
    VolumeSwap,
    Weight,
)
from replant.plan.situation import Situation, situation
from replant.plan.verdicts import Accepted, How, Judge, Verdict

NO_MORE = 200
"""So many volumes that are refused are named one by one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which volumes a person wants to be native, and on which terms."""

    names: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    namespace: str = ""
    selector: Selector | None = None
    accepted: Accepted = field(default_factory=Accepted)
    platform: str = "generic"


def make_conversion(asked: Asked, inventory: Inventory) -> Plan:
    """The plan for this cluster; Refused where what is asked for is not there."""
    volumes = _chosen(asked, inventory)
    plugins = tuple(dict.fromkeys(it.plugin for it in volumes if it.plugin))
    now = situation(inventory, plugins or asked.plugins)
    judge = Judge(now, asked.accepted)
    verdicts = [judge.judge(it) for it in volumes if it.plugin]
    plan = Plan(
        api_version=API_VERSION,
        kind=KIND,
        goal=Goal.CONVERT,
        plugins=now.plugins,
        platform=asked.platform,
        attach_controller=attach_controller_of(asked.platform),
        fingerprint=fingerprint(inventory),
        control_plane=now.control_plane,
        groups=now.groups,
        preflight=tuple(_preflight(asked, volumes, verdicts)),
        steps=tuple(_in_order(_steps(verdicts, now))),
    )
    return replace(plan, proof=proved(plan))


def _chosen(asked: Asked, inventory: Inventory) -> list[Volume]:
    missing = [it for it in asked.names if it not in inventory.by_name]
    if missing:
        raise Refused(f"There is no PersistentVolume {', '.join(missing)}.")
    if asked.names:
        return [inventory.by_name[it] for it in dict.fromkeys(asked.names)]
    return [
        it
        for it in inventory.in_tree
        if (not asked.plugins or it.plugin in asked.plugins)
        and (not asked.namespace or (it.claim and it.claim[0] == asked.namespace))
        and (asked.selector is None or _is_selected(it, asked.selector, inventory))
    ]


def _is_selected(volume: Volume, selector: Selector, inventory: Inventory) -> bool:
    claim = inventory.claims.get(volume.claim) if volume.claim else None
    labels = claim.metadata.labels if claim else None
    return selector.matches(volume.labels) or (labels is not None and selector.matches(labels))


def _preflight(
    asked: Asked, volumes: Sequence[Volume], verdicts: Sequence[Verdict]
) -> Iterator[Check]:
    for volume in volumes:
        if not volume.plugin:
            native = "is native already"
            what = native if volume.driver else "is of no plugin that a driver took over"
            yield _about(volume, Weight.PASSED, f"{what}.")
    refused = [it for it in verdicts if it.how is How.REFUSED]
    # Whoever names a volume wants that one; whoever asks for all wants what is possible.
    weight = Weight.BLOCKER if asked.names else Weight.WARNING
    for it in refused[:NO_MORE]:
        yield _about(it.volume, weight, f"stays as it is: {it.why}", fix=it.fix)
    if len(refused) > NO_MORE:
        message = f"{len(refused) - NO_MORE:,} more stay as they are."
        yield Check(check="volume", result=weight, message=message)
    for it in verdicts:
        for note in it.notes:
            said = f"loses {note}. The journal keeps it."
            yield _about(it.volume, Weight.WARNING, said, check="losses")
    able = len(verdicts) - len(refused)
    if able:
        message = f"{able:,} volume{'s' * (able != 1)} can be replaced by native ones."
        yield Check(check="volumes", result=Weight.PASSED, message=message)


def _about(
    volume: Volume, weight: Weight, what: str, *, fix: str = "", check: str = "volume"
) -> Check:
    message = f"PersistentVolume {volume.name} {what}"
    return Check(check=check, result=weight, object=volume.name, message=message, fix=fix)


def _steps(verdicts: Sequence[Verdict], now: Situation) -> Iterator[Step]:
    hot = [it for it in verdicts if it.how is How.HOT]
    if hot:
        yield SwapVolumes(
            id="convert-volumes",
            title=f"Replace {_count(len(hot))} by native CSI ones",
            why="Both give a disk the same name wherever it is attached, so nothing is detached "
            "and pods go on.",
            done_when="Every volume is native, its claim is Bound, and it has its reclaim policy.",
            undo="The volumes of the journal are put back, in the same way.",
            volumes=tuple(_swap(it) for it in hot),
        )
    cold = [it for it in verdicts if it.how is How.COLD]
    for number, group in enumerate(_together(cold), 1):
        yield from _one_by_one(number, group, now)


def _one_by_one(number: int, group: list[Verdict], now: Situation) -> Iterator[Step]:
    """The steps for volumes that must not be in use: down, replaced, up again."""
    tops = tuple(dict.fromkeys(top for it in group for top in it.workloads))
    scalings = tuple(_scaling(it, now.inventory) for it in tops)
    scalings = tuple(it for it in scalings if it.replicas)
    names = ", ".join(map(str, tops))
    if scalings:
        yield ScaleWorkloads(
            id=f"scale-down-{number}",
            title=f"Scale {names} down",
            why=f"{group[0].volume.name}: {group[0].why}",
            done_when="It has no pods.",
            undo="It is scaled up again.",
            workloads=scalings,
            down=True,
        )
    yield SwapVolumes(
        id=f"convert-unused-{number}",
        title=f"Replace {_count(len(group))} by native CSI ones, while nothing uses them",
        why="The in-tree name by which they are attached is not the name of the native ones.",
        done_when="Every volume is native, its claim is Bound, and it has its reclaim policy.",
        undo="The volumes of the journal are put back, in the same way.",
        volumes=tuple(_swap(it) for it in group),
    )
    if scalings:
        yield ScaleWorkloads(
            id=f"scale-up-{number}",
            title=f"Scale {names} up again",
            why="Its volumes are native.",
            done_when="It is to have as many pods as before.",
            undo="It is scaled down.",
            workloads=scalings,
            down=False,
        )


def _together(cold: Sequence[Verdict]) -> list[list[Verdict]]:
    """Volumes whose workloads have to do with each other, in groups."""
    groups: list[tuple[set[ObjectRef], list[Verdict]]] = []
    for verdict in cold:
        tops, members = set(verdict.workloads), [verdict]
        apart = []
        for group in groups:
            if group[0] & tops:
                tops |= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (tops, members)]
    return [members for _tops, members in groups]


def _swap(verdict: Verdict) -> VolumeSwap:
    volume = verdict.volume
    return VolumeSwap(
        name=volume.name,
        driver=volume.driver,
        handle=verdict.handle,
        claim="/".join(volume.claim) if volume.claim else "",
        free_of=verdict.names if verdict.how is How.COLD else (),
    )


def _scaling(top: ObjectRef, inventory: Inventory) -> Scaling:
    return Scaling(
        kind=top.kind, namespace=top.namespace, name=top.name, replicas=inventory.replicas[top]
    )


def _in_order(steps: Iterator[Step]) -> Iterator[Step]:
    before: tuple[str, ...] = ()
    for step in steps:
        yield replace(step, after=before)
        before = (step.id,)


def _count(volumes: int) -> str:
    return f"{volumes:,} volume{'s' * (volumes != 1)}"
