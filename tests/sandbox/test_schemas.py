"""Schemas of definitions, by themselves: what they make of any value, and what they may be."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.objects import Object
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import DEFINITIONS
from replant.sandbox.schemas.check import causes, untyped
from replant.sandbox.schemas.complete import complete
from replant.sandbox.schemas.sound import is_sound
from tests.sandbox import conformance, families
from tests.sandbox.playing import new_cluster

SPEC: Object = conformance.GADGET_SPEC
SCHEMA: Object = {"type": "object", "properties": {"spec": SPEC}}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
SPECS = st.dictionaries(st.sampled_from([*SPEC["properties"], "unknown"]), VALUES, max_size=5)


@settings(deadline=None)
@given(SPECS)
def test_any_object_can_be_completed_and_judged(spec: Any) -> None:
    obj = {"metadata": {"name": "x"}, "spec": spec}
    complete(SCHEMA, obj)

    once = deepcopy(obj)
    complete(SCHEMA, obj)

    assert obj == once
    assert obj["spec"].keys() <= SPEC["properties"].keys()
    assert obj["spec"].get("mode") is not None
    for cause in causes(SCHEMA, obj):
        assert cause.field.startswith("spec") or cause.field == "<nil>"
    assert untyped(SCHEMA, obj) == "" or untyped(SCHEMA, obj).startswith(".spec")


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": []},
        {"properties": {"a": 5}},
        {"items": "string"},
        {"required": "a"},
        {"maximum": "10"},
        {"anyOf": {"a": 1}},
        {"additionalProperties": "yes"},
        {"properties": {"a": {"type": ["string", "null"]}}},
        {"minLength": -1},
    ],
    ids=str,
)
def test_a_schema_that_makes_no_sense_is_refused_with_its_definition(schema: Object) -> None:
    assert is_sound({"type": "object"})
    assert not is_sound(schema)
    definition = deepcopy(families.DEFINITION)
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema  # type: ignore[index]
    with pytest.raises(ApiError) as refused:
        new_cluster().store.create(DEFINITIONS, definition)
    assert refused.value.code == 422


def test_a_pattern_that_only_go_understands_asks_for_nothing() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": r"\p{Greek}+\z"}}}
    assert causes(schema, {"a": "x"}) == []


def test_defaults_are_not_shared_between_objects() -> None:
    schema = {"properties": {"a": {"type": "object", "default": {"b": []}, "properties": {
        "b": {"type": "array", "items": {"type": "string"}}}}}}  # fmt: skip
    one: Object = {}
    other: Object = {}
    complete(schema, one)
    complete(schema, other)
    one["a"]["b"].append("x")

    assert other == {"a": {"b": []}}
