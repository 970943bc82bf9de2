"""What the API server writes into an object that does not say it: the defaults people see."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from replant.objects import POD_SPEC_PATHS, Object
from replant.sandbox.resources import Resource
from replant.sandbox.schemas.complete import complete
from replant.sandbox.validation import at


def fill(resource: Resource, obj: Object) -> None:
    """Write the defaults of its kind into an object."""
    if resource.custom:
        if resource.schema is not None:
            complete(resource.schema, obj)
        return
    if path := POD_SPEC_PATHS.get(resource.kind):
        spec = at(obj, path)
        if isinstance(spec, dict):
            _pod_spec(spec, account=resource.kind == "Pod")
    if own := _DEFAULTS.get(resource.kind):
        own(obj)


def first_status(resource: Resource, obj: Object) -> None:
    """The status of an object that was just created."""
    if not resource.status or resource.custom:
        return
    if first := _FIRST_STATUS.get(resource.kind):
        obj["status"] = first(obj)
    elif resource.kind in POD_SPEC_PATHS:
        obj["status"] = {}


def _set(part: Object, **values: Any) -> None:
    for name, value in values.items():
        part.setdefault(name, value)


def _pod_spec(spec: Object, *, account: bool) -> None:
    _set(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    for containers in ("containers", "initContainers"):
        for container in spec.get(containers) or ():
            _container(container)
    if account:
        _set(spec, enableServiceLinks=True, serviceAccountName="default")
        _set(spec, serviceAccount=spec["serviceAccountName"])
        _set(spec, priority=0, preemptionPolicy="PreemptLowerPriority")
        tolerations = spec.setdefault("tolerations", [])
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
            if not any(_tolerates(it, key) for it in tolerations):
                tolerations.append(
                    {
                        "key": key,
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 300,
                    }
                )


def _tolerates(toleration: Object, key: str) -> bool:
    everything = not toleration.get("key") and toleration.get("operator") == "Exists"
    return (everything or toleration.get("key") == key) and toleration.get("effect") in {
        None,
        "",
        "NoExecute",
    }


def _container(container: Object) -> None:
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition(":")[2]
    latest = tag in {"", "latest"} and "@" not in image
    _set(
        container,
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if latest else "IfNotPresent",
    )
    for port in container.get("ports") or ():
        _set(port, protocol="TCP")


def _namespace(obj: Object) -> None:
    _set(obj.setdefault("spec", {}), finalizers=["kubernetes"])
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")


def _protect(obj: Object, finalizer: str) -> None:
    metadata = obj["metadata"]
    # Only what is created is protected: whoever removes a finalizer later means it.
    if "uid" not in metadata and finalizer not in metadata.setdefault("finalizers", []):
        metadata["finalizers"].append(finalizer)


def _volume(obj: Object) -> None:
    _protect(obj, "kubernetes.io/pv-protection")
    spec = obj.setdefault("spec", {})
    _set(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if isinstance(host_path := spec.get("hostPath"), dict):
        _set(host_path, type="")
    if isinstance(disk := spec.get("azureDisk"), dict):
        _set(disk, cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared")


def _claim(obj: Object) -> None:
    _protect(obj, "kubernetes.io/pvc-protection")
    _set(obj.setdefault("spec", {}), volumeMode="Filesystem")


def _class(obj: Object) -> None:
    _set(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _set(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")


def _stateful_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _set(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    strategy = spec.setdefault("updateStrategy", {})
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(strategy.setdefault("rollingUpdate", {}), partition=0)
    for template in spec.get("volumeClaimTemplates") or ():
        _set(template, kind="PersistentVolumeClaim", apiVersion="v1")
        _set(template.setdefault("spec", {}), volumeMode="Filesystem")
        _set(template, status={"phase": "Pending"})


def _daemon_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _set(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    _set(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _set(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)


def _replicas(obj: Object) -> None:
    _set(obj.setdefault("spec", {}), replicas=1)


def _controller(obj: Object) -> None:
    _replicas(obj)
    labels = at(obj, ("spec", "template", "metadata", "labels"))
    if labels:
        _set(obj["spec"], selector=dict(labels))
        _set(obj["metadata"], labels=dict(labels))


def _job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _set(spec, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    _set(spec, parallelism=1)


def _cron_job(obj: Object) -> None:
    _set(
        obj.setdefault("spec", {}),
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _set(spec, type="ClusterIP", sessionAffinity="None")
    for port in spec.get("ports") or ():
        _set(port, protocol="TCP")
        _set(port, targetPort=port.get("port"))


def _secret(obj: Object) -> None:
    _set(obj, type="Opaque")
    if plain := obj.pop("stringData", None):
        encoded = {name: b64encode(str(it).encode()).decode() for name, it in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _driver(obj: Object) -> None:
    _set(
        obj.setdefault("spec", {}),
        attachRequired=True,
        podInfoOnMount=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        storageCapacity=False,
        requiresRepublish=False,
        volumeLifecycleModes=["Persistent"],
    )


def _limit_range(limit_range: Object) -> None:
    """A container gets the maximum where it asks for nothing, or else the minimum."""
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            limits = {**item.get("max", {}), **item.get("default", {})}
            requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
            for name, amounts in (("default", limits), ("defaultRequest", requests)):
                if amounts:
                    item[name] = amounts


_DEFAULTS: dict[str, Callable[[Object], None]] = {
    "Namespace": _namespace,
    "LimitRange": _limit_range,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "StorageClass": _class,
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "ReplicaSet": _replicas,
    "ReplicationController": _controller,
    "Job": _job,
    "CronJob": _cron_job,
    "Service": _service,
    "Secret": _secret,
    "CSIDriver": _driver,
    "Node": lambda obj: _set(obj, spec={}),
}

_NO_DISRUPTIONS = {
    "disruptionsAllowed": 0,
    "currentHealthy": 0,
    "desiredHealthy": 0,
    "expectedPods": 0,
}
_FIRST_STATUS: dict[str, Callable[[Object], Object]] = {
    "Namespace": lambda _obj: {"phase": "Active"},
    "Pod": lambda obj: {"phase": "Pending", "qosClass": quality(obj)},
    "PersistentVolume": lambda _obj: {"phase": "Pending"},
    "PersistentVolumeClaim": lambda _obj: {"phase": "Pending"},
    "VolumeAttachment": lambda _obj: {"attached": False},
    "PodDisruptionBudget": lambda _obj: dict(_NO_DISRUPTIONS),
    "DaemonSet": lambda _obj: {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "StatefulSet": lambda _obj: {"replicas": 0, "availableReplicas": 0},
    "ReplicaSet": lambda _obj: {"replicas": 0},
    "ReplicationController": lambda _obj: {"replicas": 0},
    "Service": lambda _obj: {"loadBalancer": {}},
}


def quality(pod: Object) -> str:
    """The quality of service class that the resources of a pod's containers come to."""
    wanted = [it.get("resources") or {} for it in at(pod, ("spec", "containers")) or ()]
    if not any(it.get("requests") or it.get("limits") for it in wanted):
        return "BestEffort"
    full = all({"cpu", "memory"} <= (it.get("limits") or {}).keys() for it in wanted)
    same = all((it.get("requests") or it.get("limits")) == it.get("limits") for it in wanted)
    return "Guaranteed" if full and same else "Burstable"
