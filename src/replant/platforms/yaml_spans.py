"""YAML edited as text: what stands at a place is replaced, and comments and layout survive.

A span is a place in the text and what it becomes. No edit is trusted: ``checked`` reads the new
text again, which must hold exactly what was wanted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from replant.manifests import yamltext
from replant.platforms.command_lines import WordChanges

Span = tuple[int, int, str]
"""Where it starts, where it ends, and the text that it becomes."""


def composed(text: str) -> yaml.MappingNode:
    """The nodes of a text, which know where they stand in it."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("is not a map")  # noqa: TRY004 - of the text, as all that is refused here
    return root


def child(node: yaml.Node | None, key: str | int) -> yaml.Node:
    """An item of a list or a value of a map, which must be there."""
    found: yaml.Node | None = None
    if isinstance(key, int) and isinstance(node, yaml.SequenceNode):
        found = node.value[key]
    elif isinstance(key, str) and isinstance(node, yaml.MappingNode):
        found = value_node(node, key)
    if found is None:
        raise ValueError(f"its {key} cannot be found in the text")
    return found


def value_node(node: yaml.Node, key: str) -> yaml.Node | None:
    """What a map has by a name, as a node; None if it has no such name."""
    return next((value for name, value in node.value if name.value == key), None)


def sequence_spans(text: str, node: yaml.Node, changes: WordChanges) -> list[Span]:
    """What becomes of a list of words."""
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


def mapping_spans(
    text: str, node: yaml.Node, before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[Span]:
    """What becomes of a map, or of a value that was none."""
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        # Written anew: {A: true}, {} or nothing at all.
        space = "" if node.start_mark.index != node.end_mark.index else " "
        return [(node.start_mark.index, node.end_mark.index, space + _json(after))]
    spans: list[Span] = []
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
    fresh = [key for key in after if key not in before]
    lines = [f"{lead}{_scalar(key)}: {_scalar(after[key])}" for key in fresh]
    return spans + _new_lines(text, node.value[-1][1], lines)


def new_field(
    text: str, root: yaml.MappingNode, name: str, fields: Mapping[str, Any]
) -> list[Span]:
    """A map by a name of its own, at the end of a text that has no such field."""
    if root.flow_style:
        place = root.end_mark.index - 1
        return [(place, place, f', "{name}": {_json(fields)}')]
    lead = " " * root.start_mark.column
    lines = [f"{lead}{name}:"]
    lines += [f"{lead}  {_scalar(key)}: {_scalar(value)}" for key, value in fields.items()]
    place = root.end_mark.index
    newline = _newline(text)
    begun = newline if place and text[place - 1] not in "\r\n" else ""
    return [(place, place, begun + "".join(line + newline for line in lines))]


def _new_lines(text: str, last: yaml.Node, lines: list[str]) -> list[Span]:
    """More lines, behind the one on which the last item ends."""
    if not lines:
        return []
    place = _line_end(text, last.end_mark.index)
    newline = _newline(text)
    begun = newline if text[place - 1] not in "\r\n" else ""
    return [(place, place, begun + "".join(line + newline for line in lines))]


def _line_of(text: str, first: yaml.Node, last: yaml.Node) -> Span:
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


def applied(text: str, spans: list[Span]) -> str:
    """The text with its spans replaced."""
    # Where one ends another may begin: what goes, goes first.
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def checked(text: str, expected: object) -> str:
    """The text, if it holds what is expected; ValueError if it does not."""
    if yamltext.load(text) != expected:
        raise ValueError("cannot be edited without changing something else in it")
    return text
