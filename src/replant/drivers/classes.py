"""The StorageClasses that come with a driver, and which class is the cluster's default.

Somebody's own choice of a default is never changed. What we have chosen ourselves we know again by
an annotation beside it, and follow ``defaultStorageClass`` with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replant.drivers.catalog import ClassOf, Driver
from replant.drivers.conditions import TRUE, Condition
from replant.drivers.kinds import made
from replant.drivers.naming import Names
from replant.drivers.operand import secret_parameters
from replant.drivers.sameness import (
    annotations_of,
    digest,
    is_as_wanted,
    is_ours,
    leaving,
    marked,
)
from replant.drivers.settings import DefaultClass, Settings, State
from replant.drivers.writes import Annotate, Apply, Delete, Write
from replant.errors import shown
from replant.objects import DEFAULT_CLASS, Object

DEFAULT = DEFAULT_CLASS[0]
CHOSEN = "replant.dev/default-class"
"""On a class: what we have made of its default annotation, and for which setting."""
STOOD_BACK = "replant.dev/default-until-csi"
"""On an in-tree class that was the default until the driver's became it: by which annotations."""
SAVED = "replant.dev/default-of."
"""On a CR, with a class's name: its default annotation, while it is made anew."""

_IMMUTABLE: dict[str, object] = {
    "provisioner": "",
    "parameters": {},
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}
"""What the API lets nobody change of a class, and what it takes nothing for."""


@dataclass(frozen=True, slots=True)
class Classes:
    """What is to be written, and what is to be said."""

    writes: tuple[Write, ...] = ()
    conditions: tuple[Condition, ...] = ()


def classes(
    driver: Driver,
    settings: Settings,
    names: Names,
    found: Sequence[Object],
    cr: Object,
    share_types: Iterable[str] = (),
) -> Classes:
    """What becomes of a driver's classes."""
    wanted = class_table(driver, settings, names, share_types)
    if settings.classes is State.UNMANAGED:
        return Classes(conditions=(*_warnings(found),))
    there = {it["metadata"]["name"]: it for it in found}
    if settings.classes is State.REMOVED:
        ours = [there[it.name] for it in wanted if it.name in there and is_ours(there[it.name])]
        gone = tuple(Delete(it) for it in ours if not leaving(it))
        return Classes(taken_up(driver, found) or gone)
    writes: list[Write] = []
    foreign: list[str] = []
    kept: list[str] = []
    for of in wanted:
        obj = there.get(of.name)
        own = (
            obj is None or is_ours(obj) or _same_for_ever(obj, storage_class(driver, of, "", None))
        )
        if own:
            writes += _one(driver, of, settings, found, obj, cr)
        elif obj is not None:
            # To make it anew would lose what somebody has chosen: a key, or to retain volumes.
            (kept if obj.get("provisioner") == driver.name else foreign).append(of.name)
    said = (*_foreign(driver, foreign), *_kept(kept), *_warnings(found))
    back = _stand_back(driver, settings, wanted, found)
    return Classes(tuple(back or writes), said)


def class_table(
    driver: Driver, settings: Settings, names: Names, share_types: Iterable[str] = ()
) -> list[ClassOf]:
    """The classes that a driver comes with."""
    if driver.kind == "ManilaDriver":
        secrets = secret_parameters(
            driver, names, "provisioner", "controller-expand", "node-stage", "node-publish"
        )
        return [
            ClassOf(name, {"type": it, **secrets}, immediate=True)
            for it, name in _of_share_types(share_types).items()
        ]
    if driver.kind == "VSphereDriver" and settings.storage_policy:
        policy = {"StoragePolicyName": settings.storage_policy}
        return [ClassOf(it.name, policy, it.default) for it in driver.classes]
    return list(driver.classes)


def storage_class(driver: Driver, of: ClassOf, default: str, chosen: str | None) -> Object:
    """A class of a driver. ``default`` is its annotation, ``chosen`` is ours if we chose it."""
    annotations = {DEFAULT: default}
    if chosen is not None:
        annotations[CHOSEN] = chosen
    obj = made(
        "StorageClass",
        of.name,
        annotations=annotations,
        provisioner=driver.name,
        reclaimPolicy="Delete",
        allowVolumeExpansion=True,
        volumeBindingMode="Immediate" if of.immediate else "WaitForFirstConsumer",
    )
    if of.parameters:
        obj["parameters"] = dict(of.parameters)
    return obj


def default_value(
    of: ClassOf, setting: DefaultClass, found: Sequence[Object], in_tree: str
) -> tuple[str, str | None]:
    """A class's default annotation, and what is noted beside it: nothing if others chose it."""
    obj = next((it for it in found if it["metadata"]["name"] == of.name), None)
    annotations = annotations_of(obj or {})
    value = next((annotations[it] for it in DEFAULT_CLASS if it in annotations), None)
    chosen = annotations.get(CHOSEN)
    if value is not None:
        before, _, noted = (chosen or "").partition(":")
        if noted != value or chosen is None:
            return value, None
        if before == setting:
            return value, chosen
    others = [it for it in found if it["metadata"]["name"] != of.name and is_default(it)]
    if setting is DefaultClass.CSI:
        # An in-tree class of the same disks will stand back; anybody else's stays what it is.
        others = [it for it in others if it.get("provisioner") != in_tree]
    new = "true" if of.default and not others else "false"
    return new, f"{setting}:{new}"


