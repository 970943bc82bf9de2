"""Clients that Replant uses: kr8s and kopf."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import kopf
import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import ConfigMap, Node, Pod

from replant.sandbox.server import write_kubeconfig
from tests.definitions import definition

DEFINITION = definition("Migration", "migrations", "replant.example")


@pytest.fixture
def kubeconfig(address: str, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, int(address.rpartition(":")[2]))
    return path


@pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")  # it is older than kr8s knows
def test_kr8s(kubeconfig: Path) -> None:
    async def main() -> None:
        api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
        assert (await api.version())["gitVersion"] == "v1.24.17"
        obj = {"metadata": {"name": "kr8s", "namespace": "default"}, "data": {"a": "1"}}
        settings = await ConfigMap(obj, api=api)
        await settings.create()
        await settings.patch({"data": {"b": "2"}})
        assert dict(settings.data) == {"a": "1", "b": "2"}
        await settings.label({"x": "y"})
        found = api.get("configmaps", namespace="default", label_selector="x=y")
        assert [str(it) async for it in found] == ["kr8s"]
        node = await Node({"metadata": {"name": "kr8s-node"}}, api=api)
        await node.create()
        await node.cordon()
        assert node.unschedulable
        spec = {"nodeName": "kr8s-node", "containers": [{"name": "c", "image": "x"}]}
        pod = await Pod(
            {"metadata": {"name": "kr8s", "namespace": "default"}, "spec": spec}, api=api
        )
        await pod.create()
        await pod.delete(force=True)
        assert not await pod.exists()
        await settings.delete()
        assert not await settings.exists()
        session = api._session  # noqa: SLF001 (there is no other way to close it)
        assert session
        await session.aclose()

    asyncio.run(main())


def test_kopf(kubeconfig: Path, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator sees its objects made, changes them, and lets go of those that are deleted."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    http.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=DEFINITION
    ).raise_for_status()
    registry = kopf.OperatorRegistry()
    heard: list[str] = []
    created, gone = threading.Event(), threading.Event()

    @kopf.on.login(registry=registry)
    def log_in(**more: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_kubeconfig(**more)

    @kopf.on.create("replant.example", "v1", "migrations", registry=registry)
    def on_create(name: str, patch: kopf.Patch, **_more: Any) -> None:
        heard.append(f"created {name}")
        patch.status["phase"] = "Planned"
        created.set()

    @kopf.on.delete("replant.example", "v1", "migrations", registry=registry)
    def on_delete(name: str, **_more: Any) -> None:
        heard.append(f"deleted {name}")
        gone.set()

    stop, ready = threading.Event(), threading.Event()
    operator = threading.Thread(
        target=lambda: asyncio.run(
            kopf.operator(
                registry=registry, clusterwide=True, standalone=True, stop_flag=stop,
                ready_flag=ready,
            )
        )
    )  # fmt: skip
    operator.start()
    try:
        assert ready.wait(30)
        migrations = "/apis/replant.example/v1/migrations"
        obj = {
            "apiVersion": "replant.example/v1",
            "kind": "Migration",
            "metadata": {"name": "m"},
            "spec": {},
        }
        http.post(migrations, json=obj).raise_for_status()
        assert created.wait(30)
        wait_for_phase(http, f"{migrations}/m")
        http.delete(f"{migrations}/m").raise_for_status()
        assert gone.wait(30)
    finally:
        stop.set()
        operator.join(30)
    assert heard == ["created m", "deleted m"]


def wait_for_phase(http: httpx.Client, path: str) -> None:
    found: dict[str, Any] = {}
    for _each in range(100):
        found = http.get(path).json()
        if found.get("status", {}).get("phase") == "Planned":
            assert found["metadata"]["finalizers"]
            return
        threading.Event().wait(0.1)
    raise AssertionError(found)
