"""Files on a node, edited as text: a component's static manifest, and a kubelet's configuration.

Only what must change is touched, so comments and layout survive. No edit is trusted: the new text
is read again, and must hold exactly what the old one held, changed as wanted; else it is refused.
No I/O here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import yaml

from replant.errors import InputError
from replant.execute.actuators import Wanted
from replant.manifests import yamltext
from replant.objects import Object
from replant.plan.model import GivenGates
from replant.platforms.command_lines import WordChanges, word_changes
from replant.platforms.yaml_spans import (
    Span,
    applied,
    checked,
    child,
    composed,
    mapping_spans,
    new_field,
    sequence_spans,
    value_node,
)

GATES_FIELD = "featureGates"


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
    node = child(child(child(composed(text), "spec"), "containers"), place)
    spans: list[Span] = []
    for key, part in _parted(changes, command, arguments).items():
        if part != WordChanges():
            spans += sequence_spans(text, child(node, key), part)
            container[key] = part.apply(container[key])
    return checked(applied(text, spans), pod)


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
    root = composed(text)
    where = value_node(root, GATES_FIELD)
    spans = (
        new_field(text, root, GATES_FIELD, after)
        if where is None
        else mapping_spans(text, where, before or {}, after)
    )
    return checked(applied(text, spans), {**config, GATES_FIELD: after})


def _changed_gates(before: Mapping[str, Any], gates: GivenGates) -> dict[str, Any]:
    after = {gate: on for gate, on in before.items() if gates.get(gate, True) is not None}
    return after | {gate: on for gate, on in gates.items() if on is not None}


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return str(error)
