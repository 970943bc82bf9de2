"""Legacy StorageClasses, with the driver as provisioner: under their names, or beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from replant.errors import Refused, TranslationError
from replant.inventory.model import Inventory
from replant.inventory.storage_records import StorageClass
from replant.objects import DEFAULT_CLASS, Object
from replant.plan.model import Check, ClassChange, CreateObjects, ReplaceClasses, Step, Weight
from replant.plan.owners import INSTANCE, MANAGED_BY, OWNERS, owner_of_stored
from replant.plan.provisioning import provisioning
from replant.plan.situation import Situation
from replant.translate import driver_of, dropped_parameters, storage_class_to_csi

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""It would bring the old provisioner back at the next ``kubectl apply``."""


class ClassWay(StrEnum):
    """What is to become of the classes."""

    LEAVE = "leave"
    REPLACE = "replace"
    """They are made again under their names."""
    TWIN = "twin"
    """Others are made beside them, under names of their own."""


@dataclass(frozen=True, slots=True)
class AskedClasses:
    """What a person wants of the classes."""

    way: ClassWay = ClassWay.LEAVE
    suffix: str = ""
    """What the name of a twin ends with."""


@dataclass(frozen=True, slots=True)
class ClassPlan:
    """What becomes of the classes, and what was found on the way."""

    changes: tuple[ClassChange, ...]
    """Of a class as it is and as it will be, or of a class and its twin."""
    checks: tuple[Check, ...]


def class_changes(situation: Situation) -> tuple[ClassChange, ...]:
    """The classes of the plugins, as they are and as they will be.

    One that cannot be translated is left alone; the preflight names it.
    """
    found = []
    for storage_class in _classes(situation.inventory, situation.plugins):
        try:
            found.append(class_change(storage_class))
        except TranslationError:
            continue
    return tuple(found)


def class_change(storage_class: StorageClass) -> ClassChange:
    """A class as it is, and as its driver needs it; TranslationError where it cannot be."""
    before = _as_object(storage_class)
    plugin = storage_class.provisioner
    after = storage_class_to_csi(plugin, before)
    metadata = _without(after["metadata"], {_LAST_APPLIED})
    after = {**after, "metadata": metadata, "provisioner": driver_of(plugin)}
    return ClassChange(before=before, after=after)


def plan_classes(
    asked: AskedClasses, plugins: Iterable[str], inventory: Inventory, *, owners: bool = False
) -> ClassPlan:
    """What is done about the classes of these plugins.

    With ``owners`` one may be replaced that is written from a repository.
    """
    changes: list[ClassChange] = []
    checks: list[Check] = []
    if asked.way is ClassWay.LEAVE:
        return ClassPlan((), ())
    for storage_class in _classes(inventory, plugins):
        found = list(_obstacles(asked, storage_class, inventory, owners=owners))
        checks += found
        if found:
            continue
        try:
            change = class_change(storage_class)
        except TranslationError as error:
            what = f"stays as it is: {error.field} {error.reason}."
            checks.append(_about(storage_class, Weight.WARNING, what))
            continue
        if asked.way is ClassWay.TWIN:
            change = ClassChange(before=change.before, after=twin_class(change.after, asked.suffix))
            if taken := list(_taken(storage_class, change.after, inventory)):
                checks += taken
                continue
        checks += _remarks(asked, storage_class, change.after, inventory)
        changes.append(change)
    return ClassPlan(tuple(changes), tuple(checks))


def class_steps(way: ClassWay, changes: tuple[ClassChange, ...]) -> Iterator[Step]:
    """The step that does it, where there is anything to do."""
    if not changes:
        return
    count = f"{len(changes):,} StorageClass{'es' * (len(changes) != 1)}"
    if way is ClassWay.REPLACE:
        yield replace_classes(changes)
    else:
        yield CreateObjects(
            id="create-classes",
            title=f"Make {count} with the driver as provisioner, beside the old",
            why="Claims name their class: those that name a new one get native volumes, and all "
            "others what they got before. None of the new ones is the default.",
            done_when="Each class is there.",
            undo="The classes that were made are deleted; volumes that came from them stay.",
            objects=tuple(it.after for it in changes),
        )


def replace_classes(changes: tuple[ClassChange, ...]) -> ReplaceClasses:
    """The step that makes classes again under their names."""
    count = f"{len(changes):,} StorageClass{'es' * (len(changes) != 1)}"
    return ReplaceClasses(
        id="replace-classes",
        title=f"Make {count} again with the driver as provisioner",
        why="A class cannot be changed, and the name of its in-tree provisioner is the last "
        "that refers to the plugin. Volumes and claims keep the class by its name.",
        done_when="Each class has the driver as provisioner; a durable backup of the old one "
        "was written before it was deleted, while no claim was being given a volume of it.",
        undo="The class is deleted and the backup is made again.",
        classes=changes,
    )


