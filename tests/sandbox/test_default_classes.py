"""Claims that name no class get the one that real Kubernetes gives them, whoever makes them."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

import httpx
import pytest

from replant.objects import Object
from replant.sandbox.clock import VirtualClock
from replant.sandbox.resources import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from replant.sandbox.scenario import Pool, Scenario, VolumeClass
from replant.sandbox.server import Sandbox, open_port, serving
from tests.real import records
from tests.sandbox import default_classes
from tests.sandbox.playing import DRIVER, claim_object
from tests.sandbox.test_disks import stateful_set


@pytest.mark.parametrize("version", ["1.24.17", "1.36.3"])
def test_a_claim_is_given_the_class_that_real_kubernetes_gives_it(version: str) -> None:
    clock = VirtualClock()
    sandbox = Sandbox(version, clock=clock)
    with (
        closing(open_port(0)) as listening,
        serving(sandbox, listening) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=30) as http,
    ):
        seen = default_classes.given(
            http, pause=lambda: clock.put_forward(clock.now() + timedelta(seconds=1))
        )
    assert seen == records.read(f"default-classes-{version}")


def with_default_class(*objects: Object) -> Sandbox:
    scenario = Scenario(
        api_version="replant.dev/v1alpha1",
        kind="Scenario",
        drivers=(DRIVER,),
        pools=(Pool(name="workers", drivers=(DRIVER,)),),
        classes=(VolumeClass(name="gp2", plugin="aws-ebs", default=True),),
        objects=objects,
    )
    return Sandbox.of(scenario, by_hand=True)


def test_what_a_stateful_set_makes_is_given_it_too() -> None:
    sandbox = with_default_class()
    made = stateful_set(replicas=1)
    del made["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"]
    sandbox.store.create(STATEFUL_SETS, made, namespace="default")
    cluster = sandbox.cluster
    assert cluster is not None
    cluster.run_for(60)

    claim = sandbox.store.get(PERSISTENT_VOLUME_CLAIMS, "data-db-0", "default")
    assert (claim["spec"]["storageClassName"], claim["status"]["phase"]) == ("gp2", "Bound")


def test_what_was_there_before_is_left_as_it_was() -> None:
    left = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim_object("left")}
    sandbox = with_default_class(left)

    claim = sandbox.store.get(PERSISTENT_VOLUME_CLAIMS, "left", "default")
    assert "storageClassName" not in claim["spec"]


def test_nobody_is_said_to_manage_the_class_that_was_given() -> None:
    sandbox = with_default_class()
    with (
        closing(open_port(0)) as listening,
        serving(sandbox, listening) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=30) as http,
    ):
        answer = http.post(default_classes.CLAIMS, json=claim_object("some")).json()
    assert answer["spec"]["storageClassName"] == "gp2"
    managed = [it["fieldsV1"]["f:spec"] for it in answer["metadata"]["managedFields"]]
    assert not any("f:storageClassName" in it for it in managed)
