"""The digest follows what a plan depends on, and nothing else."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replant.inventory.fingerprint import fingerprint
from tests.inventory.clusters import (
    AWS,
    EBS,
    Object,
    attachment,
    budget,
    claim_ref,
    component,
    csi_node,
    driver,
    inventory_of,
    node,
    obj,
    pod,
    pv,
    pvc,
    storage_class,
)

APISERVER = "kube-apiserver"


def kubelet(version: str) -> Object:
    return {"nodeInfo": {"kubeletVersion": version}}


PARAMETERS = {"type": "gp2", "encrypted": "true"}
REDIRECTED = f"{AWS},kubernetes.io/gce-pd"

CLUSTER: dict[str, Object] = {
    "volume": pv("db", claimRef=claim_ref()),
    "other volume": pv("images", rbd={"image": "a", "monitors": ["m1"]}),
    "native volume": pv("native", csi={"driver": EBS}),
    "class": storage_class("gp2", parameters=PARAMETERS),
    "native class": storage_class("gp3", EBS),
    "driver": driver(),
    "node": node("n1", status=kubelet("v1.24.17")),
    "other node": node("n2", status=kubelet("v1.23.5")),
    "csi node": csi_node("n1", EBS, "other.example.com", migrated=REDIRECTED),
    "controller": component("--feature-gates=CSIMigrationAWS=true", "--cloud-provider=aws"),
    "other controller": component(
        "--feature-gates=CSIMigrationAWS=true", "--cloud-provider=aws", on="b"
    ),
    "api server": component("--enable-admission-plugins=A", component=APISERVER),
    "claim": pvc(),
    "pod": pod(claim="data", nodeName="n1"),
    "attachment": attachment(),
}


def digest(objects: dict[str, Object], server: str = "1.24.17") -> str:
    return fingerprint(inventory_of(objects.values(), server=server))


DIGEST = digest(CLUSTER)


def with_(name: str, changed: Object) -> Callable[[], dict[str, Object]]:
    return lambda: {**CLUSTER, name: changed}


def without(name: str) -> Callable[[], dict[str, Object]]:
    return lambda: {key: it for key, it in CLUSTER.items() if key != name}


def test_it_says_how_it_was_made() -> None:
    assert re.fullmatch("sha256:[0-9a-f]{64}", DIGEST)


def test_every_process_says_the_same() -> None:
    many = [f"driver-{number}" for number in range(20)]
    script = (
        "from replant.inventory.fingerprint import fingerprint\n"
        "from tests.inventory.clusters import csi_node, inventory_of\n"
        f"print(fingerprint(inventory_of([csi_node('n1', *{many}, migrated={','.join(many)!r})])))"
    )
    # Sets have another order under each seed.
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1


@given(st.permutations(list(CLUSTER)))
def test_order_is_nothing(names: list[str]) -> None:
    assert digest({name: CLUSTER[name] for name in names}) == DIGEST


@given(st.randoms(use_true_random=False))
def test_the_order_within_an_object_is_nothing(random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = random.sample(list(value), len(value))
            return {key: shuffled(value[key]) for key in keys}
        return value

    objects = {name: shuffled(it) for name, it in CLUSTER.items()}
    listed = objects["csi node"] = copy.deepcopy(objects["csi node"])
    listed["spec"]["drivers"].reverse()
    annotations = listed["metadata"]["annotations"]
    for key, value in annotations.items():
        annotations[key] = ",".join(reversed(value.split(",")))
    assert digest(objects) == DIGEST


CHANGES = {
    "volume goes": without("volume"),
    "volume of another name": with_("volume", pv("db2", claimRef=claim_ref())),
    "volume of another plugin": with_("volume", pv(cinder={"volumeID": "a"})),
    "volume converted": with_("volume", pv(csi={"driver": EBS})),
    "volume comes": with_("new", pv("new")),
    "class goes": without("class"),
    "class renamed": with_("class", storage_class("gp1", parameters=PARAMETERS)),
    "parameter changed": with_("class", storage_class(parameters=PARAMETERS | {"type": "gp3"})),
    "class grows": with_(
        "class", storage_class("gp2", parameters=PARAMETERS, allowVolumeExpansion=True)
    ),
    "class is the default": with_(
        "class",
        storage_class("gp2", parameters=PARAMETERS, metadata={"annotations": {"default": "true"}}),
    ),
    "provisioner changed": with_(
        "class", storage_class("gp2", "kubernetes.io/gce-pd", parameters=PARAMETERS)
    ),
    "driver goes": without("driver"),
    "another driver": with_("new", driver("other.example.com")),
    "driver with another group policy": with_(
        "driver", obj("CSIDriver", EBS, spec={"fsGroupPolicy": "File"})
    ),
    "node goes": without("other node"),
    "node comes": with_("new", node("n3")),
    "kubelet upgraded": with_("node", node("n1", status=kubelet("v1.25.1"))),
    "CSINode goes": without("csi node"),
    "driver off the node": with_("csi node", csi_node("n1", EBS, migrated=REDIRECTED)),
    "node redirects no more": with_("csi node", csi_node("n1", EBS, "other.example.com")),
    "gate switched": with_(
        "controller", component("--feature-gates=CSIMigrationAWS=false", "--cloud-provider=aws")
    ),
    "flag changed": with_("api server", component(component=APISERVER)),
}

NOTHING = {
    "pod goes": without("pod"),
    "pod comes": with_("new", pod("new", claim="data", nodeName="n2")),
    "pod moves": with_("pod", pod(claim="data", nodeName="n2")),
    "claim goes": without("claim"),
    "claim grows": with_("claim", pvc(status={"capacity": {"storage": "2Gi"}})),
    "volume released": with_("volume", pv("db")),
    "attachment goes": without("attachment"),
    "attached in-tree": with_(
        "node", node("n1", attached=[f"{AWS}/vol-1"], status=kubelet("v1.24.17"))
    ),
    "node cordoned": with_(
        "node", node("n1", spec={"unschedulable": True}, status=kubelet("v1.24.17"))
    ),
    "node not ready": with_(
        "node",
        node(
            "n1",
            status={**kubelet("v1.24.17"), "conditions": [{"type": "Ready", "status": "False"}]},
        ),
    ),
    "node labelled": with_("node", node("n1", labels={"a": "b"}, status=kubelet("v1.24.17"))),
    "native volume comes": with_("new", pv("new", csi={"driver": EBS})),
    "native class changes": with_("native class", storage_class("gp3", EBS, parameters={"a": "b"})),
    "budget comes": with_("new", budget()),
    "replica goes": without("other controller"),
    "replica under another name": with_(
        "other controller",
        component("--feature-gates=CSIMigrationAWS=true", "--cloud-provider=aws", on="c"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_plan_depends_on_changes_it(change: str) -> None:
    assert digest(CHANGES[change]()) != DIGEST


def test_an_upgrade_changes_it() -> None:
    assert digest(CLUSTER, "1.24.18") != DIGEST
    assert digest(CLUSTER, "") != DIGEST


@pytest.mark.parametrize("change", NOTHING)
def test_what_changes_by_itself_does_not(change: str) -> None:
    assert digest(NOTHING[change]()) == DIGEST


def test_gates_of_kubelets_that_were_asked_change_it() -> None:
    inventory = inventory_of(CLUSTER.values())
    inventory.node_gates = {"n2": {"CSIMigrationAWS": True}}
    assert fingerprint(inventory) != DIGEST


NAMES = st.text(min_size=1, max_size=6)
VOLUMES = st.dictionaries(NAMES, st.sampled_from(["awsElasticBlockStore", "gcePersistentDisk"]))


@given(VOLUMES, VOLUMES)
def test_two_sets_of_volumes_are_the_same_exactly_if_their_digests_are(
    one: dict[str, str], other: dict[str, str]
) -> None:
    def of(volumes: dict[str, str]) -> str:
        objects = {name: pv(name, **{source: {"a": "b"}}) for name, source in volumes.items()}
        return digest(objects)

    assert (of(one) == of(other)) is (one == other)
