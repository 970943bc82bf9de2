"""What is particular about each driver's own containers: their flags, and where rights come from.

Flags are those of the upstream manifests of the versions in ``values.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from replant.drivers.catalog import Driver
from replant.objects import Object

SOCKET = "/csi/csi.sock"
ENDPOINT = f"unix://{SOCKET}"


@dataclass(frozen=True, slots=True)
class Told:
    """What containers are told."""

    driver: Driver
    namespace: str
    verbosity: int
    secret: bool
    """Whether there is one: otherwise rights come from the machine."""
    region: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """One container of the driver itself, and what it mounts beside the socket."""

    args: Sequence[str]
    env: Sequence[Object] = ()
    mounts: Sequence[tuple[str, str]] = ()
    """Name of a volume, and where it is mounted."""
    volumes: Sequence[Object] = ()


@dataclass(frozen=True, slots=True)
class Programs:
    """Both of a driver."""

    controller: Callable[[Told], Program]
    node: Callable[[Told], Program]
    rules: Sequence[Object] = ()
    """What the controller may do beside its sidecars."""
    node_rules: Sequence[Object] = ()
    config: dict[str, str] = field(default_factory=dict)
    """A ConfigMap that both read."""
    secret_keys: Sequence[str] = ()
    """What the secret has to have."""


_CONFIG_NAMES = {"csi.vsphere.vmware.com": "internal-feature-states.csi.vsphere.vmware.com"}


def config_name(driver: Driver) -> str:
    """What a driver's ConfigMap is called."""
    return _CONFIG_NAMES.get(driver.name, f"{driver.backend}-csi-driver-config")


def variable(name: str, value: str) -> Object:
    """A container's variable."""
    return {"name": name, "value": value}


def _from_field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _from_secret(name: str, secret: str, key: str) -> Object:
    # Without the key a driver looks for its rights elsewhere, and says so if there are none.
    ref = {"name": secret, "key": key, "optional": True}
    return {"name": name, "valueFrom": {"secretKeyRef": ref}}


_NODE_NAME = _from_field("KUBE_NODE_NAME", "spec.nodeName")


def _secret_volume(told: Told) -> list[Object]:
    if not told.secret:
        return []
    return [{"name": "cloud-credentials", "secret": {"secretName": told.driver.secret}}]


def _rule(group: str, resources: str, verbs: str) -> Object:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


# AWS


def _ebs_controller(told: Told) -> Program:
    env = [_from_field("CSI_NODE_NAME", "spec.nodeName")]
    if told.secret:
        env += [
            _from_secret("AWS_ACCESS_KEY_ID", told.driver.secret, "aws_access_key_id"),
            _from_secret("AWS_SECRET_ACCESS_KEY", told.driver.secret, "aws_secret_access_key"),
        ]
    if told.region:
        env.append(variable("AWS_REGION", told.region))
    return Program(["controller", f"--endpoint={ENDPOINT}", f"--v={told.verbosity}"], env)


def _ebs_node(told: Told) -> Program:
    env = [_from_field("CSI_NODE_NAME", "spec.nodeName")]
    return Program(["node", f"--endpoint={ENDPOINT}", f"--v={told.verbosity}"], env)


# Google


def _pd_controller(told: Told) -> Program:
    path = "/etc/cloud-sa"
    env, mounts = [], []
    if told.secret:
        env.append(variable("GOOGLE_APPLICATION_CREDENTIALS", f"{path}/service_account.json"))
        mounts.append(("cloud-credentials", path))
    args = [f"--endpoint={ENDPOINT}", f"--v={told.verbosity}", "--run-node-service=false"]
    return Program(args, env, mounts, _secret_volume(told))


def _pd_node(told: Told) -> Program:
    args = [f"--endpoint={ENDPOINT}", f"--v={told.verbosity}", "--run-controller-service=false"]
    # It finds a disk by what the node's udev calls it.
    folders = {"udev-rules-etc": "/etc/udev", "udev-rules-lib": "/lib/udev", "udev": "/run/udev"}
    volumes = [
        {"name": name, "hostPath": {"path": path, "type": "Directory"}}
        for name, path in folders.items()
    ]
    return Program(args, mounts=list(folders.items()), volumes=volumes)


# OpenStack

_CLOUD_CONF = """[Global]
use-clouds = true
clouds-file = /etc/openstack/clouds.yaml
cloud = openstack
"""


def _cinder(told: Told, *only: str) -> Program:
    args = [
        "/bin/cinder-csi-plugin",
        f"--endpoint={ENDPOINT}",
        "--cloud-config=/etc/kubernetes/config/cloud.conf",
        f"--v={told.verbosity}",
        *only,
    ]
    mounts = [("config", "/etc/kubernetes/config"), ("cloud-credentials", "/etc/openstack")]
    secret = _secret_volume(told)
    config = {"name": "config", "configMap": {"name": config_name(told.driver)}}
    return Program(args, mounts=mounts if secret else mounts[:1], volumes=[config, *secret])


def _cinder_controller(told: Told) -> Program:
    return _cinder(told, "--provide-node-service=false")


