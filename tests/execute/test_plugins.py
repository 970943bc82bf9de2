"""Every plugin goes through enable, disable and enable; none loses a disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from replant.execute.journal import State
from replant.gates.plugins import LIVES
from replant.plan.cloudflags import CLOUDS
from replant.plan.model import Goal
from replant.translate import driver_of
from tests.execute.living import Ground, ground, sandbox_of, small

LOCKED_AT_1_24 = ("kubernetes.io/cinder", "kubernetes.io/azure-disk")
"""Their gates can no longer be turned off there."""

PARAMETERS = {
    "kubernetes.io/azure-disk": {"kind": "Managed"},
    "kubernetes.io/rbd": {"monitors": "10.0.0.1:6789", "pool": "rbd", "adminSecretName": "admin"},
}
SECRET = {
    "openstorage.io/auth-secret-name": "px-user-token",
    "openstorage.io/auth-secret-namespace": "portworx",
}


def scenario(plugin: str, parameters: dict[str, str]) -> dict[str, Any]:
    """A small cluster with volumes of one plugin, before anything is switched."""
    off = {LIVES[plugin].migration_gate: False}
    short, driver = plugin.removeprefix("kubernetes.io/"), driver_of(plugin)
    flags = {"cloud-provider": CLOUDS[plugin]} if plugin in CLOUDS else {}
    pool = {"name": "workers", "count": 3, "gates": off, "drivers": [driver]}
    return small(
        kubernetesVersion="1.23.17" if plugin in LOCKED_AT_1_24 else "1.24.17",
        controlPlane={"replicas": 2, "gates": off, "flags": flags},
        drivers=[driver],
        pools=[pool],
        classes=[{"name": "gp2", "plugin": short, "parameters": parameters, "default": True}],
    )


CASES = [pytest.param(it, PARAMETERS.get(it, {}), id=it.removeprefix("kubernetes.io/"))
         for it in LIVES]  # fmt: skip
CASES.append(pytest.param("kubernetes.io/portworx-volume", SECRET, id="portworx-secure"))


@pytest.mark.parametrize(("plugin", "parameters"), CASES)
def test_a_plugin_goes_there_and_back(
    plugin: str, parameters: dict[str, str], tmp_path: Path
) -> None:
    async def listed(it: Ground) -> set[bool]:
        gate = LIVES[plugin].migration_gate
        return {(await it.gates(f"workers-{number}"))[gate] for number in range(3)}

    async def story() -> None:
        async with ground(kubeconfig) as it:
            for goal in (Goal.ENABLE, Goal.DISABLE, Goal.ENABLE):
                plan = await it.plan(goal, plugin)
                assert not plan.blockers, plan.blockers
                result = await it.applying().begin(plan, {})
                assert result.state is State.DONE
                assert await listed(it) == {goal is Goal.ENABLE}
            assert (await it.ask("/sandbox/writes"))["yanked"] == []

    with sandbox_of(scenario(plugin, parameters), tmp_path) as kubeconfig:
        asyncio.run(story())
