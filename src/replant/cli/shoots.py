"""From a seed of Gardener to a shoot: options that name the seed come to name the shoot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from replant.cli.connecting import connected
from replant.cluster.live import LiveReader
from replant.cluster.ports import CLUSTERS
from replant.errors import InputError, Missing, NotServed, Refused
from replant.gardener.shoots import part, shoot_of
from replant.operator.shoot_access import kubeconfig_of
from replant.platforms.gardener import Seat, controller_gates


@dataclass(frozen=True)
class FromSeed:
    """A shoot, and how to come back to the seed that it was found in."""

    namespace: str
    shoot: str
    seed: dict[str, Any]
    """The options that name the seed."""
    controller_gates: dict[str, bool] | None

    def seat(self, reader: LiveReader) -> Seat:
        """Where its control plane is, given a reader of the seed."""
        return Seat(reader, self.namespace, self.shoot)


def lead_to_shoot(given: dict[str, Any], namespace: str, notice: Callable[[str], None]) -> FromSeed:
    """Change the options so that they name the shoot's cluster; Refused says why not."""
    return asyncio.run(_lead(given, namespace, notice))


async def _lead(given: dict[str, Any], namespace: str, notice: Callable[[str], None]) -> FromSeed:
    seed = {name: given[name] for name in ("kubeconfig", "context")}
    async with connected(seed, notice) as reader:
        shoot = await _named(reader, namespace)
        kubeconfig = await kubeconfig_of(reader, namespace)
        gates = await controller_gates(Seat(reader, namespace, shoot))
    given.update(kubeconfig=kubeconfig, context=None)
    return FromSeed(namespace, shoot, seed, gates)


async def _named(seed: LiveReader, namespace: str) -> str:
    """What the Shoot is called in its garden, if it can be spoken to."""
    try:
        cluster = msgspec.json.decode(await seed.get(CLUSTERS, namespace), type=dict)
    except (Missing, NotServed):
        raise Refused(
            f"There is no Cluster {namespace} there: --shoot wants the namespace of a shoot's "
            "control plane, and --kubeconfig and --context its seed. replant status --shoots lists "
            "them."
        ) from None
    except msgspec.DecodeError as error:
        raise InputError(f"cannot be read: {error}", source=f"Cluster {namespace}") from error
    shoot = shoot_of(cluster)
    if shoot is None:
        raise Refused(f"Cluster {namespace} embeds no Shoot: whose cluster it is is not known.")
    if part(shoot, "spec", "hibernation", "enabled") is True:
        raise Refused(f"The shoot of Cluster {namespace} is hibernated: wake it first.")
    names = (part(shoot, "metadata", it) for it in ("namespace", "name"))
    return "/".join(str(it) for it in names if it) or namespace