def _cinder_node(told: Told) -> Program:
    return _cinder(told, "--provide-controller-service=false")


def _manila(told: Told, *only: str) -> Program:
    # It mounts no secret: classes tell it which one to use.
    args = [
        "/bin/manila-csi-plugin",
        "--nodeid=$(KUBE_NODE_NAME)",
        f"--endpoint={ENDPOINT}",
        f"--drivername={told.driver.name}",
        "--share-protocol-selector=NFS",
        "--fwdendpoint=unix:///csi/csi-nfs.sock",
        f"--v={told.verbosity}",
        *only,
    ]
    return Program(args, [_NODE_NAME])


def _manila_controller(told: Told) -> Program:
    return _manila(told, "--provide-node-service=false")


def _manila_node(told: Told) -> Program:
    return _manila(told, "--provide-controller-service=false")


# Azure


def _azure(told: Told) -> Program:
    args = [f"--endpoint={ENDPOINT}", "--nodeid=$(KUBE_NODE_NAME)", f"--v={told.verbosity}"]
    if told.secret:
        args += [
            f"--cloud-config-secret-name={told.driver.secret}",
            f"--cloud-config-secret-namespace={told.namespace}",
        ]
    return Program(args, [_NODE_NAME])


# vSphere


def _vsphere(told: Told, mode: str) -> Program:
    args = [
        "--fss-name=internal-feature-states.csi.vsphere.vmware.com",
        "--fss-namespace=$(CSI_NAMESPACE)",
    ]
    env = [
        variable("CSI_ENDPOINT", ENDPOINT),
        variable("X_CSI_MODE", mode),
        variable("LOGGER_LEVEL", "DEVELOPMENT" if told.verbosity > 2 else "PRODUCTION"),
        _from_field("CSI_NAMESPACE", "metadata.namespace"),
        _from_field("NODE_NAME", "spec.nodeName"),
    ]
    if mode == "node":
        return Program(args, env)
    env.append(variable("VSPHERE_CSI_CONFIG", "/etc/cloud/csi-vsphere.conf"))
    volumes = _secret_volume(told)
    mounts = [("cloud-credentials", "/etc/cloud")] if volumes else []
    return Program(args, env, mounts, volumes)


def _vsphere_controller(told: Told) -> Program:
    return _vsphere(told, "controller")


def _vsphere_node(told: Told) -> Program:
    return _vsphere(told, "node")


_AZURE_SECRET = _rule("", "secrets", "get")
_CNS = "cns.vmware.com"

PROGRAMS = {
    "ebs.csi.aws.com": Programs(
        _ebs_controller,
        _ebs_node,
        secret_keys=("aws_access_key_id", "aws_secret_access_key"),
    ),
    "pd.csi.storage.gke.io": Programs(
        _pd_controller, _pd_node, secret_keys=("service_account.json",)
    ),
    "cinder.csi.openstack.org": Programs(
        _cinder_controller,
        _cinder_node,
        config={"cloud.conf": _CLOUD_CONF},
        secret_keys=("clouds.yaml",),
    ),
    "manila.csi.openstack.org": Programs(
        _manila_controller,
        _manila_node,
        rules=(_rule("", "secrets", "get list"),),
        # The first is read to find the share types; the others are what the driver is told.
        secret_keys=(
            "clouds.yaml",
            "os-authURL",
            "os-region",
            "os-userName",
            "os-password",
            "os-projectName",
        ),
    ),
    "disk.csi.azure.com": Programs(
        _azure,
        _azure,
        rules=(_AZURE_SECRET,),
        node_rules=(_AZURE_SECRET,),
        secret_keys=("cloud-config",),
    ),
    "file.csi.azure.com": Programs(
        _azure,
        _azure,
        # It keeps the key of each share's account in a secret.
        rules=(_rule("", "secrets", "get create"),),
        node_rules=(_AZURE_SECRET,),
        secret_keys=("cloud-config",),
    ),
    "csi.vsphere.vmware.com": Programs(
        _vsphere_controller,
        _vsphere_node,
        rules=(
            _rule("", "configmaps", "get list watch"),
            _rule("", "pods namespaces", "get list watch"),
            _rule("", "persistentvolumeclaims/status", "update patch"),
            _rule(
                "apiextensions.k8s.io", "customresourcedefinitions", "get create update list watch"
            ),
            _rule(
                _CNS,
                "cnsvspherevolumemigrations csinodetopologies cnsvolumeoperationrequests "
                "cnsvolumeinfoes triggercsifullsyncs",
                "get list watch create update patch delete",
            ),
            _rule("storage.k8s.io", "csidrivers", "get list watch"),
        ),
        node_rules=(
            _rule("", "configmaps", "get list watch"),
            _rule(_CNS, "csinodetopologies", "create watch get patch"),
        ),
        config={
            # The driver serves volumes of the in-tree plugin only if it is told to.
            "csi-migration": "true",
        },
        secret_keys=("csi-vsphere.conf",),
    ),
}
"""Of each driver that is installed here, by its name."""
