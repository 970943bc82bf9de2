"""Volumes that workloads name by themselves: as claims for native volumes, patched in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from replant.errors import TranslationError
from replant.inventory.findings import ObjectRef
from replant.inventory.model import Inventory, PodUse, Rollout, source_of
from replant.objects import GROUPS, PERSISTENT_VOLUME, POD_SPEC_PATHS, Object
from replant.plan.compose import SETTLE_SECONDS
from replant.plan.model import (
    Check,
    CreateObjects,
    RewriteTemplates,
    Step,
    TemplateChange,
    TemplateVolume,
    Weight,
)
from replant.plan.owners import INSTANCE, owner_of
from replant.plan.pausing import loses_claims, together, without_pods
from replant.plan.verdicts import ACCEPT_UNSUITED, Accepted, Judge, unsuited
from replant.proof.course import OVERTAKEN
from replant.routing import VolumeView
from replant.routing.names import csi_name, in_tree_name
from replant.translate import driver_of, plugin_of, pv_to_csi
from replant.translate.manifest import Target, translate_object
from replant.translate.workloads import InlineDefaults

_READ_WRITE_ONCE = "ReadWriteOnce"
_FEW_PODS_MISSING = "25%"
"""A Deployment's maxUnavailable and maxSurge, where it does not say them."""

_NEVER = {
    "Pod": "A pod's volumes cannot be changed: delete it, and make it again with the patch.",
    "Job": "A job's template cannot be changed: let it end, and make it again with the patch.",
    "CronJob": "Its next job must not begin before the one that has the disk by its old name has "
    "ended: suspend it, wait, apply the patch (-o patch) and resume it.",
}
"""Kinds whose pods nobody replaces, each with what to do instead."""


@dataclass(frozen=True, slots=True)
class AskedInline:
    """What a person wants of pods' own volumes."""

    convert: bool = False
    capacity: str = "1Gi"
    """What the volumes are taken to hold: pods do not say it, and nothing is made of it."""


@dataclass(frozen=True, slots=True)
class InlineDisk:
    """A disk that a pod names by itself."""

    plugin: str
    volume: str
    """The name of the PersistentVolume that is made for it."""
    in_tree: str
    csi: str
    """What both sides call it where it is attached."""
    attachable: bool
    """Whether nodes have it attached, by these names: then it must not have two volumes."""
    exclusive: bool
    """Whether only one node can have it."""


