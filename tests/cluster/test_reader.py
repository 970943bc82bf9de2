from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest

from replant.cluster import live
from replant.errors import Final, Forbidden, Missing, Unreachable
from tests.cluster.api_server import status
from tests.cluster.conftest import Cluster

WRITING = (
    "apply",
    "create",
    "delete",
    "evict",
    "patch",
    "post",
    "put",
    "replace",
    "update",
    "write",
)


def test_a_reader_cannot_write() -> None:
    methods = {name for name, _ in inspect.getmembers(live.LiveReader, inspect.isfunction)}
    assert {name for name in methods if not name.startswith("_")} == {
        "get", "groups", "list_pages", "log", "node_config", "plurals", "server_version", "watch",
    }  # fmt: skip
    assert not [name for name in methods if any(word in name for word in WRITING)]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("v1.24.17", "1.24.17"),
        ("v1.27.3-gke.100", "1.27.3"),
        ("v1.31.2+k3s1", "1.31.2"),
        ("v1.26.9-eks-f8587cb", "1.26.9"),
        ("v1.25.0-alpha.1.30+abc-dirty", "1.25.0"),
        ("1.17.0", "1.17.0"),
    ],
)
def test_the_version_is_without_the_vendor_s_suffix(
    cluster: Cluster, given: str, meant: str
) -> None:
    answer = {"major": "1", "minor": "24+", "gitVersion": given, "platform": "linux/amd64"}
    cluster.world.documents["/version"] = json.dumps(answer).encode()
    assert cluster.read(lambda reader: reader.server_version()) == meant


@pytest.mark.parametrize("body", [b"{}", b"ok", b'{"gitVersion":"latest"}', b'{"gitVersion":1}'])
def test_what_has_no_version_is_no_api_server(cluster: Cluster, body: bytes) -> None:
    cluster.world.documents["/version"] = body
    with pytest.raises(
        Final, match=r"GET /version: the answer has no version.*is this the address"
    ):
        cluster.read(lambda reader: reader.server_version())


def test_a_version_that_is_hidden(cluster: Cluster) -> None:
    cluster.world.always = status(403, "no")
    with pytest.raises(Forbidden, match=r"may not get /version.*system:public-info-viewer"):
        cluster.read(lambda reader: reader.server_version())


def test_a_kubelet_s_configuration(cluster: Cluster) -> None:
    cluster.world.documents["/api/v1/nodes/n1/proxy/configz"] = b'{"kubeletconfig":{}}'
    assert cluster.read(lambda reader: reader.node_config("n1")) == b'{"kubeletconfig":{}}'


def test_a_kubelet_s_configuration_needs_more_than_the_scan_role(cluster: Cluster) -> None:
    cluster.world.always = status(403, "no")
    with pytest.raises(Forbidden, match=r"may not get nodes/proxy.*leave --probe-nodes out"):
        cluster.read(lambda reader: reader.node_config("n1"))


def test_a_node_s_name_stays_within_its_path(cluster: Cluster) -> None:
    with pytest.raises(Final):
        cluster.read(lambda reader: reader.node_config("../secrets?x="))
    assert cluster.world.asked[0].path == "/api/v1/nodes/..%2Fsecrets%3Fx%3D/proxy/configz"


def test_the_client_library_is_not_imported_before_it_is_needed() -> None:
    script = (
        "import sys, replant.cluster.live\n"
        "print(*{'httpx', 'kr8s', 'tenacity', 'yaml'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "\n"


LOG = "/api/v1/namespaces/a/pods/b/log"


def test_a_log_is_what_a_pod_wrote(cluster: Cluster) -> None:
    cluster.world.documents[LOG] = b"one\ntwo\n"
    assert cluster.read(lambda reader: reader.log("b", namespace="a")) == b"one\ntwo\n"


def test_a_log_that_is_not_there_or_not_allowed(cluster: Cluster) -> None:
    with pytest.raises(Missing, match="there is no log of Pod b"):
        cluster.read(lambda reader: reader.log("b", namespace="a"))
    cluster.world.faults[LOG] = status(403, "no")
    with pytest.raises(Forbidden, match=r"get pods/log .*the role in deploy/rbac/kubeadm.yaml may"):
        cluster.read(lambda reader: reader.log("b", namespace="a"))


def test_a_node_that_does_not_give_its_logs_is_not_asked_for_ever(cluster: Cluster) -> None:
    cluster.world.faults[LOG] = status(500, "dial tcp: no such host")
    with pytest.raises(Unreachable, match="no such host"):
        cluster.read(lambda reader: reader.log("b", namespace="a"))
    assert len(cluster.world.asked) == live.LOG_TRIES
