"""What an object must be like to be stored, and what may not change any more, in the words of 1.24.

One file for each family of kinds; ``names``, ``reading``, ``selectors`` and ``volume_sources`` are
what they share. What is not looked at is listed in docs/sandbox.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from replant.objects import Object
from replant.sandbox.refusals import Cause, required_value
from replant.sandbox.resources import Resource
from replant.sandbox.schemas.check import causes as schema_causes
from replant.sandbox.validation import keeping, pods, storage, workloads
from replant.sandbox.validation.definitions import definition_causes
from replant.sandbox.validation.metadata import metadata_causes
from replant.sandbox.validation.reading import at

__all__ = ["at", "change_causes", "content_causes", "metadata_causes"]


def content_causes(resource: Resource, obj: Object, *, ours: bool = False) -> list[Cause]:
    """What is wrong with the rest, as far as this is looked at.

    Of what there are tens of thousands of, only that it is whole if it is ours: scenes and
    controllers write nearly all of it, and looking closer costs a tenth of coming up.
    """
    if resource.custom:
        return schema_causes(resource.schema, obj) if resource.schema else []
    if ours and resource.kind in _MANY:
        return [required_value(".".join(it)) for it in _MANY[resource.kind] if not at(obj, it)]
    check = _CONTENT.get(resource.kind)
    return list(check(obj)) if check else []


def change_causes(resource: Resource, old: Object, new: Object) -> list[Cause]:
    """What was changed and may not be."""
    check = _CHANGES.get(resource.kind)
    return list(check(old, new)) if check and not resource.custom else []


_MANY: dict[str, tuple[tuple[str, ...], ...]] = {
    "PersistentVolume": (("spec", "capacity"), ("spec", "accessModes")),
    "PersistentVolumeClaim": (("spec", "accessModes"), ("spec", "resources", "requests")),
    "Pod": (("spec", "containers"),),
    "VolumeAttachment": (("spec", "attacher"),),
}
_CONTENT: dict[str, Callable[[Object], Iterator[Cause]]] = {
    "PersistentVolume": storage.volume_causes,
    "PersistentVolumeClaim": storage.claim_causes,
    "StorageClass": storage.class_causes,
    "VolumeAttachment": storage.attachment_causes,
    "CSINode": storage.csi_node_causes,
    "CSIDriver": storage.driver_object_causes,
    "Pod": pods.pod_causes,
    "Deployment": workloads.deployment_causes,
    "ReplicaSet": workloads.replica_set_causes,
    "StatefulSet": workloads.stateful_set_causes,
    "DaemonSet": workloads.daemon_set_causes,
    "ReplicationController": workloads.controller_causes,
    "Job": workloads.job_causes,
    "CronJob": workloads.cron_job_causes,
    "PodDisruptionBudget": workloads.budget_causes,
    "ConfigMap": keeping.config_map_causes,
    "Secret": keeping.secret_causes,
    "CustomResourceDefinition": definition_causes,
}
_CHANGES: dict[str, Callable[[Object, Object], Iterator[Cause]]] = {
    "PersistentVolume": storage.volume_change_causes,
    "PersistentVolumeClaim": storage.claim_change_causes,
    "StorageClass": storage.class_change_causes,
    "VolumeAttachment": storage.attachment_change_causes,
    "Pod": pods.pod_change_causes,
    "Deployment": workloads.selector_change_causes,
    "ReplicaSet": workloads.selector_change_causes,
    "DaemonSet": workloads.selector_change_causes,
    "StatefulSet": workloads.stateful_set_change_causes,
    "ControllerRevision": workloads.revision_change_causes,
    "ConfigMap": keeping.kept_change_causes,
    "Secret": keeping.kept_change_causes,
}
