"""The drivers: which there are, what each needs, and where each is installed by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from replant.errors import InputError, shown
from replant.objects import Object


class Cloud(StrEnum):
    """As an Infrastructure names it in ``status.platformStatus.type``."""

    AWS = "AWS"
    GCP = "GCP"
    OPENSTACK = "OpenStack"
    AZURE = "Azure"
    VSPHERE = "VSphere"


_SCHEMES = {
    "aws": Cloud.AWS,
    "gce": Cloud.GCP,
    "azure": Cloud.AZURE,
    "openstack": Cloud.OPENSTACK,
    "vsphere": Cloud.VSPHERE,
}
"""What a node's ``spec.providerID`` begins with."""


@dataclass(frozen=True, slots=True)
class ClassOf:
    """A StorageClass that a driver comes with."""

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    default: bool = False
    """Whether it is the one to become the cluster's default, once CSI is to be that."""
    immediate: bool = False
    """Volumes are made before a pod waits for them: they are not tied to a zone."""


@dataclass(frozen=True, slots=True)
class Driver:
    """A CSI driver, and the CRD that asks for it."""

    name: str
    kind: str
    """Of its CR, which is called ``cluster``."""
    backend: str
    """What its namespace and objects are called after."""
    cloud: Cloud | None
    """Where it works; None for everywhere."""
    secret: str
    default: bool = True
    """Installed wherever its cloud is, and brought back; otherwise only where somebody asks."""
    in_tree: str = ""
    """The plugin that it takes over from."""
    attach: bool = True
    pod_info: bool = False
    fs_group: str = "File"
    classes: tuple[ClassOf, ...] = ()
    olm_package: str = ""
    """The package of the operator with which OLM has installed it in former times."""
    olm_deployment: str = ""
    """What that operator's Deployment is called."""
    own_operator: bool = False
    """Its vendor's operator installs it: ours looks, and says what it sees."""
    controller: str = ""
    node: str = ""
    """Names of its Deployment and DaemonSet: those that OLM's operator had given them."""
    roles: str = ""
    """What its roles are called after, if not after its backend: for the same reason."""

    @property
    def plural(self) -> str:
        """Of its CRD."""
        return f"{self.kind.lower()}s"

    @property
    def namespace(self) -> str:
        """The one rule. An operand of OLM's operators stands there, so it is adopted in place."""
        return f"openshift-{self.backend}-csi-driver"

    @property
    def controller_name(self) -> str:
        """Of its Deployment, and of all that serves it."""
        return self.controller or f"{self.backend}-csi-driver-controller"

    @property
    def node_name(self) -> str:
        """Of its DaemonSet, and of all that serves it."""
        return self.node or f"{self.backend}-csi-driver-node"


