"""What volumes, claims, classes, attachments and drivers must be like, and may become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replant.inventory.quantities import exact
from replant.objects import Object
from replant.sandbox.refusals import (
    Cause,
    duplicate_value,
    forbidden_value,
    invalid_value,
    required_value,
    unsupported_value,
)
from replant.sandbox.validation.names import (
    SUBDOMAIN,
    driver_causes,
    name_causes,
    qualified_name_causes,
)
from replant.sandbox.validation.reading import at, missing_causes, negative_causes
from replant.sandbox.validation.selectors import expression_causes
from replant.sandbox.validation.volume_sources import OF_VOLUMES, source_causes

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce")
_LONE_MODE = "ReadWriteOncePod"
"""Newer than those, and taken here whatever the version."""
_VOLUME_MODES = ("Block", "Filesystem")
_KEPT, _CLASS_KEPT = ("Delete", "Recycle", "Retain"), ("Delete", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_LIFECYCLES = ("Persistent", "Ephemeral")
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def volume_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a PersistentVolume."""
    spec = obj.get("spec") or {}
    yield from _modes(spec, "")
    yield from _capacity(spec.get("capacity") or {})
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _KEPT:
        yield unsupported_value("spec.persistentVolumeReclaimPolicy", policy, _KEPT)
    affinity = spec.get("nodeAffinity")
    if isinstance(affinity, dict):
        yield from _affinity(affinity)
    yield from source_causes("spec", spec, OF_VOLUMES)
    if not volume_source(obj):
        yield required_value("spec", "must specify a volume type")
    if isinstance(spec.get("local"), dict) and affinity is None:
        yield required_value("spec.nodeAffinity", "Local volume requires node affinity")
    if policy == "Recycle" and at(spec, ("hostPath", "path")) == "/":
        why = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden_value("spec.persistentVolumeReclaimPolicy", why)
    yield from _class_and_mode(spec)


def _modes(spec: Object, why: str) -> Iterator[Cause]:
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required_value("spec.accessModes", why)
    for mode in modes:
        if mode not in _MODES and mode != _LONE_MODE:
            yield unsupported_value("spec.accessModes", mode, _MODES)
    if _LONE_MODE in modes and len(modes) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        yield forbidden_value("spec.accessModes", why)


def _capacity(capacity: Object) -> Iterator[Cause]:
    field = "spec.capacity"
    if not capacity:
        yield required_value(field)
    if set(capacity) != {"storage"}:
        yield unsupported_value(field, capacity, ["storage"])
    for name, quantity in capacity.items():
        number = exact(quantity)
        if number is not None and number < 0:
            yield invalid_value(
                f"{field}[{name}]", int(number), "must be a valid resource quantity"
            )
        yield from _positive(f"{field}[{name}]", quantity)


def _positive(field: str, quantity: Any) -> Iterator[Cause]:
    number = exact(quantity)
    if number is None or number <= 0:
        yield invalid_value(field, str(quantity), "must be greater than zero")


def _affinity(affinity: Object) -> Iterator[Cause]:
    field, required = "spec.nodeAffinity.required", affinity.get("required")
    if required is None:
        yield required_value(field, "must specify required node constraints")
        return
    terms = at(required, ("nodeSelectorTerms",)) or ()
    if not terms:
        why = "must have at least one node selector term"
        yield required_value(f"{field}.nodeSelectorTerms", why)
    for place, term in enumerate(terms):
        expressions = at(term, ("matchExpressions",)) or ()
        within = f"{field}.nodeSelectorTerms[{place}].matchExpressions"
        yield from expression_causes(within, expressions, compares=True)


def _class_and_mode(spec: Object) -> Iterator[Cause]:
    name, mode = spec.get("storageClassName"), spec.get("volumeMode")
    if name and isinstance(name, str):
        yield from name_causes("spec.storageClassName", name, SUBDOMAIN)
    if mode is not None and mode not in _VOLUME_MODES:
        yield unsupported_value("spec.volumeMode", mode, _VOLUME_MODES)


def claim_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a PersistentVolumeClaim."""
    spec = obj.get("spec") or {}
    yield from _modes(spec, "at least 1 access mode is required")
    storage = _asked(obj)
    if storage is None:
        yield required_value("spec.resources[storage]")
    else:
        yield from _positive("spec.resources[storage]", storage)
    yield from _class_and_mode(spec)


def _asked(claim: Object) -> Any:
    return at(claim, ("spec", "resources", "requests", "storage"))


def class_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a StorageClass."""
    provisioner = obj.get("provisioner")
    if not provisioner:
        yield required_value("provisioner")
    else:
        yield from qualified_name_causes("provisioner", provisioner.lower())
    if "" in (obj.get("parameters") or {}):
        yield invalid_value("parameters", "", "field can not be empty.")
    yield from _one_of(obj, "reclaimPolicy", _CLASS_KEPT)
    yield from _one_of(obj, "volumeBindingMode", _BINDING_MODES)
    for place, term in enumerate(obj.get("allowedTopologies") or ()):
        for number, expression in enumerate(at(term, ("matchLabelExpressions",)) or ()):
            field = f"allowedTopologies[{place}].matchLabelExpressions[{number}]"
            yield from missing_causes(field, expression, "values")


