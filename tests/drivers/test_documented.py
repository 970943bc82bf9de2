"""The tables of docs/drivers.md say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from replant.drivers.catalog import DRIVERS, Cloud, drivers_of
from replant.drivers.crds import crd
from replant.drivers.programs import PROGRAMS
from replant.objects import Object
from tests.drivers.world import EBS, MANILA, VSPHERE

PAGE = (Path(__file__).parents[2] / "docs" / "drivers.md").read_text()
SOURCES = Path(__file__).parents[2] / "src" / "replant" / "drivers"


def rows(heading: str) -> list[list[str]]:
    lines = PAGE[PAGE.index(heading) :].splitlines()[2:]
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([it.strip() for it in line.strip("|").split("|")])
    return table


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_which_drivers_where() -> None:
    found = {row[0]: (quoted(row[1]), quoted(row[2])) for row in rows("| cloud | by default |")}
    clouds = {**{str(it): it for it in Cloud}, "any other": None}
    assert found == {
        name: tuple([it.backend for it in those] for those in drivers_of(cloud))
        for name, cloud in clouds.items()
    }


def test_what_each_driver_has() -> None:
    for row, driver in zip(rows("| backend | driver |"), DRIVERS.values(), strict=True):
        assert row[:3] == [f"`{driver.backend}`", driver.name, driver.kind]
        classes = [("★" if it.default else "") + f"`{it.name}`" for it in driver.classes]
        if classes:
            assert row[3] == ", ".join(classes)
        secret, *keys = quoted(row[4])
        assert secret == driver.secret
        if driver.name in PROGRAMS:
            assert keys == list(PROGRAMS[driver.name].secret_keys)


def test_every_setting() -> None:
    def fields(definition: Object) -> set[str]:
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        return set(schema["properties"]["spec"]["properties"])

    known = fields(crd(EBS)) | fields(crd(MANILA)) | fields(crd(VSPHERE))
    # OpenShift's own bookkeeping, which we take and do not use.
    known -= {"observedConfig", "unsupportedConfigOverrides"}
    assert {quoted(row[0])[0] for row in rows("| field of `spec` |")} == known


def test_every_reason() -> None:
    documented = {it for row in rows("| reason | what to do |") for it in quoted(row[0])}
    code = "".join(it.read_text() for it in SOURCES.glob("*.py"))
    assert all(f'"{it}"' in code for it in documented)
    said = set(re.findall(r'phase\(\s*"(\w+)"', code))
    said |= set(re.findall(r'_blocked\("(\w+)"', code))
    said |= set(re.findall(r'Condition\(\s*"\w+",\s*\w+,\s*"(\w+)"', code))
    # These need nobody's help.
    assert said - documented <= {
        "Unmanaged",
        "MultipleDefaultClasses",
        "SomebodysStorageClass",
        "AsExpected",
        "NoData",
    }


def test_shipped_images_say_that_they_were_not_pulled() -> None:
    assert "NONE OF THEM WAS PULLED" in (SOURCES / "values.yaml").read_text()
