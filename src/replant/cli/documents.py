"""Plans, orders and scenarios in files, read so that an error can name its line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from replant.errors import InputError, shown

if TYPE_CHECKING:
    from replant.plan.model import Plan
    from replant.proof import Course
    from replant.sandbox.scenario import Scenario

_PLACE = re.compile(r"(?P<reason>.*) - at `\$?(?P<path>[^`]*)`")
"""How msgspec names what it does not take."""
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.*)`")
_PART = re.compile(r"\.(\w+)|\[(\d+)\]")

Place = tuple[str | int, ...]
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML or JSON document, and the line of each of its values."""

    data: Any
    lines: dict[Place, int]
    source: str

    @classmethod
    def read(cls, path: str, max_size: int) -> Document:
        """Read a file or standard input; InputError says why it cannot be."""
        from replant.manifests import sources, yamltext

        file = sources.read(path if path == sources.STDIN else Path(path), max_size)
        try:
            data, lines = yamltext.load_with_lines(file.data.decode())
        except ValueError as error:
            raise InputError(str(error), source=file.name) from None
        return cls(data, lines, file.name)

    @property
    def is_plan(self) -> bool:
        """Whether it says that it is a plan."""
        return isinstance(self.data, dict) and self.data.get("kind") == "MigrationPlan"

    def plan(self) -> Plan:
        """The plan that it is."""
        from replant.plan.model import Plan
        from replant.plan.soundness import problems

        plan = self._as(Plan)
        for place, reason in problems(plan):
            raise self.wrong(place, reason)
        return plan

    def scenario(self) -> Scenario:
        """The scenario that it is."""
        from replant.sandbox.scenario import Scenario
        from replant.sandbox.soundness import problems

        scenario = self._as(Scenario)
        for place, reason in problems(scenario):
            raise self.wrong(place, reason)
        return scenario

    def _as(self, kind: type[_Kind]) -> _Kind:
        import msgspec

        try:
            return msgspec.convert(self.data, kind)
        except msgspec.ValidationError as error:
            found = _PLACE.fullmatch(str(error))
            parts = _PART.findall(found["path"]) if found else []
            place: Place = tuple(name or int(number) for name, number in parts)
            reason = found["reason"] if found else str(error)
            if unknown := _UNKNOWN.fullmatch(reason):
                # It stands on a line of its own, not where what it is in begins.
                place = (*place, unknown["field"])
            raise self.wrong(place, reason) from None

    def order(self) -> Course:
        """The course of the order that it is."""
        from replant.proof.orders import OrderError, read_order

        try:
            return read_order(self.data)
        except OrderError as error:
            raise self.wrong(error.path, error.reason) from None

    def wrong(self, place: Place, reason: str) -> InputError:
        """The error that names the line of a place in it."""
        from replant.proof.orders import written

        above = (place[:length] for length in range(len(place), -1, -1))
        line = next((self.lines[it] for it in above if it in self.lines), 1)
        where = f"{self.source}, line {line}" + (f", {shown(written(place))}" if place else "")
        return InputError(reason, source=where)
