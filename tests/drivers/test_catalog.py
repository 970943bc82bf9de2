"""Which drivers there are, where, and what CRs and values say."""

from __future__ import annotations

from typing import Any

import pytest

from replant.drivers.catalog import DRIVERS, Cloud, cloud_of, driver_named, drivers_of
from replant.drivers.crds import crd, crds, default_cr
from replant.drivers.settings import (
    Adoption,
    Credentials,
    DefaultClass,
    Settings,
    State,
    settings_of,
    wants_details,
)
from replant.drivers.values import IMAGES, values_of
from replant.errors import InputError
from replant.gates.plugins import LIVES
from replant.translate import driver_of
from tests.drivers.world import EBS, MANILA, VSPHERE, shipped

TABLE = {
    # Name: kind, attach, pod info, fsGroupPolicy, classes (* for the default one), secret.
    "ebs.csi.aws.com": ("AWSEBSDriver", "TF", "File", "*gp3-csi gp2-csi", "ebs-cloud-credentials"),
    "pd.csi.storage.gke.io": (
        "GCEPDDriver", "TF", "File", "*standard-csi ssd-csi", "gcp-pd-cloud-credentials",
    ),
    "cinder.csi.openstack.org": (
        "CinderDriver", "TT", "File", "*standard-csi", "openstack-cloud-credentials",
    ),
    "manila.csi.openstack.org": ("ManilaDriver", "FF", "None", "", "manila-cloud-credentials"),
    "disk.csi.azure.com": (
        "AzureDiskDriver", "TT", "File", "*managed-csi", "azure-disk-credentials",
    ),
    "file.csi.azure.com": (
        "AzureFileDriver", "FT", "None", "azurefile-csi", "azure-file-credentials",
    ),
    "csi.vsphere.vmware.com": (
        "VSphereDriver", "TF", "File", "*thin-csi", "vmware-vsphere-cloud-credentials",
    ),
    "pxd.portworx.com": ("PortworxDriver", "FF", "File", "", "px-user-token"),
}  # fmt: skip


def test_the_table_of_the_facts() -> None:
    letters = {True: "T", False: "F"}
    assert {
        it.name: (
            it.kind,
            letters[it.attach] + letters[it.pod_info],
            it.fs_group,
            " ".join(("*" if of.default else "") + of.name for of in it.classes),
            it.secret,
        )
        for it in DRIVERS.values()
    } == TABLE


@pytest.mark.parametrize(
    ("cloud", "default", "optional"),
    [
        (Cloud.AWS, "aws-ebs", "portworx"),
        (Cloud.GCP, "gcp-pd", "portworx"),
        (Cloud.OPENSTACK, "openstack-cinder manila", "portworx"),
        (Cloud.AZURE, "azure-disk azure-file", "portworx"),
        (Cloud.VSPHERE, "", "vmware-vsphere portworx"),
        (None, "", "portworx"),
    ],
)
def test_what_is_installed_where(cloud: Cloud | None, default: str, optional: str) -> None:
    found = [" ".join(it.backend for it in those) for those in drivers_of(cloud)]
    assert found == [default, optional]


def test_every_plugin_that_is_translated_has_the_driver_that_takes_over() -> None:
    ours = {it.in_tree: it.name for it in DRIVERS.values() if it.in_tree}
    # Ceph's driver is installed by Rook or by hand.
    assert {it: driver_of(it) for it in LIVES if it != "kubernetes.io/rbd"} == ours


def test_one_rule_for_namespaces() -> None:
    assert {it.namespace for it in DRIVERS.values()} == {
        f"openshift-{it.backend}-csi-driver" for it in DRIVERS.values()
    }
    # Where the operators of OLM have always put their operands, under these names.
    assert (EBS.namespace, EBS.controller_name, EBS.node_name) == (
        "openshift-aws-ebs-csi-driver", "aws-ebs-csi-driver-controller", "aws-ebs-csi-driver-node",
    )  # fmt: skip
    assert (MANILA.namespace, MANILA.controller_name, MANILA.node_name) == (
        "openshift-manila-csi-driver",
        "openstack-manila-csi-controllerplugin",
        "openstack-manila-csi-nodeplugin",
    )


