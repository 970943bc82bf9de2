"""The plan of a conversion: which volumes, which of them while in use, and what must stop first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from replant.errors import Refused
from replant.gates.plugins import LIVES
from replant.inventory.fingerprint import fingerprint
from replant.inventory.model import Inventory, Volume
from replant.inventory.selectors import Selector
from replant.plan.attachers import attacher_of
from replant.plan.classes import AskedClasses, class_steps, plan_classes
from replant.plan.compose import SETTLE_SECONDS
from replant.plan.courses import proved
from replant.plan.inline import (
    AskedInline,
    InlineChange,
    InlineJudge,
    inline_changes,
    inline_checks,
    inline_steps,
)
from replant.plan.model import (
    API_VERSION,
    KIND,
    Check,
    Goal,
    Plan,
    RestoreVolumes,
    SavedVolume,
    Step,
    SwapVolumes,
    VolumeSwap,
    Weight,
)
from replant.plan.pausing import together, without_pods
from replant.plan.situation import Situation, situation
from replant.plan.undo import swapped_back
from replant.plan.verdicts import Accepted, How, Judge, Verdict
from replant.proof.course import OVERTAKEN
from replant.swap import twin
from replant.translate import plugin_of

NO_MORE = 200
"""So many volumes that are refused are named one by one."""


Saved = Mapping[str, SavedVolume]
"""Volumes as they were in the tree, by name."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which volumes a person wants to be native, and on which terms."""

    names: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    namespace: str = ""
    selector: Selector | None = None
    accepted: Accepted = field(default_factory=Accepted)
    platform: str = "generic"
    classes: AskedClasses = field(default_factory=AskedClasses)
    inline: AskedInline = field(default_factory=AskedInline)


def make_conversion(asked: Asked, inventory: Inventory) -> Plan:
    """The plan for this cluster; Refused where what is asked for is not there."""
    volumes = chosen_volumes(asked, inventory)
    plugins = dict.fromkeys(it.plugin for it in volumes if it.plugin)
    inline, odd = chosen_workloads(asked, inventory)
    plugins |= dict.fromkeys(disk.plugin for it in inline for disk in it.disks)
    classes = plan_classes(
        asked.classes, class_plugins(asked, plugins), inventory, owners=asked.accepted.owners
    )
    plugins |= dict.fromkeys(it.before["provisioner"] for it in classes.changes)
    # Where nothing is left in the tree, there is a plan all the same: one without steps.
    now = situation(inventory, tuple(plugins) or asked.plugins or tuple(LIVES))
    judge = Judge(now, asked.accepted)
    verdicts = [judge.judge(it) for it in volumes if it.plugin]
    inlined = InlineJudge(judge).verdicts(inline)
    preflight = (
        *_preflight(asked, volumes, verdicts, now), *odd, *inline_checks(inlined), *classes.checks
    )  # fmt: skip
    steps = (
        *_accepting(asked, _steps(verdicts, now)),
        *inline_steps(inlined, inventory),
        *class_steps(asked.classes.way, classes.changes),
    )
    return _plan(asked, now, preflight, steps)


def chosen_workloads(asked: Asked, inventory: Inventory) -> tuple[list[InlineChange], list[Check]]:
    """The workloads that were asked for, and those that cannot be translated."""
    if not asked.inline.convert:
        return [], []
    if asked.names or asked.selector:
        raise Refused(
            "Pods that name disks by themselves are chosen by namespace and plugin alone: say -n "
            "and --plugin, and convert volumes that are named or selected without --inline."
        )
    return inline_changes(
        inventory, asked.inline.capacity, plugins=asked.plugins, namespace=asked.namespace
    )


def class_plugins(asked: Asked, plugins: Iterable[str]) -> Iterable[str]:
    """The plugins whose classes are meant: whoever chooses among volumes means theirs alone."""
    if asked.names or asked.namespace or asked.selector:
        return plugins
    return asked.plugins or LIVES


