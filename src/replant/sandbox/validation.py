"""What an object must be like to be stored: its metadata, and what may not change any more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from replant.objects import POD_SPEC_PATHS, Object
from replant.sandbox.refusals import (
    Cause,
    forbidden_value,
    invalid_value,
    required_value,
    unsupported_value,
)
from replant.sandbox.resources import Resource, defined_resources
from replant.sandbox.schemas.check import causes as schema_causes
from replant.sandbox.schemas.sound import is_sound
from replant.sandbox.structure import structure_of

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME_PART = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_NAME_PART})?"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    f"used for validation is '{_LABEL}')"
)
_SERVICE_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_SERVICE_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', regex used for validation is '{_SERVICE_LABEL}')"
)
_NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME_PART}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    f"or '12345', regex used for validation is '{_VALUE}')"
)
_LONGEST_NAME, _LONGEST_LABEL = 253, 63
_ANNOTATIONS_SIZE = 256 * 1024
_STANDARD_FINALIZERS = {"kubernetes", "orphan", "foregroundDeletion"}
_ANY_NAME = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
_IS_SUBDOMAIN, _IS_NAME_PART, _IS_VALUE = map(re.compile, (_SUBDOMAIN, _NAME_PART, _VALUE))
_MOST_NAMES = (_LONGEST_NAME, _IS_SUBDOMAIN, _SUBDOMAIN_RULE)
_NAMES = {
    "Namespace": (_LONGEST_LABEL, re.compile(_LABEL), _LABEL_RULE),
    "Service": (_LONGEST_LABEL, re.compile(_SERVICE_LABEL), _SERVICE_RULE),
}


def metadata_causes(resource: Resource, metadata: Object) -> list[Cause]:
    """What is wrong with an object's metadata."""
    causes = _name(resource, metadata)
    for part, check in _METADATA.items():
        if said := metadata.get(part):
            causes += check(said)
    return causes


# Lists, not generators: next to nothing is ever wrong, and everything that is written is checked.


def _name(resource: Resource, metadata: Object) -> list[Cause]:
    name = metadata.get("name")
    field = "metadata.name"
    if not name:
        return [required_value(field, "name or generateName is required")]
    if resource.kind in _ANY_NAME:
        if name in {".", ".."} or "/" in name or "%" in name:
            return [invalid_value(field, name, "may not contain '/' or '%'")]
        return []
    longest, pattern, rule = _NAMES.get(resource.kind, _MOST_NAMES)
    causes = []
    if len(name) > longest:
        causes.append(invalid_value(field, name, f"must be no more than {longest} characters"))
    if not pattern.fullmatch(name):
        causes.append(invalid_value(field, name, rule))
    return causes


def _labels(labels: Object) -> list[Cause]:
    field = "metadata.labels"
    causes: list[Cause] = []
    for key, value in labels.items():
        causes += _qualified_name(field, key)
        if isinstance(value, str):
            causes += _label_value(field, value)
        else:
            causes.append(invalid_value(field, value, "must be a string"))
    return causes


# The same few keys and values come again and again.


@lru_cache(maxsize=65_536)
def _label_value(field: str, value: str) -> tuple[Cause, ...]:
    causes = []
    if len(value) > _LONGEST_LABEL:
        why = f"must be no more than {_LONGEST_LABEL} characters"
        causes.append(invalid_value(field, value, why))
    if not _IS_VALUE.fullmatch(value):
        causes.append(invalid_value(field, value, _VALUE_RULE))
    return tuple(causes)


@lru_cache(maxsize=4096)
def _qualified_name(field: str, key: str) -> tuple[Cause, ...]:
    causes = []
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        causes.append(invalid_value(field, key, "prefix part must be non-empty"))
    elif prefix and not _IS_SUBDOMAIN.fullmatch(prefix):
        causes.append(invalid_value(field, key, f"prefix part {_SUBDOMAIN_RULE}"))
    if not name:
        causes.append(invalid_value(field, key, "name part must be non-empty"))
    elif len(name) > _LONGEST_LABEL:
        why = f"name part must be no more than {_LONGEST_LABEL} characters"
        causes.append(invalid_value(field, key, why))
    if not _IS_NAME_PART.fullmatch(name):
        causes.append(invalid_value(field, key, _NAME_PART_RULE))
    return tuple(causes)


def _annotations(annotations: Object) -> list[Cause]:
    field, size = "metadata.annotations", 0
    causes: list[Cause] = []
    for key, value in annotations.items():
        causes += _qualified_name(field, key.lower())
        size += len(key) + len(value)
    if size > _ANNOTATIONS_SIZE:
        why = f"Too long: may not be more than {_ANNOTATIONS_SIZE} bytes"
        causes.append(Cause(field, why, "FieldValueTooLong"))
    return causes