def is_default(obj: Object) -> bool:
    """Whether a class serves claims that name none."""
    return any(annotations_of(obj).get(it) == "true" for it in DEFAULT_CLASS)


def _one(
    driver: Driver,
    of: ClassOf,
    settings: Settings,
    found: Sequence[Object],
    obj: Object | None,
    cr: Object,
) -> list[Write]:
    """What becomes of one class."""
    saved = annotations_of(cr).get(SAVED + of.name)
    value, chosen = default_value(of, settings.default_class, found, driver.in_tree)
    if obj is None and saved is not None:
        by, _, value = saved.partition(":")
        chosen = None if by == _SOMEBODY else saved
    wanted = marked(storage_class(driver, of, value, chosen))
    if obj is None:
        return [Apply(wanted)]
    if leaving(obj):
        return []
    if not _same_for_ever(obj, wanted):
        if saved is None:
            # Whoever deletes it may be killed then: what its owner chose must not be forgotten.
            return [Annotate(cr, {SAVED + of.name: chosen or f"{_SOMEBODY}:{value}"})]
        return [Delete(obj)]
    if saved is not None:
        return [Annotate(cr, {SAVED + of.name: None})]
    return [] if is_as_wanted(obj, wanted) else [Apply(wanted)]


_SOMEBODY = "somebody"


def _same_for_ever(found: Object, wanted: Object) -> bool:
    """Whether classes agree in what the API lets nobody change."""
    return all(
        (found.get(field) or otherwise) == (wanted.get(field) or otherwise)
        for field, otherwise in _IMMUTABLE.items()
    )


def _stand_back(
    driver: Driver, settings: Settings, wanted: Sequence[ClassOf], found: Sequence[Object]
) -> list[Write]:
    """Have in-tree classes stand back from being the default, or take it up again.

    Two defaults for a moment are refused aloud, none is a claim that may wait for ever: so they
    stand back once ours is the default, and take it up before ours is that no more.
    """
    if not any(it.default for it in wanted):
        return []
    in_tree = [it for it in found if it.get("provisioner") == driver.in_tree]
    if settings.default_class is DefaultClass.CSI:
        first = next(it.name for it in wanted if it.default)
        if not any(is_default(it) for it in found if it["metadata"]["name"] == first):
            return []
        return [_stood_back(it) for it in in_tree if is_default(it)]
    return list(taken_up(driver, found))


def _stood_back(obj: Object) -> Write:
    """Either annotation makes a class the default, so each that does has to say otherwise."""
    by = [it for it in DEFAULT_CLASS if annotations_of(obj).get(it) == "true"]
    return Annotate(obj, {**dict.fromkeys(by, "false"), STOOD_BACK: ",".join(by)})


def taken_up(driver: Driver, found: Sequence[Object]) -> tuple[Write, ...]:
    """Have in-tree classes be the default again that stood back for ours."""
    return tuple(
        Annotate(it, {**dict.fromkeys(_stood_back_by(it), "true"), STOOD_BACK: None})
        for it in found
        if it.get("provisioner") == driver.in_tree and STOOD_BACK in annotations_of(it)
    )


def _stood_back_by(obj: Object) -> Sequence[str]:
    noted = annotations_of(obj)[STOOD_BACK].split(",")
    # Whoever noted no annotation of these meant the one that everybody sets.
    return [it for it in DEFAULT_CLASS if it in noted] or [DEFAULT]


def _kept(names: Sequence[str]) -> Iterable[Condition]:
    if names:
        yield Condition(
            "StorageClassKept",
            TRUE,
            "SomebodysStorageClass",
            f"StorageClass {shown(', '.join(names))} was not made by us, and says other things "
            "than ours would: it stays as it is",
        )


def _foreign(driver: Driver, names: Sequence[str]) -> Iterable[Condition]:
    if names:
        yield Condition(
            "StorageClassDegraded",
            TRUE,
            "ForeignStorageClass",
            f"StorageClass {shown(', '.join(names))} is not of {driver.name}, and not ours: it is "
            "left alone; rename it, or set storageClassState to Unmanaged",
        )


def _warnings(found: Sequence[Object]) -> Iterable[Condition]:
    defaults = sorted(it["metadata"]["name"] for it in found if is_default(it))
    if len(defaults) > 1:
        yield Condition(
            "StorageClassWarning",
            TRUE,
            "MultipleDefaultClasses",
            f"more than one StorageClass is the default: {shown(', '.join(defaults))}",
        )


def _of_share_types(share_types: Iterable[str]) -> dict[str, str]:
    """The name of each share type's class.

    Types whose names come to the same get a digest each, all of them: a class that one of them
    had before the other came must not become the other's.
    """
    slugs = {it: _slug(it) for it in share_types}
    times = Counter(slugs.values())
    return {
        it: f"csi-manila-{slug}" + (f"-{digest(it)[:8]}" if times[slug] > 1 else "")
        for it, slug in slugs.items()
    }


def _slug(share_type: str) -> str:
    return re.sub(r"[^a-z0-9.-]+", "-", share_type.lower()).strip("-.") or "default"
