"""YAML documents, split, loaded safely, and written so that Kubernetes reads the same back.

The resolver below reads and quotes plain scalars as kubectl's YAML library does, not as YAML 1.1
has it: a date stays text, 1:30 is not ninety, 1e3 is a number, and y is a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import yaml

MAX_DOCUMENT_MIB = 64
"""One YAML document takes fifty times its size in memory while it is loaded."""

MAX_DEPTH = 100
MAX_ALIASED = 100_000
"""How many values aliases may add to a document: enough for people, too few for a bomb."""

_SEPARATOR = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
_END = re.compile(r"^\.\.\.(?=\s|\Z)", re.MULTILINE)
_CONTENT = re.compile(r"^(?![ \t\r]*(#|$)|%)", re.MULTILINE)
_DEEP_BLOCK = re.compile(rf"^[ \-?:]{{{MAX_DEPTH}}}", re.MULTILINE)
_BRACKETS = re.compile(r"[\[\]{}]")

_BOOL_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false")
_BOOL_SPELLINGS = {spell(word) for word in _BOOL_WORDS for spell in (str, str.title, str.upper)}
_BOOL = re.compile(rf"(?:{'|'.join(sorted(_BOOL_SPELLINGS))})\Z")
_INT = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)\Z")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z"
    r"|\.(?:nan|NaN|NAN)\Z"
)
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_MERGE = re.compile(r"<<\Z")


_TAGS = "tag:yaml.org,2002:"
_TEXT_TAG = f"{_TAGS}str"
_MERGE_TAG = f"{_TAGS}merge"


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    rules = (
        ("bool", _BOOL, "yYnNtTfFoO"),
        ("int", _INT, "-+0123456789"),
        ("float", _FLOAT, "-+0123456789."),
        ("null", _NULL, ["~", "n", "N", ""]),
        ("merge", _MERGE, "<"),
    )
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, starts in rules:
        for start in starts:
            table.setdefault(start, []).append((_TAGS + tag, pattern))
    return table


class _Loader(yaml.CSafeLoader):
    """Safe, without dates, with keys that are text, and an error for a key given twice."""

    yaml_implicit_resolvers = _resolvers()
    bool_values: ClassVar[dict[str, bool]] = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        own = [key for key, _ in node.value if key.tag != _MERGE_TAG]
        names = {key.value for key in own if isinstance(key, yaml.ScalarNode)}
        if len(names) != len(own):
            _refuse_repeated(own)
        for key in own:
            if key.tag != _TEXT_TAG and isinstance(key, yaml.ScalarNode):
                key.value = _key_text(self.construct_object(key), key)
                key.tag = _TEXT_TAG
                self.constructed_objects.pop(key, None)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.CSafeDumper):
    """Writes every value out: an alias is for authors, not for tools."""

    yaml_implicit_resolvers = _resolvers()

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def split(text: str) -> Iterator[str]:
    """Each document's text, comments included; documents without content are left out.

    A line that starts with three dashes separates documents wherever it stands, even inside a
    block of text: so the YAML specification has it. One broken document thus costs no other.
    """
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        document = text[start:end]
        body = document.removeprefix("---")
        if _CONTENT.search(_END.sub("", body)):
            yield document


def load(text: str) -> Any:
    """One document, built up; ValueError says why it cannot be."""
    if len(text) > MAX_DOCUMENT_MIB * 2**20:
        raise ValueError(f"is larger than {MAX_DOCUMENT_MIB} MiB; as JSON it may be larger")
    try:
        _refuse_deep(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if "&" in text and "*" in text:
                _refuse_bomb(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ValueError(_explained(error)) from error
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        raise ValueError(str(error)) from error


def dump(value: Any) -> str:
    """Block style, keys in their order; ValueError says why it cannot be."""
    try:
        text: str = yaml.dump(
            value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31 - 1
        )
    except (yaml.YAMLError, UnicodeEncodeError, TypeError) as error:
        raise ValueError(f"it cannot be written as YAML: {error}") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return text


def _explained(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f" (line {mark.line + 1}, column {mark.column + 1} of the document)" if mark else ""
    return f"is not valid YAML: {error.problem or error.context or error}{where}"


def _key_text(key: Any, node: yaml.Node) -> str:
    """A key as text, as JSON has it and kubectl makes it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int | float):
        return str(key)
    problem = f"a key must be text, not {type(key).__name__}"
    raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _refuse_repeated(keys: list[Any]) -> None:
    seen = set()
    for key in keys:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is given twice", key.start_mark
                )
            seen.add(key.value)


def _refuse_deep(text: str) -> None:
    """libyaml's composer recurses on the C stack, so depth must be known before it is called.

    Brackets in strings count here too; only where the sum looks dangerous is the text parsed.
    """
    if text.count("[") + text.count("{") > MAX_DEPTH or _DEEP_BLOCK.search(text):
        depth = deepest = 0
        for bracket in _BRACKETS.findall(text):
            depth += 1 if bracket in "[{" else -1
            deepest = max(deepest, depth)
        if deepest > MAX_DEPTH or _DEEP_BLOCK.search(text):
            _refuse_deep_events(text)


def _refuse_deep_events(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _refuse_bomb(root: yaml.Node) -> None:
    """Count what the aliases stand for, without following any of them twice."""
    sizes: dict[int, int] = {}  # numbers as large as they get, nothing is built
    open_nodes: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, children_done = stack.pop()
        key = id(node)
        if children_done:
            open_nodes.discard(key)
            sizes[key] = 1 + sum(sizes[id(child)] for child in _children(node))
        elif key in open_nodes:
            raise ValueError("an alias in it refers to what it is part of")
        elif key not in sizes:
            open_nodes.add(key)
            stack.append((node, True))
            stack.extend((child, False) for child in _children(node))
    added = sizes[id(root)] - len(sizes)
    if added > MAX_ALIASED:
        raise ValueError(f"its aliases would add more than {MAX_ALIASED:,} values to it")


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
