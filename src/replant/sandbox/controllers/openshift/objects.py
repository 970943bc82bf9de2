"""OpenShift's definitions, as far as a switch of gates concerns them, and their first objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replant.gates.history import gate_at
from replant.gates.versions import Version
from replant.objects import Object

CONFIG, OPERATOR, MACHINES, CREDENTIALS, LIFECYCLE = (
    "config.openshift.io/v1",
    "operator.openshift.io/v1",
    "machineconfiguration.openshift.io/v1",
    "cloudcredential.openshift.io/v1",
    "operators.coreos.com/v1alpha1",
)
FEATURE_SETS = ("", "CustomNoUpgrade", "DevPreviewNoUpgrade", "TechPreviewNoUpgrade", "OKD")
CONTROL_PLANE_SET, NODE_SET = "CSIMigrationControlPlane", "CSIMigrationNode"
_OF_THE_SETS = ("", "AWS", "GCE", "AzureDisk", "AzureFile", "vSphere", "OpenStack")
CLUSTER, VERSION = "cluster", "version"
_MINORS_APART = 13
"""OpenShift 4.10 has Kubernetes 1.23, and so on."""

_OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NAMES = {"type": "array", "items": {"type": "string"}}


def definitions(more_feature_sets: tuple[str, ...]) -> Iterator[Object]:
    """What the kinds are; the FeatureGate's own list of sets is the one that counts."""
    feature_set = {"type": "string", "enum": [*FEATURE_SETS, *more_feature_sets]}
    custom = {"type": "object", "properties": {"enabled": _NAMES, "disabled": _NAMES}}
    spec = {
        "type": "object",
        "properties": {"featureSet": feature_set, "customNoUpgrade": custom},
    }
    yield _definition(CONFIG, "FeatureGate", "featuregates", spec, status=False)
    yield _definition(CONFIG, "ClusterOperator", "clusteroperators", _OPEN)
    yield _definition(CONFIG, "ClusterVersion", "clusterversions", _OPEN)
    yield _definition(OPERATOR, "KubeAPIServer", "kubeapiservers", _OPEN)
    yield _definition(OPERATOR, "KubeControllerManager", "kubecontrollermanagers", _OPEN)
    yield _definition(OPERATOR, "KubeScheduler", "kubeschedulers", _OPEN)
    yield _definition(MACHINES, "MachineConfigPool", "machineconfigpools", _OPEN)
    yield _definition(CONFIG, "Infrastructure", "infrastructures", _OPEN)
    yield _definition(OPERATOR, "Storage", "storages", _OPEN)
    yield _definition(OPERATOR, "ClusterCSIDriver", "clustercsidrivers", _OPEN)
    inside: Object = {"scope": "Namespaced"}
    yield _definition(CREDENTIALS, "CredentialsRequest", "credentialsrequests", _OPEN, **inside)
    yield _definition(LIFECYCLE, "Subscription", "subscriptions", _OPEN, **inside)
    yield _definition(LIFECYCLE, "ClusterServiceVersion", "clusterserviceversions", _OPEN, **inside)


def _definition(
    api_version: str,
    kind: str,
    plural: str,
    spec: Object,
    *,
    status: bool = True,
    scope: str = "Cluster",
) -> Object:
    group, version = api_version.split("/")
    schema = {"type": "object", "properties": {"spec": spec, "status": _OPEN}}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if status:
        served["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [served],
        },
    }


def first(
    components: Mapping[str, str],
    hosts: list[str],
    gates: Mapping[str, bool],
    pools: tuple[str, ...],
    platform: str,
    version: Version,
) -> Iterator[Object]:
    """A cluster that is at rest: every component at its first revision."""
    for name in ("openshift-cloud-credential-operator", "openshift-marketplace"):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield {"apiVersion": CONFIG, "kind": "FeatureGate", "metadata": {"name": CLUSTER}, "spec": {}}
    yield {
        "apiVersion": CONFIG,
        "kind": "ClusterVersion",
        "metadata": {"name": VERSION},
        "spec": {},
        "status": {"desired": {"version": release_of(version)}},
    }
    yield {
        "apiVersion": CONFIG,
        "kind": "Infrastructure",
        "metadata": {"name": CLUSTER},
        "spec": {},
        "status": {"platformStatus": {"type": platform}} if platform else {},
    }
    yield {
        "apiVersion": OPERATOR,
        "kind": "Storage",
        "metadata": {"name": CLUSTER},
        "spec": {"managementState": "Managed"},
    }
    for component, kind in components.items():
        nodes = [{"nodeName": it, "currentRevision": 1, "targetRevision": 0} for it in hosts]
        yield {
            "apiVersion": OPERATOR,
            "kind": kind,
            "metadata": {"name": CLUSTER},
            "spec": {
                "managementState": "Managed",
                "observedConfig": observed_config(component, gates),
            },
            "status": {"latestAvailableRevision": 1, "nodeStatuses": nodes},
        }
        yield {
            "apiVersion": CONFIG,
            "kind": "ClusterOperator",
            "metadata": {"name": component},
            "spec": {},
            "status": {"conditions": operator_conditions(progressing=False)},
        }
    for name in pools:
        yield {
            "apiVersion": MACHINES,
            "kind": "MachineConfigPool",
            "metadata": {"name": name},
            "spec": {
                "paused": False,
                "nodeSelector": {"matchLabels": {role(name): ""}},
            },
        }


def release_of(version: Version) -> str:
    """The OpenShift that comes with a Kubernetes."""
    return f"4.{version.minor - _MINORS_APART}.{version.patch}"


def kubernetes_of(release: str) -> Version:
    """The Kubernetes that comes with an OpenShift."""
    found = Version.parse(release)
    return Version(1, found.minor + _MINORS_APART, found.patch)


def observed_config(component: str, gates: Mapping[str, bool]) -> Object:
    """What an operator has understood, in the words of its component's configuration."""
    where = "apiServerArguments" if component == "kube-apiserver" else "extendedArguments"
    given = [f"{gate}={str(on).lower()}" for gate, on in sorted(gates.items())]
    return {where: {"feature-gates": given}}


def operator_conditions(*, progressing: bool) -> list[Object]:
    """How a ClusterOperator says that it is at work, or at rest."""
    said = {"Available": "True", "Progressing": str(progressing), "Degraded": "False"}
    return [{"type": kind, "status": status} for kind, status in said.items()]


def role(pool: str) -> str:
    """The label of a pool's nodes."""
    return f"node-role.kubernetes.io/{pool}"


def gates_of(
    feature_gate: Object, defaults: Mapping[str, bool], version: Version, *, nodes: bool
) -> dict[str, bool]:
    """What a FeatureGate gives a component of some version; nodes ignore one of the sets."""
    spec = feature_gate.get("spec") or {}
    feature_set = spec.get("featureSet") or ""
    given = dict(defaults)
    if feature_set == NODE_SET or (feature_set == CONTROL_PLANE_SET and not nodes):
        given |= dict.fromkeys((f"CSIMigration{it}" for it in _OF_THE_SETS), True)
    if feature_set == "CustomNoUpgrade":
        custom = spec.get("customNoUpgrade") or {}
        given = dict.fromkeys(custom.get("enabled") or (), True)
        given |= dict.fromkeys(custom.get("disabled") or (), False)
    return {gate: on for gate, on in given.items() if gate_at(gate, version)}
