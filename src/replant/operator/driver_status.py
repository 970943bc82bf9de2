"""What the drivers come to for the cluster, said in one place.

On OpenShift that is the ClusterOperator ``storage``; elsewhere a ConfigMap beside the operator. The
latter, too, where OpenShift's own operator of storage is at work: upgrades depend on what that one
says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from replant.cluster.ports import CONFIG_MAPS
from replant.drivers.catalog import DRIVERS
from replant.drivers.conditions import (
    Condition,
    clusterwide,
    condition_of,
    conditions_of,
    no_platform,
    written,
)
from replant.drivers.sameness import MANAGER
from replant.errors import InputError
from replant.execute.namespace import NAMESPACE
from replant.objects import Object
from replant.operator.driver_sight import Sides, Sight, resource_of

NAME = "replant-drivers-status"
CONDITIONS = "conditions.json"
OPERATOR = "storage"
CLUSTER_OPERATOR = "ClusterOperator"


class ClusterStatus:
    """Says how the drivers are, all together, whenever that has changed."""

    def __init__(self, sides: Sides, sight: Sight, now: Callable[[], float]) -> None:
        self._sides = sides
        self._sight = sight
        self._now = now

    async def tell(self) -> float | None:
        """Say it, if it is not said yet; the seconds after which it may be different."""
        said = None
        ours = _GROUP in await self._sides.nodes.reader.groups()
        if ours:
            said = await self._sight.get(CLUSTER_OPERATOR, OPERATOR)
            ours = not _is_of_others(said)
        if not ours:
            said = await self._sight.get("ConfigMap", NAME, NAMESPACE)
        before = conditions_of(said) if ours else _in_config_map(said)
        now, again = self._now(), None
        try:
            await self._sight.surroundings()
        except InputError as error:
            conditions: Sequence[Condition] = no_platform(before, str(error), now)
        else:
            found = {it.kind: await self._sight.cr(it) for it in DRIVERS.values()}
            crs = {kind: cr for kind, cr in found.items() if cr is not None}
            conditions, again = clusterwide(crs, before, now)
        if written(conditions) != written(before):
            await (self._tell_operator if ours else self._tell_map)(said, written(conditions))
        return again

    async def _tell_operator(self, said: Object | None, conditions: list[Object]) -> None:
        writer, resource = self._sides.nodes.writer, resource_of(CLUSTER_OPERATOR)
        if said is None:
            made = {
                "apiVersion": f"{_GROUP}/v1",
                "kind": CLUSTER_OPERATOR,
                "metadata": {"name": OPERATOR},
                "spec": {},
            }
            said = await writer.create(resource, made)
        version = said["metadata"]["resourceVersion"]
        await writer.put_status(resource, OPERATOR, {"conditions": conditions}, version=version)

    async def _tell_map(self, said: Object | None, conditions: list[Object]) -> None:
        writer = self._sides.nodes.writer
        data = {CONDITIONS: msgspec.json.format(msgspec.json.encode(conditions)).decode()}
        if said is None:
            metadata = {"name": NAME, "namespace": NAMESPACE}
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await writer.create(CONFIG_MAPS, made, namespace=NAMESPACE)
            return
        version = said["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "data": data}
        await writer.patch(CONFIG_MAPS, NAME, patch, namespace=NAMESPACE)


_GROUP = "config.openshift.io"


def _is_of_others(operator: Object | None) -> bool:
    """Whether somebody else has said how storage is, and so will go on doing."""
    metadata = (operator or {}).get("metadata") or {}
    managers = {
        str(it.get("manager") or "")
        for it in metadata.get("managedFields") or ()
        if "f:status" in (it.get("fieldsV1") or {})
    }
    return bool(managers - {MANAGER})


def _in_config_map(said: Object | None) -> list[Condition]:
    text = ((said or {}).get("data") or {}).get(CONDITIONS, "")
    try:
        return (
            [condition_of(it) for it in msgspec.json.decode(text, type=list[Object])]
            if text
            else []
        )
    except msgspec.DecodeError:
        return []  # somebody has written into it: it is said anew
