"""Whatever a body is, the answer is one that a client understands, and never a mistake of ours."""

from __future__ import annotations

import copy
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sandbox.conformance import _CRD, claim, config_map, deployment, pod, volume

PLACES = {
    "/api/v1/namespaces/default/configmaps": config_map("c"),
    "/api/v1/namespaces/default/pods": pod("p"),
    "/api/v1/namespaces/default/persistentvolumeclaims": claim("c"),
    "/api/v1/persistentvolumes": volume("v"),
    "/apis/apps/v1/namespaces/default/deployments": deployment("d"),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": _CRD,
}
SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, "", "text", "Ünï", [], {}, [1], [{}], {"a": 1}]
)


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, Any]:
    """A good object of which one part has become something else."""
    path = draw(st.sampled_from(sorted(PLACES)))
    obj = copy.deepcopy(PLACES[path])
    part: Any = obj
    while True:
        key = draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
        below = part[key]
        if not isinstance(below, (dict, list)) or not below or draw(st.integers(0, 3)) == 0:
            part[key] = draw(SCALARS)
            return path, obj
        part = below


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=spoilt())
def test_a_spoilt_object_is_taken_or_refused(http: httpx.Client, case: tuple[str, Any]) -> None:
    path, obj = case
    answer = http.post(path, params={"dryRun": "All"}, json=obj)
    assert answer.status_code in {201, 400, 404, 409, 422, 500}
    assert answer.json().get("reason") != "InternalError", answer.text


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"null", b'"text"', b"{", b"\xff", b"{}"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_any_body_is_answered(http: httpx.Client, method: str, body: bytes) -> None:
    path = "/api/v1/namespaces/default/configmaps" + ("" if method == "POST" else "/none")
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = http.request(method, path, content=body, headers={"Content-Type": media})
    assert 400 <= answer.status_code < 500
    assert answer.json()["kind"] == "Status"
