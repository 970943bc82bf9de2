from __future__ import annotations

import pytest

from replant.cluster.live import PAGE_SIZE
from replant.cluster.ports import POD_DISRUPTION_BUDGETS, PODS, STORAGE_CLASSES
from replant.errors import Final, Forbidden, Missing, NotServed, ReplantError
from tests.cluster.api_server import Fault, missing, plain, status
from tests.cluster.conftest import Cluster
from tests.cluster.reading import names

HTML = b"<html><body>Log in</body></html>"


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (
            status(403, 'User "x" cannot list resource "pods"', "Forbidden"),
            Forbidden,
            'may not list pods (403 Forbidden: User "x" cannot list resource "pods"); the role in',
        ),
        (plain(403, HTML), Forbidden, "this user may not list pods (403 Forbidden); the role"),
        (
            status(401, "Unauthorized", "Unauthorized"),
            Forbidden,
            "not accepted when asked to list pods (401 Unauthorized: Unauthorized); they may have",
        ),
        (status(404, "not found"), NotServed, "does not serve pods at /api/v1/pods"),
        (
            status(400, "continue key is not valid", "BadRequest"),
            Final,
            "GET /api/v1/pods: the answer was 400 Bad Request: continue key is not valid",
        ),
        (plain(302, b"", Location="/login"), Final, "the answer was 302 Found"),
        (plain(204, b""), Final, "the answer was 204 No Content"),
        (plain(499, b""), Final, "the answer was 499"),
        (plain(200, b'{"kind":"PodList","items":['), Final, "cannot be read as JSON"),
        (plain(200, HTML), Final, "is this the address of a Kubernetes API server?"),
        (plain(200, b""), Final, "cannot be read as JSON"),
        (plain(200, b"[]"), Final, "cannot be read as JSON"),
        (plain(200, b'{"kind":"PodList","metadata":{"continue":1}}'), Final, "cannot be read"),
        (plain(200, b'{"kind":"PodList","metadata":{"continue":"\xff"}}'), Final, "cannot be"),
        (plain(200, b"{}"), Final, "is of kind nothing, not a list"),
        (plain(200, b'{"kind":"Sta\\u001b[31mtus"}'), Final, "is of kind Sta\\x1b[31mtus, not a"),
    ],
)
def test_an_answer_that_is_no_list(
    cluster: Cluster, fault: Fault, error: type[ReplantError], message: str
) -> None:
    cluster.world.always = fault
    with pytest.raises(error) as caught:
        cluster.read(names(PODS))
    assert type(caught.value) is error
    assert str(caught.value).startswith(cluster.server)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()
    assert not cluster.slept


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (missing("gp2"), Missing, "there is no StorageClass gp2"),
        # Nobody has looked for the object: the kind is not served, or a proxy knows no such path.
        (missing("gp3"), NotServed, "does not serve storageclasses.storage.k8s.io at /apis"),
        (status(404, "could not find the requested resource", "NotFound"), NotServed, "not serve"),
        (plain(404, b"404 page not found\n"), NotServed, "does not serve"),
        (plain(404, HTML), NotServed, "does not serve"),
        (plain(404, b'{"reason":"NotFound","details":{"name":5}}'), NotServed, "does not serve"),
    ],
)
def test_an_object_is_missing_only_where_its_kind_is_served(
    cluster: Cluster, fault: Fault, error: type[ReplantError], message: str
) -> None:
    cluster.world.always = fault
    with pytest.raises(error, match=message) as caught:
        cluster.read(lambda reader: reader.get(STORAGE_CLASSES, "gp2"))
    assert type(caught.value) is error


def test_a_kind_of_a_group_is_called_by_both(cluster: Cluster) -> None:
    expected = "does not serve storageclasses.storage.k8s.io at /apis/storage.k8s.io/v1/storagec"
    with pytest.raises(NotServed, match=expected):
        cluster.read(names(STORAGE_CLASSES))


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_an_older_server_is_asked_for_its_older_version(cluster: Cluster, namespace: str) -> None:
    within = f"namespaces/{namespace}/" if namespace else ""
    older = f"/apis/policy/v1beta1/{within}poddisruptionbudgets"
    many = [f"budget-{number}" for number in range(PAGE_SIZE + 1)]
    cluster.world.serve(older, "PodDisruptionBudgetList", many)
    assert cluster.read(names(POD_DISRUPTION_BUDGETS, namespace)) == many
    newer = older.replace("v1beta1", "v1")
    assert [asked.path for asked in cluster.world.asked] == [newer, older, older]


def test_a_newer_server_is_not_asked_for_the_older_version(cluster: Cluster) -> None:
    cluster.world.serve("/apis/policy/v1/poddisruptionbudgets", "PodDisruptionBudgetList", ["web"])
    assert cluster.read(names(POD_DISRUPTION_BUDGETS)) == ["web"]
    assert len(cluster.world.asked) == 1


def test_a_server_that_has_neither_version(cluster: Cluster) -> None:
    expected = "does not serve poddisruptionbudgets.policy at /apis/policy/v1beta1/poddisruptionb"
    with pytest.raises(NotServed, match=expected):
        cluster.read(names(POD_DISRUPTION_BUDGETS))
    assert len(cluster.world.asked) == 2


def test_a_server_s_novel_is_shortened(cluster: Cluster) -> None:
    cluster.world.always = status(403, "no " * 100_000)
    with pytest.raises(Forbidden) as caught:
        cluster.read(names(PODS))
    assert len(str(caught.value)) < 600
