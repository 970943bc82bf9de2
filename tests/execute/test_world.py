"""Whatever comes first, the newest counts; and the pods of a node are those that are on it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from replant.cluster.ports import PODS
from replant.execute.world import Pod, World, precedes


def pod(name: str, version: int, node: str, uid: str) -> Pod:
    metadata = {"name": name, "uid": uid, "resourceVersion": str(version)}
    return convert({"metadata": metadata, "spec": {"nodeName": node}}, Pod)


names, nodes = st.sampled_from("ab"), st.sampled_from(["n1", "n2"])


@given(st.lists(st.tuples(names, nodes), max_size=8).flatmap(
    lambda history: st.tuples(st.just(history), st.permutations(range(len(history))))
))  # fmt: skip
def test_the_newest_state_of_a_pod_counts_in_whichever_order_it_is_told(
    told: tuple[list[tuple[str, str]], list[int]],
) -> None:
    history, order = told
    world = World()
    for number in order:
        name, node = history[number]
        world.put(PODS, pod(name, number, node, f"uid-{name}"))
    newest = dict(history)
    for node in ("n1", "n2"):
        there = {it.metadata.name for it in world.pods_on(node)}
        assert there == {name for name, on in newest.items() if on == node}


events = st.lists(
    st.tuples(
        st.sampled_from(["put", "remove", "replace", "refresh"]), names, nodes, st.booleans()
    ),
    max_size=12,
)


@given(events)
def test_the_index_by_node_never_differs_from_the_pods(
    told: list[tuple[str, str, str, bool]],
) -> None:
    world = World()
    for version, (what, name, node, again) in enumerate(told):
        it = pod(name, version, node, f"uid-{name}-{again}")
        match what:
            case "put":
                world.put(PODS, it)
            case "remove":
                world.remove(PODS, it)
            case "replace":
                world.replace(PODS, [it])
            case "refresh":
                world.refresh_pods(node, (it,), str(version))
    by_node = {id(it) for node in ("n1", "n2") for it in world.pods_on(node)}
    assert by_node == {id(it) for it in world.pods()}


def test_the_end_of_a_pod_is_not_the_end_of_the_next_of_its_name() -> None:
    world = World()
    world.put(PODS, pod("a", 2, "n2", "new"))
    world.remove(PODS, pod("a", 1, "n1", "old"))
    assert [it.metadata.uid for it in world.pods_on("n2")] == ["new"]


def test_a_list_of_a_nodes_pods_forgets_none_that_is_newer_than_the_list() -> None:
    world = World()
    world.put(PODS, pod("a", 3, "n1", "a"))
    world.put(PODS, pod("b", 9, "n1", "b"))
    world.refresh_pods("n1", (), "5")
    assert [it.metadata.name for it in world.pods_on("n1")] == ["b"]


def test_versions_that_are_no_numbers_tell_nothing() -> None:
    assert precedes("9", "10")
    assert not precedes("10", "9")
    assert not precedes("a", "b")
    assert not precedes("", "1")
