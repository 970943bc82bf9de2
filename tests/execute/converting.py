"""Conversions on a sandbox: the plan for what is there, and objects by their names."""

from __future__ import annotations

from typing import Any

import msgspec

from replant.cluster.collect import Collector
from replant.cluster.ports import Resource
from replant.errors import Missing
from replant.gates.versions import Version
from replant.inventory.build import Builder
from replant.inventory.model import Inventory
from replant.objects import Object
from replant.plan.convert import Asked, make_conversion
from replant.plan.model import Plan
from tests.execute.living import Ground

ON = {"CSIMigrationAWS": True}
EBS = "ebs.csi.aws.com"
MIGRATED: dict[str, Any] = {
    "controlPlane": {"replicas": 1, "gates": ON, "flags": {"cloud-provider": "aws"}},
    "pools": [
        {
            "name": "workers",
            "count": 3,
            "zones": ["us-east-1a"],
            "gates": ON,
            "drivers": [EBS],
        }
    ],
}
"""Of a scenario: everything redirects, as it must before volumes are replaced while in use."""


async def inventory_of(it: Ground) -> Inventory:
    builder = Builder()
    await Collector(it.reader, builder, complain=_fail, progress=lambda _kind, _n: None).collect()
    server = Version.parse(await it.reader.server_version())
    return builder.finish(server=server, unknown={})


async def conversion(it: Ground, **asked: Any) -> Plan:
    plan = make_conversion(Asked(**asked), await inventory_of(it))
    assert not plan.blockers, plan.blockers
    return plan


async def get(it: Ground, resource: Resource, name: str, namespace: str = "") -> Object | None:
    try:
        body = await it.reader.get(resource, name, namespace=namespace)
    except Missing:
        return None
    found: Object = msgspec.json.decode(body)
    return found


async def everything(it: Ground, resource: Resource) -> list[Object]:
    found: list[Object] = []
    async for page in it.reader.list_pages(resource):
        found += msgspec.json.decode(page.body)["items"] or ()
    return found


def _fail(problem: object) -> None:
    raise AssertionError(problem)