def _one_of(part: Object, name: str, choices: Sequence[str], field: str = "") -> Iterator[Cause]:
    if (value := part.get(name)) is not None and value not in choices:
        yield unsupported_value(field + name, value, choices)


def attachment_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a VolumeAttachment."""
    spec = obj.get("spec") or {}
    source = spec.get("source") or {}
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        yield required_value("spec.source", why)
    elif volume is not None and inline is not None:
        yield forbidden_value("spec.source", why)
    yield from name_causes("spec.nodeName", spec.get("nodeName") or "", SUBDOMAIN)
    yield from driver_causes("spec.attacher", spec.get("attacher") or "")
    if volume is not None:
        yield from name_causes("spec.source.persistentVolumeName", volume, SUBDOMAIN)


def csi_node_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a CSINode."""
    known: set[str] = set()
    for place, driver in enumerate(at(obj, ("spec", "drivers")) or ()):
        field, name = f"spec.drivers[{place}]", driver.get("name") or ""
        yield from driver_causes(f"{field}.name", name)
        yield from missing_causes(field, driver, "nodeID")
        yield from negative_causes(f"{field}.allocatable", driver.get("allocatable") or {}, "count")
        if name in known:
            yield duplicate_value(f"{field}.name", name)
        known.add(name)
        keys = driver.get("topologyKeys") or []
        for number, key in enumerate(keys):
            if key in keys[:number]:
                yield duplicate_value(field, key)
            yield from qualified_name_causes(field, key)


def driver_object_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a CSIDriver."""
    spec = obj.get("spec") or {}
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLES:
            yield unsupported_value("spec.volumeLifecycleModes", mode, _LIFECYCLES)
    yield from _one_of(spec, "fsGroupPolicy", _GROUP_POLICIES, "spec.")


# What may become of them


def volume_source(volume: Object) -> Object:
    """The part of a PersistentVolume's spec that says which disk it is."""
    spec = volume.get("spec") or {}
    return {name: value for name, value in spec.items() if name in OF_VOLUMES}


def volume_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of a PersistentVolume."""
    if volume_source(old) != volume_source(new):
        yield forbidden_value(
            "spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"
        )
    before, after = at(old, ("spec", "volumeMode")), at(new, ("spec", "volumeMode"))
    if before != after:
        yield invalid_value("spec.volumeMode", after, "field is immutable")
    bound, wanted = at(old, ("spec", "nodeAffinity")), at(new, ("spec", "nodeAffinity"))
    if bound is not None and bound != wanted:
        yield invalid_value("spec.nodeAffinity", wanted, "field is immutable")


def claim_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of a PersistentVolumeClaim."""
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    was, wants = exact(_asked(old)), exact(_asked(new))
    # Both say at the end how much: the same may be written in another way.
    sized = was == wants or at(new, ("status", "phase")) == "Bound"
    for changeable in ("resources", "volumeAttributesClassName"):
        before.pop(changeable, None)
        after.pop(changeable, None)
    if "volumeName" not in before:
        after.pop("volumeName", None)
    if before != after or not sized:
        yield forbidden_value(
            "spec",
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims",
        )
    if was is not None and wants is not None and wants < was:
        why = "field can not be less than previous value"
        yield forbidden_value("spec.resources.requests.storage", why)


def grows(old: Object, new: Object) -> bool:
    """Whether a claim asks for more than it did."""
    was, wants = exact(_asked(old)), exact(_asked(new))
    return was is not None and wants is not None and wants > was


def class_of(claim: Object) -> str:
    """The name of a claim's class, in whichever way it says it."""
    old_way = at(claim, ("metadata", "annotations", _CLASS_ANNOTATION))
    return str(old_way or at(claim, ("spec", "storageClassName")) or "")


def class_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of a StorageClass."""
    if old.get("parameters") != new.get("parameters"):
        yield forbidden_value("parameters", "updates to parameters are forbidden.")
    if old.get("provisioner") != new.get("provisioner"):
        yield forbidden_value("provisioner", "updates to provisioner are forbidden.")
    for name in ("reclaimPolicy", "volumeBindingMode"):
        if old.get(name) != new.get(name):
            yield invalid_value(name, new.get(name), "field is immutable")


def attachment_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of a VolumeAttachment."""
    if old.get("spec") != new.get("spec"):
        yield invalid_value("spec", "…", "field is immutable")