def twin_class(after: Object, suffix: str) -> Object:
    """The class under another name: never the default, and nobody's from a repository."""
    metadata = _without(after["metadata"], {*DEFAULT_CLASS, *OWNERS, INSTANCE, MANAGED_BY})
    return {**after, "metadata": {**metadata, "name": f"{metadata['name']}{suffix}"}}


def _classes(inventory: Inventory, plugins: Iterable[str]) -> list[StorageClass]:
    wanted = frozenset(plugins)
    return [it for it in inventory.classes if it.provisioner in wanted]


def _obstacles(
    asked: AskedClasses,
    storage_class: StorageClass,
    inventory: Inventory,
    *,
    owners: bool,
) -> Iterator[Check]:
    """Why a class stays as it is."""
    driver = driver_of(storage_class.provisioner)
    if driver not in inventory.drivers:
        what = f"stays as it is: its driver {driver} is not installed, and nobody would provision."
        yield _about(storage_class, Weight.WARNING, what)
        return
    if asked.way is ClassWay.TWIN:
        return
    metadata = storage_class.metadata
    owner = owner_of_stored(metadata.labels or {}, metadata.annotations or ())
    if owner and not owners:
        yield _about(
            storage_class,
            Weight.BLOCKER,
            f"stays as it is: {owner} writes it from a repository and would write it again.",
            fix="Change the repository (-o patch says how), or say --accept-owners",
        )
    waiting = provisioning(_as_object(storage_class), inventory.claims.values())
    if waiting:
        more = f" and {len(waiting) - 1:,} more" if len(waiting) > 1 else ""
        yield _about(
            storage_class,
            Weight.BLOCKER,
            f"cannot be replaced now: PersistentVolumeClaim {waiting[0]}{more} is being given a "
            "volume of it.",
            fix="Wait until it is Bound, or delete it: kubectl describe pvc says what keeps it",
        )


def _remarks(
    asked: AskedClasses, before: StorageClass, after: Object, inventory: Inventory
) -> Iterator[Check]:
    """What a person should know of a class that is made."""
    dropped = dropped_parameters(before.provisioner, before.parameters or {})
    if dropped:
        what = f"loses {', '.join(dropped)}: its driver does not take them."
        yield _about(before, Weight.WARNING, what)
    driver = after["provisioner"]
    without = sorted(it for it in inventory.nodes if driver not in inventory.drivers_on(it))
    if without:
        more = f" and {len(without) - 1:,} more" if len(without) > 1 else ""
        what = f"would make volumes of {driver}, which is not registered on {without[0]}{more}."
        yield _about(before, Weight.WARNING, what, fix="kubectl get csinode says where it is")
    if asked.way is ClassWay.REPLACE and not inventory.knows("PersistentVolumeClaim"):
        what = "may be in use at this moment: claims could not be read. It is looked at again."
        yield _about(before, Weight.WARNING, what)


def _taken(before: StorageClass, after: Object, inventory: Inventory) -> Iterator[Check]:
    name = after["metadata"]["name"]
    there = inventory.class_by_name.get(name)
    if there is None:
        return
    if _sameness(_as_object(there)) == _sameness(after):
        yield _about(before, Weight.PASSED, f"has its twin {name} already.")
    else:
        what = f"cannot have a twin {name}: there is another class of that name."
        yield _about(before, Weight.BLOCKER, what, fix="Choose another --class-suffix")


def _sameness(storage_class: Object) -> Object:
    """What two classes of one name must have in common to be the same."""
    return {key: it for key, it in storage_class.items() if key != "metadata" and it}


def _about(storage_class: StorageClass, weight: Weight, what: str, *, fix: str = "") -> Check:
    name = storage_class.metadata.name
    message = f"StorageClass {name} {what}"
    return Check(check="class", result=weight, object=name, message=message, fix=fix)


def refuse_suffix(suffix: str) -> None:
    """Refused, unless a name that ends with it can be a class's."""
    allowed = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")
    if not suffix or not set(suffix) <= allowed or suffix[-1] in ".-":
        raise Refused(
            f"No class can have a name that ends with {suffix!r}: small letters, digits, - and . "
            "are allowed, the last of them a letter or a digit. Such as --class-suffix=-csi."
        )


def _without(metadata: Object, gone: Iterable[str]) -> Object:
    """Metadata without these labels and annotations."""
    dropped = frozenset(gone)
    kept = {key: it for key, it in metadata.items() if key not in ("labels", "annotations")}
    for part in ("labels", "annotations"):
        left = {key: it for key, it in (metadata.get(part) or {}).items() if key not in dropped}
        if left:
            kept[part] = left
    return kept


def _as_object(storage_class: StorageClass) -> dict[str, Any]:
    """The whole class, as it can be made again."""
    fields = msgspec.to_builtins(storage_class)
    metadata = {name: fields["metadata"][name] for name in ("name", "labels", "annotations")}
    fields["metadata"] = {name: value for name, value in metadata.items() if value}
    kept = {name: value for name, value in fields.items() if value is not None}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **kept}
