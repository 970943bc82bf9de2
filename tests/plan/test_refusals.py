"""What no plan is made for, and the reason that is given; plans of another cluster."""

from __future__ import annotations

from typing import Any

import pytest

from replant.errors import Refused
from replant.plan.make import Wanted, make_plan, refuse_other
from replant.plan.model import Goal
from replant.plan.undo import undo_plan
from tests.inventory.clusters import AWS, Object, driver, pod, pv, storage_class
from tests.inventory.clusters import inventory_of as joined
from tests.plan.clusters import Kubelet, inventory_of, planned

RBD, PORTWORX = "kubernetes.io/rbd", "kubernetes.io/portworx-volume"
VSPHERE = "kubernetes.io/vsphere-volume"

REFUSED: dict[str, tuple[str, str, str, dict[str, Any], str]] = {
    "gate not yet there": ("enable", PORTWORX, "1.22.17", {}, "CSIMigrationPortworx is not there"),
    "gate not yet there on a node": (
        "enable", PORTWORX, "1.24.1", {"kubelets": (Kubelet("1.22.17"), Kubelet())}, "1.22",
    ),
    "translation gone": ("enable", RBD, "1.31.1", {}, "1.31"),
    "locked on": ("disable", AWS, "1.25.1", {}, "locked on"),
    "locked on for some patches": ("disable", VSPHERE, "1.26.3", {}, "locked on"),
    "locked on a node": (
        "disable", AWS, "1.25.1", {"kubelets": (Kubelet("1.24.1"),)}, "cannot go back",
    ),
    "code gone": ("disable", AWS, "1.27.1", {}, "left with 1.27"),
    "gate gone": ("disable", VSPHERE, "1.29.1", {}, "its gate is gone"),
    "rbd gone": ("disable", RBD, "1.31.1", {}, "left with 1.31"),
    "nothing to complete": ("complete", AWS, "1.22.17", {}, "enable first"),
    "no node": ("enable", AWS, "1.22.17", {"kubelets": ()}, "no node"),
    "server too old": ("enable", AWS, "1.16.3", {}, "1.16 is not known"),
    "server too new": ("enable", AWS, "1.37.0", {}, "1.37 is not known"),
    "server unknown": ("enable", AWS, "", {"kubelets": (Kubelet("1.22.1"),)}, "--server-version"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_planned_is_refused_with_the_reason(name: str) -> None:
    goal, plugin, server, cluster, reason = REFUSED[name]
    with pytest.raises(Refused, match=reason) as refusal:
        planned(goal, plugin, server=server, **cluster)
    assert str(refusal.value).endswith(".")


def test_a_lock_that_was_taken_back_is_none() -> None:
    plan = planned("disable", VSPHERE, server="1.26.4", kubelets=(Kubelet(),))
    assert [step.id for step in plan.steps] == ["roll-nodes", "switch-control-plane"]


@pytest.mark.parametrize("kind", ["Node", "CSINode", "PersistentVolume"])
def test_what_a_plan_cannot_do_without_must_be_read(kind: str) -> None:
    inventory = inventory_of()
    inventory.unknown[kind] = "you may not"
    with pytest.raises(Refused, match=f"{kind}.*you may not"):
        make_plan(Wanted(Goal.ENABLE, (AWS,)), inventory)


def test_without_a_plugin_all_that_are_in_use_are_meant() -> None:
    inline = {"name": "v", "gcePersistentDisk": {"pdName": "d"}}
    extra = [pod("web", volumes=[inline]), pv("nfs", nfs={}), driver("pd.csi.storage.gke.io")]
    plan = planned("enable", AWS, *extra, wanted={"plugins": ()}, kubelets=(Kubelet(),))
    assert plan.plugins == (AWS, "kubernetes.io/gce-pd")
    with pytest.raises(Refused, match="--plugin"):
        planned("enable", volume=False, wanted={"plugins": ()})


ONE = (Kubelet(),)


def test_a_plan_fits_the_cluster_that_it_was_made_for() -> None:
    plan = planned("enable", kubelets=ONE)
    refuse_other(plan, inventory_of(kubelets=ONE))
    refuse_other(plan, inventory_of(AWS, pod("new", claim="x"), kubelets=ONE))
    refuse_other(plan, inventory_of(kubelets=(Kubelet(ready="False", cordoned=True),)))


GP2: Object = {"parameters": {"type": "gp2"}, "allowVolumeExpansion": False}
CHANGES: dict[str, tuple[tuple[Object, ...], dict[str, Any]]] = {
    "volume comes": ((pv("new"),), {}),
    "node comes": ((), {"kubelets": (Kubelet(), Kubelet())}),
    "kubelet upgraded": ((), {"server": "1.22.17", "kubelets": (Kubelet("1.21.1"),)}),
    "server upgraded": ((), {"server": "1.22.18", "kubelets": (Kubelet("1.22.17"),)}),
    "node redirects": ((), {"kubelets": (Kubelet(announces=True),)}),
    "driver goes": ((), {"installed": False}),
    "driver leaves the node": ((), {"kubelets": (Kubelet(drivers=()),)}),
    "gate switched": ((), {"gates": {"CSIMigrationAWS": True}}),
    "flag goes": ((), {"flags": []}),
    "class comes": ((storage_class(**GP2),), {}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_is_refused_on_another_cluster(name: str) -> None:
    extra, more = CHANGES[name]
    plan = planned("enable", kubelets=ONE)
    with pytest.raises(Refused, match="Make the plan anew"):
        refuse_other(plan, inventory_of(AWS, *extra, **{"kubelets": ONE, **more}))


@pytest.mark.parametrize(
    "other",
    [
        {"allowVolumeExpansion": True},
        {"mountOptions": ["noatime"]},
        {"reclaimPolicy": "Retain"},
        {"volumeBindingMode": "Immediate"},
        {"allowedTopologies": [{"matchLabelExpressions": []}]},
        {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
        {"metadata": {"labels": {"a": "b"}}},
    ],
)
def test_a_class_that_changes_in_any_way_makes_it_another_cluster(other: Object) -> None:
    """The plan would make it again as it was."""
    plan = planned("enable", AWS, storage_class(**GP2), kubelets=ONE)
    refuse_other(plan, inventory_of(AWS, storage_class(**GP2), kubelets=ONE))
    with pytest.raises(Refused):
        refuse_other(plan, inventory_of(AWS, storage_class(**{**GP2, **other}), kubelets=ONE))


def test_whether_it_fits_an_unknown_version_nobody_can_say() -> None:
    with pytest.raises(Refused, match="--server-version"):
        refuse_other(planned("enable", kubelets=ONE), joined([], server=""))


def test_a_step_that_is_not_there_cannot_be_undone() -> None:
    with pytest.raises(Refused, match="no step nope; there are switch-control-plane, roll-nodes"):
        undo_plan(planned("enable", kubelets=ONE), "nope")
