"""Deployments: ReplicaSets, one for each template, of which the newest takes over."""

from __future__ import annotations

from replant.objects import Object
from replant.sandbox.controllers.base import key_of
from replant.sandbox.controllers.workloads import pods, progress
from replant.sandbox.controllers.workloads.family import Family
from replant.sandbox.controllers.workloads.rollout import (
    REVISION,
    TEMPLATE_HASH,
    ReplicaSet,
    Rollout,
    bare,
    sizes,
)
from replant.sandbox.resources import DEPLOYMENTS, PODS, REPLICA_SETS


class Deployments:
    """Has a Deployment's newest ReplicaSet take over from the others, as fast as it may."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def sync(self, obj: Object) -> None:
        """Take the next step, and say how far it is."""
        rollout = self._look(obj)
        if not obj["spec"].get("paused"):
            if rollout.recreates:
                self._recreate(rollout)
            else:
                self._roll(rollout)
            rollout = self._look(obj)
            self._clean_up(rollout)
        elif rollout.sets:
            self._scale(rollout, rollout.sets[-1], rollout.replicas)
            rollout = self._look(obj)
        self._say_revision(rollout)
        self._count(rollout)

    def _look(self, obj: Object) -> Rollout:
        made = self._family.made(DEPLOYMENTS, obj, REPLICA_SETS)
        sets = [ReplicaSet(it, it.value()) for it in made if b'"deletionTimestamp"' not in it.text]
        sets.sort(key=lambda it: (it.obj["metadata"]["creationTimestamp"], it.revision))
        wanted = bare(obj["spec"]["template"])
        new = next((it for it in sets if bare(it.obj["spec"]["template"]) == wanted), None)
        return Rollout(obj, sets, new)

    # How it moves

    def _recreate(self, rollout: Rollout) -> None:
        for old in rollout.old:
            self._scale(rollout, old, 0)
        if not any(self._has_pods(it) for it in rollout.old):
            self._make_or_scale(rollout, rollout.replicas)

    def _has_pods(self, old: ReplicaSet) -> bool:
        made = self._family.made(REPLICA_SETS, old.obj, PODS)
        return not all(map(pods.is_over, made))

    def _roll(self, rollout: Rollout) -> None:
        there = sum(it.wanted for it in rollout.sets)
        room = max(rollout.replicas + rollout.surge - there, 0)
        has = rollout.new.wanted if rollout.new else 0
        grown = min(has + room, rollout.replicas)
        if self._make_or_scale(rollout, grown):
            return
        self._shrink_old(rollout, there)

    def _shrink_old(self, rollout: Rollout, there: int) -> None:
        new, least = rollout.new, rollout.replicas - rollout.missing
        coming = max(new.wanted - new.available, 0) if new else 0
        spare = there - least - coming
        # What does not work is no loss, so it goes first.
        for old in rollout.old:
            broken = min(max(old.wanted - old.available, 0), max(spare, 0))
            if broken:
                self._scale(rollout, old, old.wanted - broken)
                spare -= broken
        spare = min(spare, rollout.total("availableReplicas") - least)
        for old in rollout.old:
            gone = min(old.wanted, max(spare, 0))
            if gone:
                self._scale(rollout, old, old.wanted - gone)
                spare -= gone

    def _make_or_scale(self, rollout: Rollout, replicas: int) -> bool:
        """Have so many pods of the newest template; tells whether that is a change."""
        if rollout.new is not None:
            return self._scale(rollout, rollout.new, replicas)
        self._make(rollout, replicas)
        return True

    def _make(self, rollout: Rollout, replicas: int) -> None:
        obj, template = rollout.obj, rollout.spec["template"]
        suffix = pods.digest(template)
        said = template.get("metadata") or {}
        labels = {**(said.get("labels") or {}), TEMPLATE_HASH: suffix}
        selector = rollout.spec.get("selector") or {}
        wanted = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: suffix}
        made = {
            "metadata": {
                "name": f"{obj['metadata']['name']}-{suffix}",
                "labels": labels,
                "annotations": {REVISION: str(self._next_revision(rollout))},
                "ownerReferences": [pods.owner_reference(DEPLOYMENTS, obj)],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": rollout.spec.get("minReadySeconds", 0),
                "selector": {**selector, "matchLabels": wanted},
                "template": {**template, "metadata": {**said, "labels": labels}},
            },
        }
        made["metadata"]["annotations"] |= sizes(rollout)
        self._family.create(REPLICA_SETS, made, obj["metadata"]["namespace"])

    def _next_revision(self, rollout: Rollout) -> int:
        return max((it.revision for it in rollout.old), default=0) + 1

    def _scale(self, rollout: Rollout, it: ReplicaSet, replicas: int) -> bool:
        noted = sizes(rollout)
        annotations = it.obj["metadata"].get("annotations") or {}
        if it is rollout.new and it.revision <= max((o.revision for o in rollout.old), default=0):
            # What was rolled back to is the newest once more.
            noted[REVISION] = str(self._next_revision(rollout))
        if it.wanted == replicas and noted.items() <= annotations.items():
            return False
        resized = it.wanted != replicas

        def write(obj: Object) -> None:
            obj["spec"]["replicas"] = replicas
            obj["metadata"].setdefault("annotations", {}).update(noted)

        entry = self._family.world.change(REPLICA_SETS, key_of(it.entry), write)
        if entry is not None:
            it.entry, it.obj = entry, entry.value()
        return resized

    def _clean_up(self, rollout: Rollout) -> None:
        limit = rollout.spec.get("revisionHistoryLimit", 10)
        empty = [it for it in rollout.old if not it.wanted and not it.count("replicas")]
        empty.sort(key=lambda it: it.revision)
        for it in empty[: max(len(empty) - limit, 0)]:
            self._family.remove(it.entry)

    # What it says

    def _say_revision(self, rollout: Rollout) -> None:
        metadata, new = rollout.obj["metadata"], rollout.new
        if new is None or not new.revision:
            return
        said = {REVISION: str(new.revision)}
        if said.items() <= (metadata.get("annotations") or {}).items():
            return

        def write(obj: Object) -> None:
            obj["metadata"].setdefault("annotations", {}).update(said)

        self._family.world.change(DEPLOYMENTS, (metadata["namespace"], metadata["name"]), write)

    def _count(self, rollout: Rollout) -> None:
        new = rollout.new
        status: Object = {
            field: rollout.total(field)
            for field in ("replicas", "readyReplicas", "availableReplicas")
        }
        status["updatedReplicas"] = new.count("replicas") if new else 0
        wanted = sum(it.wanted for it in rollout.sets)
        status["unavailableReplicas"] = max(wanted - status["availableReplicas"], 0)
        status["conditions"], pause = progress.conditions(rollout, status, self._family.store.now())
        if pause:
            metadata = rollout.obj["metadata"]
            self._family.again(DEPLOYMENTS, (metadata["namespace"], metadata["name"]), pause)
        self._family.say(DEPLOYMENTS, rollout.obj, pods.said(status))
