"""Patches as tables: what is there, what is asked, what comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from replant.sandbox.patches import merge_patch, strategic_patch
from replant.sandbox.resources import DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, Resource
from replant.sandbox.structure import structure_of


@pytest.mark.parametrize(
    ("there", "asked", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_as_the_standard_has_them(there: Any, asked: Any, result: Any) -> None:
    assert merge_patch(there, asked) == result


def containers(*names: str, **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name} for name in names], **more}}


@pytest.mark.parametrize(
    ("resource", "there", "asked", "result"),
    [
        (PODS, containers("a", "b"), containers("b", "c"), containers("a", "b", "c")),
        (PODS, containers("a"), containers("b"), containers("b", "a")),
        (
            PODS,
            containers("a", "b"),
            {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}},
            containers("b"),
        ),
        (
            PODS,
            containers("a", "b"),
            {"spec": {"containers": [{"$patch": "replace"}, {"name": "c"}]}},
            containers("c"),
        ),
        (
            PODS,
            containers("a", "b", "c"),
            {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}},
            containers("b", "c", "a"),
        ),
        (
            NODES,
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDRs": ["x"]}},
            {"spec": {"taints": [{"key": "l", "effect": "NoExecute"}], "podCIDRs": ["y"]}},
            {
                "spec": {
                    "taints": [
                        {"key": "l", "effect": "NoExecute"},
                        {"key": "k", "effect": "NoSchedule"},
                    ],
                    "podCIDRs": ["y", "x"],
                }
            },
        ),
        (
            POD_DISRUPTION_BUDGETS,
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
            {"spec": {"selector": {"matchLabels": {"c": "d"}}}},
            {"spec": {"selector": {"matchLabels": {"c": "d"}}}},
        ),
        (
            DEPLOYMENTS,
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
        ),
        (
            DEPLOYMENTS,
            {"metadata": {"labels": {"a": "b", "c": "d"}}},
            {"metadata": {"labels": {"a": None, "$patch": "merge"}}},
            {"metadata": {"labels": {"c": "d"}}},
        ),
    ],
)
def test_strategic_merge_patches(resource: Resource, there: Any, asked: Any, result: Any) -> None:
    assert strategic_patch(there, asked, structure_of(resource)) == result
