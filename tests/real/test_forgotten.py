"""An inline volume's attachment that a killed kube-controller-manager has left, and who deletes it.

A webhook that does not answer keeps the deletion of VolumeAttachments waiting. In that moment the
controller has taken the volume out of the node's status already, and is killed.
"""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.real import applying, records
from tests.real.applying import CONTROLLER, Cluster
from tests.real.attaching import GATE
from tests.real.ground.api import Object
from tests.real.ground.cloud import Cloud
from tests.real.ground.nodes import LightNode
from tests.real.ground.processes import wait_for
from tests.real.ground.volumes import end_pod, pod_object

ON = {GATE: True}
A_WHILE = 20
"""Seconds in which a controller that starts would have detached what it knows of."""


@pytest.fixture
def cluster(cloud: Cloud, ground: Path) -> Iterator[Cluster]:
    with applying.cluster(cloud, ground / "forgotten", gates=ON, ends_after=1) as cluster:
        yield cluster


def inline_pod(name: str, node: LightNode, disk: str) -> Object:
    pod = pod_object(name, node.name)
    source = {"volumeID": disk, "fsType": "ext4"}
    pod["spec"]["volumes"] = [{"name": "data", "awsElasticBlockStore": source}]
    return pod


def inline_attachments(cluster: Cluster) -> list[Object]:
    found = cluster.api.list("VolumeAttachment")
    return [it for it in found if "inlineVolumeSpec" in it["spec"]["source"]]


def lists(cluster: Cluster, node: LightNode, disk: str) -> bool:
    status = cluster.api.get("Node", node.name)["status"]
    return any(it["name"].endswith(disk) for it in status.get("volumesAttached", []))


def phase(cluster: Cluster, name: str) -> str:
    return str(cluster.api.get("Pod", name, "default")["status"]["phase"])


@contextmanager
def deletions_wait(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Nobody's deletion of a VolumeAttachment comes through: whoever is asked says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        authority = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
        rule = {
            "apiGroups": ["storage.k8s.io"],
            "apiVersions": ["v1"],
            "operations": ["DELETE"],
            "resources": ["volumeattachments"],
        }
        webhook = {
            "name": "silent.replant.test",
            "clientConfig": {"url": url, "caBundle": authority},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 30,
            "failurePolicy": "Fail",
        }
        cluster.api.create(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "silent"},
                "webhooks": [webhook],
            }
        )
        time.sleep(3)  # the API server looks for webhooks every second
        yield
        cluster.api.delete("ValidatingWebhookConfiguration", "silent")
        time.sleep(3)


def test_it_is_deleted_and_the_disk_goes_where_its_pod_is(cluster: Cluster, ground: Path) -> None:
    disk, (first, second, *_) = cluster.cloud.disk(), cluster.nodes
    cluster.api.create(inline_pod("first", first, disk))
    wait_for(lambda: phase(cluster, "first") == "Running", "the first pod to run", 60)
    with deletions_wait(cluster, ground / "forgotten"):
        end_pod(cluster.api, "first")
        wait_for(lambda: not lists(cluster, first, disk), "the node not to list the disk", 60)
        cluster.plane.kill_part(CONTROLLER)
    (left,) = inline_attachments(cluster)
    assert "deletionTimestamp" not in left["metadata"]
    cluster.start(CONTROLLER)
    cluster.api.create(inline_pod("second", second, disk))
    time.sleep(A_WHILE)
    there = {it["metadata"]["uid"] for it in inline_attachments(cluster)}
    version = cluster.plane.version
    seen = {
        "kubernetesVersion": version,
        "volumeAttachmentStays": left["metadata"]["uid"] in there,
        "podOnAnotherNode": phase(cluster, "second"),
        "diskStaysWhereItWas": cluster.cloud.attached_to(disk) == first.instance.id,
    }
    records.check(f"forgotten/{version}", seen)

    result = cluster.apply(cluster.plan("complete")).done()

    assert result["acts"]["DeleteAttachment"] == 1
    wait_for(lambda: phase(cluster, "second") == "Running", "the second pod to run", 60)
    assert cluster.cloud.attached_to(disk) == second.instance.id
    assert cluster.vigil.on_two_nodes == []
