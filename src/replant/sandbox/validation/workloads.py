"""What workloads and budgets of disruptions must be like, and what workloads may become."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from replant.inventory.metadata import LabelSelector
from replant.inventory.selectors import Selector
from replant.objects import POD_SPEC_PATHS, Object
from replant.sandbox.refusals import (
    Cause,
    forbidden_value,
    invalid_value,
    required_value,
    unsupported_value,
)
from replant.sandbox.validation.pods import pod_spec_causes
from replant.sandbox.validation.reading import at, negative_causes
from replant.sandbox.validation.selectors import expression_causes

_NOUGHT = (0, "0%")
_ALL_OF_THEM = 100
_REPLACED = ("RollingUpdate", "OnDelete")
_IN_TURN = ("OrderedReady", "Parallel")
_LABELS = ("spec", "template", "metadata", "labels")


def deployment_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a Deployment."""
    spec = obj.get("spec") or {}
    yield from negative_causes("spec", spec, "replicas")
    yield from _selector(obj, "deployment")
    yield from _always(obj)
    yield from _strategy(obj, "strategy", ("Recreate", "RollingUpdate"))
    if _stands_still(obj, "strategy"):
        why = "may not be 0 when `maxSurge` is 0"
        yield invalid_value("spec.strategy.rollingUpdate.maxUnavailable", 0, why)
    yield from negative_causes("spec", spec, "minReadySeconds", "revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        yield invalid_value("spec.progressDeadlineSeconds", deadline, why)


def replica_set_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a ReplicaSet."""
    yield from negative_causes("spec", obj.get("spec") or {}, "replicas", "minReadySeconds")
    # The API calls it so.
    yield from _selector(obj, "deployment")
    yield from _always(obj)


def stateful_set_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a StatefulSet; its template is looked at when its pods are made."""
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in _IN_TURN:
        why = "must be 'OrderedReady' or 'Parallel'"
        yield invalid_value("spec.podManagementPolicy", policy, why)
    yield from _strategy(obj, "updateStrategy", _REPLACED)
    yield from negative_causes("spec", spec, "replicas", "minReadySeconds")
    yield from _selector(obj, "statefulset")
    if not at(obj, ("spec", "template", "spec", "containers")):
        yield required_value("spec.template.spec.containers")
    yield from _restarts(obj)


def daemon_set_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a DaemonSet."""
    yield from _selector(obj, "daemonset", lenient=True)
    yield from _always(obj)
    yield from negative_causes("spec", obj.get("spec") or {}, "minReadySeconds")
    yield from _strategy(obj, "updateStrategy", _REPLACED)
    if _stands_still(obj, "updateStrategy"):
        why = "cannot be 0 when maxSurge is 0"
        yield required_value("spec.updateStrategy.rollingUpdate.maxUnavailable", why)


def controller_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a ReplicationController."""
    yield from negative_causes("spec", obj.get("spec") or {}, "replicas", "minReadySeconds")
    yield from _always(obj)


def job_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a Job."""
    return _ending(obj, POD_SPEC_PATHS["Job"])


def cron_job_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a CronJob."""
    return _ending(obj, POD_SPEC_PATHS["CronJob"])


def _ending(obj: Object, path: tuple[str, ...]) -> Iterator[Cause]:
    """A template of pods that come to an end."""
    field, spec = ".".join(path), at(obj, path) or {}
    yield from pod_spec_causes(field, spec)
    if spec.get("restartPolicy") == "Always":
        why = 'valid values: "OnFailure", "Never"'
        yield required_value(f"{field}.restartPolicy", why)


def _always(obj: Object) -> Iterator[Cause]:
    """A template of pods that are there all the time."""
    yield from pod_spec_causes("spec.template.spec", at(obj, ("spec", "template", "spec")) or {})
    yield from _restarts(obj)


def _restarts(obj: Object) -> Iterator[Cause]:
    path = ("spec", "template", "spec", "restartPolicy")
    policy = at(obj, path)
    if policy is not None and policy != "Always":
        yield unsupported_value(".".join(path), policy, ["Always"])


def _selector(obj: Object, called: str, *, lenient: bool = False) -> Iterator[Cause]:
    """A workload's selector, which must be for the pods of its template."""
    field, selector = "spec.selector", at(obj, ("spec", "selector"))
    labels = at(obj, _LABELS) or {}
    if selector is None:
        if not lenient:
            yield required_value(field)
        yield _of_others(labels)
        return
    expressions = selector.get("matchExpressions") or ()
    if not selector.get("matchLabels") and not expressions:
        yield invalid_value(field, selector, f"empty selector is invalid for {called}")
        return
    causes = list(expression_causes(f"{field}.matchExpressions", expressions))
    yield from causes
    if causes and not lenient:
        yield invalid_value(field, selector, "invalid label selector")
    read = msgspec.convert(selector, LabelSelector, strict=False)
    if not causes and not Selector.of(read).matches(labels):
        yield _of_others(labels)


def _of_others(labels: Object) -> Cause:
    why = "`selector` does not match template `labels`"
    return invalid_value(".".join(_LABELS), labels, why)


def budget_causes(obj: Object) -> Iterator[Cause]:
    """What is wrong with a PodDisruptionBudget."""
    spec = obj.get("spec") or {}
    limits = [name for name in ("minAvailable", "maxUnavailable") if spec.get(name) is not None]
    if len(limits) > 1:
        yield invalid_value("spec", "…", "minAvailable and maxUnavailable cannot be both set")
    for name in limits:
        yield from _amount(f"spec.{name}", spec[name])
        yield from _part_of_all(f"spec.{name}", spec[name])
    expressions = at(spec, ("selector", "matchExpressions")) or ()
    yield from expression_causes("spec.selector.matchExpressions", expressions)


def _part_of_all(field: str, value: Any) -> Iterator[Cause]:
    found = re.fullmatch(r"([0-9]+)%", value) if isinstance(value, str) else None
    if found and int(found[1]) > _ALL_OF_THEM:
        yield invalid_value(field, value, "must not be greater than 100%")


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


# What may become of them


def revision_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of a ControllerRevision."""
    if old.get("data") != new.get("data"):
        yield invalid_value("data", "…", "field is immutable")


def selector_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of a workload's selector."""
    if at(old, ("spec", "selector")) != at(new, ("spec", "selector")):
        yield invalid_value("spec.selector", "…", "field is immutable")


_SET_CHANGEABLE = {
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
}  # fmt: skip


def stateful_set_change_causes(old: Object, new: Object) -> Iterator[Cause]:
    """What may not become of a StatefulSet."""
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
