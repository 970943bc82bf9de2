"""DaemonSets: a pod on every node that is meant."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

from replant.objects import Object
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.workloads import pods, revisions
from replant.sandbox.controllers.workloads.family import Family
from replant.sandbox.controllers.workloads.revisions import HASH
from replant.sandbox.resources import DAEMON_SETS, NODES, PODS
from replant.sandbox.shelves import Entry

_TOLERATED = ("not-ready", "unreachable", "unschedulable", "disk-pressure")


@dataclass
class _Place:
    """The pods of a node: of the newest template, and of any other."""

    new: list[Entry] = field(default_factory=list)
    old: list[Entry] = field(default_factory=list)


class DaemonSets:
    """Keeps a pod on every node, and replaces those of an old template a few at a time."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def sync(self, obj: Object) -> None:
        """Take the next step, and say how far it is."""
        known = revisions.history(self._family, DAEMON_SETS, obj)
        there = self._family.made(DAEMON_SETS, obj)
        update = revisions.current(
            self._family, DAEMON_SETS, obj, known, _first(obj, there) if not known else ""
        )
        if update is None:
            return
        suffix = update.name.rpartition("-")[2]
        wanted = self._nodes(obj)
        places, elsewhere = self._places(there, suffix, wanted)
        for entry in elsewhere:
            self._family.remove(entry)
        for node, place in places.items():
            self._settle(obj, node, place, suffix)
        if (obj["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
            self._roll(obj, places, suffix)
        self._count(obj, suffix, wanted)
        used = {f"{obj['metadata']['name']}-{it.labels.get(HASH)}" for it in there}
        revisions.forget(self._family, obj, known, {update.name, *used})

    def _nodes(self, obj: Object) -> list[str]:
        selector = (obj["spec"]["template"].get("spec") or {}).get("nodeSelector") or {}
        return [
            node.name
            for node in self._family.store.entries(NODES)
            if selector.items() <= node.labels.items()
        ]

    def _places(
        self, there: list[Entry], suffix: str, wanted: list[str]
    ) -> tuple[dict[str, _Place], list[Entry]]:
        """The pods of each node that is meant, and those that are elsewhere."""
        places = {node: _Place() for node in wanted}
        elsewhere = []
        for entry in there:
            place = places.get(_node_of(entry))
            if place is None:
                elsewhere.append(entry)
            elif entry.labels.get(HASH) == suffix:
                place.new.append(entry)
            else:
                place.old.append(entry)
        return places, elsewhere

    def _settle(self, obj: Object, node: str, place: _Place, suffix: str) -> None:
        """See to it that there is one pod on a node, whichever template it is of."""
        for entry in (*place.new, *place.old):
            if pods.is_over(entry):
                self._family.remove(entry)
        if not place.new and not place.old:
            self._make(obj, node, suffix)

    def _roll(self, obj: Object, places: dict[str, _Place], suffix: str) -> None:
        rolling = (obj["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        surge = pods.share(rolling.get("maxSurge", 0), len(places), up=True)
        if surge:
            self._surge(obj, places, suffix, surge)
            return
        room = pods.share(rolling.get("maxUnavailable", 1), len(places), up=True)
        candidates = []
        for place in places.values():
            old = [it for it in place.old if not pods.is_ending(it)]
            if not old:
                room -= not any(self._is_available(obj, it) for it in place.new)
            elif self._is_available(obj, old[0]):
                candidates.append(old[0])
            else:
                # To replace what does not work costs nothing; 1.24 does not even count it among
                # those that may be missing, as newer ones do.
                self._family.remove(old[0])
        for entry in candidates[: max(room, 0)]:
            self._family.remove(entry)

    def _surge(self, obj: Object, places: dict[str, _Place], suffix: str, surge: int) -> None:
        """Make the new pod of a node first, and delete the old one once that is available."""
        waiting = []
        for node, place in places.items():
            if place.old and place.new:
                surge -= 1
                if any(self._is_available(obj, it) for it in place.new):
                    for entry in place.old:
                        self._family.remove(entry)
            elif place.old and not pods.is_ending(place.old[0]):
                waiting.append(node)
        for node in waiting[: max(surge, 0)]:
            self._make(obj, node, suffix)

    def _is_available(self, obj: Object, entry: Entry) -> bool:
        min_ready = obj["spec"].get("minReadySeconds", 0)
        available = pods.is_available(entry, min_ready, self._family.store.now())
        return available and not pods.is_ending(entry)

    def _make(self, obj: Object, node: str, suffix: str) -> None:
        metadata = obj["metadata"]
        digest = sha256(f"{metadata['uid']}{node}{suffix}".encode()).hexdigest()
        pod = pods.pod_of(DAEMON_SETS, obj, f"{metadata['name']}-{digest[:8]}")
        pod["metadata"]["labels"][HASH] = suffix
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        pod["spec"]["affinity"] = {"nodeAffinity": required}
        pod["spec"]["tolerations"] = [
            *(pod["spec"].get("tolerations") or ()),
            *({"key": f"node.kubernetes.io/{it}", "operator": "Exists"} for it in _TOLERATED),
        ]
        self._family.create(PODS, pod, metadata["namespace"])

    def _count(self, obj: Object, suffix: str, wanted: list[str]) -> None:
        there = self._family.made(DAEMON_SETS, obj)
        places, elsewhere = self._places(there, suffix, wanted)
        taken = [place for place in places.values() if place.new or place.old]
        # With two pods on a node, the older one counts.
        shown = [(place.old or place.new)[0] for place in taken]
        min_ready, now = obj["spec"].get("minReadySeconds", 0), self._family.store.now()
        available = sum(pods.is_available(it, min_ready, now) for it in shown)
        status = {
            "currentNumberScheduled": len(taken),
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": len({_node_of(it) for it in elsewhere}),
            "numberReady": sum(map(pods.is_ready, shown)),
            "updatedNumberScheduled": sum(not place.old for place in taken),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
        }
        always = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled")
        self._family.say(DAEMON_SETS, obj, pods.said(status, *always, "numberReady"))
        if pause := pods.next_available(there, min_ready, now):
            metadata = obj["metadata"]
            self._family.again(DAEMON_SETS, (metadata["namespace"], metadata["name"]), pause)


def _node_of(entry: Entry) -> str:
    """Where a daemon's pod is, or is to be."""
    if node := entry.fields["spec.nodeName"]:
        return node
    affinity = parts.read_pod(entry.text).spec.affinity or {}
    required = (affinity.get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for it in term.get("matchFields") or ():
            if it.get("key") == "metadata.name" and it.get("values"):
                return str(it["values"][0])
    return ""


def _first(obj: Object, there: list[Entry]) -> str:
    """The name of the revision that pods are of which came without a history."""
    hashes = {it.labels[HASH] for it in there if HASH in it.labels}
    return f"{obj['metadata']['name']}-{hashes.pop()}" if len(hashes) == 1 else ""