def _owners(owners: Any) -> list[Cause]:
    field = "metadata.ownerReferences"
    causes = []
    for owner in owners:
        missing = [part for part in ("apiVersion", "kind", "name", "uid") if not owner.get(part)]
        causes += [invalid_value(f"{field}.{part}", "", "must not be empty") for part in missing]
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            why = "/v1, Kind=Event is disallowed from being an owner"
            causes.append(invalid_value(field, owner, why))
    in_charge = [str(owner.get("name")) for owner in owners if owner.get("controller")]
    for other in in_charge[1:]:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{in_charge[0]} and {other}"
        )
        causes.append(invalid_value(field, owners, why))
    return causes


def _finalizers(finalizers: Any) -> list[Cause]:
    field = "metadata.finalizers"
    causes: list[Cause] = []
    for place, finalizer in enumerate(finalizers):
        causes += _qualified_name(field, finalizer)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(f"{field}[{place}]", finalizer, why))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid_value(field, finalizers, why))
    return causes


_METADATA: dict[str, Callable[[Any], list[Cause]]] = {
    "labels": _labels,
    "annotations": _annotations,
    "ownerReferences": _owners,
    "finalizers": _finalizers,
}


def content_causes(resource: Resource, obj: Object) -> list[Cause]:
    """What is wrong with the rest, as far as this is looked at."""
    if resource.custom:
        return schema_causes(resource.schema, obj) if resource.schema else []
    causes: list[Cause] = []
    if resource.kind in POD_SPEC_PATHS:
        path = POD_SPEC_PATHS[resource.kind]
        if not at(obj, (*path, "containers")):
            causes.append(required_value(".".join((*path, "containers"))))
    if check := _CONTENT.get(resource.kind):
        causes += check(obj)
    return causes


def _volume(obj: Object) -> Iterator[Cause]:
    if not at(obj, ("spec", "capacity")):
        yield required_value("spec.capacity")
    if not at(obj, ("spec", "accessModes")):
        yield required_value("spec.accessModes")
    if not volume_source(obj):
        yield required_value("spec", "must specify a volume type")


def _claim(obj: Object) -> Iterator[Cause]:
    if not at(obj, ("spec", "accessModes")):
        yield required_value("spec.accessModes", "at least 1 access mode is required")
    if not at(obj, ("spec", "resources", "requests", "storage")):
        yield required_value("spec.resources[storage]")


def _class(obj: Object) -> Iterator[Cause]:
    if not obj.get("provisioner"):
        yield required_value("provisioner")


def _amount(field: str, value: Any) -> Iterator[Cause]:
    """What is wrong with a number of pods, said as such or as a part of all in percent."""
    if isinstance(value, str) and not re.fullmatch(r"[0-9]+%", value):
        why = "a valid percent string must be a numeric string followed by an ending '%'"
        yield invalid_value(field, value, f"{why} (e.g. '1%',  or '93%', regex used for "
                            "validation is '[0-9]+%')")  # fmt: skip
    elif isinstance(value, int) and value < 0:
        yield invalid_value(field, value, "must be greater than or equal to 0")


def _strategy(obj: Object, name: str, kinds: tuple[str, ...]) -> Iterator[Cause]:
    strategy = at(obj, ("spec", name)) or {}
    if strategy.get("type") not in kinds:
        yield unsupported_value(f"spec.{name}", strategy.get("type"), kinds)
    elif strategy["type"] == "RollingUpdate":
        for limit, value in (strategy.get("rollingUpdate") or {}).items():
            yield from _amount(f"spec.{name}.rollingUpdate.{limit}", value)


def _stands_still(obj: Object, name: str) -> bool:
    """Whether neither a pod more nor a pod less is allowed."""
    limits = at(obj, ("spec", name, "rollingUpdate")) or {}
    return bool(limits) and all(it in _NOUGHT for it in limits.values())


def _deployment(obj: Object) -> Iterator[Cause]:
    yield from _strategy(obj, "strategy", ("Recreate", "RollingUpdate"))
    if _stands_still(obj, "strategy"):
        why = "may not be 0 when `maxSurge` is 0"
        yield invalid_value("spec.strategy.rollingUpdate.maxUnavailable", 0, why)


def _daemon_set(obj: Object) -> Iterator[Cause]:
    yield from _strategy(obj, "updateStrategy", _REPLACED)
    if _stands_still(obj, "updateStrategy"):
        why = "cannot be 0 when maxSurge is 0"
        yield required_value("spec.updateStrategy.rollingUpdate.maxUnavailable", why)


def _definition(obj: Object) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    said = {"spec.group": spec.get("group"), "spec.versions": spec.get("versions")}
    said |= {f"spec.names.{it}": names.get(it) for it in ("plural", "kind")}
    missing = [field for field, value in said.items() if not value]
    yield from map(required_value, missing)
    for place, version in enumerate(spec.get("versions") or ()):
        if not version.get("name"):
            yield required_value(f"spec.versions[{place}].name")
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if not missing and obj["metadata"].get("name") != wanted:
        name = obj["metadata"].get("name")
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not missing and not _is_usable(obj):
        yield invalid_value("spec.versions", "…", "is not built as a definition's versions are")


