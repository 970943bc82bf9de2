"""The examples do what their own comments, the demo and the documentation say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replant.proof import BadState
from tests.cli.shell import replant

EXAMPLES = Path(__file__).parents[2] / "examples"
SAMPLE = ["-f", str(EXAMPLES / "cluster.yaml"), "--server-version", "1.24.17"]
UNSAFE = 3
REPLICAS = 3
SAFE = None
ORDERS = {
    "downgrade-openshift": SAFE,
    "enable": SAFE,
    "kubelet-first": "unservable",
    "no-drain": "yanked",
    "old-nodes-join": "yanked",
}


def planned(*arguments: str) -> dict[str, Any]:
    code, out, err = replant("plan", *arguments, *SAMPLE, "-o", "json")
    assert code == 0, out + err
    plan: dict[str, Any] = json.loads(out)
    return plan


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("orders/*")))
def test_an_order_is_judged_as_its_comment_says(name: str) -> None:
    path = EXAMPLES / "orders" / f"{name}.yaml"
    code, out, err = replant("verify", str(path), "-o", "json")
    found = json.loads(out)
    assert found["badState"] == ORDERS[name], err
    assert code == (0 if found["safe"] else UNSAFE)
    said = next(line for line in path.read_text().splitlines() if line.startswith("# replant"))
    words = said.rstrip(".").split()
    assert [word for word in words if word in {"safe", *BadState}] == [ORDERS[name] or "safe"]


def test_upstream_does_not_take_openshift_s_way_down() -> None:
    order = (EXAMPLES / "orders" / "downgrade-openshift.yaml").read_text()
    upstream = order.replace("adc: node-driven", "adc: upstream")
    code, out, err = replant("verify", "-", stdin=upstream.encode())
    assert (code, out) == (1, "")
    assert "newer than the API server" in err


def test_the_sample_has_one_plugin_that_can_be_switched_today() -> None:
    plan = planned("enable", "--plugin", "vsphere-volume")
    assert [step["id"] for step in plan["steps"]] == ["switch-control-plane", "roll-nodes"]
    assert [it["check"] for it in plan["preflight"] if it["result"] == "warning"] == ["budgets"]
    assert plan["groups"][0]["nodes"] == ["node-a", "node-b"]
    assert plan["controlPlane"]["replicas"] == REPLICAS
    assert plan["proof"]["safe"]


def test_the_sample_has_a_node_that_redirects_to_a_driver_it_does_not_have() -> None:
    code, out, _err = replant("scan", *SAMPLE, "-o", "json")
    found = [it for it in json.loads(out)["findings"] if it["id"] == "RP403"]
    ours = [it for it in found if "kubernetes.io/aws-ebs" in it["reason"]]
    assert code == UNSAFE
    assert [it["object"]["name"] for it in ours] == ["node-a"]
