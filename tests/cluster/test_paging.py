from __future__ import annotations

import asyncio

import pytest

from replant.cluster import live
from replant.cluster.ports import (
    PERSISTENT_VOLUMES,
    PODS,
    SCANNED,
    STORAGE_CLASSES,
    Reader,
    Resource,
)
from replant.errors import Final, Unreachable
from tests.cluster.api_server import hang_up, plain, status
from tests.cluster.conftest import Cluster
from tests.cluster.reading import names

PATH = "/api/v1/pods"
EXPIRED = status(410, "The provided continue parameter is too old", "Expired")


def pods(count: int) -> list[str]:
    return [f"pod-{number}" for number in range(count)]


@pytest.mark.parametrize(("count", "requests"), [(0, 1), (1, 1), (500, 1), (501, 2), (1201, 3)])
def test_every_item_is_read_once_in_pages_of_500(
    cluster: Cluster, count: int, requests: int
) -> None:
    cluster.world.serve(PATH, "PodList", pods(count))
    assert cluster.read(names(PODS)) == pods(count)
    assert [asked.query["limit"] for asked in cluster.world.asked] == ["500"] * requests
    assert not cluster.slept


def test_a_page_is_what_the_server_sent(cluster: Cluster) -> None:
    body = b'{ "kind":"PodList",\n"metadata":{}, "items":[ {"odd": 1.0e3} ]}'
    cluster.world.documents[PATH] = body

    async def pages(reader: Reader) -> list[tuple[bytes, bool]]:
        return [(page.body, page.first) async for page in reader.list_pages(PODS)]

    assert cluster.read(pages) == [(body, True)]


def test_an_expired_token_restarts_the_list_and_nothing_is_lost_or_doubled(
    cluster: Cluster,
) -> None:
    cluster.world.serve(PATH, "PodList", pods(1201))

    def expire_after_change(handler: object) -> None:
        cluster.world.serve(PATH, "PodList", pods(1300)[3:])
        EXPIRED(handler)  # type: ignore[arg-type]

    cluster.world.script.extend([None, None, expire_after_change])
    assert cluster.read(names(PODS)) == pods(1300)[3:]
    assert [asked.query.get("continue") for asked in cluster.world.asked] == [
        None, "500", "1000", None, "500", "1000",
    ]  # fmt: skip


def test_a_list_that_always_expires_is_given_up(cluster: Cluster) -> None:
    cluster.world.serve(PATH, "PodList", pods(501))
    cluster.world.script.extend([None, EXPIRED] * 10)
    with pytest.raises(Unreachable, match=r"the list of pods expired 4 times"):
        cluster.read(names(PODS))
    assert len(cluster.world.asked) == 2 * (1 + live.RESTARTS)


def test_a_list_that_expires_on_its_first_page_is_refused(cluster: Cluster) -> None:
    cluster.world.always = EXPIRED
    with pytest.raises(Final, match=r"410 Gone: The provided continue parameter is too old"):
        cluster.read(names(PODS))


def test_a_list_that_never_ends_is_refused(cluster: Cluster) -> None:
    cluster.world.always = plain(200, b'{"kind":"PodList","metadata":{"continue":"x"},"items":[]}')
    with pytest.raises(Final, match="continues with itself"):
        cluster.read(names(PODS))


@pytest.mark.parametrize(
    ("resource", "namespace", "path"),
    [
        (PODS, "", "/api/v1/pods"),
        (PODS, "shop", "/api/v1/namespaces/shop/pods"),
        (PERSISTENT_VOLUMES, "", "/api/v1/persistentvolumes"),
        (PERSISTENT_VOLUMES, "shop", "/api/v1/persistentvolumes"),
        (STORAGE_CLASSES, "", "/apis/storage.k8s.io/v1/storageclasses"),
        (
            Resource("StatefulSet", "statefulsets", "apps", namespaced=True),
            "shop",
            "/apis/apps/v1/namespaces/shop/statefulsets",
        ),
        (Resource("Thing", "things", "x.io", "v1beta1"), "", "/apis/x.io/v1beta1/things"),
        (PODS, "a/../../secrets?", "/api/v1/namespaces/a%2F..%2F..%2Fsecrets%3F/pods"),
    ],
)
def test_where_a_list_is(cluster: Cluster, resource: Resource, namespace: str, path: str) -> None:
    cluster.world.serve(path, f"{resource.kind}List", ["one"])
    assert cluster.read(names(resource, namespace)) == ["one"]
    assert [asked.path for asked in cluster.world.asked] == [path]


def test_lists_run_at_once_over_shared_connections(cluster: Cluster) -> None:
    for resource in SCANNED:
        some = [f"{resource.plural}-{number}" for number in range(1300)]
        cluster.world.serve(live.collection(resource), f"{resource.kind}List", some)

    async def all_of_them(reader: Reader) -> list[list[str]]:
        return await asyncio.gather(*(names(resource)(reader) for resource in SCANNED))

    found = cluster.read(all_of_them)
    assert [len(set(each)) for each in found] == [1300] * len(SCANNED)
    assert cluster.world.connections <= len(SCANNED) < len(cluster.world.asked)


def test_one_list_s_trouble_is_not_the_others(cluster: Cluster) -> None:
    cluster.world.serve(PATH, "PodList", pods(1201))
    cluster.world.script.extend([hang_up, None, status(500, "etcd")])

    async def two(reader: Reader) -> tuple[list[str] | BaseException, list[str] | BaseException]:
        missing = names(STORAGE_CLASSES)(reader)
        return await asyncio.gather(names(PODS)(reader), missing, return_exceptions=True)

    found, refused = cluster.read(two)
    assert found == pods(1201)
    assert isinstance(refused, Final)
