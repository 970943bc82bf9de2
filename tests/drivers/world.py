"""A world of plain objects that does as decisions say, and what others would do in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import replant.drivers
from replant.drivers.catalog import CR_NAME, DRIVERS, Driver
from replant.drivers.crds import default_cr
from replant.drivers.decisions import decide, wanted_keys
from replant.drivers.kinds import Key, key_of
from replant.drivers.removal import Uses
from replant.drivers.seen import Decision, Look, Seen
from replant.drivers.values import Values, values_of
from replant.drivers.writes import (
    Annotate,
    Apply,
    Create,
    Delete,
    Finalizers,
    Replace,
    Status,
    Write,
)
from replant.manifests import yamltext
from replant.objects import Object

EBS = DRIVERS["ebs.csi.aws.com"]
VSPHERE = DRIVERS["csi.vsphere.vmware.com"]
MANILA = DRIVERS["manila.csi.openstack.org"]
PORTWORX = DRIVERS["pxd.portworx.com"]
INSTALLED = [it for it in DRIVERS.values() if not it.own_operator]

START = 1_700_000_000.0
OPENSHIFT = frozenset({"CredentialsRequest", "VolumeSnapshotClass", "Subscription", "Storage"})


@cache
def shipped() -> Values:
    path = Path(replant.drivers.__file__).with_name("values.yaml")
    return values_of(yamltext.load(path.read_text()))


class Killed(Exception):
    """Whoever was at work is gone."""


class World:
    """Objects by key, with versions, and a few of the actors that a cluster has."""

    def __init__(self, driver: Driver = EBS, *, openshift: bool = False, **seen: Any) -> None:
        self.driver = driver
        self.objects: dict[Key, Object] = {}
        self.now = START
        self.writes: list[Write] = []
        self.versions = count(1)
        self.kill_after: int | None = None
        self.rolls_out = True
        seen.setdefault("cloud", driver.cloud)
        self.seen = Seen(driver, START, **seen)
        self.uses: tuple[str, ...] = ()
        self.share_types: tuple[str, ...] = ("default",)
        if openshift:
            self.seen = replace(
                self.seen,
                served=OPENSHIFT,
                infrastructure={"status": {"platformStatus": {"type": str(driver.cloud)}}},
            )
            self.put({"kind": "Storage", "metadata": {"name": "cluster"}})

    # What is there

    @property
    def cr_key(self) -> Key:
        return (self.driver.kind, "", CR_NAME)

    @property
    def cr(self) -> Object:
        return self.objects[self.cr_key]

    def put(self, obj: Object) -> Object:
        obj = deepcopy(obj)
        version = next(self.versions)
        before = self.objects.get(key_of(obj))
        metadata = obj["metadata"]
        metadata.setdefault("uid", before["metadata"]["uid"] if before else f"uid-{version}")
        metadata["resourceVersion"] = str(version)
        generation = before["metadata"].get("generation", 1) if before else 1
        if before and before.get("spec") != obj.get("spec"):
            generation += 1
        metadata["generation"] = generation
        self.objects[key_of(obj)] = obj
        return obj

    def ask(self, **spec: Any) -> World:
        """Somebody makes the CR, or changes it."""
        cr = self.objects.get(self.cr_key) or default_cr(self.driver)
        self.put({**cr, "spec": {**cr["spec"], **spec}})
        return self

    def secret(self) -> World:
        """Whoever has to, makes the secret."""
        self.put(
            {
                "kind": "Secret",
                "metadata": {"name": self.driver.secret, "namespace": self.driver.namespace},
            }
        )
        return self

    def look(self) -> Seen:
        seen = replace(
            self.seen,
            now=self.now,
            cr=self.objects.get(self.cr_key),
            storage=self.objects.get(("Storage", "", "cluster")),
            classes=[it for it in self.objects.values() if it["kind"] == "StorageClass"],
            subscriptions=[it for it in self.objects.values() if it["kind"] == "Subscription"],
        )
        looked: dict[Key, Object] = {}
        while True:
            keys = wanted_keys(replace(seen, objects=looked), shipped())
            found = {it: self.objects[it] for it in keys if it in self.objects}
            if found == looked:
                return replace(seen, objects=looked)
            looked = found

    def decide(self) -> Decision:
        seen = self.look()
        for _ in range(4):
            decision = decide(seen, shipped())
            if not decision.look:
                return decision
            assert not decision.writes
            for what in decision.look:
                match what:
                    case Look.USES:
                        seen = replace(seen, uses=Uses(self.uses))
                    case Look.SHARE_TYPES:
                        seen = replace(seen, share_types=self.share_types)
                    case Look.WORKLOADS:
                        kinds = ("Deployment", "DaemonSet", "StatefulSet")
                        all_ = [it for it in self.objects.values() if it["kind"] in kinds]
                        seen = replace(seen, workloads=all_)
        raise AssertionError("it looks for ever")

    # What happens

    def settle(self, *others: Callable[[], None], rounds: int = 60) -> Decision:
        """All that is done until there is nothing left to do."""
        decision = Decision()
        for _ in range(rounds):
            decision = self.decide()
            for write in decision.writes:
                self.write(write)
            for other in (*others, self._roll_out):
                other()
            if not decision.writes and not self.decide().writes:
                return decision
        raise AssertionError(f"it writes for ever: {decision.writes}")

    def write(self, write: Write) -> None:
        if self.kill_after is not None:
            if self.kill_after == 0:
                raise Killed
            self.kill_after -= 1
        self.writes.append(write)
        match write:
            case Create(obj):
                if key_of(obj) not in self.objects:
                    self.put(obj)
            case Apply(obj):
                found = self.objects.get(key_of(obj))
                self.put(_merged(found, obj) if found else obj)
            case Replace(obj):
                self._must_be_current(obj)
                self.put({**obj, "status": self.objects[key_of(obj)].get("status", {})})
            case Delete(obj):
                self._must_be_current(obj)
                self.delete(key_of(obj))
            case Status(obj, status):
                self.put({**self._must_be_current(obj), "status": status})
            case _:
                self._write_metadata(write)

    def _write_metadata(self, write: Annotate | Finalizers) -> None:
        found = self._must_be_current(write.object)
        metadata = dict(found["metadata"])
        if isinstance(write, Annotate):
            merged = {**(metadata.get("annotations") or {}), **write.annotations}
            metadata["annotations"] = {key: it for key, it in merged.items() if it is not None}
        else:
            metadata["finalizers"] = list(write.finalizers)
        self.put({**found, "metadata": metadata})
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            del self.objects[key_of(found)]

    def _must_be_current(self, obj: Object) -> Object:
        found = self.objects[key_of(obj)]
        for field in ("uid", "resourceVersion"):
            assert found["metadata"][field] == obj["metadata"][field], f"{key_of(obj)} has changed"
        return found

    def delete(self, key: Key) -> None:
        obj = self.objects[key]
        if obj["metadata"].get("finalizers"):
            self.put({**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "now"}})
        else:
            del self.objects[key]

    def _roll_out(self) -> None:
        """Kubernetes rolls workloads out."""
        if not self.rolls_out:
            return
        for obj in list(self.objects.values()):
            if obj["kind"] in ("Deployment", "DaemonSet"):
                obj["status"] = rolled_out(obj)

    # What is said

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition."""
        return {it["type"]: (it["status"], it["reason"]) for it in self.cr["status"]["conditions"]}

    def message(self, kind: str) -> str:
        (found,) = (it["message"] for it in self.cr["status"]["conditions"] if it["type"] == kind)
        return str(found)

    def kinds(self) -> list[str]:
        """Of all that was made, apart from the CR."""
        return sorted(kind for kind, _, _ in self.objects if kind != self.driver.kind)


def rolled_out(obj: Object) -> Object:
    generation = obj["metadata"]["generation"]
    if obj["kind"] == "Deployment":
        wanted = obj["spec"].get("replicas", 1)
        counts = ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas")
        return {"observedGeneration": generation, **dict.fromkeys(counts, wanted)}
    on_nodes = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    return {"observedGeneration": generation, **dict.fromkeys(on_nodes, 3)}


def _merged(found: Any, wanted: Any) -> Any:
    if isinstance(found, dict) and isinstance(wanted, dict):
        both = {**found}
        for key, it in wanted.items():
            both[key] = _merged(found.get(key), it)
        return both
    return wanted


def provision(world: World) -> Callable[[], None]:
    """The cloud-credential-operator, which makes what is asked for."""

    def act() -> None:
        for obj in list(world.objects.values()):
            if obj["kind"] == "CredentialsRequest" and not obj.get("status"):
                world.secret()
                world.put({**obj, "status": {"provisioned": True}})

    return act


def applied(decision: Decision) -> Iterator[Object]:
    """What a decision applies."""
    for write in decision.writes:
        if isinstance(write, Apply):
            yield write.object
