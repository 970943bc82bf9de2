"""YAML documents, split, loaded safely, and written so that Kubernetes reads the same back.

The resolver below reads and quotes plain scalars as kubectl's YAML library does, not as YAML 1.1
has it: a date stays text, 1:30 is not ninety, 1e3 is a number, and y is a boolean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import yaml

MAX_DOCUMENT_MIB = 64
"""One YAML document takes fifty times its size in memory while it is loaded."""

MAX_DEPTH = 100
_VALUE_COSTS = 32
"""What any value counts for, however short."""

MAX_ALIASED_MIB = 8
"""How much aliases may add to a document: enough for people, too little for a bomb."""

_SEPARATOR = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
_END = re.compile(r"^\.\.\.(?=\s|\Z)", re.MULTILINE)
_CONTENT = re.compile(r"^(?![ \t\r]*(#|$)|%)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_DEEP_BLOCK = re.compile(rf"^[ \-?:]{{{MAX_DEPTH}}}", re.MULTILINE)

_BOOL_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false")
_BOOL_SPELLINGS = {spell(word) for word in _BOOL_WORDS for spell in (str, str.title, str.upper)}
_BOOL = re.compile(rf"(?:{'|'.join(sorted(_BOOL_SPELLINGS))})\Z")
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_MERGE = re.compile(r"<<\Z")
_INT = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)"
    r"|(?P<dec>0|[1-9][0-9]*))\Z"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}


# The same with underscores, which do not count; but behind a leading point none may end it.
_INT_WRITTEN = re.compile(
    r"[-+]?_*(?:0_*[xX][0-9a-fA-F_]*[0-9a-fA-F]_*|0_*[bB]_*[01][01_]*|0_*[oO]?_*[0-7][0-7_]*"
    r"|0_*|[1-9][0-9_]*)\Z"
)
_FLOAT_WRITTEN = re.compile(
    r"[-+]?_*(?:[0-9][0-9_]*(?:\.[0-9_]*)?|(?<=[-+_])\._*[0-9][0-9_]*)(?:[eE]_*[-+]?_*[0-9][0-9_]*)?\Z"
    r"|\.[0-9](?:[0-9_]*[0-9])?(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)


_OBEYED = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""YAML allows some of these in a text, but a terminal may obey them: they are escaped."""

_Noted = TypeVar("_Noted")

_TAGS = "tag:yaml.org,2002:"
_TEXT_TAG = f"{_TAGS}str"
_MERGE_TAG = f"{_TAGS}merge"


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    rules = (
        ("bool", _BOOL, "yYnNtTfFoO"),
        ("int", _INT_WRITTEN, "-+0123456789"),
        ("float", _FLOAT_WRITTEN, "-+0123456789."),
        ("null", _NULL, ["~", "n", "N", ""]),
        ("merge", _MERGE, "<"),
    )
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, starts in rules:
        for start in starts:
            table.setdefault(start, []).append((_TAGS + tag, pattern))
    return table


class _Loader(yaml.CSafeLoader):
    """What JSON can hold and nothing else; keys are text, and none may be given twice."""

    yaml_implicit_resolvers = _resolvers()
    yaml_constructors = {  # noqa: RUF012 - the base class has it so
        tag: constructor
        for tag, constructor in yaml.CSafeLoader.yaml_constructors.items()
        if tag is None or tag.removeprefix(_TAGS) in ("null", "bool", "str", "seq", "map")
    }
    bool_values: ClassVar[dict[str, bool]] = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        if any(key.tag != _TEXT_TAG for key, _ in node.value):
            own = sum(key.tag != _MERGE_TAG for key, _ in node.value)
            self.flatten_mapping(node)
            # A new key each: the node may stand elsewhere too, as a value.
            node.value = [(self._text_key(key), value) for key, value in node.value]
        else:
            own = len(node.value)
        keys = [key for key, _ in node.value[len(node.value) - own :]]
        if len({key.value for key in keys}) != own:
            _refuse_repeated(keys)
        construct = self.construct_object
        return {key.value: construct(value, deep=deep) for key, value in node.value}

    def _text_key(self, key: yaml.Node) -> yaml.Node:
        if not isinstance(key, yaml.ScalarNode):
            raise _not_valid(key, "a key must be text, not a list or a map")
        if key.tag == _TEXT_TAG:
            return key
        text = _key_text(self.construct_object(key), key)
        return yaml.ScalarNode(_TEXT_TAG, text, key.start_mark, key.end_mark)


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    found = _INT.match(loader.construct_scalar(node).replace("_", ""))
    if not found:
        raise _not_valid(node, "is not a whole number")
    digits, base = next((found[name], base) for name, base in _BASES.items() if found[name])
    return int(found["sign"] + digits, base)


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float | str:
    text = loader.construct_scalar(node).replace("_", "")
    if not _FLOAT.match(text):
        raise _not_valid(node, "is not a number that JSON can hold")
    number = float(text)
    return node.value if math.isinf(number) else number


