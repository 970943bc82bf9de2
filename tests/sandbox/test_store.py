"""The store by itself: versions, events, deletion, and lists that stay as they were."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replant.sandbox.changes import Deletion
from replant.sandbox.refusals import ApiError
from replant.sandbox.resources import CONFIG_MAPS, NAMESPACES, PERSISTENT_VOLUMES, PODS
from replant.sandbox.shelves import ADDED, DELETED, SNAPSHOTS, Entry, Event
from replant.sandbox.store import Page, Store

START = datetime(2024, 5, 1, tzinfo=UTC)
MODIFIED = "MODIFIED"


class World:
    """A store with a clock that stands still until it is moved."""

    def __init__(self, window: int = 1000) -> None:
        self.now = START
        self._made = 0
        self.store = Store(lambda: self.now, self._new_uid, window)
        self.store.create(NAMESPACES, {"metadata": {"name": "default"}})

    def _new_uid(self) -> str:
        self._made += 1
        return f"{self._made:08x}-0000-4000-8000-000000000000"

    def put(self, name: str, **data: str) -> None:
        obj = {"metadata": {"name": name, "namespace": "default"}, "data": data}
        if self.store.find(CONFIG_MAPS, name, "default"):
            self.store.update(CONFIG_MAPS, obj)
        else:
            self.store.create(CONFIG_MAPS, obj)

    def remove(self, name: str) -> None:
        self.store.delete(CONFIG_MAPS, name, "default")

    def names(self) -> list[str]:
        return [it.name for it in self.store.entries(CONFIG_MAPS)]


@pytest.fixture
def world() -> World:
    return World()


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "x"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def refused(code: int, act: Callable[[], object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        act()
    assert caught.value.code == code
    return caught.value


def test_what_is_read_is_a_copy(world: World) -> None:
    world.put("a", x="1")
    world.store.get(CONFIG_MAPS, "a", "default")["data"]["x"] = "changed"
    assert world.store.get(CONFIG_MAPS, "a", "default")["data"] == {"x": "1"}


def test_nothing_changes_if_nothing_is_changed(world: World) -> None:
    world.put("a", x="1")
    before = world.store.version
    world.put("a", x="1")
    assert world.store.version == before
    assert world.store.events(CONFIG_MAPS, before) == []


def test_events_tell_the_story(world: World) -> None:
    begin = world.store.version
    heard: list[Event] = []
    leave = world.store.subscribe(heard.append)
    world.put("a", x="1")
    world.put("a", x="2")
    world.remove("a")
    leave()
    world.put("b")
    events = world.store.events(CONFIG_MAPS, begin)
    assert [it.type for it in events] == [ADDED, MODIFIED, DELETED, ADDED]
    assert events[:3] == heard
    versions = [it.entry.version for it in events]
    assert versions == sorted(set(versions))
    assert world.store.events(CONFIG_MAPS, versions[1]) == events[2:]


def test_events_that_are_too_old_are_gone() -> None:
    world = World(window=10)
    for number in range(25):
        world.put("a", x=str(number))
    assert refused(410, lambda: world.store.events(CONFIG_MAPS, 1)).reason == "Expired"
    assert len(world.store.events(CONFIG_MAPS, world.store.version - 5)) == 5
    # Others' events do not push these out.
    world.store.create(PERSISTENT_VOLUMES, volume("v"))
    assert len(world.store.events(PERSISTENT_VOLUMES, 0)) == 1


def volume(name: str) -> dict[str, Any]:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    return {"metadata": {"name": name}, "spec": {**spec, "hostPath": {"path": "/"}}}


def test_a_pod_ends_when_its_node_says_so(world: World) -> None:
    world.store.create(PODS, pod("p", nodeName="n"))
    entry, gone = world.store.delete(PODS, "p", "default")
    assert not gone
    metadata = entry.value()["metadata"]
    assert metadata["deletionTimestamp"] == "2024-05-01T00:00:30Z"
    assert metadata["deletionGracePeriodSeconds"] == 30
    world.now += timedelta(minutes=5)
    assert not world.store.delete(PODS, "p", "default")[1]
    assert world.store.delete(PODS, "p", "default", Deletion(grace_period=0))[1]
    assert world.store.find(PODS, "p", "default") is None


def test_a_pod_without_a_node_ends_at_once(world: World) -> None:
    world.store.create(PODS, pod("p"))
    assert world.store.delete(PODS, "p", "default")[1]


def test_deletion_waits_for_finalizers(world: World) -> None:
    world.store.create(PERSISTENT_VOLUMES, volume("v"))
    assert not world.store.delete(PERSISTENT_VOLUMES, "v")[1]
    obj = world.store.get(PERSISTENT_VOLUMES, "v")
    assert obj["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    obj["metadata"]["finalizers"] = []
    world.store.update(PERSISTENT_VOLUMES, obj)
    assert world.store.find(PERSISTENT_VOLUMES, "v") is None
    assert world.store.events(PERSISTENT_VOLUMES, 0)[-1].type == DELETED


def test_preconditions(world: World) -> None:
    world.put("a")
    obj = world.store.get(CONFIG_MAPS, "a", "default")
    world.put("a", x="2")
    assert refused(409, lambda: world.store.update(CONFIG_MAPS, obj)).reason == "Conflict"
    wrong = (Deletion(uid="other"), Deletion(version="1"))
    for how in wrong:
        refused(409, lambda how=how: world.store.delete(CONFIG_MAPS, "a", "default", how))  # type: ignore[misc]
    right = world.store.entry(CONFIG_MAPS, "a", "default")
    how = Deletion(uid=right.uid, version=str(right.version))
    assert world.store.delete(CONFIG_MAPS, "a", "default", how)[1]


def test_a_status_is_written_by_itself(world: World) -> None:
    world.store.create(PODS, pod("p"))
    obj = world.store.get(PODS, "p", "default")
    obj["status"] = {"phase": "Running"}
    world.store.update(PODS, obj)
    assert world.store.get(PODS, "p", "default")["status"]["phase"] == "Pending"
    obj = world.store.get(PODS, "p", "default")
    obj["status"] = {"phase": "Running"}
    obj["spec"]["nodeName"] = "not taken"
    world.store.update(PODS, obj, "status")
    found = world.store.get(PODS, "p", "default")
    assert found["status"]["phase"] == "Running"
    assert "nodeName" not in found["spec"]


def test_as_it_was(world: World) -> None:
    metadata = {"name": "v", "uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z"}
    obj = {**volume("v"), "metadata": metadata, "status": {"phase": "Bound"}}
    found = world.store.create(PERSISTENT_VOLUMES, obj, as_it_was=True).value()
    assert (found["metadata"]["uid"], found["status"]) == ("u", {"phase": "Bound"})
    assert found["metadata"]["creationTimestamp"] == "2020-01-01T00:00:00Z"


def test_a_generated_name_spells_no_word(world: World) -> None:
    made = [
        world.store.create(CONFIG_MAPS, {"metadata": {"generateName": "x-"}}).name
        for _each in range(50)
    ]
    assert len(set(made)) == 50
    assert all(len(name) == 7 and not set(name[2:]) & set("aeiou013") for name in made)


def test_old_lists_are_forgotten_in_the_end(world: World) -> None:
    for name in "abc":
        world.put(name)
    first = world.store.page(CONFIG_MAPS, limit=1)
    for number in range(SNAPSHOTS + 1):
        world.put("a", x=str(number))
        world.store.page(CONFIG_MAPS, limit=1)
    world.put("a", x="last")

    def rest() -> object:
        return world.store.page(CONFIG_MAPS, limit=1, start=first.next_key, at=first.version)

    assert refused(410, rest).reason == "Expired"


names = st.sampled_from([f"{first}{second}" for first in "abc" for second in "xyz"])
acts = st.lists(st.tuples(st.sampled_from(["put", "remove"]), names, st.text("01", max_size=1)))


@settings(deadline=None)
@given(before=acts, during=st.lists(acts, max_size=6), limit=st.integers(1, 4))
def test_a_list_in_pages_is_of_one_moment(
    before: list[tuple[str, str, str]], during: list[list[tuple[str, str, str]]], limit: int
) -> None:
    world = World()
    act(world, before)
    whole = [it.text for it in world.store.entries(CONFIG_MAPS)]
    page = world.store.page(CONFIG_MAPS, "default", limit=limit)
    version, found = page.version, [it.text for it in page.entries]
    changes = iter(during)
    while page.next_key:
        assert page.remaining == len(whole) - len(found)
        act(world, next(changes, []))
        page = world.store.page(
            CONFIG_MAPS, "default", limit=limit, start=page.next_key, at=version
        )
        found += [it.text for it in page.entries]
    assert found == whole
    assert page.version == version


@settings(deadline=None)
@given(before=acts, after=acts)
def test_what_is_there_follows_from_the_events(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]
) -> None:
    world = World()
    act(world, before)
    known = {it.name: it.text for it in world.store.entries(CONFIG_MAPS)}
    since = world.store.version
    act(world, after)
    for event in world.store.events(CONFIG_MAPS, since):
        assert (event.entry.name in known) == (event.type != ADDED)
        if event.type == DELETED:
            del known[event.entry.name]
        else:
            known[event.entry.name] = event.entry.text
    assert known == {it.name: it.text for it in world.store.entries(CONFIG_MAPS)}
    assert world.names() == sorted(known)


def act(world: World, what: list[tuple[str, str, str]]) -> None:
    for how, name, value in what:
        if how == "put":
            world.put(name, x=value)
        elif world.store.find(CONFIG_MAPS, name, "default"):
            world.remove(name)


placed = st.tuples(names, st.sampled_from(["", "n1", "n2", "gone"]))


@settings(deadline=None)
@given(acts=st.lists(placed, max_size=20), limit=st.integers(1, 3))
def test_what_is_on_a_node_is_found_wherever_it_has_been(
    acts: list[tuple[str, str]], limit: int
) -> None:
    world = World()
    for name, on in acts:
        there = world.store.find(PODS, name, "default")
        if on == "gone" and there:
            world.store.delete(PODS, name, "default", Deletion(grace_period=0))
        elif on != "gone" and not there:
            world.store.create(PODS, pod(name, nodeName=on))
        elif on != "gone" and there and not there.fields["spec.nodeName"]:
            placing = there.value()
            placing["spec"]["nodeName"] = on
            world.store.update(PODS, placing, subresource="binding")

    def wanted(entry: Entry) -> bool:
        return entry.fields["spec.nodeName"] == "n1"

    def page(start: str, at: int) -> Page:
        return world.store.page(PODS, "default", wanted, limit, start, at, "n1")

    found = [page("", 0)]
    while found[-1].next_key:
        found.append(page(found[-1].next_key, found[0].version))
    listed = [entry for it in found for entry in it.entries]
    assert listed == world.store.entries(PODS, wanted=wanted)