def _is_usable(definition: Object) -> bool:
    """Whether what it defines can be served: nothing is stored that nobody could read again."""
    try:
        for resource in defined_resources(definition):
            structure_of(resource)
            if resource.schema is not None and not is_sound(resource.schema):
                return False
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return True


_NOUGHT = (0, "0%")
_REPLACED = ("RollingUpdate", "OnDelete")
_CONTENT: dict[str, Callable[[Object], Iterator[Cause]]] = {
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "StorageClass": _class,
    "Deployment": _deployment,
    "StatefulSet": lambda obj: _strategy(obj, "updateStrategy", _REPLACED),
    "DaemonSet": _daemon_set,
    "CustomResourceDefinition": _definition,
}


def change_causes(resource: Resource, old: Object, new: Object) -> list[Cause]:
    """What was changed and may not be."""
    check = _CHANGES.get(resource.kind)
    return list(check(old, new)) if check and not resource.custom else []


_NOT_A_SOURCE = {
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity",
    "persistentVolumeReclaimPolicy", "storageClassName", "volumeMode", "volumeAttributesClassName",
}  # fmt: skip


def volume_source(volume: Object) -> Object:
    """The part of a PersistentVolume's spec that says which disk it is."""
    spec = volume.get("spec") or {}
    return {name: value for name, value in spec.items() if name not in _NOT_A_SOURCE}


def _volume_change(old: Object, new: Object) -> Iterator[Cause]:
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


def _claim_change(old: Object, new: Object) -> Iterator[Cause]:
    before, after = dict(old.get("spec") or {}), dict(new.get("spec") or {})
    for changeable in ("resources", "volumeAttributesClassName"):
        before.pop(changeable, None)
        after.pop(changeable, None)
    if "volumeName" not in before:
        after.pop("volumeName", None)
    if before != after:
        yield forbidden_value(
            "spec",
            "spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound claims",
        )


def _class_change(old: Object, new: Object) -> Iterator[Cause]:
    if old.get("parameters") != new.get("parameters"):
        yield forbidden_value("parameters", "updates to parameters are forbidden.")
    if old.get("provisioner") != new.get("provisioner"):
        yield forbidden_value("provisioner", "updates to provisioner are forbidden.")
    for name in ("reclaimPolicy", "volumeBindingMode"):
        if old.get(name) != new.get(name):
            yield invalid_value(name, new.get(name), "field is immutable")


def _pod_change(old: Object, new: Object) -> Iterator[Cause]:
    if _fixed_pod_spec(old) != _fixed_pod_spec(new):
        yield forbidden_value(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
            "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
            "be set to 1 if it was previously negative)",
        )


def _fixed_pod_spec(pod: Object) -> Object:
    spec = dict(pod.get("spec") or {})
    for changeable in ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"):
        spec.pop(changeable, None)
    for containers in ("containers", "initContainers"):
        spec[containers] = [
            {name: it for name, it in container.items() if name != "image"}
            for container in spec.get(containers) or ()
        ]
    return spec


def _attachment_change(old: Object, new: Object) -> Iterator[Cause]:
    if old.get("spec") != new.get("spec"):
        yield invalid_value("spec", "…", "field is immutable")


def _revision_change(old: Object, new: Object) -> Iterator[Cause]:
    if old.get("data") != new.get("data"):
        yield invalid_value("data", "…", "field is immutable")


def _selector_change(old: Object, new: Object) -> Iterator[Cause]:
    if at(old, ("spec", "selector")) != at(new, ("spec", "selector")):
        yield invalid_value("spec.selector", "…", "field is immutable")


_SET_CHANGEABLE = {
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}  # fmt: skip


def _stateful_set_change(old: Object, new: Object) -> Iterator[Cause]:
    before, after = (
        {name: it for name, it in (obj.get("spec") or {}).items() if name not in _SET_CHANGEABLE}
        for obj in (old, new)
    )
    if before != after:
        yield forbidden_value(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden",
        )


_CHANGES: dict[str, Callable[[Object, Object], Iterator[Cause]]] = {
    "PersistentVolume": _volume_change,
    "PersistentVolumeClaim": _claim_change,
    "StorageClass": _class_change,
    "Pod": _pod_change,
    "VolumeAttachment": _attachment_change,
    "Deployment": _selector_change,
    "ReplicaSet": _selector_change,
    "DaemonSet": _selector_change,
    "StatefulSet": _stateful_set_change,
    "ControllerRevision": _revision_change,
}


def at(obj: Any, path: tuple[str, ...]) -> Any:
    """What is at a path of an object, or None."""
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj
