"""The command line of a component as words, edited where its gates and flags must change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from replant.execute.actuators import Wanted
from replant.inventory.controlplane import LIST_FLAGS
from replant.plan.model import GivenGates

GATES_FLAG = "feature-gates"


@dataclass(frozen=True, slots=True)
class WordChanges:
    """What becomes of a command line."""

    replaced: dict[int, str] = field(default_factory=dict)
    removed: frozenset[int] = frozenset()
    added: tuple[str, ...] = ()

    def apply(self, words: list[str]) -> list[str]:
        """The words as they are to be."""
        kept = [
            self.replaced.get(number, word)
            for number, word in enumerate(words)
            if number not in self.removed
        ]
        return [*kept, *self.added]


def word_changes(words: list[str], wanted: Wanted) -> WordChanges:
    """What a command line must become; what is not named stays as it is."""
    edit = _Edit(words)
    edit.gates(wanted.gates)
    for flag, value in wanted.remove_flags.items():
        edit.remove(flag, value)
    for flag, value in wanted.add_flags.items():
        edit.add(flag, value)
    return edit.changes()


def given_by_flags(arguments: Iterable[str], gates: GivenGates) -> list[str]:
    """The gates that a command line gives otherwise than they are wanted."""
    given: dict[str, str] = {}
    for _, value in _flags(list(arguments)).get(GATES_FLAG, ()):
        given |= {name: on for name, _, on in _pairs(value)}
    return [gate for gate, on in gates.items() if gate in given and not _is(given[gate], on)]


def flag_value(arguments: Iterable[str], flag: str) -> str | None:
    """The value of a flag on a command line, None if it has no such flag."""
    values = _flags(list(arguments)).get(flag)
    return values[-1][1] if values else None


class _Edit:
    """A command line while it is edited: the values of each flag, in their order."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._flags = _flags(words)
        self._values: dict[int, str | None] = {}
        self._added: dict[str, str] = {}

    def gates(self, gates: GivenGates) -> None:
        missing = dict(gates)
        for number, value in self._flags.get(GATES_FLAG, ()):
            kept = []
            for name, pair, on in _pairs(value):
                if name not in gates:
                    kept.append(pair)
                    continue
                missing.pop(name, None)
                if gates[name] is not None:
                    kept.append(pair if _is(on, gates[name]) else _pair(name, gates[name]))
            self._set(number, value, ",".join(kept))
        self._append(GATES_FLAG, [_pair(it, on) for it, on in missing.items() if on is not None])

    def remove(self, flag: str, value: str) -> None:
        for number, given in self._flags.get(flag, ()):
            if flag not in LIST_FLAGS:
                self._values[number] = None
                continue
            goes = value.split(",")
            self._set(number, given, ",".join(it for it in given.split(",") if it not in goes))

    def add(self, flag: str, value: str) -> None:
        given = self._flags.get(flag, [])
        if flag in LIST_FLAGS:
            there = {it for _, items in given for it in items.split(",")}
            self._append(flag, [it for it in value.split(",") if it not in there])
        elif given:
            for number, old in given:
                self._set(number, old, value)
        else:
            self._added[flag] = value

    def changes(self) -> WordChanges:
        replaced: dict[int, str] = {}
        removed: set[int] = set()
        for number, value in self._values.items():
            flag, equals, _ = self._words[number].partition("=")
            if value is None:
                removed |= {number} if equals else {number, number + 1}
            elif equals:
                replaced[number] = f"{flag}={value}"
            else:
                replaced[number + 1] = value
        added = tuple(f"--{flag}={value}" for flag, value in self._added.items())
        return WordChanges(replaced, frozenset(removed), added)

    def _set(self, number: int, old: str, new: str) -> None:
        if new != old:
            self._values[number] = new or None

    def _append(self, flag: str, items: list[str]) -> None:
        """More items for a flag that is a list: to its last place, or to one of its own."""
        if not items:
            return
        if flag not in self._flags:
            self._added[flag] = ",".join(items)
            return
        number, given = self._flags[flag][-1]
        # An empty place is one that was just emptied, or was given without a value.
        before = self._values.get(number, given)
        self._values[number] = ",".join([*filter(None, [before]), *items])


def _flags(words: list[str]) -> dict[str, list[tuple[int, str]]]:
    """Where each flag stands, with its value: behind an equals sign, or in the next word."""
    found: dict[str, list[tuple[int, str]]] = {}
    for number, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            following = words[number + 1] if number + 1 < len(words) else "--"
            if following.startswith("--"):
                continue  # a switch, such as --profiling
            value = following
        # The components take underscores for dashes.
        found.setdefault(name.replace("_", "-"), []).append((number, value))
    return found


def _pairs(value: str) -> Iterator[tuple[str, str, str]]:
    """Each gate's name, the text that it stands in, and what it is set to."""
    for pair in value.split(","):
        name, _, on = pair.partition("=")
        if name.strip():
            yield name.strip(), pair, on.strip()


def _pair(gate: str, on: bool | None) -> str:
    return f"{gate}={str(on).lower()}"


def _is(written: str, on: bool | None) -> bool:
    return written.lower() == str(on).lower()
