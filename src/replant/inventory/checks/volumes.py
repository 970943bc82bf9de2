"""PersistentVolumes: what serves them, whether they can be translated, and their annotations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

from replant.errors import TranslationError, shown
from replant.gates.plugins import PHASE_MEANS, REMOVED_WITHOUT_DRIVER, Phase
from replant.inventory.checks.affinity import Nodes
from replant.inventory.checks.view import View, without_driver
from replant.inventory.findings import Finding, ObjectRef, Severity
from replant.inventory.model import IN_TREE_SOURCES, Volume
from replant.objects import Object
from replant.translate import driver_of, pv_to_csi
from replant.translate.rbd import HANDLE_ANNOTATION
from replant.translate.topology import BETA_REGION, BETA_ZONE

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"

_VSPHERE_PATH = re.compile(r"\[[^\]]+\] .+\.vmdk")
_BETA = (BETA_ZONE, BETA_REGION)
_BETA_SET = frozenset(_BETA)
_BETA_PREFIX = b"failure-domain.beta."
_TRANSLATED_AFFINITY = frozenset(
    f"kubernetes.io/{plugin}" for plugin in ("aws-ebs", "gce-pd", "cinder", "vsphere-volume")
)
_RETAIN = '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
_FS_GROUP_POLICY = '{"spec":{"fsGroupPolicy":"File"}}'
_MODIFIABLE = frozenset({"ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"})


def findings(view: View) -> Iterator[Finding]:
    """All that can be said of volumes."""
    for controller, pod in view.inventory.reclaimers.items():
        yield _reclaimer(controller, pod)
    nodes = Nodes(view)
    told: dict[str, str] = {}
    for volume in view.inventory.volumes:
        if volume.metadata.deletionTimestamp:
            yield _terminating(volume)
        pv = volume.as_object()
        if volume.plugin is None:
            yield from _without_driver(volume, pv["spec"])
            continue
        if volume.plugin not in told:
            told[volume.plugin] = _who_serves(view, volume.plugin)
        yield Finding("RP101", _urgency(view, volume.plugin), volume.ref, told[volume.plugin])
        yield from _translation(volume, pv, nodes)
        yield from _beta_keys(volume, pv["spec"])
        yield from _annotations(view, volume)
        yield from _made_by_hand(view, volume)
        yield from _file_system(view, volume, pv["spec"])
        yield _native(volume)


def _urgency(view: View, plugin: str) -> Severity:
    """A volume that CSI serves already needs nothing; one that it does not needs a person."""
    if not view.servable_then(plugin):
        return Severity.BLOCKER
    return Severity.INFO if view.migrated_now(plugin) else Severity.WARNING


def _who_serves(view: View, plugin: str) -> str:
    driver = driver_of(plugin)
    if view.server is None:
        return f"{plugin} volume that {driver} takes over; the phase depends on the version."
    now = view.phase(plugin, view.server)
    text = f"{plugin} volume that {driver} takes over; phase {int(now)} at {view.server}: "
    if not view.servable_then(plugin):
        return f"{text}at {view.horizon and view.horizon.of_minor} nobody serves it any more."
    return f"{text}{PHASE_MEANS[now]}."


def _without_driver(volume: Volume, spec: Object) -> Iterator[Finding]:
    for _, plugin in without_driver(spec):
        version = REMOVED_WITHOUT_DRIVER[plugin].of_minor
        yield Finding(
            "RP102",
            Severity.BLOCKER,
            volume.ref,
            f"{plugin} was removed in Kubernetes {version} and no CSI driver took over from it.",
            "Copy the data to a volume of another kind before the upgrade.",
        )


def _reclaimer(controller: str, pod: str) -> Finding:
    namespace, _, name = pod.partition("/")
    return Finding(
        "RP116",
        Severity.WARNING,
        ObjectRef("Pod", name, namespace),
        f"{controller} deletes the storage of a volume when its PersistentVolume is deleted, "
        "whatever its reclaim policy.",
        "Delete no PersistentVolume to keep its disk while it runs; scale it to 0 before volumes "
        "are converted",
    )


def _terminating(volume: Volume) -> Finding:
    finalizers = "kubectl get pv " + quote(volume.name) + " -o jsonpath='{.metadata.finalizers}'"
    return Finding(
        "RP112",
        Severity.WARNING,
        volume.ref,
        "It is being deleted and only its finalizers keep it; it must not be converted.",
        finalizers,
    )


def _translation(volume: Volume, pv: Object, nodes: Nodes) -> Iterator[Finding]:
    try:
        translated = pv_to_csi(pv)
    except TranslationError as error:
        yield _untranslatable(volume, error)
        return
    if volume.plugin == "kubernetes.io/vsphere-volume":
        yield from _vsphere_path(volume, pv["spec"]["vsphereVolume"])
    if volume.plugin == "kubernetes.io/rbd" and HANDLE_ANNOTATION not in volume.annotations:
        yield _rbd_cluster(volume, pv["spec"]["rbd"], translated)
    wanted = nodes.unmet(translated, volume.driver)
    if wanted:
        yield Finding(
            "RP109",
            Severity.BLOCKER,
            volume.ref,
            f"After translation its affinity asks for {wanted}, which no node has.",
            "Bring a node there, or see why the nodes lost the label: kubectl get nodes -L "
            + quote(wanted.partition(" ")[0]),
        )


def _untranslatable(volume: Volume, error: TranslationError) -> Finding:
    if error.field == "spec.azureDisk.kind":
        return Finding(
            "RP103",
            Severity.BLOCKER,
            volume.ref,
            "It is an unmanaged disk (a blob), and the CSI driver has managed disks only.",
            "Convert the disk to a managed disk in Azure, then make a new PersistentVolume of it.",
        )
    if error.field == "spec.azureFile.secretNamespace":
        return Finding(
            "RP105",
            Severity.BLOCKER,
            volume.ref,
            "Neither the volume nor a claim says in which namespace its secret is.",
            "A stored volume cannot be changed: recreate it with spec.azureFile.secretNamespace.",
        )
    return Finding(
        "RP104",
        Severity.BLOCKER,
        volume.ref,
        f"It cannot be translated: {error.field}: {error.reason}.",
        f"kubectl get pv {quote(volume.name)} -o yaml",
    )


def _vsphere_path(volume: Volume, source: Object) -> Iterator[Finding]:
    path = source["volumePath"]
    if not _VSPHERE_PATH.fullmatch(path):
        yield Finding(
            "RP106",
            Severity.BLOCKER,
            volume.ref,
            f"Its path {shown(path)} is not [DATASTORE] PATH.vmdk, so the driver cannot find it.",
            "Look the disk up in vCenter and recreate the volume with its datastore path.",
        )


def _rbd_cluster(volume: Volume, source: Object, translated: Object) -> Finding:
    monitors = ", ".join(f'"{shown(monitor)}"' for monitor in source["monitors"])
    cluster = translated["spec"]["csi"]["volumeAttributes"]["clusterID"]
    return Finding(
        "RP107",
        Severity.WARNING,
        volume.ref,
        f"The driver must know its cluster as {cluster}, a hash of the monitors in this order.",
        f'Add to ceph-csi\'s config.json: {{"clusterID": "{cluster}", "monitors": [{monitors}]}}',
    )


def _beta_keys(volume: Volume, spec: Object) -> Iterator[Finding]:
    if _BETA_PREFIX not in volume.text and _BETA_SET.isdisjoint(volume.labels):
        return
    in_affinity = [key for key in _BETA if key in _affinity_keys(spec)]
    in_labels = [key for key in _BETA if key in volume.labels]
    if in_affinity:
        yield Finding(
            "RP108",
            Severity.WARNING,
            volume.ref,
            f"Its affinity uses {', '.join(in_affinity)}, which new nodes no longer carry.",
            "Converting the volume to a native CSI one rewrites its affinity."
            if volume.plugin in _TRANSLATED_AFFINITY
            else f"From 1.27 on the keys may be replaced: kubectl edit pv {quote(volume.name)}",
        )
    elif in_labels:
        yield Finding(
            "RP108",
            Severity.INFO,
            volume.ref,
            f"It has the beta labels {', '.join(in_labels)}.",
        )


def _affinity_keys(spec: Object) -> set[str]:
    """The keys of an affinity, as far as it is one: the translator has its say elsewhere."""
    try:
        terms = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
        return {it["key"] for term in terms for it in term.get("matchExpressions") or ()}
    except (AttributeError, KeyError, TypeError):
        return set()


def _annotations(view: View, volume: Volume) -> Iterator[Finding]:
    assert volume.plugin is not None  # noqa: S101 - only in-tree volumes come here
    provisioned_by = volume.annotations.get(PROVISIONED_BY)
    migrated_to = volume.annotations.get(MIGRATED_TO)
    migrated = view.migrated_now(volume.plugin)
    annotate = f"kubectl annotate pv {quote(volume.name)} --overwrite "
    # An external provisioner has a name of its own and every right to the volume.
    theirs = provisioned_by is not None and not provisioned_by.startswith("kubernetes.io/")
    if not theirs and provisioned_by not in (None, volume.plugin):
        yield Finding(
            "RP110",
            Severity.WARNING,
            volume.ref,
            f"{PROVISIONED_BY} is {shown(provisioned_by or '')}, but {volume.plugin} serves it.",
            f"{annotate}{PROVISIONED_BY}={volume.plugin}",
        )
    elif migrated_to not in (None, volume.driver):
        yield Finding(
            "RP110",
            Severity.WARNING,
            volume.ref,
            f"{MIGRATED_TO} is {shown(migrated_to or '')}, but its driver is {volume.driver}.",
            f"{annotate}{MIGRATED_TO}={volume.driver}",
        )
    elif migrated and provisioned_by == volume.plugin and migrated_to is None:
        yield Finding(
            "RP110",
            Severity.WARNING,
            volume.ref,
            f"The controllers redirect {volume.plugin}, but the volume has no {MIGRATED_TO}.",
            "See whether kube-controller-manager runs and syncs volumes: it sets it by itself.",
        )
    elif migrated_to and view.server and not migrated:
        yield Finding(
            "RP110",
            Severity.WARNING,
            volume.ref,
            f"It has {MIGRATED_TO}, but the controllers do not redirect {volume.plugin}.",
            "See whether kube-controller-manager runs with the gates that you think it has.",
        )


def _made_by_hand(view: View, volume: Volume) -> Iterator[Finding]:
    assert volume.plugin is not None  # noqa: S101 - only in-tree volumes come here
    if not volume.deletes or PROVISIONED_BY in volume.annotations:
        return
    name, plugin = quote(volume.name), volume.plugin
    soon = view.migrated_now(plugin) or view.migrated_then(plugin)
    off = view.server is not None and view.phase(plugin, view.server) >= Phase.PLUGIN_OFF
    yield Finding(
        "RP111",
        Severity.WARNING if soon else Severity.INFO,
        volume.ref,
        f"Without {PROVISIONED_BY} it is never handed to the driver: "
        + (
            f"nobody deletes its disk, as {plugin} is off or gone."
            if off
            else f"only {plugin} deletes its disk, and once that is off or gone nobody does."
        ),
        f"To keep the disk: kubectl patch pv {name} -p '{_RETAIN}'\n"
        "To have the driver delete it with its claim: "
        f"kubectl annotate pv {name} {PROVISIONED_BY}={plugin}",
    )


def _file_system(view: View, volume: Volume, spec: Object) -> Iterator[Finding]:
    if volume.plugin == "kubernetes.io/azure-file" or spec.get("volumeMode") == "Block":
        return
    if view.inventory.drivers.get(volume.driver) == "File":
        return
    pods = [pod for pod in view.inventory.users(volume) if pod.fs_group]
    sources = (spec[name] for name in IN_TREE_SOURCES if isinstance(spec.get(name), dict))
    if pods and not any(source.get("fsType") for source in sources):
        yield Finding(
            "RP114",
            Severity.WARNING,
            volume.ref,
            f"{pods[0].owner} asks for an fsGroup, which CSI skips where the file system type is "
            "empty.",
            f"kubectl patch csidriver {volume.driver} -p '{_FS_GROUP_POLICY}'\n"
            "Before 1.29 the CSIDriver cannot be changed and must be made anew.",
        )


def _native(volume: Volume) -> Finding:
    extra = ", changes by VolumeAttributesClass" if volume.driver in _MODIFIABLE else ""
    return Finding(
        "RP115",
        Severity.INFO,
        volume.ref,
        f"As a native CSI volume it could have snapshots, CSI backups by Velero{extra}.",
    )
