"""Shoots with pools of versions of their own."""

from __future__ import annotations

from typing import Any

import pytest

from replant.gardener.validation import Problem, problems
from tests.gardener.objects import AWS, shoot

WHY = (
    "1.17.3 is below 1.18, with which volumes go over to CSI: until then all nodes have the "
    "control plane's version, so that all of them are rolled"
)


def pools(*versions: Any, **more: Any) -> dict[str, Any]:
    workers = [{"name": "w", **({"kubernetes": {"version": it}} if it else {})} for it in versions]
    return shoot(provider={"type": "aws", "workers": workers}, **more)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (shoot(), []),
        (pools(None, "1.18.0", "v1.19.3"), []),
        (
            pools("1.18.0", None, "1.17.3"),
            [Problem("Forbidden", "spec.provider.workers[2].kubernetes.version", WHY)],
        ),
        (
            pools("one", 3),
            [
                Problem(
                    "Invalid",
                    f"spec.provider.workers[{number}].kubernetes.version",
                    f"{said} is not a version such as 1.18 or v1.18.20",
                )
                for number, said in enumerate(["'one'", "'3'"])
            ],
        ),
        (pools("1.17.3", override="1.17"), []),
        (pools("1.17.3") | {"spec": {"provider": {"type": "gcp", "workers": [{}]}}}, []),
    ],
)
def test_pools(given: dict[str, Any], found: list[Problem]) -> None:
    assert problems(given, AWS) == found


def test_an_override_that_cannot_be_read() -> None:
    [problem] = problems(pools("1.17.3", override="soon"), AWS)
    assert (problem.sort, problem.field) == ("Invalid", "metadata.annotations")
    assert "'soon', not a version" in problem.detail
