"""What the control plane's pods say of their flags."""

from __future__ import annotations

import pytest

from replant.inventory.controlplane import ControlPlanePod
from tests.inventory.clusters import CONTROLLER, component, inventory_of, pod

ON, OFF = "--feature-gates=CSIMigrationAWS=true", "--feature-gates=CSIMigrationAWS=false"


def told(*flags: str) -> ControlPlanePod:
    (found,) = inventory_of([component(*flags)]).control_plane
    return found


def test_a_replica_is_known_with_its_gates_and_flags() -> None:
    replica = told(ON, "--cloud-provider=external", "--leader-elect=true")
    assert replica == ControlPlanePod(
        component=CONTROLLER,
        name=f"{CONTROLLER}-a",
        node="a",
        gates={"CSIMigrationAWS": True},
        flags={"cloud-provider": "external"},
    )


def test_replicas_that_differ_are_seen() -> None:
    inventory = inventory_of([component(ON, on="a"), component(OFF, on="b")])
    assert {it.node: it.gates["CSIMigrationAWS"] for it in inventory.control_plane} == {
        "a": True,
        "b": False,
    }


def test_gates_are_those_of_all_replicas() -> None:
    objects = [
        component(ON, "--feature-gates=CSIMigration=true"),
        component(component="kube-scheduler"),
        pod("web", "shop", metadata={"labels": {"component": "web"}}),
    ]
    assert inventory_of(objects).gates == {
        CONTROLLER: {"CSIMigrationAWS": True, "CSIMigration": True},
        "kube-scheduler": {},
    }


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--cloud-config=/etc/cloud.conf"], {"cloud-config": "/etc/cloud.conf"}),
        (["--cloud-config", "/etc/cloud.conf"], {"cloud-config": "/etc/cloud.conf"}),
        (["--external-cloud-volume-plugin=aws"], {"external-cloud-volume-plugin": "aws"}),
        (["--cloud-provider=aws", "--cloud-provider=external"], {"cloud-provider": "external"}),
        (
            ["--enable-admission-plugins=A,B", "--enable-admission-plugins=C"],
            {"enable-admission-plugins": "A,B,C"},
        ),
        (["--disable-admission-plugins=A"], {"disable-admission-plugins": "A"}),
        (["--cloud-provider=", "--v=2"], {}),
        (["--cloud-provider-gce-lb-src-cidrs=10.0.0.0/8"], {}),
        (["--allocate-node-cidrs=true"], {}),
    ],
)
def test_the_flags_that_decide_about_volumes(flags: list[str], expected: dict[str, str]) -> None:
    assert told(*flags).flags == expected


@pytest.mark.parametrize(
    "line",
    [
        "exec kube-controller-manager --feature-gates=A=true,B=false --cloud-provider=aws 2>&1",
        "exec kube-controller-manager --feature-gates='A=true,B=false' --cloud-provider \"aws\"",
        "kube-controller-manager \\\n  --cloud-provider=aws \\\n  --feature-gates A=true,B=false",
    ],
)
def test_a_shell_may_start_it(line: str) -> None:
    replica = told("/bin/sh", "-c", line)
    assert replica.gates == {"A": True, "B": False}
    assert replica.flags == {"cloud-provider": "aws"}