def _not_valid(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


_Loader.add_constructor(f"{_TAGS}int", _construct_int)
_Loader.add_constructor(f"{_TAGS}float", _construct_float)


class _Dumper(yaml.CSafeDumper):
    """Writes every value out: an alias is for authors, not for tools."""

    yaml_implicit_resolvers = _resolvers()

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def split(text: str) -> Iterator[tuple[str, str]]:
    """Each document's text, behind the comments and directives that stand before it.

    A line that starts with three dashes separates documents wherever it stands, even inside a
    block of text: so the YAML specification has it. One broken document thus costs no other.
    """
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text)), len(text)]
    before = ""
    for start, end in pairwise(starts):
        document = text[start:end]
        body = document.removeprefix("---")
        if _CONTENT.search(_END.sub("", body)):
            yield before, document
            before = ""
        elif "#" in document or "%" in document:
            before += document


def load(text: str, before: str = "") -> Any:
    """One document, built up; ValueError says why it cannot be."""
    return _load(text, before, lambda _node: None)[0]


def load_with_lines(text: str) -> tuple[Any, dict[Path, int]]:
    """One document, and the line on which each of its values stands; ValueError as for ``load``."""
    value, lines = _load(text, "", _lines)
    return value, lines or {}


Path = tuple[str | int, ...]
"""The keys and places that lead to a value."""


def _load(text: str, before: str, note: Callable[[yaml.Node], _Noted]) -> tuple[Any, _Noted | None]:
    if len(text) > MAX_DOCUMENT_MIB * 2**20:
        raise ValueError(f"is larger than {MAX_DOCUMENT_MIB} MiB; as JSON it may be larger")
    if _DIRECTIVE.search(before):
        text = before + text
    try:
        _refuse_deep(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None, None
            if "&" in text and "*" in text:
                _refuse_bomb(node)
            return loader.construct_document(node), note(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ValueError(_explained(error)) from error
    except (yaml.YAMLError, ValueError, TypeError, LookupError) as error:
        raise ValueError(str(error)) from error


def _lines(root: yaml.Node) -> dict[Path, int]:
    found: dict[Path, int] = {}
    ahead: list[tuple[Path, yaml.Node, yaml.Node]] = [((), root, root)]
    while ahead:
        path, at, node = ahead.pop()
        found[path] = at.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            ahead += [((*path, key.value), key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            ahead += [((*path, number), it, it) for number, it in enumerate(node.value)]
    return found


def dump(value: Any) -> str:
    """Block style, keys in their order; ValueError says why it cannot be."""
    try:
        text = _dumped(value, unicode=True)
        if not text.isascii() and _OBEYED.search(text):
            text = _dumped(value, unicode=False)
    except (yaml.YAMLError, UnicodeEncodeError, TypeError) as error:
        raise ValueError(f"it cannot be written as YAML: {error}") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return text


def _dumped(value: Any, *, unicode: bool) -> str:
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=unicode, width=2**31 - 1
    )
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
    raise _not_valid(node, f"a key must be text, not {type(key).__name__}")


def _refuse_repeated(keys: list[yaml.Node]) -> None:
    seen = set()
    for key in keys:
        if key.value in seen:
            raise _not_valid(key, f"the key {key.value!r} is given twice")
        seen.add(key.value)


def _refuse_deep(text: str) -> None:
    """libyaml's composer recurses on the C stack, so depth must be known before it is called.

    No document is deeper than it has opening brackets, wherever they stand; most have few. Where
    there are many, the text is parsed for its depth alone.
    """
    openings = text.count("[") - text.count("[]") + text.count("{") - text.count("{}")
    if openings >= MAX_DEPTH // 2 or _DEEP_BLOCK.search(text):
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
    """Measure what the aliases stand for, without following any of them twice."""
    sizes: dict[int, int] = {}  # in characters; numbers as large as they get, nothing is built
    depths: dict[int, int] = {}
    open_nodes: set[int] = set()
    own = 0
    stack = [(root, False)]
    while stack:
        node, children_done = stack.pop()
        key = id(node)
        if children_done:
            open_nodes.discard(key)
            children = [id(child) for child in _children(node)]
            itself = _VALUE_COSTS + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
            own += itself
            sizes[key] = itself + sum(sizes[child] for child in children)
            depths[key] = 1 + max((depths[child] for child in children), default=0)
        elif key in open_nodes:
            raise ValueError("an alias in it refers to what it is part of")
        elif key not in sizes:
            open_nodes.add(key)
            stack.append((node, True))
            stack.extend((child, False) for child in _children(node))
    if depths[id(root)] > MAX_DEPTH:
        raise ValueError(f"its aliases make it deeper than {MAX_DEPTH} levels")
    if sizes[id(root)] - own > MAX_ALIASED_MIB * 2**20:
        raise ValueError(f"its aliases would add more than {MAX_ALIASED_MIB} MiB to it")


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
