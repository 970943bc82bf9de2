"""The controllers of workloads: make pods, and make them again when they go."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256

import msgspec

from replant.objects import Object
from replant.routing import Process
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.base import Key, Led, Queue, World, key_of
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from replant.sandbox.shelves import ADDED, DELETED, Entry, Event

_RESOURCES = {it.kind: it for it in (STATEFUL_SETS, DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS)}
_DAEMONS_TOLERATE = ("not-ready", "unreachable", "unschedulable", "disk-pressure")


class Workloads(Led):
    """StatefulSets, Deployments, ReplicaSets and DaemonSets."""

    hears = (PODS, NODES, *_RESOURCES.values())

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._queue: Queue[tuple[Resource, Key]] = Queue()
        self._made: dict[str, dict[tuple[Resource, Key], None]] = {}
        """What each has made, by its uid."""
        self._sync: dict[str, Callable[[Object], None]] = {
            STATEFUL_SETS.kind: self._stateful_set,
            DEPLOYMENTS.kind: self._deployment,
            REPLICA_SETS.kind: self._replica_set,
            DAEMON_SETS.kind: self._daemon_set,
        }

    def lead(self, process: Process | None) -> None:
        """Look at all of them again."""
        super().lead(process)
        for resource in _RESOURCES.values():
            self._queue.add_all((resource, key_of(it)) for it in self.store.entries(resource))

    def heard(self, event: Event) -> None:
        """Note whose pods have changed."""
        entry = event.entry
        if entry.resource is NODES:
            if event.type in (ADDED, DELETED):
                daemons = self.store.entries(DAEMON_SETS)
                self._queue.add_all((DAEMON_SETS, key_of(it)) for it in daemons)
            return
        if entry.resource is not PODS:
            self._queue.add((entry.resource, key_of(entry)))
        if entry.resource in (PODS, REPLICA_SETS) and b'"ownerReferences"' in entry.text:
            self._hear_made(event)

    def _hear_made(self, event: Event) -> None:
        entry = event.entry
        owner = parts.read_pod(entry.text).metadata.controller if entry.text else None
        resource = _RESOURCES.get(owner.kind) if owner else None
        if owner is None or resource is None:
            return
        made = self._made.setdefault(owner.uid, {})
        if event.type == DELETED:
            made.pop((entry.resource, key_of(entry)), None)
            if not made:
                del self._made[owner.uid]
        else:
            made[entry.resource, key_of(entry)] = None
        self._queue.add((resource, (entry.namespace, owner.name)))

    def work(self) -> bool:
        """Make what is missing, and take away what is too much."""
        if self.process is None or not self._queue:
            return False
        for resource, key in self._queue.take():
            found = self.store.find(resource, key[1], key[0])
            if found is not None:
                obj = found.value()
                if "deletionTimestamp" not in obj["metadata"]:
                    self._sync[resource.kind](obj)
        return True

    def _entries(self, owner: Object, resource: Resource = PODS) -> list[Entry]:
        made = self._made.get(owner["metadata"]["uid"], {})
        found = (self.store.find(it, key[1], key[0]) for it, key in made if it is resource)
        return [it for it in found if it is not None]

    # StatefulSets

    def _stateful_set(self, obj: Object) -> None:
        spec, name = obj["spec"], obj["metadata"]["name"]
        replicas = spec.get("replicas", 1)
        pods = {it.name: it for it in self._entries(obj)}
        ready = {it.name for it in pods.values() if _is_ready(it)}
        revision = _revision(obj)
        in_order = spec.get("podManagementPolicy") != "Parallel"
        for ordinal in range(replicas):
            pod = f"{name}-{ordinal}"
            if pod not in pods:
                self._stateful_pod(obj, pod, revision)
            elif pods[pod].fields["status.phase"] in parts.OVER:
                self.world.remove(PODS, key_of(pods[pod]), pods[pod].uid)
            elif pod in ready:
                continue
            if in_order:
                break
        for pod, entry in pods.items():
            if int(pod.rpartition("-")[2]) >= replicas:
                self.world.remove(PODS, key_of(entry), entry.uid)
        more = {"currentRevision": revision, "updateRevision": revision, "collisionCount": 0}
        updated = {"currentReplicas": len(pods), "updatedReplicas": len(pods)}
        self._say(STATEFUL_SETS, obj, _counts(len(pods), len(ready)) | updated | more)

    def _stateful_pod(self, obj: Object, name: str, revision: str) -> None:
        namespace = obj["metadata"]["namespace"]
        pod = _pod(STATEFUL_SETS, obj, name)
        labels = {
            "statefulset.kubernetes.io/pod-name": name,
            "controller-revision-hash": revision,
        }
        pod["metadata"]["labels"] |= labels
        spec = pod["spec"]
        spec["hostname"] = name
        volumes = spec["volumes"] = list(spec.get("volumes") or ())
        for template in obj["spec"].get("volumeClaimTemplates") or ():
            short = template["metadata"]["name"]
            claim = f"{short}-{name}"
            volumes[:] = [it for it in volumes if it["name"] != short]
            volumes.append({"name": short, "persistentVolumeClaim": {"claimName": claim}})
            if not self.store.find(PERSISTENT_VOLUME_CLAIMS, claim, namespace):
                metadata = {
                    "name": claim,
                    "labels": dict(obj["spec"]["selector"].get("matchLabels") or {}),
                }
                made = {"metadata": metadata, "spec": dict(template["spec"])}
                self._create(PERSISTENT_VOLUME_CLAIMS, made, namespace)
        self._create(PODS, pod, namespace)

    # Deployments and ReplicaSets

    def _deployment(self, obj: Object) -> None:
        metadata, spec = obj["metadata"], obj["spec"]
        revision = _revision(obj).rpartition("-")[2]
        name = f"{metadata['name']}-{revision}"
        sets = self._entries(obj, REPLICA_SETS)
        for entry in sets:
            self._scale(entry, spec.get("replicas", 1) if entry.name == name else 0)
        if all(entry.name != name for entry in sets):
            template = msgspec.convert(spec["template"], dict)
            labels = dict((template.get("metadata") or {}).get("labels") or {})
            labels["pod-template-hash"] = revision
            inner = {**(template.get("metadata") or {}), "labels": labels}
            made = {
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "ownerReferences": [_owner(DEPLOYMENTS, obj)],
                },
                "spec": {
                    "replicas": spec.get("replicas", 1),
                    "selector": {"matchLabels": labels},
                    "template": {**template, "metadata": inner},
                },
            }
            self._create(REPLICA_SETS, made, metadata["namespace"])
        statuses = [it.value().get("status") or {} for it in self._entries(obj, REPLICA_SETS)]
        status: Object = {
            field: sum(it.get(field, 0) for it in statuses)
            for field in ("replicas", "readyReplicas", "availableReplicas")
        }
        status["updatedReplicas"] = status["replicas"]
        status["unavailableReplicas"] = max(
            spec.get("replicas", 1) - status["availableReplicas"], 0
        )
        self._say(DEPLOYMENTS, obj, status)

    def _scale(self, entry: Entry, replicas: int) -> None:
        obj = entry.value()
        if obj["spec"].get("replicas", 1) != replicas:
            obj["spec"]["replicas"] = replicas
            with suppress(ApiError):
                self.store.update(REPLICA_SETS, obj)

    def _replica_set(self, obj: Object) -> None:
        pods = self._entries(obj)
        live = []
        for entry in pods:
            if entry.fields["status.phase"] in parts.OVER:
                self.world.remove(PODS, key_of(entry), entry.uid)
            elif b'"deletionTimestamp"' not in entry.text:
                live.append(entry)
        wanted = obj["spec"].get("replicas", 1)
        for _missing in range(wanted - len(live)):
            pod = _pod(REPLICA_SETS, obj)
            self._create(PODS, pod, obj["metadata"]["namespace"])
        live.sort(key=lambda it: (_is_ready(it), it.version))
        for entry in live[: max(len(live) - wanted, 0)]:
            self.world.remove(PODS, key_of(entry), entry.uid)
        made = self._entries(obj)
        self._say(REPLICA_SETS, obj, _counts(len(made), sum(map(_is_ready, made))))

    # DaemonSets

    def _daemon_set(self, obj: Object) -> None:
        name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        selector = (obj["spec"]["template"].get("spec") or {}).get("nodeSelector") or {}
        pods = {it.name: it for it in self._entries(obj)}
        wanted: dict[str, str] = {}
        for node in self.store.entries(NODES):
            if all(node.labels.get(key) == value for key, value in selector.items()):
                digest = sha256(f"{obj['metadata']['uid']}{node.name}".encode()).hexdigest()
                wanted[f"{name}-{digest[:8]}"] = node.name
        for pod, node_name in wanted.items():
            if pod not in pods:
                self._create(PODS, _daemon(obj, pod, node_name), namespace)
        for pod, entry in pods.items():
            if pod not in wanted or entry.fields["status.phase"] in parts.OVER:
                self.world.remove(PODS, key_of(entry), entry.uid)
        there = [it for it in self._entries(obj) if it.name in wanted]
        ready = sum(map(_is_ready, there))
        status = {
            "currentNumberScheduled": len(there),
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": ready,
            "updatedNumberScheduled": len(there),
        }
        self._say(DAEMON_SETS, obj, status)

    # How

    def _create(self, resource: Resource, obj: Object, namespace: str) -> None:
        # It may be there as somebody else's, or its namespace may be ending.
        with suppress(ApiError):
            self.store.create(resource, obj, namespace=namespace)

    def _say(self, resource: Resource, obj: Object, status: Object) -> None:
        said = status | {"observedGeneration": obj["metadata"].get("generation", 1)}
        if (obj.get("status") or {}) == said:
            return
        metadata = obj["metadata"]

        def write(now: Object) -> None:
            now["status"] = said

        self.world.change(resource, (metadata["namespace"], metadata["name"]), write, "status")


def _owner(resource: Resource, obj: Object) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _pod(resource: Resource, obj: Object, name: str = "") -> Object:
    """A pod by its owner's template."""
    template = obj["spec"]["template"]
    said = template.get("metadata") or {}
    metadata: Object = {
        "labels": dict(said.get("labels") or {}),
        "annotations": dict(said.get("annotations") or {}),
        "ownerReferences": [_owner(resource, obj)],
    }
    metadata |= {"name": name} if name else {"generateName": f"{obj['metadata']['name']}-"}
    return {"metadata": metadata, "spec": dict(template["spec"])}


def _daemon(obj: Object, name: str, node: str) -> Object:
    pod = _pod(DAEMON_SETS, obj, name)
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    pod["spec"]["tolerations"] = [
        *(pod["spec"].get("tolerations") or ()),
        *({"key": f"node.kubernetes.io/{it}", "operator": "Exists"} for it in _DAEMONS_TOLERATE),
    ]
    return pod


def _revision(obj: Object) -> str:
    digest = sha256(msgspec.json.encode(obj["spec"]["template"], order="sorted")).hexdigest()
    return f"{obj['metadata']['name']}-{digest[:10]}"


def _is_ready(entry: Entry) -> bool:
    if entry.fields["status.phase"] != "Running":
        return False
    pod = parts.read_pod(entry.text)
    return pod.status.ready and not pod.metadata.deletionTimestamp


def _counts(pods: int, ready: int) -> Object:
    return {"replicas": pods, "readyReplicas": ready, "availableReplicas": ready}