_ALL = (
    Driver(
        "ebs.csi.aws.com",
        "AWSEBSDriver",
        "aws-ebs",
        Cloud.AWS,
        "ebs-cloud-credentials",
        in_tree="kubernetes.io/aws-ebs",
        classes=(
            ClassOf("gp3-csi", {"type": "gp3", "encrypted": "true"}, default=True),
            ClassOf("gp2-csi", {"type": "gp2", "encrypted": "true"}),
        ),
        olm_package="aws-ebs-csi-driver-operator",
        olm_deployment="aws-ebs-csi-driver-operator",
        roles="ebs",
    ),
    Driver(
        "pd.csi.storage.gke.io",
        "GCEPDDriver",
        "gcp-pd",
        Cloud.GCP,
        "gcp-pd-cloud-credentials",
        in_tree="kubernetes.io/gce-pd",
        classes=(
            ClassOf(
                "standard-csi", {"type": "pd-standard", "replication-type": "none"}, default=True
            ),
            ClassOf("ssd-csi", {"type": "pd-ssd"}),
        ),
    ),
    Driver(
        "cinder.csi.openstack.org",
        "CinderDriver",
        "openstack-cinder",
        Cloud.OPENSTACK,
        "openstack-cloud-credentials",
        in_tree="kubernetes.io/cinder",
        pod_info=True,
        classes=(ClassOf("standard-csi", default=True),),
    ),
    Driver(
        "manila.csi.openstack.org",
        "ManilaDriver",
        "manila",
        Cloud.OPENSTACK,
        "manila-cloud-credentials",
        attach=False,
        fs_group="None",
        olm_package="manila-csi-driver-operator",
        olm_deployment="csi-driver-manila-operator",
        controller="openstack-manila-csi-controllerplugin",
        node="openstack-manila-csi-nodeplugin",
    ),
    Driver(
        "disk.csi.azure.com",
        "AzureDiskDriver",
        "azure-disk",
        Cloud.AZURE,
        "azure-disk-credentials",
        in_tree="kubernetes.io/azure-disk",
        pod_info=True,
        classes=(ClassOf("managed-csi", {"skuname": "Premium_LRS"}, default=True),),
    ),
    Driver(
        "file.csi.azure.com",
        "AzureFileDriver",
        "azure-file",
        Cloud.AZURE,
        "azure-file-credentials",
        in_tree="kubernetes.io/azure-file",
        attach=False,
        pod_info=True,
        fs_group="None",
        classes=(ClassOf("azurefile-csi", {"skuName": "Standard_LRS"}, immediate=True),),
    ),
    Driver(
        "csi.vsphere.vmware.com",
        "VSphereDriver",
        "vmware-vsphere",
        Cloud.VSPHERE,
        "vmware-vsphere-cloud-credentials",
        default=False,
        in_tree="kubernetes.io/vsphere-volume",
        classes=(ClassOf("thin-csi", default=True),),
    ),
    Driver(
        "pxd.portworx.com",
        "PortworxDriver",
        "portworx",
        None,
        "px-user-token",
        default=False,
        in_tree="kubernetes.io/portworx-volume",
        attach=False,
        own_operator=True,
    ),
)
DRIVERS: Mapping[str, Driver] = {it.name: it for it in _ALL}
"""By name, in the order of the documents."""

CR_NAME = "cluster"


def drivers_of(cloud: Cloud | None) -> tuple[tuple[Driver, ...], tuple[Driver, ...]]:
    """The drivers that are installed by default on a cloud, and those that one may ask for."""
    here = [it for it in _ALL if it.cloud in (cloud, None)]
    return tuple(it for it in here if it.default), tuple(it for it in here if not it.default)


def driver_named(text: str) -> Driver:
    """A driver by its own name, its CR's kind, its backend or its in-tree plugin."""
    for driver in _ALL:
        plugin = driver.in_tree.rpartition("/")[2]
        plugins = (driver.in_tree, plugin, plugin.removesuffix("-volume"))
        if text and text in (driver.name, driver.kind, driver.backend, *plugins):
            return driver
    known = ", ".join(it.backend for it in _ALL)
    raise InputError(f"is no driver that is known here: {known}", source=shown(text))


def cloud_of(infrastructure: Object | None, provider_ids: Iterable[str]) -> Cloud | None:
    """The cloud that a cluster is in; None for one that no driver is for.

    InputError if it should be known and is not: an Infrastructure that does not say its platform
    yet, or nodes of more than one cloud.
    """
    if infrastructure is not None:
        status = infrastructure.get("status") or {}
        said = (status.get("platformStatus") or {}).get("type")
        if not said:
            raise InputError(
                "status.platformStatus.type is not there yet: which cloud this is is not known",
                source="Infrastructure cluster",
            )
        return next((it for it in Cloud if it == said), None)
    found = {_SCHEMES.get(it.partition(":")[0]) for it in provider_ids if it}
    clouds = sorted(it for it in found if it)
    if len(clouds) > 1:
        raise InputError(f"are of more than one cloud: {', '.join(clouds)}", source="Nodes")
    return clouds[0] if clouds else None
