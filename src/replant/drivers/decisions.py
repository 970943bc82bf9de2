"""What comes next for one driver, from what is seen of it.

Whoever acts looks, asks ``decide``, writes what it says in its order, looks and asks again until
there is nothing to write. Nothing is remembered but what objects say, so it may be killed between
any two writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from replant.drivers import adoption
from replant.drivers.classes import classes, taken_up
from replant.drivers.conditions import (
    AVAILABLE,
    DISABLED,
    FALSE,
    PREREQS,
    TRUE,
    UNKNOWN,
    Condition,
    conditions_of,
    phase,
    unions,
)
from replant.drivers.crds import default_cr
from replant.drivers.credentials import awaited
from replant.drivers.kinds import Key, key_of
from replant.drivers.naming import ADOPTED, OPERAND
from replant.drivers.operand import Facts, before_credentials, operand
from replant.drivers.removal import Uses
from replant.drivers.sameness import (
    annotations_of,
    has_strangers,
    is_as_wanted,
    is_ours,
    leaving,
    marked,
    must_be_made_anew,
    was_applied,
)
from replant.drivers.seen import Decision, Look, Seen
from replant.drivers.settings import Adoption, Credentials, Settings, State, settings_of
from replant.drivers.status import parts, said, whole
from replant.drivers.values import Values
from replant.drivers.writes import (
    Annotate,
    Apply,
    Create,
    Delete,
    Finalizers,
    Replace,
    Write,
)
from replant.errors import InputError
from replant.objects import Object

FINALIZER = "csi.openshift.io/operand"
"""Keeps the CR of an optional driver until nothing uses the driver."""

UNTOLD = "ShareTypesUnknown"
"""Manila's service did not say which share types it has."""

_MAKES_VOLUMES = ("StorageClass", "VolumeSnapshotClass", "Deployment")

WAIT = 10.0
"""Seconds until something is looked at again that others are to do: they may not be heard of."""
SLOW_WAIT = 60.0
"""The same for what takes its time, such as share types that may come."""


def wanted_keys(seen: Seen, values: Values) -> frozenset[Key]:
    """All that has to be looked at for a driver, apart from what ``Seen`` has fields for.

    What is found may name more: ask again until all that it names has been looked at.
    """
    driver = seen.driver
    csi: Key = ("CSIDriver", "", driver.name)
    if driver.own_operator:
        return frozenset({csi})
    keys: set[Key] = {csi, seen.secret_key}
    keys.update(adoption.olm_keys(driver, seen.keeper))
    facts = replace(seen.facts(Settings()), replicas=2)
    keys.update(key_of(it) for it in operand(driver, Settings(), values, facts))
    return frozenset(keys)


def decide(seen: Seen, values: Values) -> Decision:
    """What comes next for a driver."""
    if seen.cr is None:
        if seen.driver.default and seen.cloud is seen.driver.cloud:
            return Decision((Create(default_cr(seen.driver)),), why="it is installed by default")
        return Decision(why="nobody has asked for it")
    if seen.driver.default and FINALIZER in _finalizers(seen.cr):
        # It comes back by itself, so there is nothing that its CR would have to be kept for.
        return Decision((_without_finalizer(seen.cr),), why="a default driver's CR may go")
    if seen.driver.default and leaving(seen.cr):
        return Decision(again=WAIT, why="its CR is being deleted, and comes back")
    try:
        settings = settings_of(seen.cr)
    except InputError as error:
        told = phase("InvalidSettings", str(error), degraded=TRUE, available=UNKNOWN)
        return said(seen, told, why=str(error))
    return _Driver(seen, values, seen.cr, settings).decide()


