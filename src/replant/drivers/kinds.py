"""The kinds that drivers are made of: where the API has each, and how one is called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from replant.objects import Object

Key = tuple[str, str, str]
"""Kind, namespace (or nothing) and name."""

GROUP = "csi.openshift.io"
"""Of the CRDs that are the API of this package."""
VERSIONS = ("v1", "v1alpha1")
"""Both are served, the first is stored. CRs of the operators that OLM installs are of the other."""


class Kind(NamedTuple):
    """Where the API serves a kind."""

    api_version: str
    plural: str
    namespaced: bool = False


KINDS: Mapping[str, Kind] = {
    "Namespace": Kind("v1", "namespaces"),
    "ServiceAccount": Kind("v1", "serviceaccounts", namespaced=True),
    "ConfigMap": Kind("v1", "configmaps", namespaced=True),
    "Secret": Kind("v1", "secrets", namespaced=True),
    "ClusterRole": Kind("rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": Kind("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "Role": Kind("rbac.authorization.k8s.io/v1", "roles", namespaced=True),
    "RoleBinding": Kind("rbac.authorization.k8s.io/v1", "rolebindings", namespaced=True),
    "CSIDriver": Kind("storage.k8s.io/v1", "csidrivers"),
    "StorageClass": Kind("storage.k8s.io/v1", "storageclasses"),
    "Deployment": Kind("apps/v1", "deployments", namespaced=True),
    "DaemonSet": Kind("apps/v1", "daemonsets", namespaced=True),
    "PodDisruptionBudget": Kind("policy/v1", "poddisruptionbudgets", namespaced=True),
    "VolumeSnapshotClass": Kind("snapshot.storage.k8s.io/v1", "volumesnapshotclasses"),
    "CustomResourceDefinition": Kind("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "CredentialsRequest": Kind(
        "cloudcredential.openshift.io/v1", "credentialsrequests", namespaced=True
    ),
    "Subscription": Kind("operators.coreos.com/v1alpha1", "subscriptions", namespaced=True),
    "ClusterServiceVersion": Kind(
        "operators.coreos.com/v1alpha1", "clusterserviceversions", namespaced=True
    ),
    "Storage": Kind("operator.openshift.io/v1", "storages"),
    "ClusterCSIDriver": Kind("operator.openshift.io/v1", "clustercsidrivers"),
    "Infrastructure": Kind("config.openshift.io/v1", "infrastructures"),
    "ClusterOperator": Kind("config.openshift.io/v1", "clusteroperators"),
    "StorageCluster": Kind("core.libopenstorage.org/v1", "storageclusters", namespaced=True),
}
"""All but the CRs of drivers, which ``catalog`` has."""


def key_of(obj: Object) -> Key:
    """How an object is called here."""
    metadata = obj["metadata"]
    return obj["kind"], metadata.get("namespace", ""), metadata["name"]


def made(kind: str, name: str, namespace: str = "", **rest: object) -> Object:
    """A new object of one of the kinds, with its labels and fields as they are given."""
    metadata: Object = {"name": name}
    if KINDS[kind].namespaced:
        metadata["namespace"] = namespace
    for field in ("labels", "annotations"):
        if rest.get(field):
            metadata[field] = rest[field]
        rest.pop(field, None)
    return {"apiVersion": KINDS[kind].api_version, "kind": kind, "metadata": metadata, **rest}
