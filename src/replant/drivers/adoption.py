"""Drivers that somebody else has installed: OLM's operators make way, others are asked about.

The operand runs on all the while. OLM's operator is taken away by what made it, its Subscription
and its ClusterServiceVersion; OLM itself then removes the operator's Deployment. What must not be
forgotten on the way is kept in annotations, so this may be killed anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replant.drivers.catalog import Driver
from replant.drivers.kinds import Key
from replant.drivers.naming import ADOPTED, OPERAND, Names
from replant.drivers.sameness import annotations_of, is_ours, leaving
from replant.drivers.writes import Annotate, Delete, Write
from replant.objects import Object

SOURCE, SOURCE_NAMESPACE = "redhat-operators", "openshift-marketplace"

AFRESH: Mapping[str, None] = {ADOPTED: None, OPERAND: None}
"""What a CR must not know any more if a driver that was claimed back is to be adopted once more."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next step of taking OLM's operator away: a write, or else a wait."""

    message: str
    writes: tuple[Write, ...] = ()


def namespace_key(driver: Driver) -> str:
    """The annotation that keeps where OLM's operator runs, or ran."""
    return f"replant.dev/{driver.backend}-olm-namespace"


def csv_key(driver: Driver) -> str:
    """The annotation that keeps the name of its ClusterServiceVersion."""
    return f"replant.dev/{driver.backend}-olm-csv"


def installed_key(driver: Driver) -> str:
    """The same of the one that is installed, where an upgrade has not got through."""
    return f"replant.dev/{driver.backend}-olm-installed-csv"


def _csvs(driver: Driver, keeper: Object | None) -> list[str]:
    kept = annotations_of(keeper or {})
    return [kept[it] for it in (csv_key(driver), installed_key(driver)) if kept.get(it)]


def olm_keys(driver: Driver, keeper: Object | None) -> list[Key]:
    """What has to be looked at once it has begun."""
    namespace = annotations_of(keeper or {}).get(namespace_key(driver))
    if not namespace:
        return []
    keys: list[Key] = [("Deployment", namespace, driver.olm_deployment)]
    keys += [("ClusterServiceVersion", namespace, it) for it in _csvs(driver, keeper)]
    return keys


def subscription_of(driver: Driver, subscriptions: Sequence[Object]) -> Object | None:
    """The Subscription by which OLM runs the driver's operator, in whichever namespace."""
    for it in subscriptions:
        spec = it.get("spec") or {}
        wanted = (driver.olm_package, SOURCE, SOURCE_NAMESPACE)
        said = (spec.get("name"), spec.get("source"), spec.get("sourceNamespace"))
        if driver.olm_package and said == wanted:
            return it
    return None


def has_begun(driver: Driver, keeper: Object) -> bool:
    """Whether OLM's operator is being taken away, or was and the operand is not ours yet."""
    return namespace_key(driver) in annotations_of(keeper)


def olm_step(
    driver: Driver,
    keeper: Object,
    subscriptions: Sequence[Object],
    objects: Mapping[Key, Object],
) -> Step | None:
    """What comes next; None if there is no operator of OLM's, or none any more."""
    subscription = subscription_of(driver, subscriptions)
    if not has_begun(driver, keeper):
        return _begin(driver, keeper, subscription) if subscription else None
    namespace = annotations_of(keeper)[namespace_key(driver)]
    if subscription is not None:
        return _goes("Subscription", subscription)
    for csv in _csvs(driver, keeper):
        found = objects.get(("ClusterServiceVersion", namespace, csv))
        if found is not None:
            return _goes("ClusterServiceVersion", found)
    if ("Deployment", namespace, driver.olm_deployment) in objects:
        place = f"{namespace}/{driver.olm_deployment}"
        return Step(f"waiting for OLM to remove the operator's Deployment {place}")
    return None


def finished(driver: Driver, keeper: Object) -> Write:
    """The operand is ours: nothing needs to be kept in mind any more."""
    kept = (namespace_key(driver), csv_key(driver), installed_key(driver))
    return Annotate(keeper, {it: None for it in kept if it in annotations_of(keeper)})


