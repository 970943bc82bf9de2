"""Which StorageClasses a driver has, and which is the default."""

from __future__ import annotations

from typing import Any

import pytest

from replant.drivers.catalog import Driver
from replant.drivers.classes import CHOSEN, DEFAULT, SAVED, STOOD_BACK, classes, is_default
from replant.drivers.naming import names_of
from replant.drivers.settings import DefaultClass, Settings, State
from replant.drivers.writes import Annotate, Apply, Delete
from replant.objects import Object
from tests.drivers.world import EBS, INSTALLED, MANILA, VSPHERE, Killed, World

BETA = "storageclass.beta.kubernetes.io/is-default-class"
IN_TREE = "kubernetes.io/aws-ebs"
LATE = "WaitForFirstConsumer"


def class_(name: str, provisioner: str = IN_TREE, **annotations: str) -> Object:
    named = {"default": DEFAULT, "beta": BETA}
    obj: Object = {
        "kind": "StorageClass",
        "metadata": {
            "name": name,
            "annotations": {named[key]: it for key, it in annotations.items()},
        },
        "provisioner": provisioner,
    }
    if provisioner == EBS.name:
        obj["parameters"] = {"type": "gp3", "encrypted": "true"}
        obj["volumeBindingMode"] = "WaitForFirstConsumer"
    return obj


def ready(*there: Object, **spec: Any) -> World:
    world = World(EBS).secret()
    for it in there:
        world.put(it)
    return world.ask(**spec)


def of(world: World, name: str) -> Object:
    return world.objects["StorageClass", "", name]


def value(world: World, name: str) -> str | None:
    found: str | None = (of(world, name)["metadata"].get("annotations") or {}).get(DEFAULT)
    return found


@pytest.mark.parametrize(
    ("there", "gp3"),
    [
        # Nobody is the default: it becomes it.
        ([], "true"),
        ([class_("gp2")], "true"),
        ([class_("gp2", default="false")], "true"),
        # Somebody is, by either annotation.
        ([class_("gp2", default="true")], "false"),
        ([class_("gp2", beta="true")], "false"),
        ([class_("nfs", "example.com/nfs", default="true")], "false"),
        # It carries one already: its value stays, even "".
        ([class_("gp3-csi", "ebs.csi.aws.com", default="")], ""),
        ([class_("gp3-csi", "ebs.csi.aws.com", default="false")], "false"),
        (
            [
                class_("gp2", default="true"),
                class_("gp3-csi", "ebs.csi.aws.com", default="true"),
            ],
            "true",
        ),
        (
            [class_("gp3-csi", "ebs.csi.aws.com", beta="true"), class_("gp2", default="true")],
            "true",
        ),
    ],
)
def test_the_default_annotation(there: list[Object], gp3: str) -> None:
    world = ready(*there)
    world.settle()
    assert value(world, "gp3-csi") == gp3
    assert value(world, "gp2-csi") == "false"


FACTS: dict[str, dict[str, tuple[str, Object | None, str]]] = {
    "ebs.csi.aws.com": {
        "gp3-csi": ("true", {"type": "gp3", "encrypted": "true"}, LATE),
        "gp2-csi": ("false", {"type": "gp2", "encrypted": "true"}, LATE),
    },
    "pd.csi.storage.gke.io": {
        "standard-csi": ("true", {"type": "pd-standard", "replication-type": "none"}, LATE),
        "ssd-csi": ("false", {"type": "pd-ssd"}, LATE),
    },
    "cinder.csi.openstack.org": {"standard-csi": ("true", None, LATE)},
    "manila.csi.openstack.org": {
        "csi-manila-gold": (
            "false",
            {
                "type": "gold",
                **{
                    f"csi.storage.k8s.io/{use}-secret-{field}": it
                    for use in ("provisioner", "controller-expand", "node-stage", "node-publish")
                    for field, it in (
                        ("name", "manila-cloud-credentials"),
                        ("namespace", "openshift-manila-csi-driver"),
                    )
                },
            },
            "Immediate",
        )
    },
    "disk.csi.azure.com": {"managed-csi": ("true", {"skuname": "Premium_LRS"}, LATE)},
    "file.csi.azure.com": {"azurefile-csi": ("false", {"skuName": "Standard_LRS"}, "Immediate")},
    "csi.vsphere.vmware.com": {"thin-csi": ("true", {"StoragePolicyName": "gold"}, LATE)},
}
"""Of each driver's classes: whether it is the default, its parameters and its binding mode."""


