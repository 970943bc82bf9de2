"""How gates are really switched: what an actuator of a platform is asked, and what it answers.

An actuator sees and switches; it decides nothing. What it says about a switch that it made does not
count: only what is observed afterwards does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from replant.inventory.controlplane import LIST_FLAGS
from replant.plan.model import GivenGates


@dataclass(frozen=True, slots=True)
class Place:
    """Something that is given gates: a component of the control plane, or a node's kubelet."""

    component: str = ""
    node: str = ""

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"the kubelet of {self.node}" if self.node else self.component


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a place is to be given; what is not named stays as it is."""

    gates: GivenGates
    """None is a gate that it is not to be given."""
    add_flags: Mapping[str, str] = field(default_factory=dict)
    remove_flags: Mapping[str, str] = field(default_factory=dict)
    by_name: bool = False
    """Whether a gate must be given, and not just be so by default; None: it must not be on so."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One process of a place, as it runs now."""

    name: str
    gates: Mapping[str, bool]
    flags: Mapping[str, str] | None = None
    """Its other flags; None where they cannot be seen."""
    ready: bool = True
    why: str = ""
    """Why it is not ready, where that is known."""
    defaults: Mapping[str, bool] = field(default_factory=dict)
    """What gates amount to that it is not given, where the platform decides which are given."""


KUBELETS = Place(component="kubelets")
"""All of them at once, on platforms that roll their nodes by themselves."""


class Actuator(Protocol):
    """Sees and switches gates on one platform.

    Errors: Retryable where it may work later, Final where it will not.
    """

    async def observe(self, place: Place) -> tuple[Replica, ...] | None:
        """The replicas as they run now; none is one that is down. None if it cannot be told."""
        ...

    async def switch(self, place: Place, wanted: Wanted) -> None:
        """Have every replica run with other gates. Asked again, it does no harm."""
        ...

    async def aclose(self) -> None:
        """Leave nothing behind."""
        ...


def is_so(replicas: tuple[Replica, ...], wanted: Wanted) -> bool:
    """Whether every replica runs as wanted, as far as it can be seen."""
    return bool(replicas) and all(it.ready and not differences(it, wanted) for it in replicas)


def differences(replica: Replica, wanted: Wanted) -> list[str]:
    """What of a replica is not as wanted yet."""
    found = [
        f"{gate} is {_given(replica.gates.get(gate))}"
        for gate, on in wanted.gates.items()
        if not (_is_by_name if wanted.by_name else _amounts_to_it)(gate, on, replica)
    ]
    if replica.flags is not None:
        found += _flag_differences(replica.flags, wanted)
    return found


def _is_by_name(gate: str, on: bool | None, replica: Replica) -> bool:
    given = replica.gates.get(gate)
    return not given if on is None else given is on


def _amounts_to_it(gate: str, on: bool | None, replica: Replica) -> bool:
    given, default = replica.gates.get(gate), replica.defaults.get(gate)
    return (default if given is None else given) is (default if on is None else on)


def _flag_differences(flags: Mapping[str, str], wanted: Wanted) -> list[str]:
    found = [
        f"--{flag} still has {value}" if flag in LIST_FLAGS else f"--{flag} is still there"
        for flag, value in wanted.remove_flags.items()
        if flag in flags and (flag not in LIST_FLAGS or _items(value) & _items(flags[flag]))
    ]
    found += [
        f"--{flag} is {flags.get(flag, 'not there')}"
        for flag, value in wanted.add_flags.items()
        if not _has(flags.get(flag), flag, value)
    ]
    return found


def _has(given: str | None, flag: str, value: str) -> bool:
    """Whether a flag is as it is to be; of one that is a list, only some items are ours."""
    if given is None or flag not in LIST_FLAGS:
        return given == value
    return _items(value) <= _items(given)


def _items(value: str) -> set[str]:
    return {it for it in value.split(",") if it}


def _given(on: bool | None) -> str:
    return "not given" if on is None else str(on).lower()
