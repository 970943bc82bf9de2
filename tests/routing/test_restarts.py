"""What a controller that starts makes of attached disks, by version, as its sources have it."""

from __future__ import annotations

import pytest

from replant.gates.versions import Version
from replant.routing.restarts import needs_driver, takes_for_in_tree

NEEDS_DRIVER = {
    True: ["1.17.0", "1.18.20", "1.23.17", "1.24.0", "1.24.11", "1.25.7", "1.26.2"],
    False: ["1.24.12", "1.24.17", "1.25.8", "1.26.3", "1.27.0", "1.36.3"],
}
REDIRECTS = {
    True: ["1.18.16", "1.18.20", "1.19.8", "1.19.11", "1.20.3", "1.20.7", "1.21.0", "1.21.1"],
    False: ["1.17.17", "1.18.15", "1.19.7", "1.19.12", "1.20.2", "1.20.8", "1.21.2", "1.22.0"],
}
DOES_NOT = {
    True: ["1.18.16", "1.19.8", "1.20.3", "1.20.15", "1.21.0", "1.22.0", "1.24.17", "1.28.0"],
    False: ["1.17.17", "1.18.15", "1.19.7", "1.20.2"],
}


def rows(table: dict[bool, list[str]]) -> list[tuple[str, bool]]:
    return [(version, expected) for expected, versions in table.items() for version in versions]


@pytest.mark.parametrize(("version", "expected"), rows(NEEDS_DRIVER))
def test_whose_pods_are_forgotten_on_a_node_without_its_driver(
    version: str, expected: bool
) -> None:
    assert needs_driver(Version.parse(version)) is expected


@pytest.mark.parametrize("version", ["1.24", "1.25", "1.26"])
def test_a_minor_is_its_newest_patch(version: str) -> None:
    assert not needs_driver(Version.parse(version).newest_patch)


@pytest.mark.parametrize(("version", "expected"), rows(REDIRECTS))
def test_who_takes_what_the_driver_attached_for_in_tree_and_redirects(
    version: str, expected: bool
) -> None:
    assert takes_for_in_tree(Version.parse(version), redirects=True) is expected


@pytest.mark.parametrize(("version", "expected"), rows(DOES_NOT))
def test_who_takes_it_for_in_tree_and_does_not_redirect(version: str, expected: bool) -> None:
    assert takes_for_in_tree(Version.parse(version), redirects=False) is expected