@pytest.mark.parametrize("driver", INSTALLED, ids=lambda it: it.backend)
def test_what_the_facts_say_of_each_class(driver: Driver) -> None:
    world = World(driver).secret()
    world.share_types = ("gold",)
    world.ask(**({"storagePolicyName": "gold"} if driver is VSPHERE else {})).settle()
    said = {}
    for it in world.look().classes:
        name = it["metadata"]["name"]
        said[name] = (value(world, name), it.get("parameters"), it["volumeBindingMode"])
        assert it["provisioner"] == driver.name
        assert (it["reclaimPolicy"], it["allowVolumeExpansion"]) == ("Delete", True)
    assert said == FACTS[driver.name]


@pytest.mark.parametrize("written", ["false", ""])
def test_what_somebody_chooses_later_stays(written: str) -> None:
    world = ready()
    world.settle()
    gp3 = of(world, "gp3-csi")
    gp3["metadata"]["annotations"][DEFAULT] = written
    world.put(gp3)
    world.settle()
    world.ask(defaultStorageClass="csi").settle()
    assert value(world, "gp3-csi") == written


def test_a_default_that_goes_away_is_nobodys_wish_to_have_ours() -> None:
    world = ready(class_("gp2", default="true"))
    world.settle()
    del world.objects["StorageClass", "", "gp2"]
    world.settle()
    assert value(world, "gp3-csi") == "false"


# Phases 1 to 3


@pytest.mark.parametrize(
    ("before", "back"),
    [
        ({DEFAULT: "true"}, {DEFAULT: "false", STOOD_BACK: DEFAULT}),
        ({BETA: "true"}, {BETA: "false", STOOD_BACK: BETA}),
        (
            {DEFAULT: "true", BETA: "true"},
            {DEFAULT: "false", BETA: "false", STOOD_BACK: f"{DEFAULT},{BETA}"},
        ),
        # What says that it is none is not asked to say otherwise later.
        (
            {DEFAULT: "false", BETA: "true"},
            {DEFAULT: "false", BETA: "false", STOOD_BACK: BETA},
        ),
    ],
)
def test_csi_becomes_the_default_and_goes_back(before: Object, back: Object) -> None:
    gp2 = class_("gp2")
    gp2["metadata"]["annotations"] = before
    world = ready(gp2)
    world.settle()
    assert of(world, "gp2")["metadata"]["annotations"] == before
    assert value(world, "gp3-csi") == "false"
    assert of(world, "gp3-csi")["metadata"]["annotations"][CHOSEN] == "in-tree:false"
    world.ask(defaultStorageClass="csi").settle()
    assert of(world, "gp2")["metadata"]["annotations"] == back
    assert value(world, "gp3-csi") == "true"
    assert "StorageClassWarning" not in world.conditions()
    world.ask(defaultStorageClass="in-tree").settle()
    assert of(world, "gp2")["metadata"]["annotations"] == before
    assert value(world, "gp3-csi") == "false"


def test_what_stood_back_before_it_was_noted_by_which_annotation() -> None:
    gp2 = class_("gp2", default="false")
    gp2["metadata"]["annotations"][STOOD_BACK] = "true"
    world = ready(gp2)
    world.settle()
    assert of(world, "gp2")["metadata"]["annotations"] == {DEFAULT: "true"}


@pytest.mark.parametrize(("first", "then"), [("in-tree", "csi"), ("csi", "in-tree")])
@pytest.mark.parametrize("by", ["default", "beta"])
def test_there_is_always_a_default_while_it_changes(first: str, then: str, by: str) -> None:
    world = ready(class_("gp2", **{by: "true"}), defaultStorageClass=first)
    world.settle()
    world.ask(defaultStorageClass=then)
    for _ in range(20):
        for write in world.decide().writes:
            world.write(write)
            assert any(is_default(it) for it in world.look().classes)
    defaults = [it["metadata"]["name"] for it in world.look().classes if is_default(it)]
    assert defaults == ["gp3-csi" if then == "csi" else "gp2"]


def test_a_default_of_somebody_elses_stays_the_default() -> None:
    world = ready(class_("nfs", "example.com/nfs", default="true"), defaultStorageClass="csi")
    world.settle()
    assert (value(world, "nfs"), value(world, "gp3-csi")) == ("true", "false")


