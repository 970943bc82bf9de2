"""Whether a stored volume may be replaced by its native twin: at once, only unused, or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from replant.core.convert.conditions import Place, why_only_unused
from replant.core.convert.finalizers import unknown_finalizers
from replant.core.convert.rbd_images import misread_image
from replant.core.convert.reclaim import is_kept_only_in_tree
from replant.errors import TranslationError
from replant.inventory.findings import ObjectRef
from replant.inventory.model import Inventory, Volume
from replant.inventory.quantities import amount
from replant.inventory.storage_records import PersistentVolumeClaim
from replant.objects import Object
from replant.plan.deletion_secrets import deletion_secret
from replant.plan.lost_fields import losses_of, no_way_back
from replant.plan.owners import owner_of_stored
from replant.plan.pausing import loses_claims
from replant.plan.situation import Situation
from replant.routing.names import csi_name, in_tree_name
from replant.swap import twin
from replant.translate import plugin_of
from replant.translate.gce_pd import UNSPECIFIED

_MODIFYING = ("Pending", "InProgress")
_EXPANDING = ("Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError")

KEPT_IN_TREE = (
    "It names no provisioner, so nobody deletes its disk today; the driver would. Set Delete again "
    "afterwards if the disk is to go with its claim."
)
ACCEPT_UNSUITED = "Say --accept-unsuited if you know that your driver copes with it"


class How(StrEnum):
    """How a volume can be replaced."""

    HOT = "hot"
    """While its pods run, or while none does."""
    COLD = "cold"
    """Only while nothing uses it: it is attached by a name that the twin does not have."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a person has said is all right."""

    unsuited: bool = False
    """Volumes whose native form their driver is known not to cope with."""
    losses: bool = False
    owners: bool = False
    scale_down: bool = False
    finalizers: tuple[str, ...] = ()
    """Finalizers that may be removed, although nobody knows what their controllers do."""
    controllers: tuple[str, ...] = ()
    """Controllers that may run, although they delete the storage of deleted volumes."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be done about one volume."""

    volume: Volume
    how: How
    why: str
    """A sentence: why not, or why only so."""
    fix: str = ""
    handle: str = ""
    names: tuple[str, ...] = ()
    """What both sides call it where it is attached."""
    workloads: tuple[ObjectRef, ...] = ()
    """Those that must be without pods while a cold one is replaced."""
    notes: tuple[str, ...] = field(default=())
    """What a person should know of it, such as what is lost and was accepted."""
    annotations: dict[str, str] = field(default_factory=dict)
    """What the twin has to say beyond the volume."""
    plugin: str = ""
    accept_finalizers: tuple[str, ...] = ()
    """Those of its finalizers that are not known, and that a person has accepted."""
    retain: bool = False
    """Whether the native volume needs the policy Retain to keep its disk as long as this one."""


