from __future__ import annotations

from replant.cluster.live import TIMEOUT
from replant.cluster.ports import NODES, Reader
from tests.cluster.conftest import Cluster

PATH = "/api/v1/nodes"


async def told(reader: Reader) -> list[str]:
    return [change.type async for change in reader.watch(NODES, "7")]


def test_a_watch_is_asked_to_end_before_its_silence_means_anything(cluster: Cluster) -> None:
    line = b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}}\n'
    cluster.world.documents[PATH] = line
    assert cluster.read(told) == ["BOOKMARK"]
    (asked,) = cluster.world.asked
    assert asked.query["resourceVersion"] == "7"
    assert int(asked.query["timeoutSeconds"]) < TIMEOUT


def test_only_a_newline_ends_what_a_watch_tells(cluster: Cluster) -> None:
    """Annotations may hold what other texts end their lines with."""
    odd = '{"type": "ADDED", "object": {"metadata": {"name": "a\u2028b\x85c"}}}\n'.encode()
    cluster.world.documents[PATH] = odd + b"\n" + odd.rstrip()
    assert cluster.read(told) == ["ADDED", "ADDED"]
