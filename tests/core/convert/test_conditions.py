"""What a conversion relies on, looked at once more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replant.core.convert.conditions import (
    MET,
    Conditions,
    Disk,
    Place,
    conditions_of,
    kubelet_redirects,
)
from replant.gates.versions import Version

PLUGIN = "kubernetes.io/aws-ebs"
DISK = Disk(
    name="pv-1",
    claim="shop/data",
    plugin=PLUGIN,
    driver="ebs.csi.aws.com",
    in_tree=f"{PLUGIN}/vol-1",
    csi="kubernetes.io/csi/ebs.csi.aws.com^vol-1",
    in_use=True,
)
SEEN = replace(DISK, sees_controllers=True)
N1 = Place(node="n1", redirects=True, has_driver=True, volumes={DISK.csi})
N2 = replace(N1, node="n2")

CASES: dict[str, tuple[Disk, list[Place], list[bool], Conditions]] = {
    "as the plan found it": (SEEN, [N1, N2], [True, True], MET),
    "nowhere": (SEEN, [], [True], MET),
    "controllers that nobody can see": (DISK, [N1], [], MET),
    "attached in the tree": (
        DISK, [N1, replace(N2, volumes={DISK.in_tree})], [],
        Conditions(broken="It is attached to n2 by the in-tree plugin."),
    ),
    "a kubelet that was switched": (
        DISK, [replace(N1, redirects=False)], [True],
        Conditions(broken=f"N1 does not redirect {PLUGIN}."),
    ),
    "one replica that was switched": (
        SEEN, [N1], [True, False], Conditions(broken=f"The controllers do not redirect {PLUGIN}."),
    ),
    "the same of a disk that is nowhere": (
        SEEN, [], [False], Conditions(broken=f"The controllers do not redirect {PLUGIN}."),
    ),
    "controllers that can no longer be seen": (
        SEEN, [N1], [],
        Conditions(missing="the pods of kube-controller-manager to be seen again"),
    ),
    "a driver that is started anew": (
        DISK, [N1, replace(N2, has_driver=False)], [True],
        Conditions(missing="ebs.csi.aws.com to be registered on n2"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("disk", "places", "controllers", "told"), CASES.values(), ids=CASES)
def test_what_is_no_longer_so_is_told(
    disk: Disk, places: list[Place], controllers: list[bool], told: Conditions
) -> None:
    assert conditions_of(disk, places, controllers) == told


@pytest.mark.parametrize(
    ("announced", "version", "redirects"),
    [
        ((PLUGIN,), Version(1, 24, 17), True),
        ((), Version(1, 24, 17), False),
        (("kubernetes.io/cinder",), Version(1, 24, 17), False),
        ((), Version(1, 36, 3), True),
        ((), None, False),
    ],
    ids=["announced", "not announced", "only another", "a version without the gate", "unknown"],
)
def test_a_kubelet_announces_what_it_redirects(
    announced: tuple[str, ...], version: Version | None, redirects: bool
) -> None:
    assert kubelet_redirects(PLUGIN, announced, version) is redirects