def test_more_than_one_default_is_a_warning() -> None:
    world = ready(class_("gp2", default="true"), class_("nfs", "example.com/nfs", beta="true"))
    world.settle()
    assert world.conditions()["StorageClassWarning"] == ("True", "MultipleDefaultClasses")
    assert world.message("StorageClassWarning").endswith("the default: gp2, nfs")
    assert world.conditions()["Degraded"] == ("False", "AsExpected")


# States


def test_unmanaged_classes_are_left_alone() -> None:
    world = ready(storageClassState="Unmanaged")
    world.settle()
    assert "StorageClass" not in world.kinds()
    world.ask(storageClassState="Managed").settle()
    changed = of(world, "gp2-csi")
    world.put({**changed, "parameters": {"type": "io1"}})
    world.ask(storageClassState="Unmanaged").settle()
    assert of(world, "gp2-csi")["parameters"] == {"type": "io1"}


def test_removed_classes_go_but_not_those_of_others() -> None:
    world = ready()
    world.settle()
    world.put(class_("mine", EBS.name))
    world.ask(storageClassState="Removed").settle()
    assert [it["metadata"]["name"] for it in world.look().classes] == ["mine"]


def test_any_other_state_is_an_error() -> None:
    world = ready(storageClassState="Sometimes")
    world.settle()
    assert world.conditions()["Degraded"] == ("True", "InvalidSettings")
    assert "spec.storageClassState is 'Sometimes'" in world.message("Degraded")
    assert world.kinds() == ["Secret"]


# Changes


@pytest.mark.parametrize(
    "changed",
    [
        {"parameters": {"type": "io1"}},
        {"parameters": None},
        {"reclaimPolicy": "Retain"},
        {"volumeBindingMode": "Immediate"},
        {"provisioner": "other.example.com"},
    ],
)
@pytest.mark.parametrize("chosen", ["", "true", None])
def test_what_cannot_be_changed_is_made_anew(changed: Object, chosen: str | None) -> None:
    """Whoever is at it may be killed between any two writes: a person's choice is kept."""
    for kill in range(4):
        world = ready(class_("gp2", default="true"))
        world.settle()
        gp3 = {**of(world, "gp3-csi"), **changed}
        if chosen is not None:
            gp3["metadata"]["annotations"][DEFAULT] = chosen
        uid = world.put(gp3)["metadata"]["uid"]
        world.kill_after = kill
        try:
            world.settle()
        except Killed:
            world.kill_after = None
            world.settle()
        assert of(world, "gp3-csi")["metadata"]["uid"] != uid
        assert of(world, "gp3-csi")["provisioner"] == EBS.name
        assert of(world, "gp3-csi")["parameters"] == {"type": "gp3", "encrypted": "true"}
        assert value(world, "gp3-csi") == ("false" if chosen is None else chosen)
        assert not [it for it in world.cr["metadata"]["annotations"] if it.startswith(SAVED)]


def test_other_changes_are_put_back_in_place() -> None:
    world = ready()
    world.settle()
    uid = world.put({**of(world, "gp3-csi"), "allowVolumeExpansion": False})["metadata"]["uid"]
    world.writes.clear()
    world.settle()
    assert [type(it) for it in world.writes] == [Apply]
    assert of(world, "gp3-csi")["metadata"]["uid"] == uid


def test_a_class_of_somebody_elses_under_our_name_is_left_alone() -> None:
    world = ready(class_("gp3-csi", "example.com/nfs"))
    world.settle()
    assert of(world, "gp3-csi")["provisioner"] == "example.com/nfs"
    assert world.conditions()["StorageClassDegraded"] == ("True", "ForeignStorageClass")
    assert world.conditions()["Degraded"] == ("True", "StorageClass_ForeignStorageClass")
    assert world.conditions()["Available"] == ("True", "AsExpected")


@pytest.mark.parametrize(
    "chosen",
    [
        {"reclaimPolicy": "Retain"},
        {"parameters": {"type": "gp3", "encrypted": "true", "kmsKeyId": "mine"}},
        {"volumeBindingMode": "Immediate"},
    ],
)
def test_what_somebody_has_chosen_for_the_driver_is_not_made_anew(chosen: Object) -> None:
    theirs = {**class_("gp3-csi", EBS.name, default="true"), **chosen, "mountOptions": ["noatime"]}
    world = ready(theirs)
    uid = of(world, "gp3-csi")["metadata"]["uid"]
    world.settle()
    found = of(world, "gp3-csi")
    assert found["metadata"]["uid"] == uid
    assert {key: found[key] for key in chosen} == chosen
    assert world.conditions()["StorageClassKept"] == ("True", "SomebodysStorageClass")
    assert world.conditions()["Degraded"] == ("False", "AsExpected")


