"""YAML is split, loaded and written as kubectl would, and what is dangerous is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.manifests import yamltext

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(
        ["y", "n", "yes", "on", "Off", "NO", "null", "~", "", "1e3", "0x1f", "0o17", "017", "1_000",
         "1:30", ".5", "-", "- a", "a: b", "#", "2024-01-01", "=", "<<", "!x", "&a", "*a", "---",
         "...", " a ", "a\nb\n", "\t", "08", "+1", ".inf", "%a", "@a", "`a", "\x85", "\u2028"]
    ),
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXTS, inner)),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(TEXTS, VALUES))
def test_what_is_written_is_read_back(value: dict[str, Any]) -> None:
    assert yamltext.load(yamltext.dump(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("1:30", "1:30"),
        ("1e3", 1000.0),
        ("017", 15),
        ("0x1F", 31),
        ("-0X1F", -31),
        ("0B11", 3),
        ("0O17", 15),
        ("-_13", -13),
        (".9_", ".9_"),
        ("0x_", "0x_"),
        ("1e999", "1e999"),
        ("n", False),
        ("1_000", 1000),
        ("y", True),
        ("Off", False),
        ("yEs", "yEs"),
        ("=", "="),
        ("~", None),
        ('"1"', "1"),
        ("1.2.3", "1.2.3"),
        ("10Gi", "10Gi"),
    ],
)
def test_plain_scalars_are_read_as_kubectl_reads_them(text: str, value: Any) -> None:
    assert yamltext.load(f"a: {text}") == {"a": value}


@pytest.mark.parametrize(
    "text", ["y", "n", "NO", "1e3", "08", "0o17", "0X1F", "-_13", "1_000", "null", ".inf", "<<"]
)
def test_text_that_others_would_misread_is_quoted(text: str) -> None:
    assert yamltext.dump({"a": text}) == f"a: '{text}'\n"


def test_long_text_stays_on_one_line() -> None:
    assert yamltext.dump({"a": "word " * 100 + "x"}).count("\n") == 1


@pytest.mark.parametrize("sign", ["\x1b", "\x7f", "\x9b", "\u200e", "\u2028", "\u202e", "\u2066"])
def test_what_a_terminal_would_obey_is_escaped(sign: str) -> None:
    text = yamltext.dump({"näme": f"a{sign}b"})
    assert sign not in text
    assert yamltext.load(text) == {"näme": f"a{sign}b"}


def test_directives_belong_to_the_document_behind_them() -> None:
    text = "%TAG ! tag:yaml.org,2002:\n---\na: !str 1\n"
    assert [yamltext.load(part, before) for before, part in yamltext.split(text)] == [{"a": "1"}]


def test_documents_are_split_at_every_separator() -> None:
    text = "# only a comment\n---\na: 1\n---\n# nothing\n\n---\nb: |\n  ---\n  x\n--- {c: 3}\n...\n"
    assert [yamltext.load(part, before) for before, part in yamltext.split(text)] == [
        {"a": 1},
        {"b": "---\nx\n"},
        {"c": 3},
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_splitting_keeps_every_document(newline: str) -> None:
    text = newline.join(["---", "a: 1", "---", "", "---", "b: 2", ""])
    assert [yamltext.load(part) for _, part in yamltext.split(text)] == [{"a": 1}, {"b": 2}]


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "aliases would add more than 8 MiB"),
        ("a: &a '" + "x" * 100_000 + "'\n" + "".join(f"b{n}: *a\n" for n in range(100)), "8 MiB"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 120)), "100 l"),
        ("a: &a [*a]", "refers to what it is part of"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ('["]",' * 60_000 + "1" + "]" * 60_000, "nested deeper"),
        ("[ # ]\n" * 60_000 + "]" * 60_000, "nested deeper"),
        ("- " * 5_000 + "x", "nested deeper"),
        ("".join(" " * n + "a:\n" for n in range(500)), "nested deeper"),
        ("a: 1\na: 2", "'a' is given twice"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: [", "is not valid YAML"),
        ("a: 'x", "is not valid YAML"),
        ("\x01: a", "control characters are not allowed"),
        ("? [a]\n: b", "a key must be text"),
        ("a: !!bool abc", "abc"),
        ("a: !!int ''", "is not a whole number"),
        ("a: !!float x", "is not a number"),
        ("a: !!timestamp 2024-01-01", "could not determine a constructor"),
        ("a: !!binary aGVsbG8=", "could not determine a constructor"),
        ("a: .nan", "JSON can hold"),
        ("a: -.inf", "JSON can hold"),
        ("0x50: a\n80: b", "'80' is given twice"),
    ],
)
def test_dangerous_and_broken_documents_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        yamltext.load(text)


def test_aliases_that_people_use_are_read() -> None:
    text = "base: &base {x: 1, z: 2}\nuse: {<<: *base, z: 3}\nagain: *base"
    assert yamltext.load(text) == {
        "base": {"x": 1, "z": 2},
        "use": {"x": 1, "z": 3},
        "again": {"x": 1, "z": 2},
    }


def test_keys_are_text_as_kubectl_makes_them() -> None:
    assert yamltext.load("y: 1\n1: 2\n1.5: 3\nno: 4") == {"true": 1, "1": 2, "1.5": 3, "false": 4}
    assert yamltext.load("x: {<<: {1: a, yes: b}}") == {"x": {"1": "a", "true": "b"}}
    assert yamltext.load("x: {&k 80: *k}") == {"x": {"80": 80}}
    with pytest.raises(ValueError, match="a key must be text"):
        yamltext.load("~: 1")


def test_shared_values_are_written_out() -> None:
    shared = {"x": [1]}
    assert "*" not in yamltext.dump({"a": shared, "b": shared})


def test_brackets_in_text_are_not_depth() -> None:
    assert yamltext.load(f"a: '{'[' * 500}'") == {"a": "[" * 500}
