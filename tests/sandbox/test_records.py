"""The sandbox against the records of real Kubernetes: it must do what was seen there."""

from __future__ import annotations

from typing import Any

import pytest

from replant.sandbox.resources import CSI_NODES
from tests.sandbox import playing
from tests.sandbox.playing import record

ORDERS = record("orders/1.24.17")["orders"]
STARTS: dict[tuple[str, ...], list[dict[str, Any]]] = {
    (): record("kubelet/1.24.17")["kubeletStarts"],
    ("ebs.csi.aws.com",): record("kubelet/1.24.17-with-a-driver")["kubeletStarts"],
}


def rows(*names: str) -> list[Any]:
    return [
        pytest.param(found["kubernetesVersion"], row, id=f"{name}-{number}")
        for name in names
        for found in [record(name)]
        for number, row in enumerate(found["rows"])
    ]


@pytest.mark.parametrize("order", ORDERS, ids=[it["order"] for it in ORDERS])
def test_each_story_ends_as_it_was_seen_to(order: dict[str, Any]) -> None:
    seen = playing.play([it["step"] for it in order["steps"]])

    for now, then in zip(seen, order["steps"], strict=True):
        assert now == then


@pytest.mark.parametrize(("version", "row"), rows("attach-1.24.17", "attach-1.36.3"))
def test_who_attaches(version: str, row: dict[str, Any]) -> None:
    assert playing.attach_row(version, row) == row["seen"]


@pytest.mark.parametrize(("version", "row"), rows("claims/1.24.17", "claims/1.36.3"))
def test_who_provisions_deletes_and_expands(version: str, row: dict[str, Any]) -> None:
    assert playing.claim_row(version, row) == row["seen"]


@pytest.mark.parametrize(("version", "row"), rows("dangling/1.24.17"))
def test_a_successor_on_another_node(version: str, row: dict[str, Any]) -> None:
    assert playing.dangling_row(version, row) == row


@pytest.mark.parametrize("drivers", STARTS, ids=lambda it: " ".join(it) or "no driver")
def test_what_a_kubelet_says_when_it_starts(drivers: tuple[str, ...]) -> None:
    cluster, starts = playing.new_cluster(), STARTS[drivers]
    cluster.add_node("node", starts[0]["gates"], drivers=drivers)
    seen = []
    for start in starts:
        cluster.restart_kubelet("node", start["gates"])
        found = cluster.store.find(CSI_NODES, "node")
        said = (found.value()["metadata"].get("annotations") or {}) if found else {}
        listed = said.get("storage.alpha.kubernetes.io/migrated-plugins", "")
        seen.append(
            {
                "gates": start["gates"],
                "csiNode": found is not None,
                "migratedPlugins": listed,
            }
        )

    assert seen == starts