def _begin(driver: Driver, keeper: Object, subscription: Object) -> Step:
    metadata = subscription["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    csv = (subscription.get("status") or {}).get("currentCSV") or ""
    if not csv:
        return Step(
            f"Subscription {namespace}/{name} does not say its currentCSV yet: OLM is installing it"
        )
    marks = {namespace_key(driver): namespace, csv_key(driver): csv}
    installed = (subscription.get("status") or {}).get("installedCSV")
    if installed and installed != csv:
        marks[installed_key(driver)] = installed
    return Step(f"found Subscription {namespace}/{name}", (Annotate(keeper, marks),))


def _goes(kind: str, found: Object) -> Step:
    metadata = found["metadata"]
    place = f"{kind} {metadata['namespace']}/{metadata['name']}"
    if leaving(found):
        return Step(f"waiting for {place} to be gone")
    return Step(f"deleting {place}", (Delete(found),))


# Helm, kubectl and whoever else


def installed_by(obj: Object) -> str:
    """Who has installed an object that is not ours, as far as it tells."""
    metadata = obj.get("metadata", {})
    labels = metadata.get("labels") or {}
    if labels.get("app.kubernetes.io/managed-by") == "Helm":
        release = annotations_of(obj).get("meta.helm.sh/release-name", "")
        namespace = annotations_of(obj).get("meta.helm.sh/release-namespace", "")
        return f"Helm (release {namespace}/{release})" if release else "Helm"
    if "kubectl.kubernetes.io/last-applied-configuration" in annotations_of(obj):
        return "kubectl"
    return "somebody else"


def is_foreign(csi_driver: Object | None) -> bool:
    """Whether a CSIDriver is there that is not ours."""
    return csi_driver is not None and not is_ours(csi_driver)


@dataclass(frozen=True, slots=True)
class Found:
    """The operand of a driver that somebody else has installed."""

    names: Names | None
    trouble: str = ""


def found_operand(driver: Driver, workloads: Sequence[Object]) -> Found:
    """The Deployment and the DaemonSet that run a driver, told by its socket and its sidecars."""
    nodes = [it for it in workloads if it.get("kind") == "DaemonSet" and _on_nodes(driver, it)]
    if len(nodes) != 1:
        return Found(None, _count("DaemonSet", nodes, f"the socket of {driver.name}"))
    node = nodes[0]["metadata"]
    beside = [
        it
        for it in workloads
        if it.get("kind") in ("Deployment", "StatefulSet")
        and it["metadata"].get("namespace") == node.get("namespace")
        and _provisions(driver, it)
    ]
    controllers = [it for it in beside if it["kind"] == "Deployment"]
    if len(controllers) != 1 or len(beside) != 1:
        return Found(None, _count("Deployment", beside, f"a csi-provisioner for {driver.name}"))
    controller = controllers[0]
    names = Names(
        namespace=node["namespace"],
        controller_namespace=node["namespace"],
        controller=controller["metadata"]["name"],
        node=node["name"],
        controller_account=_account(controller),
        node_account=_account(nodes[0]),
    )
    return Found(names)


def _count(kind: str, found: Sequence[Object], what: str) -> str:
    named = ", ".join(f"{it['kind']} {it['metadata']['name']}" for it in found) or "none"
    return f"one {kind} with {what} is looked for, and found is: {named}"


def _spec(workload: Object) -> Object:
    spec = ((workload.get("spec") or {}).get("template") or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def _account(workload: Object) -> str:
    return str(_spec(workload).get("serviceAccountName") or "default")


def _on_nodes(driver: Driver, workload: Object) -> bool:
    paths = [
        (it.get("hostPath") or {}).get("path", "") for it in _spec(workload).get("volumes", ())
    ]
    return any(it.rstrip("/").endswith(f"/plugins/{driver.name}") for it in paths)


def _provisions(driver: Driver, workload: Object) -> bool:
    """Whether its containers provision, and are the driver's as far as images tell."""
    images = [str(it.get("image", "")) for it in _spec(workload).get("containers", ())]
    named = any("provisioner" in it for it in images)
    return named and any(word in it for it in images for word in _IMAGE_WORDS[driver.name])


_IMAGE_WORDS = {
    "ebs.csi.aws.com": ("ebs-csi",),
    "pd.csi.storage.gke.io": ("persistent-disk-csi", "pd-csi"),
    "cinder.csi.openstack.org": ("cinder-csi",),
    "manila.csi.openstack.org": ("manila-csi",),
    "disk.csi.azure.com": ("azuredisk-csi", "azure-disk-csi"),
    "file.csi.azure.com": ("azurefile-csi", "azure-file-csi"),
    "csi.vsphere.vmware.com": ("csi-vsphere", "vsphere-csi", "csi/release/driver"),
    "pxd.portworx.com": ("portworx",),
}
"""What images of each driver have in their names, whoever has mirrored them."""