def make_restoration(asked: Asked, saved: Saved, inventory: Inventory) -> Plan:
    """The plan that puts volumes back as journals have them, of those that were asked for."""
    unknown = [it for it in asked.names if it not in saved]
    if unknown:
        raise Refused(f"No journal has PersistentVolume {', '.join(unknown)} as it was in-tree.")
    volumes = list(_converted(asked, saved, inventory))
    if not volumes:
        raise Refused("Of what was asked for, no volume is native by a conversion.")
    plugins = tuple(dict.fromkeys(_plugin(saved[it.name]) for it in volumes))
    now = situation(inventory, plugins)
    judge = Judge(now, asked.accepted)
    verdicts = [judge.judge_back(it, saved[it.name].volume) for it in volumes]
    steps = (_back(it, saved) for it in _accepting(asked, _steps(verdicts, now)))
    return _plan(asked, now, _preflight(asked, volumes, verdicts, now), steps)


def _plan(asked: Asked, now: Situation, preflight: Iterable[Check], steps: Iterable[Step]) -> Plan:
    plan = Plan(
        api_version=API_VERSION,
        kind=KIND,
        goal=Goal.CONVERT,
        plugins=now.plugins,
        platform=asked.platform,
        attach_controller=attacher_of(
            asked.platform, now.controller_gates or {}, now.plugins
        ).controller,
        fingerprint=fingerprint(now.inventory),
        control_plane=now.control_plane,
        groups=now.groups,
        preflight=tuple(preflight),
        steps=tuple(_in_order(steps)),
    )
    return replace(plan, proof=proved(plan))


def changed_verdicts(plan: Plan, now: Situation) -> list[str]:
    """Why volumes of a plan can no longer be replaced in the way that it says."""
    volumes = [it for step in plan.steps if isinstance(step, SwapVolumes) for it in step.volumes]
    finalizers = tuple({name for it in volumes for name in it.accept_finalizers})
    accepted = Accepted(
        unsuited=True, losses=True, owners=True, scale_down=True, finalizers=finalizers
    )
    controllers = {
        name
        for step in plan.steps
        if isinstance(step, SwapVolumes | RestoreVolumes)
        for name in step.accept_controllers
    }
    judge, found = Judge(now, accepted), []
    if any(isinstance(it, SwapVolumes | RestoreVolumes) for it in plan.steps):
        found += [it.message for it in _reclaimers(controllers, now)]
    for it in volumes:
        volume = now.inventory.by_name.get(it.name)
        if volume is None or not volume.plugin:
            continue  # gone or native: it needs nothing
        verdict = judge.judge(volume)
        if verdict.how is How.REFUSED or (verdict.how is How.COLD and not it.free_of):
            found.append(f"PersistentVolume {it.name}: {verdict.why}")
    return found


def _back(step: Step, saved: Saved) -> Step:
    if not isinstance(step, SwapVolumes):
        return step
    return replace(
        swapped_back(step),
        id=step.id.replace("convert", "restore"),
        title=f"Put {_count(len(step.volumes))} back in the tree",
        why="They are as the journal has them; nothing is detached where the migration is on.",
        undo="They are replaced by native ones again.",
        saved=tuple(saved[it.name] for it in step.volumes),
    )


def chosen_volumes(asked: Asked, inventory: Inventory) -> list[Volume]:
    """The volumes that were asked for; Refused where one is not there."""
    missing = [it for it in asked.names if it not in inventory.by_name]
    if missing:
        raise Refused(f"There is no PersistentVolume {', '.join(missing)}.")
    if asked.names:
        return [inventory.by_name[it] for it in dict.fromkeys(asked.names)]
    return [it for it in inventory.in_tree if _is_meant(it, it.plugin or "", asked, inventory)]


def _converted(asked: Asked, saved: Saved, inventory: Inventory) -> Iterator[Volume]:
    """The native volumes of conversions, of those that were asked for."""
    for volume in inventory.volumes:
        before = saved.get(volume.name)
        if before is None or volume.plugin:
            continue
        handle = twin.native(before.volume)["spec"]["csi"]["volumeHandle"]
        if twin.source(volume.as_object()) == {"driver": volume.driver, "handle": handle} and (
            _is_meant(volume, _plugin(before), asked, inventory)
        ):
            yield volume


