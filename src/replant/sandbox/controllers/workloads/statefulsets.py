"""StatefulSets: pods with names and claims of their own, in order."""

from __future__ import annotations

from dataclasses import dataclass

from replant.objects import Object
from replant.sandbox.controllers.workloads import pods, revisions
from replant.sandbox.controllers.workloads.family import Family
from replant.sandbox.controllers.workloads.revisions import HASH, Revision
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from replant.sandbox.shelves import Entry


@dataclass
class _Set:
    """A StatefulSet at one moment."""

    obj: Object
    current: Revision
    update: Revision
    pods: dict[int, Entry]
    """By their ordinals: those that were there, and those that were made since. What goes counts
    until it is seen to be gone, or a set of which one is missing would pass for a whole one."""

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def replicas(self) -> int:
        return int(self.obj["spec"].get("replicas", 1))

    @property
    def in_order(self) -> bool:
        return bool(self.obj["spec"].get("podManagementPolicy") != "Parallel")

    @property
    def min_ready(self) -> int:
        return int(self.obj["spec"].get("minReadySeconds", 0))

    @property
    def rolls(self) -> bool:
        """Whether pods of an old template are replaced by themselves."""
        strategy = self.obj["spec"].get("updateStrategy") or {}
        return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")

    @property
    def partition(self) -> int:
        """Pods below that ordinal stay as they are."""
        strategy = self.obj["spec"].get("updateStrategy") or {}
        return int((strategy.get("rollingUpdate") or {}).get("partition", 0))

    def revision_of(self, ordinal: int) -> Revision:
        """The template of a pod that is to be made."""
        return self.current if self.rolls and ordinal < self.partition else self.update


class StatefulSets:
    """Keeps pods by their ordinals, and replaces those of an old template from the highest down."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def sync(self, obj: Object) -> None:
        """Take the next step, and say how far it is."""
        name, status = obj["metadata"]["name"], obj.get("status") or {}
        known = revisions.history(self._family, STATEFUL_SETS, obj)
        first = status.get("updateRevision", "")
        update = revisions.current(self._family, STATEFUL_SETS, obj, known, first)
        if update is None:
            return
        running = status.get("currentRevision")
        current = next((it for it in known if it.name == running), update)
        it = _Set(obj, current, update, self._pods(obj, name))
        self._step(it)
        self._count(it)
        used = {current.name, update.name, *(pod.labels.get(HASH, "") for pod in it.pods.values())}
        revisions.forget(self._family, obj, known, used)

    def _pods(self, obj: Object, name: str) -> dict[int, Entry]:
        def ordinal(entry: Entry) -> int:
            parent, _dash, number = entry.name.rpartition("-")
            return int(number) if parent == name and number.isdecimal() else -1

        made = self._family.made(STATEFUL_SETS, obj, PODS, lambda it: ordinal(it) >= 0)
        return {ordinal(it): it for it in made}

    def _is_healthy(self, it: _Set, pod: Entry) -> bool:
        ready = pods.is_available(pod, it.min_ready, self._family.store.now())
        return ready and not pods.is_ending(pod)

    def _step(self, it: _Set) -> None:
        if self._fill(it) and self._shrink(it) and it.rolls:
            self._roll(it)

    def _fill(self, it: _Set) -> bool:
        """Make what is missing; tells whether one may go on."""
        for ordinal in range(it.replicas):
            pod = it.pods.get(ordinal)
            if pod is None:
                self._make(it, ordinal)
            elif pods.is_over(pod):
                self._family.remove(pod)
            elif self._is_healthy(it, pod):
                continue
            if it.in_order:
                return False
        return True

    def _shrink(self, it: _Set) -> bool:
        """Delete what is too much, from the highest down; tells whether one may go on."""
        condemned = sorted((ordinal for ordinal in it.pods if ordinal >= it.replicas), reverse=True)
        for ordinal in condemned:
            if not pods.is_ending(it.pods[ordinal]):
                self._family.remove(it.pods[ordinal])
            if it.in_order:
                return False
        return True

    def _roll(self, it: _Set) -> None:
        """Delete the highest pod of an old template, unless a higher one is still on its way."""
        for ordinal in range(it.replicas - 1, it.partition - 1, -1):
            pod = it.pods.get(ordinal)
            if pod is None:
                return
            if pod.labels.get(HASH) != it.update.name and not pods.is_ending(pod):
                self._family.remove(pod)
                return
            if not self._is_healthy(it, pod):
                return

    def _make(self, it: _Set, ordinal: int) -> None:
        namespace, revision = it.obj["metadata"]["namespace"], it.revision_of(ordinal)
        name = f"{it.name}-{ordinal}"
        spec = {**it.obj["spec"], "template": revision.template}
        pod = pods.pod_of(STATEFUL_SETS, {**it.obj, "spec": spec}, name)
        pod["metadata"]["labels"] |= {
            "statefulset.kubernetes.io/pod-name": name,
            HASH: revision.name,
        }
        pod["spec"]["hostname"] = name
        volumes = pod["spec"]["volumes"] = list(pod["spec"].get("volumes") or ())
        for template in it.obj["spec"].get("volumeClaimTemplates") or ():
            short = template["metadata"]["name"]
            claim = f"{short}-{name}"
            volumes[:] = [volume for volume in volumes if volume["name"] != short]
            volumes.append({"name": short, "persistentVolumeClaim": {"claimName": claim}})
            if not self._family.store.find(PERSISTENT_VOLUME_CLAIMS, claim, namespace):
                labels = dict(it.obj["spec"]["selector"].get("matchLabels") or {})
                made = {"metadata": {"name": claim, "labels": labels}}
                made["spec"] = dict(template["spec"])
                self._family.create(PERSISTENT_VOLUME_CLAIMS, made, namespace)
        if entry := self._family.create(PODS, pod, namespace):
            it.pods[ordinal] = entry

    def _count(self, it: _Set) -> None:
        there, now = list(it.pods.values()), self._family.store.now()
        staying = [pod.labels.get(HASH) for pod in there if not pods.is_ending(pod)]
        status = {
            "replicas": len(there),
            "readyReplicas": sum(map(pods.is_ready, there)),
            "availableReplicas": sum(pods.is_available(pod, it.min_ready, now) for pod in there),
            "currentReplicas": staying.count(it.current.name),
            "updatedReplicas": staying.count(it.update.name),
            "currentRevision": it.current.name,
            "updateRevision": it.update.name,
            "collisionCount": 0,
        }
        everything = (status["updatedReplicas"], status["readyReplicas"])
        if it.rolls and everything == (status["replicas"], status["replicas"]):
            status["currentReplicas"] = status["updatedReplicas"]
            status["currentRevision"] = it.update.name
        always = ("replicas", "availableReplicas", "collisionCount")
        self._family.say(STATEFUL_SETS, it.obj, pods.said(status, *always))
        if pause := pods.next_available(there, it.min_ready, now):
            metadata = it.obj["metadata"]
            self._family.again(STATEFUL_SETS, (metadata["namespace"], metadata["name"]), pause)
