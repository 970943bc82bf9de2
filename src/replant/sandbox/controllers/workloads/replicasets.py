"""ReplicaSets: so many pods, whichever they are."""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.workloads import pods
from replant.sandbox.controllers.workloads.family import Family
from replant.sandbox.resources import PODS, REPLICA_SETS
from replant.sandbox.shelves import Entry


class ReplicaSets:
    """Keeps as many pods as are wanted."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def sync(self, obj: Object) -> None:
        """Make pods that are missing, and delete those that are too many."""
        wanted, namespace = obj["spec"].get("replicas", 1), obj["metadata"]["namespace"]
        live = self._live(obj)
        for _missing in range(wanted - len(live)):
            self._family.create(PODS, pods.pod_of(REPLICA_SETS, obj), namespace)
        if len(live) > wanted:
            live.sort(key=_created, reverse=True)
            live.sort(key=lambda it: (bool(it.fields["spec.nodeName"]), pods.is_ready(it)))
            for entry in live[: len(live) - wanted]:
                self._family.remove(entry)
        self._count(obj)

    def _live(self, obj: Object) -> list[Entry]:
        live = []
        for entry in self._family.made(REPLICA_SETS, obj):
            if pods.is_over(entry):
                self._family.remove(entry)
            elif not pods.is_ending(entry):
                live.append(entry)
        return live

    def _count(self, obj: Object) -> None:
        live = self._live(obj)
        min_ready, now = obj["spec"].get("minReadySeconds", 0), self._family.store.now()
        labels = (obj["spec"]["template"].get("metadata") or {}).get("labels") or {}
        counted = {
            "replicas": len(live),
            "fullyLabeledReplicas": sum(labels.items() <= it.labels.items() for it in live),
            "readyReplicas": sum(map(pods.is_ready, live)),
            "availableReplicas": sum(pods.is_available(it, min_ready, now) for it in live),
        }
        self._family.say(REPLICA_SETS, obj, pods.said(counted, "replicas"))
        if pause := pods.next_available(live, min_ready, now):
            metadata = obj["metadata"]
            self._family.again(REPLICA_SETS, (metadata["namespace"], metadata["name"]), pause)


def _created(entry: Entry) -> str:
    return parts.read_pod(entry.text).metadata.creationTimestamp
