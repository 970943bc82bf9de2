"""Zones and regions of a PersistentVolume: its labels and its node affinity, in both spellings.

In-tree plugins speak of ``topology.kubernetes.io/zone`` (before 1.17 of
``failure-domain.beta.kubernetes.io/zone``); each CSI driver has a key of its own. A volume that
loses its zone here can be scheduled to a node that can never reach its disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from replant.errors import shown
from replant.translate.fields import Fields

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

MULTI_ZONE_DELIMITER = "__"
"""Joins the zones of a regional disk in one label."""

_STABLE = (ZONE, REGION)
_BETA = (BETA_ZONE, BETA_REGION)
_TEXT = frozenset({str})
_NO_VALUES: list[str] = []

RegionOf = Callable[[list[str]], str]
"""Derives the one region of some zones; raises ValueError with the reason where there is none."""


class Topology:
    """Labels and affinity terms of one volume, as a copy that may be changed."""

    __slots__ = ("_affinity", "_requirements", "labels", "terms")

    def __init__(self, spec: Fields, labels: dict[str, str]) -> None:
        self.labels = labels
        self.terms: list[dict[str, Any]] = []
        self._requirements: list[dict[str, Any]] = []
        affinity = spec.structure("nodeAffinity")
        self._affinity = affinity and affinity.structure("required")
        if self._affinity:
            self._copy_terms(self._affinity)

    def _copy_terms(self, affinity: Fields) -> None:
        for index, term in enumerate(affinity.items("nodeSelectorTerms")):
            requirements = term.get("matchExpressions") if isinstance(term, dict) else None
            if not isinstance(requirements, list) or not all(map(_is_requirement, requirements)):
                _check(affinity, index, term)
                requirements = term.get("matchExpressions") or ()
            own = [{**requirement} for requirement in requirements]
            self._requirements += own
            self.terms.append({**term, "matchExpressions": own} if own else _without(term))

    def spelling(self) -> tuple[str, str]:
        """The zone and region keys that this volume uses: affinity first, labels second."""
        used = [requirement.get("key") for requirement in self._requirements]
        if ZONE in used:
            return _STABLE
        if BETA_ZONE in used or (BETA_ZONE in self.labels and ZONE not in self.labels):
            return _BETA
        return _STABLE

    def values(self, key: str) -> list[str]:
        """What the affinity says of ``key``, each value once, sorted."""
        found: set[str] = set()
        for requirement in self._requirements:
            if requirement.get("key") == key:
                found.update(requirement.get("values") or ())
        return sorted(found)

    def asks_for(self, key: str) -> bool:
        """Whether the affinity says anything of ``key``."""
        for requirement in self._requirements:
            if requirement.get("key") == key and requirement.get("values"):
                return True
        return False

    def rename(self, old: str, new: str) -> None:
        """Use the key ``new`` wherever the affinity uses ``old``."""
        for requirement in self._requirements:
            if requirement.get("key") == old:
                requirement["key"] = new

    def restrict(self, key: str, values: Iterable[str]) -> None:
        """Let every term ask for one of ``values`` too; blank values do not count."""
        wanted = sorted({value.strip() for value in values} - {""})
        if wanted:
            self.terms = self.terms or [{}]
            for term in self.terms:
                self._require(term, key, wanted)

    def label(self, key: str, value: str) -> None:
        """Label the volume, unless it has that label already."""
        if key not in self.labels:
            self.labels = {**self.labels, key: value}

    def add_regions(self, region_of: RegionOf) -> None:
        """Give every term that names no region the region of its zones, and the volume its label.

        A term whose zones give no region cannot be translated: the in-tree plugin would not
        find the disk again.
        """
        zone_key, region_key = self.spelling()
        for index, term in enumerate(self.terms):
            expressions = term.get("matchExpressions", ())
            if any(expression.get("key") == region_key for expression in expressions):
                continue
            zones = [
                zone
                for expression in expressions
                if expression.get("key") == zone_key
                for zone in expression.get("values") or ()
            ]
            try:
                region = region_of(zones)
            except ValueError as error:
                assert self._affinity is not None  # noqa: S101 - the terms came from there
                self._affinity.refuse(f"nodeSelectorTerms[{index}]", str(error))
            self._require(term, region_key, [region])
        regions = self.values(region_key)
        if len(regions) == 1:
            self.label(region_key, regions[0])

    def _require(self, term: dict[str, Any], key: str, values: list[str]) -> None:
        requirement = {"key": key, "operator": "In", "values": values}
        term["matchExpressions"] = [*term.get("matchExpressions", ()), requirement]
        self._requirements.append(requirement)


def to_csi(topology: Topology, zone_key: str) -> None:
    """Speak of zones with the driver's key, from the affinity or else from the label."""
    zone, region = topology.spelling()
    if topology.asks_for(zone):
        topology.rename(zone, zone_key)
    elif zone in topology.labels:
        topology.restrict(zone_key, topology.labels[zone].split(MULTI_ZONE_DELIMITER))
    if region == BETA_REGION and topology.asks_for(region):
        # New nodes no longer carry the beta label, so a volume that asks for it fits nowhere.
        topology.rename(region, REGION)


def to_in_tree(topology: Topology, zone_key: str, region_of: RegionOf | None) -> None:
    """Speak of zones with Kubernetes' own key again, so that a roll-back finds the disk."""
    zone, _ = topology.spelling()
    topology.rename(zone_key, zone)
    if region_of:
        topology.add_regions(region_of)
    zones = topology.values(zone)
    if zones:
        topology.label(zone, MULTI_ZONE_DELIMITER.join(zones))


def _without(term: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in term.items() if key != "matchExpressions"}


def _is_requirement(requirement: Any) -> bool:
    """Whether this is a requirement, as almost all are: Fields would take its time with each."""
    if not isinstance(requirement, dict) or not isinstance(requirement.get("key"), str):
        return False
    values = requirement.get("values", _NO_VALUES)
    return isinstance(values, list) and _TEXT.issuperset(map(type, values))


def _check(affinity: Fields, index: int, term: object) -> None:
    """Name the field that is not what it should be, if there is one."""
    place = f"nodeSelectorTerms[{index}]"
    for requirement in affinity.part(place, term).structures("matchExpressions"):
        requirement.text("key")
        requirement.texts("values")


def one_region(regions: set[str]) -> str:
    """The only region among ``regions``; ValueError where there is none or more than one."""
    if len(regions) != 1:
        found = shown(", ".join(sorted(regions))) or "none"
        raise ValueError(f"its zones must lie in one region, found: {found}")
    return next(iter(regions))
