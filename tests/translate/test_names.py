"""The names of plugins and drivers, and which objects they serve."""

from __future__ import annotations

from typing import Any

import pytest

from replant import translate
from replant.errors import Final, TranslationError

DRIVERS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/rbd": "rbd.csi.ceph.com",
}


def test_plugins_are_the_eight_by_their_full_names() -> None:
    assert set(translate.plugins()) == set(DRIVERS)


@pytest.mark.parametrize(("plugin", "driver"), DRIVERS.items())
def test_plugin_and_driver_name_each_other(plugin: str, driver: str) -> None:
    assert translate.driver_of(plugin) == driver
    assert translate.driver_of(plugin.removeprefix("kubernetes.io/")) == driver
    assert translate.plugin_for_driver(driver) == plugin


def test_short_plugin_names_translate_classes_too() -> None:
    storage_class = {"provisioner": "kubernetes.io/cinder", "parameters": {"fsType": "xfs"}}
    full = translate.storage_class_to_csi("kubernetes.io/cinder", storage_class)
    assert translate.storage_class_to_csi("cinder", storage_class) == full


@pytest.mark.parametrize("name", ["", "nfs", "kubernetes.io/", "kubernetes.io/glusterfs", None, 3])
def test_unknown_names_are_refused(name: Any) -> None:
    for function in (translate.driver_of, translate.plugin_for_driver):
        with pytest.raises(TranslationError, match="is not a known"):
            function(name)


@pytest.mark.parametrize(
    ("obj", "plugin"),
    [
        ({"spec": {"rbd": {"image": "a"}}}, "kubernetes.io/rbd"),
        ({"spec": {"rbd": {}}}, "kubernetes.io/rbd"),
        ({"spec": {"rbd": None}}, None),
        ({"name": "data", "cinder": {"volumeID": "a"}}, "kubernetes.io/cinder"),
        ({"name": "data", "emptyDir": {}}, None),
        ({"provisioner": "kubernetes.io/gce-pd"}, "kubernetes.io/gce-pd"),
        ({"provisioner": "gce-pd"}, None),
        ({"provisioner": "pd.csi.storage.gke.io"}, None),
        ({"provisioner": ["kubernetes.io/gce-pd"]}, None),
        ({"spec": {"csi": {"driver": "ebs.csi.aws.com"}}}, None),
        ({"spec": {"glusterfs": {"path": "a"}}}, None),
        ({"spec": []}, None),
        ({}, None),
        (None, None),
        ("kubernetes.io/rbd", None),
    ],
)
def test_plugin_of_an_object(obj: Any, plugin: str | None) -> None:
    assert translate.plugin_of(obj) == plugin
    assert translate.is_migratable(obj) is (plugin is not None)


def test_an_error_says_object_field_and_reason() -> None:
    pv = {"metadata": {"name": "db"}, "spec": {"azureDisk": {"diskURI": "/x", "kind": "Shared"}}}
    with pytest.raises(Final) as caught:
        translate.pv_to_csi(pv)
    assert str(caught.value) == (
        "PersistentVolume db: spec.azureDisk.kind: is Shared: the driver has managed disks only"
    )
