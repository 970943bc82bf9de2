"""Files on a node, edited as text: a component's static manifest, and a kubelet's configuration.

Only what must change is touched, so comments and layout survive. No edit is trusted: the new text
is read again, and must hold exactly what the old one held, changed as wanted; else it is refused.
No I/O here.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from replant.errors import InputError
from replant.execute.actuators import Wanted
from replant.inventory.controlplane import LIST_FLAGS
from replant.manifests import yamltext
from replant.objects import Object
from replant.plan.model import GivenGates

GATES_FLAG = "feature-gates"
GATES_FIELD = "featureGates"


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


def edit_manifest(text: str, component: str, wanted: Wanted, *, source: str) -> str:
    """A static pod's manifest with other gates and flags; InputError if that cannot be done."""
    try:
        return _edited_manifest(text, component, wanted)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InputError(_reason(error), source=source) from error


def edit_kubelet_config(text: str, gates: GivenGates, *, source: str) -> str:
    """A KubeletConfiguration with other gates; InputError if that cannot be done."""
    try:
        return _edited_config(text, gates)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InputError(_reason(error), source=source) from error


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


# Command lines


def word_changes(words: list[str], wanted: Wanted) -> WordChanges:
    """What a command line must become; what is not named stays as it is."""
    edit = _Edit(words)
    edit.gates(wanted.gates)
    for flag, value in wanted.remove_flags.items():
        edit.remove(flag, value)
    for flag, value in wanted.add_flags.items():
        edit.add(flag, value)
    return edit.changes()


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


# Manifests


def _edited_manifest(text: str, component: str, wanted: Wanted) -> str:
    pod = yamltext.load(text)
    place = _container(pod, component)
    container = pod["spec"]["containers"][place]
    command, arguments = _words(container, "command"), _words(container, "args")
    words = [*command, *arguments]
    start = _first_flag(words, component)
    # What stands before the program, such as a wrapper with flags of its own, is not ours.
    changes = _moved(word_changes(words[start:], wanted), start)
    if changes == WordChanges():
        return text
    node = _child(_child(_child(_composed(text), "spec"), "containers"), place)
    spans: list[_Span] = []
    for key, part in _parted(changes, command, arguments).items():
        if part != WordChanges():
            spans += _sequence_spans(text, _child(node, key), part)
            container[key] = part.apply(container[key])
    return _checked(_applied(text, spans), pod)


def _container(pod: Any, component: str) -> int:
    """Which container of a pod runs the component."""
    try:
        containers = pod["spec"]["containers"]
        names = [it["name"] for it in containers]
    except (TypeError, LookupError):
        raise ValueError("is not a pod with containers") from None
    if pod.get("kind") != "Pod":
        raise ValueError("is not a pod")
    if component in names:
        return names.index(component)
    if len(names) != 1:
        raise ValueError(f"has no container {component}")
    return 0


def _words(container: Object, key: str) -> list[str]:
    words = container.get(key) or []
    if not isinstance(words, list) or not all(isinstance(it, str) for it in words):
        raise ValueError(f"the {key} of its container is not a list of texts")
    return words


def _first_flag(words: list[str], component: str) -> int:
    for number, word in enumerate(words):
        is_program = not word.startswith("-") and len(word.split()) == 1
        if is_program and posixpath.basename(word) == component:
            return number + 1
    if words and words[0].startswith("--"):
        return 0  # the image's own program
    raise ValueError(f"its container does not run {component} as a command of its own")


def _moved(changes: WordChanges, by: int) -> WordChanges:
    return WordChanges(
        {number + by: word for number, word in changes.replaced.items()},
        frozenset(number + by for number in changes.removed),
        changes.added,
    )


def _parted(
    changes: WordChanges, command: list[str], arguments: list[str]
) -> dict[str, WordChanges]:
    """The changes of a container's command, and those of its args; new flags go to the last."""
    border = len(command)
    first = WordChanges(
        {number: word for number, word in changes.replaced.items() if number < border},
        frozenset(number for number in changes.removed if number < border),
        () if arguments else changes.added,
    )
    second = WordChanges(
        {number - border: word for number, word in changes.replaced.items() if number >= border},
        frozenset(number - border for number in changes.removed if number >= border),
        changes.added if arguments else (),
    )
    return {"command": first, "args": second}


# Kubelet configurations


def _edited_config(text: str, gates: GivenGates) -> str:
    config = yamltext.load(text)
    if not isinstance(config, dict) or config.get("kind") != "KubeletConfiguration":
        raise ValueError("is not a KubeletConfiguration")
    before = config.get(GATES_FIELD)
    if before is not None and not isinstance(before, dict):
        raise ValueError(f"its {GATES_FIELD} are not a map")
    after = _changed_gates(before or {}, gates)
    if after == (before or {}):
        return text
    root = _composed(text)
    where = _value(root, GATES_FIELD)
    spans = (
        _new_field(text, root, after)
        if where is None
        else _mapping_spans(text, where, before or {}, after)
    )
    return _checked(_applied(text, spans), {**config, GATES_FIELD: after})


def _changed_gates(before: Mapping[str, Any], gates: GivenGates) -> dict[str, Any]:
    after = {gate: on for gate, on in before.items() if gates.get(gate, True) is not None}
    return after | {gate: on for gate, on in gates.items() if on is not None}