@pytest.mark.parametrize(
    "text", ["ebs.csi.aws.com", "AWSEBSDriver", "aws-ebs", "kubernetes.io/aws-ebs"]
)
def test_a_driver_by_any_of_its_names(text: str) -> None:
    assert driver_named(text) is EBS


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("vsphere", "csi.vsphere.vmware.com"),
        ("portworx-volume", "pxd.portworx.com"),
        ("gce-pd", "pd.csi.storage.gke.io"),
    ],
)
def test_a_driver_by_the_plugin_that_it_takes_the_place_of(text: str, name: str) -> None:
    assert driver_named(text).name == name


def test_a_driver_that_nobody_knows() -> None:
    with pytest.raises(InputError):
        driver_named("")
    with pytest.raises(InputError, match="floppy: is no driver that is known here: aws-ebs, "):
        driver_named("floppy")


# Clouds


@pytest.mark.parametrize(
    ("ids", "cloud"),
    [
        (["aws:///us-east-1a/i-1", "aws:///us-east-1b/i-2"], Cloud.AWS),
        (["gce://p/z/n"], Cloud.GCP),
        (["azure:///subscriptions/x"], Cloud.AZURE),
        (["openstack:///1"], Cloud.OPENSTACK),
        (["vsphere://4"], Cloud.VSPHERE),
        (["kind://docker/x", "", "aws:///a/i-1"], Cloud.AWS),
        (["kind://docker/x"], None),
        ([], None),
    ],
)
def test_the_cloud_by_nodes(ids: list[str], cloud: Cloud | None) -> None:
    assert cloud_of(None, ids) is cloud


@pytest.mark.parametrize("cloud", [*Cloud, "BareMetal"])
def test_the_cloud_by_infrastructure_whatever_nodes_say(cloud: str) -> None:
    infrastructure = {"status": {"platformStatus": {"type": cloud}}}
    expected = None if cloud == "BareMetal" else cloud
    assert cloud_of(infrastructure, ["kind://x"]) == expected


@pytest.mark.parametrize("status", [{}, {"platformStatus": {}}, {"platformStatus": {"type": ""}}])
def test_an_infrastructure_that_does_not_say(status: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"Infrastructure cluster: status\.platformStatus\.type"):
        cloud_of({"status": status}, ["aws:///a/i-1"])


def test_nodes_of_two_clouds() -> None:
    with pytest.raises(InputError, match="Nodes: are of more than one cloud: AWS, GCP"):
        cloud_of(None, ["gce://p/z/n", "aws:///a/i-1"])


# CRs


def cr(**spec: Any) -> dict[str, Any]:
    return {"kind": "AWSEBSDriver", "metadata": {"name": "cluster"}, "spec": spec}


@pytest.mark.parametrize(
    "written",
    [
        {},
        # An operator of OLM's had no more than these, and wrote them empty.
        {"managementState": "", "logLevel": "", "operatorLogLevel": None},
        {"managementState": "Managed", "logLevel": "Normal", "observedConfig": None, "new": 1},
    ],
)
def test_a_cr_of_another_version_means_what_it_meant(written: dict[str, Any]) -> None:
    assert settings_of(cr(**written)) == Settings()


def test_all_settings() -> None:
    found = settings_of(
        cr(
            managementState="Removed",
            logLevel="TraceAll",
            operatorLogLevel="Debug",
            defaultStorageClass="csi",
            storageClassState="Unmanaged",
            adoption="Adopt",
            credentials="Node",
            replicas=3,
            shareTypes=["gold"],
            storagePolicyName="p",
        )
    )
    assert found == Settings(
        State.REMOVED, 8, 4, DefaultClass.CSI, State.UNMANAGED, Adoption.ADOPT, Credentials.NODE,
        3, ("gold",), "p",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("level", "number"), [("Normal", 2), ("Debug", 4), ("Trace", 6), ("TraceAll", 8)]
)
def test_log_levels(level: str, number: int) -> None:
    assert settings_of(cr(logLevel=level)).verbosity == number