class _Driver:
    """A driver that has a CR which can be read."""

    def __init__(self, seen: Seen, values: Values, cr: Object, settings: Settings) -> None:
        self.seen = seen
        self.values = values
        self.cr = cr
        self.settings = settings
        self.driver = seen.driver
        self.names = seen.names
        self.csi_driver = seen.csi_driver

    def decide(self) -> Decision:
        """What comes next."""
        if self.settings.management is State.UNMANAGED:
            if leaving(self.cr) and FINALIZER in _finalizers(self.cr):
                return Decision((_without_finalizer(self.cr),), why="it is Unmanaged, and may go")
            message = "managementState is Unmanaged: nothing is changed, and nothing is known"
            everything = dict.fromkeys(
                ("available", "progressing", "degraded", "upgradeable"), UNKNOWN
            )
            return self.say(phase("Unmanaged", message, **everything), why="it is Unmanaged")
        if self.driver.own_operator:
            return self._report_vendor()
        if leaving(self.cr) or self.settings.management is State.REMOVED:
            return self._remove()
        return self._refuse() or self._adopt() or self._install()

    def say(
        self,
        told: Sequence[Condition],
        again: float | None = None,
        writes: tuple[Write, ...] = (),
        why: str = "",
    ) -> Decision:
        """Write what comes next, and then the status."""
        return said(self.seen, told, again, writes, why)

    # What keeps it from doing anything

    def _refuse(self) -> Decision | None:
        cloud = self.seen.cloud
        if cloud is not None and self.driver.cloud is not None and cloud is not self.driver.cloud:
            message = (
                f"{self.driver.name} is for {self.driver.cloud}, and this cluster is in {cloud}"
            )
            return self._blocked("OtherCloud", message)
        if self.seen.vendor is not None and _is_managed(self.seen.vendor):
            return self._report_platform(self.seen.vendor)
        return None

    def _blocked(self, reason: str, message: str) -> Decision:
        told = phase(reason, message, available=UNKNOWN, degraded=TRUE)
        told.append(Condition(PREREQS, FALSE, reason, message))
        return self.say(told, why=message)

    def _report_platform(self, vendor: Object) -> Decision:
        """OpenShift's own operator runs the driver: two would fight."""
        message = f"ClusterCSIDriver {self.driver.name} is managed by OpenShift's own operator"
        theirs = conditions_of(vendor)
        told = [replace(it, since=None) for it in unions(theirs)]
        told.append(Condition(PREREQS, FALSE, "ManagedByPlatform", message))
        return self.say(told, why=message)

    def _report_vendor(self) -> Decision:
        """A driver that its vendor's operator installs is looked at, and that is all."""
        vendor = self.seen.vendor
        state = str(((vendor or {}).get("status") or {}).get("phase") or "")
        if self.csi_driver is None:
            message = (
                f"CSIDriver {self.driver.name} is not there: its vendor's operator installs it, "
                "and CSI has to be turned on in the StorageCluster"
            )
            told = phase("NotInstalled", message, available=FALSE)
            told.append(Condition(PREREQS, FALSE, "NotInstalled", message))
        elif state and state.lower() not in ("online", "running"):
            message = f"its StorageCluster says {state}"
            told = phase("VendorNotOnline", message, degraded=TRUE)
            told.append(Condition(PREREQS, TRUE))
        else:
            told = [*phase("", ""), Condition(PREREQS, TRUE)]
        drop = self.driver.default or FINALIZER in _finalizers(self.cr)
        writes = (_without_finalizer(self.cr),) if drop and leaving(self.cr) else ()
        return self.say(told, writes=writes, why="its vendor's operator installs it")

    # Adoption

    def _adopt(self) -> Decision | None:
        keeper = self.seen.storage or self.cr
        step = adoption.olm_step(self.driver, keeper, self.seen.subscriptions, self.seen.objects)
        if step is not None:
            told = phase("RemovingOLMOperator", step.message, progressing=TRUE, available=FALSE)
            return self.say(told, WAIT, step.writes, step.message)
        begun = adoption.has_begun(self.driver, keeper)
        if self.csi_driver is None or not adoption.is_foreign(self.csi_driver):
            if begun and self.csi_driver is not None:
                done = adoption.finished(self.driver, keeper)
                return Decision((done,), why="the operand of OLM's operator is ours")
            return self._note_adoption()
        if begun:
            return None  # OLM's operator is gone, and what it left is ours to take
        return self._adopt_foreign(self.csi_driver)

    def _adopt_foreign(self, csi_driver: Object) -> Decision | None:
        who = adoption.installed_by(csi_driver)
        message = f"CSIDriver {self.driver.name} was installed by {who}, and is left alone; "
        noted = ADOPTED in annotations_of(self.cr)
        if self.settings.adoption is Adoption.LEAVE:
            if noted:
                return Decision(
                    (Annotate(self.cr, adoption.AFRESH),), why="it is not ours any more"
                )
            fix = "remove that driver, set adoption to Adopt, or managementState to Unmanaged"
            return self._blocked("ForeignCSIDriver", message + fix)
        if noted:
            fix = f"have that end, and then: replant drivers adopt {self.driver.backend} --yes"
            was = f"CSIDriver {self.driver.name} was adopted, and {who} has claimed it back: "
            return self._blocked("ForeignCSIDriver", f"{was}it is left alone; {fix}")
        if OPERAND in annotations_of(self.cr):
            return None
        if self.seen.workloads is None:
            return Decision(look=(Look.WORKLOADS,))
        found = adoption.found_operand(self.driver, self.seen.workloads)
        if found.names is None:
            return self._blocked(
                "OperandNotFound", f"{message}it cannot be adopted: {found.trouble}"
            )
        return Decision(
            (Annotate(self.cr, {OPERAND: found.names.written()}),),
            why=f"adopts {found.names.namespace}/{found.names.controller} and {found.names.node}",
        )

    def _note_adoption(self) -> Decision | None:
        """Keep in mind that what was to be adopted is ours; not any longer than it is asked for."""
        asked = self.settings.adoption is Adoption.ADOPT
        noted = ADOPTED in annotations_of(self.cr)
        if self.csi_driver is None or asked == noted:
            return None
        mark = Annotate(self.cr, {ADOPTED: "true" if asked else None})
        return Decision((mark,), why="the driver is ours" if asked else "nothing is to be adopted")

    # Installing

    def _install(self) -> Decision:
        if not self.driver.default and FINALIZER not in _finalizers(self.cr):
            added = (*_finalizers(self.cr), FINALIZER)
            return Decision((Finalizers(self.cr, added),), why="its CR has to outlive its uses")
        facts = self.seen.facts(self.settings)
        if waits := self._waits_for():
            return self._without_credentials(facts, waits)
        share_types: tuple[str, ...] = ()
        untold = False
        if self.driver.kind == "ManilaDriver":
            known = self.settings.share_types
            known = self.seen.share_types if known is None else known
            if known is None and not self.seen.share_trouble:
                return Decision(look=(Look.SHARE_TYPES,))
            if known is None and not self._has_served():
                return self._unknown_service()
            if known == ():
                return self._no_service()
            share_types = known or ()
            untold = known is None
        wanted = operand(self.driver, self.settings, self.values, facts)
        writes, stuck = self._differences(wanted)
        made = classes(
            self.driver, self.settings, self.names, self.seen.classes, self.cr, share_types
        )
        told = parts(self.seen)
        told += made.conditions
        if untold:  # classes stay as they are, and so does whoever mounts what they made
            told.append(Condition("ShareTypesDegraded", TRUE, UNTOLD, self.seen.share_trouble))
        again = WAIT if stuck else SLOW_WAIT if self.driver.kind == "ManilaDriver" else None
        changes = (*writes, *made.writes)
        why = "what it consists of is not as it should be" if changes else "all is as it should be"
        return self.say(whole(told), again, changes, why)

    def _no_service(self) -> Decision:
        """A cloud without Manila. What is there stays: pods may have to unmount."""
        message = "this cloud has no share types: Manila is not there, or offers none"
        told = [*phase("", ""), Condition(DISABLED, TRUE, "ManilaNotFound", message)]
        return self.say(told, SLOW_WAIT, why=message)

    def _has_served(self) -> bool:
        """Whether it was installed before, in whole or in part."""
        ours = (
            is_ours(it) for it in self.seen.classes if it.get("provisioner") == self.driver.name
        )
        return bool(self.seen.controller or self.seen.node) or any(ours)

    def _unknown_service(self) -> Decision:
        """A cloud that does not tell whether it has Manila."""
        message = self.seen.share_trouble
        told = phase(UNTOLD, message, available=FALSE, progressing=TRUE, degraded=TRUE)
        told += [it for it in conditions_of(self.cr) if it.type == DISABLED]
        return self.say(told, SLOW_WAIT, why=message)

    def _waits_for(self) -> str:
        if self.settings.credentials is Credentials.NODE:
            return ""
        asked = None
        if "CredentialsRequest" in self.seen.served:
            # One that is not there yet is not provisioned either.
            wanted = before_credentials(
                self.driver, replace(self.seen.facts(self.settings), asks=True)
            )[-1]
            asked = self.seen.objects.get(key_of(wanted), wanted)
        return awaited(self.driver, self.names, asked, self.seen.secret)

    def _without_credentials(self, facts: Facts, waits: str) -> Decision:
        writes, _ = self._differences(before_credentials(self.driver, facts))
        if self.seen.controller is None and self.seen.node is None:
            told = phase("WaitingForCredentials", waits, progressing=TRUE, available=FALSE)
            return self.say(told, WAIT, writes, waits)
        # It runs with those that it has, so nothing of it is changed.
        told = [
            *parts(self.seen),
            Condition("CredentialsDegraded", TRUE, "CredentialsMissing", waits),
        ]
        return self.say(whole(told), WAIT, writes, waits)

    def _differences(self, wanted: Sequence[Object]) -> tuple[tuple[Write, ...], bool]:
        """What has to be written so that all is as wanted, and whether something is in the way."""
        writes: list[Write] = []
        stuck = False
        for it in wanted:
            obj = marked(it)
            found = self.seen.objects.get(key_of(obj))
            if found is None:
                writes.append(Apply(obj))
            elif it["kind"] == "VolumeSnapshotClass" and not is_ours(found):
                continue  # somebody's own may say that snapshots are retained
            elif leaving(found):
                stuck = True  # it is made anew once it is gone
            elif must_be_made_anew(found, obj):
                writes += [Delete(found), Apply(obj)]
            elif not is_as_wanted(found, obj):
                writes.append(_written_over(found, obj))
        return tuple(writes), stuck

    # Removing

    def _remove(self) -> Decision:
        if self.driver.default:
            message = (
                "Removed is not supported: this driver is installed by default; to use another, "
                "set managementState to Unmanaged and delete this one by hand"
            )
            told = [
                *parts(self.seen),
                Condition("ManagementStateDegraded", TRUE, "Removed", message),
            ]
            return self.say(whole(told), why=message)
        mine = [it for it in self._operand_there() if is_ours(it)]
        if mine:
            if self.seen.uses is None:
                return Decision(look=(Look.USES,))
            if self.seen.uses.names:
                return self._keep(self.seen.uses)
            # What makes volumes goes first. Then uses are looked at once more, and the rest goes.
            first = [it for it in mine if it["kind"] in _MAKES_VOLUMES]
            message = f"deleting {len(first or mine)} objects of {self.driver.name}"
            told = phase("RemovingOperand", message, progressing=TRUE, available=FALSE)
            gone = tuple(Delete(it) for it in first or mine if not leaving(it))
            back = taken_up(self.driver, self.seen.classes)
            return self.say(told, WAIT, back or gone, message)
        if leaving(self.cr):
            if FINALIZER not in _finalizers(self.cr):
                return Decision(again=WAIT, why="others still keep its CR")
            return Decision((_without_finalizer(self.cr),), why="nothing of it is left")
        message = f"{self.driver.name} is removed"
        told = phase("Removed", message, available=FALSE)
        return self.say(told, why=message)

    def _keep(self, uses: Uses) -> Decision:
        """It stays while it is used; what was deleted already, just before it was, comes back.

        Without its controllers nobody could delete, attach or detach those volumes any more.
        """
        message = f"{self.driver.name} is still in use by {uses.message}"
        running = (self.seen.controller, self.seen.node)
        writes: tuple[Write, ...] = ()
        if not all(it and not leaving(it) for it in running) and self._may_be_made():
            facts = self.seen.facts(self.settings)
            whole_operand = operand(self.driver, self.settings, self.values, facts)
            wanted = [it for it in whole_operand if it["kind"] != "VolumeSnapshotClass"]
            writes, _ = self._differences(wanted)
            message = f"{message}; what was deleted of it comes back until then"
        serves = [it.status for it in parts(self.seen) if it.type.endswith(AVAILABLE)]
        available = FALSE if writes or FALSE in serves else TRUE
        told = phase("RemovingOperand", message, progressing=TRUE, available=available)
        return self.say(told, WAIT, writes, message)

    def _may_be_made(self) -> bool:
        """Whether nobody else has, or is to have, the driver meanwhile."""
        return not adoption.is_foreign(self.csi_driver) and self._refuse() is None

    def _operand_there(self) -> list[Object]:
        """What is to go, in its order: what makes volumes first, what others may need last."""
        facts = replace(self.seen.facts(self.settings), replicas=2)
        wanted = operand(self.driver, self.settings, self.values, facts)
        keys = [key_of(it) for it in reversed(wanted) if it["kind"] != "Namespace"]
        there = [self.seen.objects[it] for it in keys if it in self.seen.objects]
        own = [it for it in self.seen.classes if it.get("provisioner") == self.driver.name]
        return [*own, *there]


# What all of them share


def _written_over(found: Object, wanted: Object) -> Write:
    """Apply, unless that would leave somebody else's containers there."""
    workload = wanted["kind"] in ("Deployment", "DaemonSet")
    taken = not is_ours(found) or (has_strangers(found, wanted) and not was_applied(found, wanted))
    if not workload or not taken:
        return Apply(wanted)
    seen = found["metadata"]
    versions = {"uid": seen.get("uid"), "resourceVersion": seen.get("resourceVersion")}
    return Replace({**wanted, "metadata": {**wanted["metadata"], **versions}})


def _is_managed(vendor: Object) -> bool:
    state = (vendor.get("spec") or {}).get("managementState") or "Managed"
    return vendor.get("kind") == "ClusterCSIDriver" and state == "Managed"


def _finalizers(cr: Object) -> tuple[str, ...]:
    return tuple(cr["metadata"].get("finalizers") or ())


def _without_finalizer(cr: Object) -> Write:
    return Finalizers(cr, tuple(it for it in _finalizers(cr) if it != FINALIZER))