def _is_meant(volume: Volume, plugin: str, asked: Asked, inventory: Inventory) -> bool:
    if asked.names:
        return volume.name in asked.names
    if asked.plugins and plugin not in asked.plugins:
        return False
    if asked.namespace and not (volume.claim and volume.claim[0] == asked.namespace):
        return False
    if asked.selector is None:
        return True
    claim = inventory.claims.get(volume.claim) if volume.claim else None
    labels = claim.metadata.labels if claim else None
    return asked.selector.matches(volume.labels) or (
        labels is not None and asked.selector.matches(labels)
    )


def _plugin(saved: SavedVolume) -> str:
    return plugin_of(saved.volume) or ""


def _preflight(
    asked: Asked, volumes: Sequence[Volume], verdicts: Sequence[Verdict], now: Situation
) -> Iterator[Check]:
    if any(it.how is not How.REFUSED for it in verdicts):
        yield from _reclaimers(asked.accepted.controllers, now)
    judged = {it.volume.name for it in verdicts}
    for volume in volumes:
        if volume.name not in judged:
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
            yield _about(it.volume, Weight.WARNING, note, check="losses")
    able = len(verdicts) - len(refused)
    if able:
        message = f"{_count(able)} can be replaced."
        yield Check(check="volumes", result=Weight.PASSED, message=message)


def _reclaimers(accepted: Collection[str], now: Situation) -> Iterator[Check]:
    """Controllers that would delete the disks of volumes, which a conversion deletes."""
    for name, pod in now.inventory.reclaimers.items():
        if name not in accepted:
            yield Check(
                check="controllers",
                result=Weight.BLOCKER,
                object=pod,
                message=f"{name} runs (pod {pod}). It deletes the storage of a volume when its "
                "PersistentVolume is deleted, as a conversion does, whatever its reclaim policy.",
                fix="Scale it to 0 while volumes are converted, or say --accept-controller "
                f"{name} if it does not serve these drivers",
            )


def _accepting(asked: Asked, steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, with the controllers that a person has accepted."""
    for step in steps:
        if isinstance(step, SwapVolumes):
            yield replace(step, accept_controllers=asked.accepted.controllers)
        else:
            yield step


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
    idle = [it for it in cold if not it.workloads]
    used = together((it for it in cold if it.workloads), lambda it: it.workloads)
    for number, group in enumerate([idle, *used] if idle else used, 1):
        yield from _unused(number, group, now)


def _unused(number: int, group: list[Verdict], now: Situation) -> Iterator[Step]:
    """The steps for volumes that must not be in use: down, replaced, up again."""
    work = SwapVolumes(
        id=f"convert-unused-{number}",
        title=f"Replace {_count(len(group))} by native CSI ones, while nothing uses them",
        why="The in-tree name by which they are attached is not the name of the native ones.",
        done_when="Every volume is native, its claim is Bound, and it has its reclaim policy.",
        undo="The volumes of the journal are put back, in the same way.",
        volumes=tuple(_swap(it) for it in group),
        settle_seconds=SETTLE_SECONDS,
        restart_controllers=any(it.plugin in OVERTAKEN for it in group),
    )
    owners = tuple(dict.fromkeys(top for it in group for top in it.workloads))
    yield from without_pods(
        owners,
        now.inventory,
        work,
        name=str(number),
        why=f"{group[0].volume.name}: {group[0].why}",
        then="Its volumes are native.",
    )


def _swap(verdict: Verdict) -> VolumeSwap:
    volume = verdict.volume
    return VolumeSwap(
        name=volume.name,
        driver=volume.driver,
        handle=verdict.handle,
        claim="/".join(volume.claim) if volume.claim else "",
        free_of=verdict.names if verdict.how is How.COLD else (),
        annotations=verdict.annotations,
        retain=verdict.retain,
        accept_finalizers=verdict.accept_finalizers,
    )


def _in_order(steps: Iterable[Step]) -> Iterator[Step]:
    before: tuple[str, ...] = ()
    for step in steps:
        yield replace(step, after=before)
        before = (step.id,)


def _count(volumes: int) -> str:
    return f"{volumes:,} volume{'s' * (volumes != 1)}"