@dataclass(frozen=True)
class Judge:
    """Judges the volumes of one cluster, as it is."""

    situation: Situation
    accepted: Accepted

    def judge(self, volume: Volume) -> Verdict:
        """The verdict on an in-tree volume."""
        pv = volume.as_object()
        try:
            after = twin.native(pv)
        except TranslationError as error:
            return Verdict(volume, How.REFUSED, str(error))
        plugin, handle = volume.plugin or "", after["spec"]["csi"]["volumeHandle"]
        if (why := unsuited(plugin, handle)) and not self.accepted.unsuited:
            return Verdict(volume, How.REFUSED, why, ACCEPT_UNSUITED, handle)
        misread = misread_image(after["spec"]["csi"])
        if misread and not self.accepted.unsuited:
            return Verdict(volume, How.REFUSED, misread, ACCEPT_UNSUITED, handle)
        secret = deletion_secret(volume, self.inventory)
        if secret.unknown:
            return Verdict(volume, How.REFUSED, secret.unknown, secret.fix, handle)
        verdict = self._judged(volume, pv, after, tuple(losses_of(plugin, pv, after)))
        if verdict.how is How.REFUSED:
            return verdict
        notes = [*verdict.notes, no_way_back(after)]
        why = misread
        if is_kept_only_in_tree(pv, after, self.situation.controller):
            why = KEPT_IN_TREE
        retain = bool(why) and volume.deletes
        if retain:
            notes.append(f"gets the reclaim policy Retain, although it says Delete. {why}")
        return replace(
            verdict,
            annotations=secret.annotations,
            retain=retain,
            notes=tuple(filter(None, notes)),
        )

    def judge_back(self, volume: Volume, before: Object) -> Verdict:
        """The verdict on putting back what a native volume came from."""
        native = volume.as_object()
        lost: tuple[str, ...] = ()
        if name := native["spec"].get("volumeAttributesClassName"):
            lost = (f"spec.volumeAttributesClassName: {name}; only CSI volumes can have one",)
        return self._judged(volume, before, native, lost)

    def _judged(
        self, volume: Volume, in_tree: Object, native: Object, lost: tuple[str, ...]
    ) -> Verdict:
        handle = native["spec"]["csi"]["volumeHandle"]
        plugin = plugin_of(in_tree) or ""
        names = (in_tree_name(plugin, in_tree["spec"]), csi_name(volume.driver, handle))
        if refusal := next(self._refusals(volume, names, lost), None):
            why, fix = refusal
            return Verdict(volume, How.REFUSED, why, fix, handle, names)
        accepted = unknown_finalizers(volume.metadata.finalizers)
        notes = tuple(f"loses {it}. The journal keeps it." for it in lost)
        reason = self._cold(volume, plugin, names)
        if not reason:
            used = "its pods go on" if self.inventory.users(volume) else "no pod uses it"
            verdict = Verdict(volume, How.HOT, f"{used}.", "", handle, names, notes=notes)
        else:
            verdict = self._unused(volume, reason, handle, names, notes)
        return replace(verdict, plugin=plugin, accept_finalizers=accepted)

    @property
    def inventory(self) -> Inventory:
        """What the cluster has."""
        return self.situation.inventory

    # Why not at all

    def _refusals(
        self, volume: Volume, names: tuple[str, ...], lost: tuple[str, ...]
    ) -> Iterator[tuple[str, str]]:
        yield from about_to_go(volume)
        yield from self._finalizer_refusals(volume)
        yield from self._claim_refusals(volume)
        owner = owner_of_stored(volume.labels, volume.annotations)
        if owner and not self.accepted.owners:
            yield (
                f"{owner} writes it from a repository and would write it again.",
                "Change the repository (-o patch says how), or say --accept-owners",
            )
        if lost and not self.accepted.losses:
            yield (
                f"The twin does not say all that it says: {'; '.join(lost)}.",
                ("Say --accept-losses; the journal keeps the whole volume"),
            )
        yield from self._driver_refusals(volume, names)

    def _finalizer_refusals(self, volume: Volume) -> Iterator[tuple[str, str]]:
        for it in unknown_finalizers(volume.metadata.finalizers, self.accepted.finalizers):
            why = (
                f"It has the finalizer {it}. The controller of that may delete the disk when the "
                "PersistentVolume is deleted, as a conversion does, whatever its reclaim policy."
            )
            yield why, f"Find out what that controller does, and say --accept-finalizer {it}"

    def _claim_refusals(self, volume: Volume) -> Iterator[tuple[str, str]]:
        claim = self._claim(volume)
        if claim is None:
            if volume.phase == "Bound" and self.inventory.knows("PersistentVolumeClaim"):
                yield "It is Bound to a claim that is not there.", "Look again in a minute"
            return
        status = claim.status
        if status and status.phase == "Lost":
            yield (
                "Its claim is Lost: the controllers have not seen the volume.",
                ("Read the log of kube-controller-manager"),
            )
        if claim.metadata.deletionTimestamp:
            yield "Its claim is being deleted, and only waits for its pods.", ""
        if _is_expanding(claim):
            yield "It is being expanded.", "Wait until its claim has the size that it asks for"
        if status and status.modifyVolumeStatus and status.modifyVolumeStatus.status in _MODIFYING:
            yield (
                "Its attributes are being modified.",
                "Wait until its claim has the VolumeAttributesClass that it asks for",
            )

    def _driver_refusals(self, volume: Volume, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        if volume.driver not in self.inventory.drivers:
            yield f"The driver {volume.driver} is not installed.", ""
        for node in sorted(self._places(volume, names)):
            known = node in self.inventory.nodes
            if known and volume.driver not in self.inventory.drivers_on(node):
                yield (
                    f"{volume.driver} is not registered on {node}, where it is or will be.",
                    (f"See why its pod does not run there: kubectl get csinode {node} -o yaml"),
                )

    # Why only while nothing uses it

    def _cold(self, volume: Volume, plugin: str, names: tuple[str, ...]) -> str:
        return self.only_unused(self._places(volume, names), plugin, names[0])

    def only_unused(self, places: Iterable[str], plugin: str, in_tree: str) -> str:
        """Why a disk that is in these places can go to its driver only while nothing uses it.

        One that is nowhere may be anywhere a moment later, and may be on its way from somewhere.
        """
        nodes = sorted(places) or sorted(self.inventory.nodes)
        return why_only_unused(
            (self._place(node, plugin) for node in nodes),
            plugin,
            in_tree,
            controllers=self.situation.controller.migrates(plugin),
        )

    def _place(self, node: str, plugin: str) -> Place:
        return Place(
            node=node,
            redirects=self._migrates(node, plugin),
            has_driver=True,  # that it is not is a reason of its own
            volumes=self._held.get(node, frozenset()),
        )

    def holders(self, names: Iterable[str]) -> set[str]:
        """The nodes where a disk is attached or in use by one of these names."""
        return {it for name in names for it in self._holders.get(name, ())}

    def _migrates(self, node: str, plugin: str) -> bool:
        if node not in self.inventory.nodes:
            # It is gone, and what hangs on it is detached by whoever the controllers ask.
            return self.situation.controller.migrates(plugin)
        return plugin in self.inventory.migrated_on(node) or self.situation.kubelet(node).migrates(
            plugin
        )

    def _unused(
        self, volume: Volume, reason: str, handle: str, names: tuple[str, ...],
        notes: tuple[str, ...],
    ) -> Verdict:  # fmt: skip
        users = self.inventory.users(volume)
        tops = tuple(dict.fromkeys(it.top for it in users))
        stuck = [it for it in tops if it not in self.inventory.replicas]
        called = ", ".join(map(str, tops))
        if stuck:
            why = f"Only unused, for {reason}; and nobody can scale {stuck[0]} down."
            return Verdict(volume, How.REFUSED, why, "Delete its pods first", handle, names)
        if lost := loses_claims(tops, self.inventory):
            why = f"Only unused, for {reason}; but {lost[0]}."
            return Verdict(volume, How.REFUSED, why, lost[1], handle, names)
        if tops and not self.accepted.scale_down:
            why = f"Only unused, for {reason}; {called} must be scaled down for it."
            fix = "Enable the migration there first, or say --scale-down"
            return Verdict(volume, How.REFUSED, why, fix, handle, names)
        dead = [it for it in sorted(self._places(volume, names)) if not self.inventory.ready(it)]
        if dead:
            why = f"Only unused, for {reason}; and {dead[0]} does not answer, so nobody can tell."
            return Verdict(volume, How.REFUSED, why, "Bring the node back", handle, names)
        why = f"{reason}; {called or 'nothing'} is scaled down for it."
        return Verdict(volume, How.COLD, why, "", handle, names, tops, notes)

    # Where it is

    def _claim(self, volume: Volume) -> PersistentVolumeClaim | None:
        """The claim that has it: of the name and the uid that the volume says."""
        found = self.inventory.claims.get(volume.claim) if volume.claim else None
        uid = (volume.as_object()["spec"].get("claimRef") or {}).get("uid")
        return found if found and (not uid or found.metadata.uid in ("", uid)) else None

    def _places(self, volume: Volume, names: tuple[str, ...]) -> set[str]:
        """The nodes where it is attached or in use, or a pod wants it."""
        wanted = {it.node for it in self.inventory.users(volume) if it.node}
        attached = self._attached.get(volume.name, set())
        return wanted | attached | self.holders(names)

    @cached_property
    def _attached(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for it in self.inventory.attachments:
            found[it.spec.source.persistentVolumeName or ""].add(it.spec.nodeName)
        return found

    @cached_property
    def _held(self) -> Mapping[str, frozenset[str]]:
        """By node, the names of what is attached or in use there."""
        found = {}
        for name, node in self.inventory.nodes.items():
            status = node.status
            attached = [it.name for it in (status.volumesAttached or ())] if status else []
            in_use = (status.volumesInUse or []) if status else []
            found[name] = frozenset((*attached, *in_use))
        return found

    @cached_property
    def _holders(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for node, names in self._held.items():
            for name in names:
                found[name].add(node)
        return found


def about_to_go(volume: Volume) -> Iterator[tuple[str, str]]:
    """Why a volume is none to replace any more, each time with what to do about it."""
    if volume.metadata.deletionTimestamp:
        yield "It is being deleted, and only its finalizers keep it.", ""
    if volume.phase == "Failed":
        yield (
            "Its phase is Failed: its disk could not be deleted with its claim.",
            "Set its policy to Retain, or have the disk deleted",
        )
    if volume.phase == "Released" and volume.deletes:
        yield (
            "Its claim is gone and its disk is about to be deleted.",
            "Set its policy to Retain if the disk is to be kept",
        )


def unsuited(plugin: str, handle: str) -> str:
    """Why a driver does not cope with a volume that is native only in form, if it does not."""
    if plugin == "kubernetes.io/vsphere-volume":
        return (
            "A native volume of this driver is known by its CNS volume ID, and this one's path "
            "would stand there: the driver's syncer would take it for one that is gone."
        )
    if plugin == "kubernetes.io/gce-pd" and f"/zones/{UNSPECIFIED}/" in handle:
        return (
            "Nothing says its zone, and the driver would take any disk of its name: label the "
            "volume with topology.kubernetes.io/zone first."
        )
    return ""


def _is_expanding(claim: PersistentVolumeClaim) -> bool:
    status, wanted = claim.status, claim.spec.resources
    if status is None:
        return False
    if status.allocatedResourceStatuses:
        return True  # also where an expansion has failed: the driver or a kubelet tries it again
    if any(it.type in _EXPANDING and it.status == "True" for it in status.conditions or ()):
        return True
    has = amount((status.capacity or {}).get("storage"))
    return 0 < has < amount(((wanted.requests if wanted else None) or {}).get("storage"))
