"""ResourceQuotas: how much pods and claims of a namespace take, and whether enough is left."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction

from replant.inventory.quantities import exact
from replant.objects import Object
from replant.sandbox.admission.limit_ranges import quantity_text

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_MUST_BE_SAID = {
    "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
}  # fmt: skip
"""Where a quota names one of these, every container must say it."""
_NONE = Fraction(0)
_OF_CLASS = ".storageclass.storage.k8s.io/"

Usage = dict[str, Fraction]


def refusal(obj: Object, quota: Object, others: Iterable[Object], now: datetime) -> str:
    """Why a quota has no room for a pod or claim beside the others, or nothing.

    A quota with scopes is about some pods only, and is passed over.
    """
    spec = quota.get("spec") or {}
    if spec.get("scopes") or spec.get("scopeSelector"):
        return ""
    hard, name = spec.get("hard") or {}, quota["metadata"]["name"]
    if _is_pod(obj) and (missing := _unsaid(obj, hard.keys() & _MUST_BE_SAID)):
        return f"failed quota: {name}: must specify {missing}"
    wanted = {key: it for key, it in usage(obj).items() if key in hard and it}
    used = dict.fromkeys(wanted, _NONE)
    for other in others:
        if counts(other, now):
            _add(used, usage(other))
    exceeded = [key for key in sorted(wanted) if used[key] + wanted[key] > _number(hard[key])]
    if not exceeded:
        return ""
    limited = ",".join(f"{it}={hard[it]}" for it in exceeded)
    return (
        f"exceeded quota: {name}, requested: {_listed(exceeded, wanted)},"
        f" used: {_listed(exceeded, used)}, limited: {limited}"
    )


def usage(obj: Object) -> Usage:
    """What a pod or claim takes, by the names that quotas have for it."""
    return _of_pod(obj) if _is_pod(obj) else _of_claim(obj)


def counts(obj: Object, now: datetime) -> bool:
    """Whether it takes something still: a pod that is over does not, nor one that ought to be."""
    if not _is_pod(obj):
        return True
    if (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    deleted = obj["metadata"].get("deletionTimestamp")
    if not deleted:
        return True
    grace = timedelta(seconds=obj["metadata"].get("deletionGracePeriodSeconds") or 0)
    return now <= datetime.fromisoformat(deleted) + grace


def _is_pod(obj: Object) -> bool:
    return "containers" in obj["spec"]


def _of_pod(pod: Object) -> Usage:
    found = {"pods": Fraction(1), "count/pods": Fraction(1)}
    for container in pod["spec"].get("containers") or ():
        _add(found, _of_container(container))
    for container in pod["spec"].get("initContainers") or ():
        for name, number in _of_container(container).items():
            found[name] = max(found.get(name, _NONE), number)
    return found


def _of_container(container: Object) -> Usage:
    resources = container.get("resources") or {}
    found: Usage = {}
    for name, said in (resources.get("requests") or {}).items():
        number = _number(said)
        found[f"requests.{name}"] = number
        if name in _COMPUTE:
            found[name] = number
    for name, said in (resources.get("limits") or {}).items():
        if name in _COMPUTE:
            found[f"limits.{name}"] = _number(said)
    return found


def _of_claim(claim: Object) -> Usage:
    found: Usage = {}
    requests = claim["spec"]["resources"].get("requests") or {}
    storage = _number(requests.get("storage", "0"))
    class_name = claim["spec"].get("storageClassName")
    for prefix in ("", f"{class_name}{_OF_CLASS}") if class_name else ("",):
        found[f"{prefix}persistentvolumeclaims"] = Fraction(1)
        found[f"{prefix}requests.storage"] = storage
    found["count/persistentvolumeclaims"] = Fraction(1)
    return found


def _unsaid(pod: Object, required: Iterable[str]) -> str:
    missing: dict[str, list[str]] = {}
    spec = pod["spec"]
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for name in required:
            if name not in _of_container(container):
                missing.setdefault(name, []).append(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _add(total: Usage, more: Usage) -> None:
    for name, number in more.items():
        total[name] = total.get(name, _NONE) + number


def _number(quantity: str) -> Fraction:
    return exact(quantity) or _NONE


def _listed(keys: list[str], amounts: Usage) -> str:
    return ",".join(f"{it}={quantity_text(amounts[it])}" for it in keys)
