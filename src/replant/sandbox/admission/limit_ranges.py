"""LimitRanges: what containers are given, and what is too little or too much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from replant.inventory.quantities import exact
from replant.objects import Object

ANNOTATION = "kubernetes.io/limit-ranger"
"""Says on a pod what it was given."""
_Amounts = dict[str, str]


def complete(pod: Object, limit_ranges: Iterable[Object]) -> None:
    """Give containers what they do not ask for themselves."""
    for limit_range in limit_ranges:
        limits: _Amounts = {}
        requests: _Amounts = {}
        for item in _items(limit_range, "Container"):
            limits |= item.get("default") or {}
            requests |= item.get("defaultRequest") or {}
        said = [
            f"{', '.join(sorted(given))} {what} for {kind} {container['name']}"
            for kind, container in _containers(pod)
            for what, amounts in (("request", requests), ("limit", limits))
            if (given := _give(container, f"{what}s", amounts))
        ]
        if said:
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(said)}"


def _give(container: Object, what: str, amounts: _Amounts) -> set[str]:
    has = (container.get("resources") or {}).get(what) or {}
    given = amounts.keys() - has.keys()
    if given:
        container.setdefault("resources", {})[what] = {**amounts, **has}
    return given


def refusal_of_pod(pod: Object, limit_range: Object) -> str:
    """Why a pod may not be, or nothing."""
    found = [
        why
        for item in limit_range["spec"]["limits"]
        for resources in _measured(pod, item["type"])
        for why in _violations(item, resources.get("requests") or {}, resources.get("limits") or {})
    ]
    return _together(found)


def refusal_of_claim(claim: Object, limit_range: Object) -> str:
    """Why a claim may not be, or nothing."""
    requests = claim["spec"]["resources"].get("requests") or {}
    found: list[str] = []
    for item in _items(limit_range, "PersistentVolumeClaim"):
        # What a claim asks for is held against both ends.
        only_min = {"type": item["type"], "min": item.get("min") or {}}
        found += _violations(only_min, requests, {})
        for name, most in (item.get("max") or {}).items():
            found += _outside(item["type"], "maximum", name, most, {"request": requests}, "request")
    return _together(found)


def _violations(item: Object, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    both = {"request": requests, "limit": limits}
    for name, least in (item.get("min") or {}).items():
        yield from _outside(item["type"], "minimum", name, least, both, "request")
    for name, most in (item.get("max") or {}).items():
        both = {"limit": limits, "request": requests}
        yield from _outside(item["type"], "maximum", name, most, both, "limit")


def _outside(
    kind: str, end: str, name: str, bound: str, said: dict[str, _Amounts], needed: str
) -> Iterator[str]:
    """The first of what was said that is beyond a bound; ``needed`` must be said."""
    what = f"{end} {name} usage per {kind} is {bound}"
    if name not in said[needed]:
        yield f"{what}.  No {needed} is specified"
        return
    beyond: Callable[[Fraction, Fraction], bool] = (
        Fraction.__lt__ if end == "minimum" else Fraction.__gt__
    )
    for which, amounts in said.items():
        if name in amounts and beyond(_number(amounts[name]), _number(bound)):
            yield f"{what}, but {which} is {amounts[name]}"
            return


def _measured(pod: Object, kind: str) -> Iterator[Object]:
    """What each container asks for, or all of them together."""
    each = [it.get("resources") or {} for _, it in _containers(pod)]
    if kind == "Container":
        yield from each
    elif kind == "Pod":
        yield {what: _sum(pod, what) for what in ("requests", "limits")}


def _sum(pod: Object, what: str) -> _Amounts:
    """Of all containers together, or of the init container that asks for more."""
    total: dict[str, Fraction] = {}
    for kind, container in _containers(pod):
        for name, said in ((container.get("resources") or {}).get(what) or {}).items():
            before = total.get(name, Fraction(0))
            more = _number(said)
            total[name] = max(before, more) if kind == "init container" else before + more
    return {name: quantity_text(it) for name, it in total.items()}


def quantity_text(number: Fraction) -> str:
    """A sum as a quantity: in powers of 1,024 where it has any, whole, or in thousandths."""
    if number.denominator != 1:
        return f"{int(number * 1000)}m"
    for power, suffix in ((3, "Gi"), (2, "Mi")):
        if number and number % 1024**power == 0:
            return f"{number // 1024**power}{suffix}"
    return str(number)


def _number(quantity: str) -> Fraction:
    return exact(quantity) or Fraction(0)


def _containers(pod: Object) -> Iterator[tuple[str, Object]]:
    for container in pod["spec"].get("containers") or ():
        yield "container", container
    for container in pod["spec"].get("initContainers") or ():
        yield "init container", container


def _items(limit_range: Object, kind: str) -> Iterator[Object]:
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item["type"] == kind:
            yield item


def _together(found: list[str]) -> str:
    different = list(dict.fromkeys(found))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]" if different else ""