# Texts: a span is replaced by another text


_Span = tuple[int, int, str]


def _composed(text: str) -> yaml.MappingNode:
    """The nodes of a text, which know where they stand in it."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("is not a map")  # noqa: TRY004 - of the text, as all that is refused here
    return root


def _child(node: yaml.Node | None, key: str | int) -> yaml.Node:
    found: yaml.Node | None = None
    if isinstance(key, int) and isinstance(node, yaml.SequenceNode):
        found = node.value[key]
    elif isinstance(key, str) and isinstance(node, yaml.MappingNode):
        found = _value(node, key)
    if found is None:
        raise ValueError(f"its {key} cannot be found in the text")
    return found


def _value(node: yaml.Node, key: str) -> yaml.Node | None:
    return next((value for name, value in node.value if name.value == key), None)


def _sequence_spans(text: str, node: yaml.Node, changes: WordChanges) -> list[_Span]:
    if not isinstance(node, yaml.SequenceNode):
        raise ValueError("a list in it cannot be edited")  # noqa: TRY004 - as above
    if node.flow_style:
        words = changes.apply([it.value for it in node.value])
        return [(node.start_mark.index, node.end_mark.index, _json(words))]
    items = node.value
    spans = [
        (it.start_mark.index, it.end_mark.index, _like(it, changes.replaced[number]))
        for number, it in enumerate(items)
        if number in changes.replaced
    ]
    spans += [_line_of(text, items[number], items[number]) for number in changes.removed]
    last = items[-1]
    # Items may stand at the column of their key, or deeper; the dash is looked for in the text.
    lead = text[_line_start(text, last.start_mark.index) : last.start_mark.index]
    if lead.strip() != "-" and changes.added:
        raise ValueError("a list in it has an item that does not begin its line")
    spans += _new_lines(text, last, [lead + _scalar(word) for word in changes.added])
    return spans


def _mapping_spans(
    text: str, node: yaml.Node, before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[_Span]:
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        # Written anew: {A: true}, {} or nothing at all.
        space = "" if node.start_mark.index != node.end_mark.index else " "
        return [(node.start_mark.index, node.end_mark.index, space + _json(after))]
    spans: list[_Span] = []
    for number, (name, value) in enumerate(node.value):
        if name.value in after:
            if after[name.value] is not before[name.value]:
                new = _scalar(after[name.value])
                spans.append((value.start_mark.index, value.end_mark.index, new))
        elif not after and number == 0:
            # A map needs something in it, or it would be no map.
            spans.append((name.start_mark.index, value.end_mark.index, "{}"))
        else:
            spans.append(_line_of(text, name, value))
    lead = " " * node.start_mark.column
    fresh = [gate for gate in after if gate not in before]
    lines = [f"{lead}{_scalar(gate)}: {_scalar(after[gate])}" for gate in fresh]
    return spans + _new_lines(text, node.value[-1][1], lines)


def _new_field(text: str, root: yaml.MappingNode, gates: Mapping[str, Any]) -> list[_Span]:
    if root.flow_style:
        place = root.end_mark.index - 1
        return [(place, place, f', "{GATES_FIELD}": {_json(gates)}')]
    lead = " " * root.start_mark.column
    lines = [f"{lead}{GATES_FIELD}:"]
    lines += [f"{lead}  {_scalar(gate)}: {_scalar(on)}" for gate, on in gates.items()]
    place = root.end_mark.index
    newline = _newline(text)
    begun = newline if place and text[place - 1] not in "\r\n" else ""
    return [(place, place, begun + "".join(line + newline for line in lines))]


def _new_lines(text: str, last: yaml.Node, lines: list[str]) -> list[_Span]:
    """More lines, behind the one on which the last item ends."""
    if not lines:
        return []
    place = _line_end(text, last.end_mark.index)
    newline = _newline(text)
    begun = newline if text[place - 1] not in "\r\n" else ""
    return [(place, place, begun + "".join(line + newline for line in lines))]


def _line_of(text: str, first: yaml.Node, last: yaml.Node) -> _Span:
    start = _line_start(text, first.start_mark.index)
    if text[start : first.start_mark.index].strip(" -"):
        raise ValueError("what is to go shares its line with something else")
    return start, _line_end(text, last.end_mark.index), ""


def _line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _line_end(text: str, place: int) -> int:
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _like(node: yaml.Node, word: str) -> str:
    """A word written as the one was that it replaces."""
    style = node.style if isinstance(node, yaml.ScalarNode) else "?"
    match style:
        case "'":
            return "'" + word.replace("'", "''") + "'"
        case '"':
            return _json(word)
        case None:
            return _scalar(word)
    raise ValueError("a flag in it is written as a block of text")


def _json(value: object) -> str:
    # JSON writes what is beyond 16 bits as two escapes, of which YAML knows nothing.
    return json.dumps(value, ensure_ascii=False)


def _scalar(value: object) -> str:
    return yamltext.dump(value).removesuffix("...\n").strip()


def _applied(text: str, spans: list[_Span]) -> str:
    # Where one ends another may begin: what goes, goes first.
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _checked(text: str, expected: object) -> str:
    if yamltext.load(text) != expected:
        raise ValueError("cannot be edited without changing something else in it")
    return text


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return str(error)
