"""Whether any node can meet a volume's affinity once it speaks the driver's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from replant.inventory.checks.view import View
from replant.objects import Object
from replant.translate.topology import BETA_REGION, BETA_ZONE, REGION, ZONE

_Labels = Mapping[str, str]


class Nodes:
    """The labels of all nodes, asked many times for the few affinities that a cluster has."""

    def __init__(self, view: View) -> None:
        inventory = view.inventory
        self._known = inventory.knows("Node") and bool(inventory.nodes)
        self._labels = [
            (node.metadata.labels or {}, inventory.drivers_on(name))
            for name, node in inventory.nodes.items()
        ]
        self._answers: dict[tuple[bytes, str], str] = {}

    def unmet(self, translated: Object, driver: str) -> str:
        """What the affinity of a translated volume asks for and no node has; "" where one does."""
        affinity = translated["spec"].get("nodeAffinity")
        if not affinity or not self._known:
            return ""
        try:
            terms = (affinity.get("required") or {}).get("nodeSelectorTerms") or []
            key = (msgspec.json.encode(terms), driver)
            if key not in self._answers:
                self._answers[key] = self._look(terms, driver)
        except (AttributeError, KeyError, TypeError):
            # Not an affinity at all; the API server lets nobody store such a thing.
            return ""
        return self._answers[key]

    def _look(self, terms: list[Any], driver: str) -> str:
        for labels, drivers in self._labels:
            seen = labels if driver in drivers else _as_the_driver_would(labels, terms)
            if any(_meets(seen, term) for term in terms):
                return ""
        return " or ".join(filter(None, map(_asked, terms[:3])))


def _asked(term: Any) -> str:
    return " and ".join(
        f"{it.get('key')} {it.get('operator')} {','.join(it.get('values') or ())}".strip()
        for it in term.get("matchExpressions") or ()
    )


def _as_the_driver_would(labels: _Labels, terms: list[Any]) -> _Labels:
    """A node's labels as they will be once the driver is there: it labels by zone and region."""
    zone = labels.get(ZONE) or labels.get(BETA_ZONE)
    region = labels.get(REGION) or labels.get(BETA_REGION)
    keys = {it.get("key", "") for term in terms for it in term.get("matchExpressions") or ()}
    keys -= {ZONE, REGION, BETA_ZONE, BETA_REGION}
    added = {key: zone for key in keys if key.endswith("/zone") and zone}
    added |= {key: region for key in keys if key.endswith("/region") and region}
    return {**added, **labels}


def _meets(labels: _Labels, term: Any) -> bool:
    expressions = term.get("matchExpressions") or ()
    return bool(expressions) and all(_holds(labels, it) for it in expressions)


def _holds(labels: _Labels, requirement: Any) -> bool:
    value = labels.get(requirement.get("key", ""))
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(value, values, operator)
        case _:
            return True


def _compares(value: str | None, values: Any, operator: str) -> bool:
    try:
        left, right = int(value or ""), int(values[0])
    except (ValueError, LookupError):
        return False
    return left > right if operator == "Gt" else left < right
