"""Objects kept as they are wanted: what is taken from others, what is left to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from replant.cluster import live
from replant.cluster.ports import CONFIG_MAPS, DEPLOYMENTS, STORAGE_CLASSES, Applier, Resource
from replant.cluster.writing import LiveWriter
from replant.errors import Conflict, Final
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.definitions import definition

T = TypeVar("T")
WIDGETS = Resource("Widget", "widgets", "example.com")
DEFINITION = definition("Widget", "widgets", "example.com")


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    sandbox = Sandbox()
    sandbox.load([DEFINITION])
    with open_port(0) as listening:
        write_kubeconfig(tmp_path / "k", listening.getsockname()[1])
        with serving(sandbox, listening):
            yield tmp_path / "k"


def write(config: Path, ask: Callable[[Applier], Awaitable[T]], manager: str = "replant-x") -> T:
    async def main() -> T:
        async with live.connect(str(config)) as reader:
            return await ask(LiveWriter(reader, manager))

    return asyncio.run(main())


def config_map(**data: str) -> dict[str, Any]:
    metadata = {"name": "c", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def applied(config: Path, obj: dict[str, Any], manager: str = "replant-x") -> dict[str, Any]:
    return write(config, lambda it: it.apply(CONFIG_MAPS, obj, namespace="default"), manager)


def test_what_is_wanted_is_made_then_taken_and_the_rest_is_left(config: Path) -> None:
    applied(config, config_map(a="theirs", b="theirs"), "somebody")
    ours = applied(config, config_map(a="ours", c="ours"))
    assert ours["data"] == {"a": "ours", "b": "theirs", "c": "ours"}
    managers = {it["manager"]: it["operation"] for it in ours["metadata"]["managedFields"]}
    assert managers == {"somebody": "Apply", "replant-x": "Apply"}
    assert applied(config, config_map(a="ours"))["data"] == {"a": "ours", "b": "theirs"}


def test_nothing_changes_where_nothing_is_wanted(config: Path) -> None:
    first = applied(config, config_map(a="1"))["metadata"]["resourceVersion"]
    assert applied(config, config_map(a="1"))["metadata"]["resourceVersion"] == first


def test_of_another_version_it_is_not_touched(config: Path) -> None:
    applied(config, config_map(a="1"))
    stale = config_map(a="2")
    stale["metadata"]["resourceVersion"] = "1"
    with pytest.raises(Conflict):
        applied(config, stale)


def test_a_rehearsal_leaves_nothing(config: Path) -> None:
    obj = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "s"},
        "provisioner": "p",
    }
    write(config, lambda it: it.apply(STORAGE_CLASSES, obj, rehearsed=True))
    # Nothing is there of that name.
    write(config, lambda it: it.create(STORAGE_CLASSES, obj))


def test_what_cannot_be_is_refused(config: Path) -> None:
    metadata = {"name": "d", "namespace": "default"}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {}}
    with pytest.raises(Final, match="422"):
        write(config, lambda it: it.apply(DEPLOYMENTS, obj, namespace="default"))


def test_what_was_seen_is_replaced_and_nothing_else(config: Path) -> None:
    seen = applied(config, config_map(a="1", b="1"))
    new = {**seen, "data": {"a": "2"}}
    said = write(config, lambda it: it.replace(CONFIG_MAPS, new, namespace="default"))
    assert said["data"] == {"a": "2"}
    with pytest.raises(Conflict):
        write(config, lambda it: it.replace(CONFIG_MAPS, new, namespace="default"))


def test_what_exists_is_not_created_again(config: Path) -> None:
    applied(config, config_map(a="theirs"), "somebody")
    with pytest.raises(Conflict):
        write(config, lambda it: it.create(CONFIG_MAPS, config_map(), namespace="default"))


def test_the_status_is_of_the_version_that_was_seen(config: Path) -> None:
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 1},
    }
    made = write(config, lambda it: it.create(WIDGETS, widget))
    version = made["metadata"]["resourceVersion"]

    async def say(it: Applier) -> dict[str, Any]:
        return await it.put_status(WIDGETS, "w", {"spec": 2, "ready": True}, version=version)

    said = write(config, say)
    assert (said["spec"], said["status"]) == ({"size": 1}, {"spec": 2, "ready": True})
    with pytest.raises(Conflict):
        write(config, say)