@dataclass(frozen=True, slots=True)
class InlineChange:
    """A workload whose disks become claims."""

    owner: ObjectRef
    volumes: tuple[TemplateVolume, ...]
    objects: tuple[Object, ...]
    """The PersistentVolumes and claims that it takes."""
    disks: tuple[InlineDisk, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What both sides call its disks."""
        return tuple(name for it in self.disks for name in (it.in_tree, it.csi))


class InlineHow(StrEnum):
    """How a workload comes to its claims."""

    ROLL = "roll"
    """Its pods are replaced as its own strategy says."""
    DOWN = "down"
    """It is without pods for a while."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class InlineVerdict:
    """What can be done about one workload."""

    change: InlineChange
    how: InlineHow
    why: str = ""
    fix: str = ""
    free: bool = False
    """Whether its disks must be detached in between."""
    remark: str = ""
    """What a person should know of it."""


def inline_changes(
    inventory: Inventory, capacity: str, *, plugins: Iterable[str] = (), namespace: str = ""
) -> tuple[list[InlineChange], list[Check]]:
    """The workloads, pods and jobs that name disks of these plugins by themselves, or of any.

    What another makes is left out: it follows, or is an old template that is kept as history.
    """
    wanted = frozenset(plugins)
    found: dict[ObjectRef, InlineChange] = {}
    refused: list[Check] = []
    for use, _ in inventory.inline_uses():
        if use.top != use.owner or use.owner in found or namespace not in ("", use.owner.namespace):
            continue
        try:
            change = inline_change(use, capacity, wanted)
        except TranslationError as error:
            what = f"stays as it is: {error.field}: {error.reason}."
            refused.append(_about(use.owner, Weight.WARNING, what))
            continue
        if change.volumes:
            found[use.owner] = change
    return list(found.values()), refused


def inline_change(use: PodUse, capacity: str, plugins: frozenset[str]) -> InlineChange:
    """What becomes of one use; TranslationError where its driver could not find a disk of it."""
    owner = use.owner
    before = [source_of(it) for it in use.inline]
    before = [it for it in before if (name := plugin_of(it)) and (not plugins or name in plugins)]
    template = _holding(owner, before)
    made = translate_object(
        template, owner.kind, Target.CSI, InlineDefaults(capacity, owner.namespace or "default")
    )
    after = _volumes(made.obj, owner.kind)
    pvs = [it for it in made.added if it["kind"] == PERSISTENT_VOLUME]
    return InlineChange(
        owner,
        tuple(
            TemplateVolume(before=one, after=two) for one, two in zip(before, after, strict=True)
        ),
        made.added,
        tuple(_disk(one, pv) for one, pv in zip(before, pvs, strict=True)),
    )


def strategic_patch(change: InlineChange) -> Object:
    """A patch that kubectl and kustomize merge into the workload: other volumes stay.

    Volumes are merged by their names, and a source that is not taken away stays beside the new one.
    """
    volumes = [
        {**it.after, **{key: None for key in it.before if key not in it.after}}
        for it in change.volumes
    ]
    return _holding(change.owner, volumes)


@dataclass(frozen=True)
class InlineJudge:
    """Judges the workloads of one cluster, as it is."""

    judge: Judge

    @property
    def inventory(self) -> Inventory:
        """What the cluster has."""
        return self.judge.inventory

    def verdicts(self, changes: Iterable[InlineChange]) -> list[InlineVerdict]:
        """What can be done about each; of two that would give a disk two volumes the first."""
        volumes: dict[str, str] = {}
        found = []
        for change in changes:
            verdict = replace(self._verdict(change, volumes), remark=self._remark(change.owner))
            found.append(verdict)
            if verdict.how is not InlineHow.REFUSED:
                volumes |= {it.csi: it.volume for it in change.disks}
        return found

    def _verdict(self, change: InlineChange, made: Mapping[str, str]) -> InlineVerdict:
        refusal = next(self._refusals(change, made), None)
        if refusal:
            return InlineVerdict(change, InlineHow.REFUSED, *refusal)
        owner = change.owner
        cold = self._cold(change)
        if self.inventory.replicas.get(owner) == 0 and not cold:
            return InlineVerdict(change, InlineHow.ROLL, "it has no pods")
        why = cold or self._stuck(change)
        if not why:
            return InlineVerdict(change, InlineHow.ROLL, "its pods are replaced by its strategy")
        if owner not in self.inventory.replicas:
            told = f"Only without pods, for {why}; and nobody can scale it down."
            return InlineVerdict(change, InlineHow.REFUSED, told, "Apply the patch by hand")
        if lost := loses_claims([owner], self.inventory):
            told = f"Only without pods, for {why}; but {lost[0]}."
            return InlineVerdict(change, InlineHow.REFUSED, told, lost[1])
        if not self.judge.accepted.scale_down:
            told = f"Only without pods, for {why}."
            return InlineVerdict(change, InlineHow.REFUSED, told, "Say --scale-down")
        return InlineVerdict(change, InlineHow.DOWN, why, free=bool(cold))

    def _refusals(self, change: InlineChange, made: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        owner = change.owner
        if owner.kind in _NEVER:
            yield _NEVER[owner.kind], "-o patch prints it"
        rollout = self.inventory.rollouts.get(owner)
        if rollout:
            repository = owner_of(rollout.marks)
            if repository and not self.judge.accepted.owners:
                yield (
                    f"{repository} writes it from a repository and would write it again.",
                    "Change the repository (-o patch says how), or say --accept-owners",
                )
            if rollout.paused:
                yield "It is paused, and replaces no pods.", "kubectl rollout resume"
            if rollout.partition:
                yield "Its partition keeps pods from being replaced.", "Set the partition to 0"
        if why := unsuited_disk(change, self.judge.accepted):
            yield why, ACCEPT_UNSUITED
        for disk in change.disks:
            driver = driver_of(disk.plugin)
            if driver not in self.inventory.drivers:
                yield f"The driver {driver} is not installed.", ""
            other = self._by_disk.get(disk.csi) or made.get(disk.csi, disk.volume)
            if disk.attachable and other != disk.volume:
                yield (
                    f"Its disk is that of PersistentVolume {other} too: one must not have two.",
                    "Let it use the claim of that one",
                )

    def _remark(self, owner: ObjectRef) -> str:
        rollout = self.inventory.rollouts.get(owner)
        if rollout is None or INSTANCE not in rollout.marks or self.judge.accepted.owners:
            return ""
        return (
            f"has the label {INSTANCE}, which charts give to workloads, and by which Argo CD may "
            "know its own: if it does, it would write the old template again."
        )

    def _cold(self, change: InlineChange) -> str:
        """Why nothing may use its disks when their driver is asked for them first."""
        nodes = {it.node for it in self.inventory.pods if it.top == change.owner and it.node}
        for disk in change.disks:
            places = nodes | self.judge.holders((disk.in_tree, disk.csi))
            if reason := self.judge.only_unused(places, disk.plugin, disk.in_tree):
                return reason
        return ""

    def _stuck(self, change: InlineChange) -> str:
        """Why its pods would not be replaced by themselves."""
        owner = change.owner
        if owner.kind in ("ReplicaSet", "ReplicationController"):
            return f"a {owner.kind} does not replace its pods when its template changes"
        rollout = self.inventory.rollouts[owner]
        if rollout.type == "OnDelete":
            return "its pods are replaced only when somebody deletes them (OnDelete)"
        surges = owner.kind == "Deployment" and rollout.type != "Recreate"
        exclusive = any(it.exclusive for it in change.disks)
        if surges and exclusive and not unavailable(rollout, self.inventory.replicas[owner]):
            return (
                "its rolling update starts a new pod before an old one goes (maxUnavailable comes "
                "to 0), which waits for ever for a disk that one node alone can have"
            )
        return ""

    @cached_property
    def _by_disk(self) -> Mapping[str, str]:
        found = {}
        for volume in self.inventory.volumes:
            if volume.plugin or volume.driver:
                pv = volume.as_object()
                try:
                    csi = (pv_to_csi(pv) if volume.plugin else pv)["spec"]["csi"]
                except TranslationError:
                    continue
                found[csi_name(volume.driver, csi.get("volumeHandle", ""))] = volume.name
        return found


def unsuited_disk(change: InlineChange, accepted: Accepted) -> str:
    """Why a driver does not cope with a disk of it, unless somebody knows better."""
    found = (unsuited(it.plugin, it.csi) for it in change.disks)
    return "" if accepted.unsuited else next(filter(None, found), "")


def unavailable(rollout: Rollout, replicas: int) -> int:
    """How many pods of a Deployment may be missing, as its controller reckons it."""
    missing = _share(rollout.unavailable, replicas, math.floor)
    surge = _share(rollout.surge, replicas, math.ceil)
    # Both cannot be 0: nothing would ever move.
    return missing if missing or surge else 1


def inline_checks(verdicts: Iterable[InlineVerdict]) -> Iterator[Check]:
    """What was found."""
    for it in verdicts:
        owner = it.change.owner
        if it.how is InlineHow.REFUSED:
            what = f"stays as it is: {it.why}"
            yield _about(owner, Weight.WARNING, what, fix=it.fix)
        else:
            names = ", ".join(one.before["name"] for one in it.change.volumes)
            yield _about(owner, Weight.PASSED, f"can name a claim for {names}: {it.why}.")
            if it.remark:
                fix = "Change the repository too, if there is one: -o patch says how"
                yield _about(owner, Weight.WARNING, it.remark, fix=fix)


def inline_steps(verdicts: Iterable[InlineVerdict], inventory: Inventory) -> Iterator[Step]:
    """First the volumes and claims, then those whose pods are replaced, then all others."""
    able = [it for it in verdicts if it.how is not InlineHow.REFUSED]
    if not able:
        return
    objects = {
        (it["kind"], it["metadata"].get("namespace", ""), it["metadata"]["name"]): it
        for verdict in able
        for it in verdict.change.objects
    }
    count = len(objects) // 2
    yield CreateObjects(
        id="create-inline-volumes",
        title=f"Make {count:,} volume{'s' * (count != 1)} and claim{'s' * (count != 1)} for disks "
        "that pods name by themselves",
        why="A claim is what a pod can name instead of a disk. The volumes are kept (Retain), "
        "whatever becomes of the claims.",
        done_when="Each claim is Bound to its volume.",
        undo="Those that were made are deleted, unless a pod uses them; the disks are kept.",
        objects=tuple(objects.values()),
    )
    rolled = [it for it in able if it.how is InlineHow.ROLL]
    if rolled:
        yield _rewrite("rewrite-templates", rolled)
    down = (it for it in able if it.how is InlineHow.DOWN)
    # A disk that workloads share is free only once all of them are down.
    for number, group in enumerate(together(down, lambda it: it.change.names), 1):
        yield from without_pods(
            [it.change.owner for it in group],
            inventory,
            _rewrite(f"rewrite-templates-{number}", group),
            name=f"inline-{number}",
            why=f"Its template can be changed only without pods, for {group[0].why}.",
            then="Its template names claims.",
        )


def _rewrite(step_id: str, verdicts: list[InlineVerdict]) -> RewriteTemplates:
    names = ", ".join(str(it.change.owner) for it in verdicts)
    return RewriteTemplates(
        id=step_id,
        title=f"Have {names} name claims instead of disks",
        why="What a pod names by itself cannot be replaced under it: new pods take over.",
        done_when="Every template names the claims, and all pods are made of it.",
        undo="The volumes of the template are put back, and pods are replaced once more.",
        workloads=tuple(
            TemplateChange(
                kind=it.change.owner.kind,
                namespace=it.change.owner.namespace,
                name=it.change.owner.name,
                volumes=it.change.volumes,
                free_of=it.change.names if it.free else (),
            )
            for it in verdicts
        ),
        settle_seconds=SETTLE_SECONDS if any(it.free for it in verdicts) else 0,
        restart_controllers=any(it.free and _is_overtaken(it) for it in verdicts),
    )


def _is_overtaken(verdict: InlineVerdict) -> bool:
    return any(it.plugin in OVERTAKEN for it in verdict.change.disks)


def _disk(volume: Object, pv: Object) -> InlineDisk:
    plugin = plugin_of(volume) or ""
    csi = pv["spec"]["csi"]
    attachable = VolumeView(plugin, csi["driver"], native=False, provisioned=False).attachable
    return InlineDisk(
        plugin,
        pv["metadata"]["name"],
        in_tree_name(plugin, volume),
        csi_name(csi["driver"], csi["volumeHandle"]),
        attachable=attachable,
        exclusive=attachable and pv["spec"]["accessModes"] == [_READ_WRITE_ONCE],
    )


def _holding(owner: ObjectRef, volumes: list[Object]) -> Object:
    """As much of a workload as it takes to say its pods' volumes."""
    holder: Object = {"volumes": volumes}
    for step in reversed(POD_SPEC_PATHS[owner.kind]):
        holder = {step: holder}
    group = GROUPS[owner.kind]
    metadata = {"name": owner.name} | ({"namespace": owner.namespace} if owner.namespace else {})
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": owner.kind, "metadata": metadata, **holder}


def _volumes(obj: Object, kind: str) -> list[Object]:
    for step in POD_SPEC_PATHS[kind]:
        obj = obj[step]
    volumes: list[Object] = obj["volumes"]
    return volumes


def _share(said: int | str | None, replicas: int, rounded: Callable[[float], int]) -> int:
    text = _FEW_PODS_MISSING if said is None else str(said)
    number = text.removesuffix("%")
    if not number.isdecimal():
        return 0  # no API server takes it, but it may stand in a file: then nothing may be missing
    return rounded(replicas * int(number) / 100) if text.endswith("%") else int(number)


def _about(owner: ObjectRef, weight: Weight, what: str, *, fix: str = "") -> Check:
    message = f"{owner} {what}"
    return Check(check="inline", result=weight, object=str(owner), message=message, fix=fix)
