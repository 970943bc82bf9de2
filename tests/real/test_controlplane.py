"""The control plane itself, as the other tests count on it."""

from __future__ import annotations

import pytest

from tests.real.ground.cloud import Cloud
from tests.real.ground.controlplane import ControlPlane
from tests.real.ground.nodes import LightNode
from tests.real.ground.processes import Died, wait_for
from tests.real.ground.volumes import pod_object


def test_the_scheduler_finds_a_light_node(new: ControlPlane, cloud: Cloud) -> None:
    new.start_controller_manager()
    new.start_scheduler()
    with LightNode(new.api, cloud.instance(), new.version, {}) as node:
        new.api.create(pod_object("anywhere"))
        wait_for(
            lambda: new.api.get("Pod", "anywhere", "default")["status"]["phase"] == "Running",
            "the pod to run",
        )
        assert new.api.get("Pod", "anywhere", "default")["spec"]["nodeName"] == node.name
        new.api.delete("Pod", "anywhere", "default")
        wait_for(lambda: not new.api.find("Pod", "anywhere", "default"), "the pod to go")


def test_a_gate_that_a_version_does_not_have_is_named(new: ControlPlane) -> None:
    with pytest.raises(Died, match="unrecognized feature gate: CSIMigrationAWS"):
        new.start_controller_manager({"CSIMigrationAWS": True})