def test_the_in_tree_class_is_the_default_again_before_ours_goes() -> None:
    thin = class_("thin", "kubernetes.io/vsphere-volume", default="true")
    for leave in ("Removed", "delete", "classes"):
        world = World(VSPHERE).secret().ask(defaultStorageClass="csi")
        world.put(thin)
        world.settle()
        assert (value(world, "thin"), value(world, "thin-csi")) == ("false", "true")
        if leave == "delete":
            world.delete(world.cr_key)
        elif leave == "Removed":
            world.ask(managementState="Removed")
        else:
            world.ask(storageClassState="Removed")
        for _ in range(10):
            for write in world.decide().writes:
                world.write(write)
                assert any(is_default(it) for it in world.look().classes)
        assert [it["metadata"]["name"] for it in world.look().classes] == ["thin"]
        assert value(world, "thin") == "true"


# Single drivers


def test_share_types_become_classes_and_stay_when_they_are_gone() -> None:
    world = World(MANILA).secret().ask()
    world.share_types = ("default", "Gold_SSD")
    world.settle()
    names = [it["metadata"]["name"] for it in world.look().classes]
    assert names == ["csi-manila-default", "csi-manila-gold-ssd"]
    gold = of(world, "csi-manila-gold-ssd")
    assert gold["parameters"]["type"] == "Gold_SSD"
    assert gold["parameters"]["csi.storage.k8s.io/provisioner-secret-name"] == MANILA.secret
    assert gold["volumeBindingMode"] == "Immediate"
    assert value(world, "csi-manila-gold-ssd") == "false"
    world.share_types = ("default",)
    world.settle()
    assert "csi-manila-gold-ssd" in [it["metadata"]["name"] for it in world.look().classes]


def test_share_types_whose_names_come_to_the_same_have_classes_of_their_own() -> None:
    world = World(MANILA).secret().ask()
    world.share_types = ("gold", "nfs_a")
    world.settle()
    assert types(world) == {"csi-manila-gold": "gold", "csi-manila-nfs-a": "nfs_a"}
    # A class that is there stays what it is, whatever comes to be called like it.
    uid = of(world, "csi-manila-nfs-a")["metadata"]["uid"]
    for both in (("gold", "nfs-a", "nfs_a"), ("nfs_a", "gold", "nfs-a", "nfs-a")):
        world.share_types = both
        world.settle()
        assert types(world) == {
            "csi-manila-gold": "gold",
            "csi-manila-nfs-a": "nfs_a",
            "csi-manila-nfs-a-3f3fc81e": "nfs_a",
            "csi-manila-nfs-a-f5337c04": "nfs-a",
        }
    assert of(world, "csi-manila-nfs-a")["metadata"]["uid"] == uid
    assert not any(isinstance(it, Delete) for it in world.writes)


def types(world: World) -> dict[str, str]:
    """The share type of each class."""
    return {it["metadata"]["name"]: it["parameters"]["type"] for it in world.look().classes}


def test_vspheres_policy() -> None:
    world = World(VSPHERE).secret().ask()
    world.settle()
    assert not of(world, "thin-csi").get("parameters")
    world.ask(storagePolicyName="gold").settle()
    assert of(world, "thin-csi")["parameters"] == {"StoragePolicyName": "gold"}


def test_a_class_that_is_going_is_waited_for() -> None:
    found = class_("gp3-csi", EBS.name)
    found["metadata"]["deletionTimestamp"] = "now"
    names = names_of(EBS, None, {})
    decided = classes(EBS, Settings(), names, [found], {"metadata": {}})
    assert [it.object["metadata"]["name"] for it in decided.writes] == ["gp2-csi"]


def test_writes_are_about_what_was_seen() -> None:
    names = names_of(EBS, None, {})
    found = class_("gp2", default="true")
    settings = Settings(default_class=DefaultClass.CSI, classes=State.MANAGED)
    first = classes(EBS, settings, names, [found], {"metadata": {}}).writes
    assert all(isinstance(it, Apply) for it in first)
    there = [found, *(it.object for it in first)]
    (then,) = classes(EBS, settings, names, there, {"metadata": {}}).writes
    assert then == Annotate(found, {DEFAULT: "false", STOOD_BACK: DEFAULT})
    removed = Settings(classes=State.REMOVED)
    gone = classes(EBS, removed, names, there, {"metadata": {}}).writes
    assert gone == tuple(Delete(it.object) for it in first)
