"""An actuator that switches nothing: it says what others are to do, and sees when it is so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from replant.cluster.ports import Reader
from replant.errors import printable
from replant.execute.actuators import Place, Replica, Wanted
from replant.inventory.controlplane import LIST_FLAGS
from replant.platforms.seen import Seen

Tell = Callable[[str], None]


class Observe:
    """For platforms where a person, or another system, switches gates."""

    def __init__(self, reader: Reader, tell: Tell) -> None:
        self._seen = Seen(reader)
        self._tell = tell
        self._told: dict[Place, Wanted] = {}

    async def observe(self, place: Place) -> tuple[Replica, ...] | None:
        """What the API tells; see Actuator."""
        return await self._seen.observe(place)

    async def switch(self, place: Place, wanted: Wanted) -> None:
        """Tell what is to be done, once."""
        if self._told.get(place) != wanted:
            self._told[place] = wanted
            self._tell(instruction(place, wanted))

    async def aclose(self) -> None:
        """There is nothing to leave behind."""


def instruction(place: Place, wanted: Wanted) -> str:
    """What a person is to do, in one sentence, with the very gates and flags."""
    what = _kubelet(place.node, wanted) if place.node else _component(place.component, wanted)
    return printable(what)


def _kubelet(node: str, wanted: Wanted) -> str:
    given, not_given = _split(wanted.gates)
    parts = []
    if given:
        gates = ", ".join(f"{gate}: {on}" for gate, on in given.items())
        parts.append(f"set {gates} under featureGates")
    if not_given:
        parts.append(f"take {_and(not_given)} out of featureGates")
    parts += _flag_changes(wanted)
    return (
        f"On node {node}, in its KubeletConfiguration, {_and(parts) or 'change nothing'}"
        " (a --feature-gates flag of the kubelet would win over it), and restart the kubelet."
    )


def _component(component: str, wanted: Wanted) -> str:
    given, not_given = _split(wanted.gates)
    parts = []
    if given:
        gates = ",".join(f"{gate}={on}" for gate, on in given.items())
        parts.append(f"give it --feature-gates={gates} besides the gates that it has")
    if not_given:
        parts.append(f"take {_and(not_given)} out of its --feature-gates")
    parts += _flag_changes(wanted)
    return (
        f"For every replica of {component}, one after the other: "
        f"{_and(parts) or 'change nothing'}, and have it started anew."
    )


def _split(gates: Mapping[str, bool | None]) -> tuple[dict[str, str], list[str]]:
    given = {gate: str(on).lower() for gate, on in gates.items() if on is not None}
    return given, [gate for gate, on in gates.items() if on is None]


def _flag_changes(wanted: Wanted) -> Iterator[str]:
    for flag, value in wanted.add_flags.items():
        yield f"add {value} to --{flag}" if flag in LIST_FLAGS else f"add --{flag}={value}"
    for flag, value in wanted.remove_flags.items():
        listed = flag in LIST_FLAGS
        yield f"take {value} out of --{flag}" if listed else f"remove --{flag}={value}"


def _and(parts: list[str]) -> str:
    *most, last = parts or [""]
    return f"{', '.join(most)} and {last}" if most else last
