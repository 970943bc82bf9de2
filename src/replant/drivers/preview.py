"""What would be asked for and made, before anything is: for people who look first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from replant.drivers.catalog import Driver
from replant.drivers.classes import classes
from replant.drivers.conditions import Condition, condition_of, conditions_of
from replant.drivers.crds import crd, default_cr
from replant.drivers.decisions import FINALIZER
from replant.drivers.operand import operand
from replant.drivers.sameness import annotations_of, marked
from replant.drivers.seen import Decision, Seen
from replant.drivers.settings import Credentials, settings_of
from replant.drivers.values import Values
from replant.drivers.writes import Apply, Status
from replant.objects import Object

_SOME = "not-seen-yet"
"""Stands for credentials that somebody still has to make."""


def supposed(
    driver: Driver,
    cr: Object | None,
    spec: Mapping[str, object],
    forget: Collection[str] = (),
) -> Object:
    """The CR as it would be with these fields of its spec, and without these annotations."""
    base = cr or default_cr(driver)
    metadata = dict(base["metadata"])
    if forget:
        kept = {key: it for key, it in annotations_of(base).items() if key not in forget}
        metadata["annotations"] = kept
    if not driver.default and not driver.own_operator:
        # It will be the first thing to happen, and what comes after it is what people want to see.
        metadata["finalizers"] = sorted({*(metadata.get("finalizers") or ()), FINALIZER})
    return {**base, "metadata": metadata, "spec": {**(base.get("spec") or {}), **spec}}


def manifests(seen: Seen, values: Values) -> list[Object]:
    """All that a driver consists of, as files would have it: its CRD and its CR first."""
    cr = seen.cr or default_cr(seen.driver)
    settings = settings_of(cr)
    facts = seen.facts(settings)
    if settings.credentials is Credentials.SECRET and not facts.credentials:
        facts = replace(facts, credentials=_SOME)
    share_types = settings.share_types or seen.share_types or ()
    own = classes(seen.driver, settings, seen.names, seen.classes, cr, share_types)
    asked = {it: cr[it] for it in ("apiVersion", "kind", "spec")}
    return [
        crd(seen.driver),
        {**asked, "metadata": {"name": cr["metadata"]["name"]}},
        *(marked(it) for it in operand(seen.driver, settings, values, facts)),
        *(it.object for it in own.writes if isinstance(it, Apply)),
    ]


def told(seen: Seen, decision: Decision) -> dict[str, Condition]:
    """What the CR says by type, or would say."""
    for write in decision.writes:
        if isinstance(write, Status):
            return {it["type"]: condition_of(it) for it in write.status["conditions"]}
    return {it.type: it for it in conditions_of(seen.cr)}
