"""What the operator of drivers has to be granted, from what drivers consist of."""

from __future__ import annotations

from collections.abc import Iterator

from replant.cli.operator import read_values
from replant.drivers.catalog import DRIVERS
from replant.drivers.naming import names_of
from replant.drivers.operand import Facts, Split, operand
from replant.drivers.settings import Settings
from replant.objects import Object

Right = tuple[str, str, str, str]
"""Verb, group, resource, and a name where only that one is meant."""


def operands(split: Split | None = None) -> Iterator[Object]:
    """All objects of all drivers, but for their StorageClasses, with all that there may be."""
    elsewhere = split.namespace if split else ""
    for driver in DRIVERS.values():
        if driver.own_operator:
            continue
        facts = Facts(
            names_of(driver, None, {}, elsewhere),
            asks=True,
            snapshots=True,
            openshift=True,
            credentials="1",
            split=split,
        )
        yield from operand(driver, Settings(), read_values(None), facts)


def passed_on() -> set[Right]:
    """What drivers are granted: nobody may grant what he has not got."""
    roles = [it for it in operands() if it["kind"] in ("ClusterRole", "Role")]
    return {it for role in roles for it in rights(role["rules"])}


def rights(rules: list[Object]) -> Iterator[Right]:
    for rule in rules:
        for verb in rule["verbs"]:
            for group in rule.get("apiGroups") or [""]:
                for resource in rule.get("resources") or []:
                    for name in rule.get("resourceNames") or [""]:
                        yield verb, group, resource, name
