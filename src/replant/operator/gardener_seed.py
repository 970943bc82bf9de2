"""The CSI migration of a seed's shoots: looks, asks ``decide``, does that one thing, asks again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace

import msgspec

from replant.cluster.ports import CLUSTERS, CONTROL_PLANES, DEPLOYMENTS, Nudger, Reader
from replant.errors import (
    Conflict,
    Forbidden,
    InputError,
    Missing,
    NotServed,
    ReplantError,
    Retryable,
    Uncertain,
    Unreachable,
)
from replant.gardener.decisions import (
    Annotate,
    ClassSeen,
    Complain,
    DeleteClass,
    Leave,
    Look,
    Nudge,
    Seen,
    Wait,
    decide,
)
from replant.gardener.providers import Provider
from replant.gardener.shoots import part, shoot_of
from replant.objects import Object
from replant.operator.shoot_access import BadKubeconfig, NoKubeconfig, Shoot, Visit
from replant.operator.telling import Teller

COMPLAINED_WAIT = 300.0
"""Seconds after which what somebody has to put right is looked at again."""


class ClassCameBack(Retryable):
    """Somebody makes a legacy class again as soon as it is deleted."""


_REASONS: dict[type[ReplantError], str] = {
    NoKubeconfig: "NoKubeconfig",
    BadKubeconfig: "BadKubeconfig",
    Unreachable: "Unreachable",
    Forbidden: "Forbidden",
    Missing: "Missing",
    NotServed: "NotServed",
    ClassCameBack: "LegacyClassCameBack",
}


@dataclass(frozen=True)
class Migration:
    """Attends to Clusters. Remembers nothing between two looks."""

    provider: Provider
    reader: Reader
    writer: Nudger
    visit: Visit
    teller: Teller
    note: Callable[[str], None]
    wrote: Callable[[str], None] = lambda _what: None
    """Told of each write."""

    def concerns(self, cluster: Object | None) -> bool:
        """Whether there is anything to do, or to say, as far as a Cluster alone tells."""
        return not isinstance(decide(Seen(cluster), self.provider), Leave)

    async def attend(self, name: str) -> float | None:
        """Do all that there is to do for a Cluster; the seconds after which to look again."""
        cluster = await self._cluster(name)
        try:
            async with AsyncExitStack() as held:
                return await _Pass(self, name, cluster, held).go()
        except (Conflict, Uncertain):
            raise  # it is looked at again, and nobody has to know
        except ReplantError as error:
            if cluster is not None:
                await self.teller.tell(cluster, _REASONS.get(type(error), "Failed"), str(error))
            raise

    async def _cluster(self, name: str) -> Object | None:
        try:
            body = await self.reader.get(CLUSTERS, name)
        except Missing:
            return None
        try:
            return msgspec.json.decode(body, type=dict)
        except msgspec.DecodeError as error:
            raise InputError(f"cannot be read: {error}", source=f"Cluster {name}") from error


class _Pass:
    """One look at one Cluster, and all that follows from it."""

    def __init__(
        self, of: Migration, name: str, cluster: Object | None, held: AsyncExitStack
    ) -> None:
        self._of = of
        self._name = name
        self._seen = Seen(cluster)
        self._held = held
        self._visited: Shoot | None = None
        self._deleted: set[str] = set()

    async def go(self) -> float | None:
        """Act until there is nothing left to do now."""
        while True:
            match decide(self._seen, self._of.provider):
                case Leave():
                    return None
                case Wait(seconds, why):
                    self._say(f"{why}; looking again within {seconds:g} s")
                    return seconds
                case Complain(reason, message):
                    if self._seen.cluster is not None:
                        await self._of.teller.tell(self._seen.cluster, reason, message)
                    self._say(message)
                    return COMPLAINED_WAIT
                case Look() as what:
                    await self._look(what)
                case Annotate(names, version, why):
                    await self._annotate(names, version, why)
                case DeleteClass(found):
                    await self._delete(found)
                case Nudge(deployment):
                    await self._nudge(deployment)

    async def _look(self, what: Look) -> None:
        match what:
            case Look.CONTROL_PLANE:
                self._seen = replace(self._seen, has_control_plane=await self._has_control_plane())
            case Look.NODES:
                kubelets = await (await self._shoot()).kubelets()
                self._seen = replace(self._seen, kubelets=kubelets)
            case Look.CLASSES:
                classes = await (await self._shoot()).classes()
                self._seen = replace(self._seen, classes=classes)

    async def _has_control_plane(self) -> bool:
        shoot = part(shoot_of(self._seen.cluster or {}), "metadata", "name")
        if not isinstance(shoot, str) or not shoot:
            raise InputError("its shoot has no name", source=f"Cluster {self._name}")
        try:
            await self._of.reader.get(CONTROL_PLANES, shoot, namespace=self._name)
        except Missing:
            return False
        return True

    async def _shoot(self) -> Shoot:
        if self._visited is None:
            self._visited = await self._held.enter_async_context(self._of.visit(self._name))
        return self._visited

    async def _annotate(self, names: tuple[str, ...], version: str, why: str) -> None:
        annotations = dict.fromkeys(names, "true")
        patch = {"metadata": {"resourceVersion": version, "annotations": annotations}}
        cluster = await self._of.writer.patch(CLUSTERS, self._name, patch)
        self._of.wrote("annotations")
        self._seen = replace(self._seen, cluster=cluster)
        self._say(f"{why}: set {' and '.join(it.rpartition('/')[2] for it in names)}")

    async def _delete(self, found: ClassSeen) -> None:
        if found.name in self._deleted:
            raise ClassCameBack(
                f"StorageClass {found.name} of {found.provisioner} was deleted and is there again; "
                "have whoever makes it leave it, or make one of the CSI driver"
            )
        with suppress(Missing):  # then somebody else was sooner
            await (await self._shoot()).delete_class(found)
            self._of.wrote("class")
        self._deleted.add(found.name)
        self._seen = replace(self._seen, classes=None)
        self._say(f"deleted the legacy StorageClass {found.name} of {found.provisioner}")

    async def _nudge(self, deployment: str) -> None:
        await self._of.writer.nudge(DEPLOYMENTS, deployment, namespace=self._name)
        self._of.wrote("nudge")
        self._seen = replace(self._seen, nudged=self._seen.nudged | {deployment})

    def _say(self, what: str) -> None:
        self._of.note(f"Cluster {self._name}: {what}")