@pytest.mark.parametrize(
    ("level", "says"), [("", False), ("Normal", False), ("Debug", True), ("Loud", False)]
)
def test_what_the_operator_is_to_say(level: str, says: bool) -> None:
    assert wants_details(cr(operatorLogLevel=level)) is says
    assert not wants_details(None)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("managementState", "Gone", "one of Managed, Unmanaged, Removed"),
        ("storageClassState", "Sometimes", "one of Managed, Unmanaged, Removed"),
        ("defaultStorageClass", "both", "one of in-tree, csi"),
        ("logLevel", "Loud", "one of Normal, Debug, Trace, TraceAll"),
        ("logLevel", ["Debug"], "one of Normal, Debug, Trace, TraceAll"),
        ("operatorLogLevel", 4, "one of Normal, Debug, Trace, TraceAll"),
        ("adoption", True, "one of Leave, Adopt"),
        ("replicas", 10, "a number from 1 to 9"),
        ("replicas", True, "a number from 1 to 9"),
        ("shareTypes", "gold", "a list of names"),
        ("storagePolicyName", 5, "a text"),
    ],
)
def test_a_setting_that_is_wrong(field: str, value: object, said: str) -> None:
    with pytest.raises(InputError) as raised:
        settings_of(cr(**{field: value}))
    assert str(raised.value).startswith(f"AWSEBSDriver cluster: spec.{field} is ")
    assert str(raised.value).endswith(f"it has to be {said}")


def test_a_spec_that_is_none() -> None:
    with pytest.raises(InputError, match="spec is not an object"):
        settings_of({"kind": "AWSEBSDriver", "metadata": {"name": "cluster"}, "spec": "x"})


def test_crds() -> None:
    for driver, definition in zip(DRIVERS.values(), crds(), strict=True):
        spec = definition["spec"]
        assert definition["metadata"]["name"] == f"{driver.plural}.csi.openshift.io"
        assert (spec["group"], spec["scope"]) == ("csi.openshift.io", "Cluster")
        assert spec["names"]["kind"] == driver.kind
        assert [(it["name"], it["storage"]) for it in spec["versions"]] == [
            ("v1", True),
            ("v1alpha1", False),
        ]
        for version in spec["versions"]:
            schema = version["schema"]["openAPIV3Schema"]["properties"]
            assert schema["metadata"]["properties"]["name"]["enum"] == ["cluster"]
            assert version["subresources"] == {"status": {}}
        assert settings_of(default_cr(driver)) == Settings()


def test_fields_that_only_one_driver_has() -> None:
    def fields(kind: Any) -> set[str]:
        (version, _) = crd(kind)["spec"]["versions"]
        return set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])

    assert fields(MANILA) - fields(EBS) == {"shareTypes"}
    assert fields(VSPHERE) - fields(EBS) == {"storagePolicyName"}


# Values


def images(**others: object) -> dict[str, object]:
    return {it: f"registry.example/csi/{it}:v1" for it in IMAGES} | others


def test_the_shipped_values_name_every_image_with_a_tag() -> None:
    for name in IMAGES:
        registry, _, rest = shipped().image(name).partition("/")
        assert "." in registry
        assert rest.rpartition(":")[2].startswith("v")


def test_a_mirror_takes_the_place_of_every_registry() -> None:
    values = values_of({"images": images(), "mirror": "mirror.local:5000/air/"})
    assert values.image("aws-ebs") == "mirror.local:5000/air/csi/aws-ebs:v1"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "v: is not a mapping with images"),
        ({"images": images(), "tag": "x"}, "v: says tag, which means nothing"),
        ({"images": images(), "mirror": 5}, "v: mirror is not a text"),
        ({"images": {}}, "v: images.csi-provisioner is missing"),
        ({"images": images(**{"csi-attacher": ""})}, "v: images.csi-attacher is missing"),
        ({"images": images(floppy="x")}, "v: images.floppy is used by nothing"),
        (
            {"images": images(manila="manila:v1")},
            "v: images.manila is 'manila:v1', which does not begin with a registry",
        ),
    ],
)
def test_values_that_are_wrong(data: object, said: str) -> None:
    with pytest.raises(InputError) as raised:
        values_of(data, "v")
    assert said in str(raised.value)
