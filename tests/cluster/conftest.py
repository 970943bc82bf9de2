from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from replant.cluster import live
from tests.cluster.api_server import World, serving

T = TypeVar("T")


@pytest.fixture(autouse=True)
def _nothing_from_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No kubeconfig, service account or proxy of whoever runs the tests."""
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith(("KUBECONFIG", "KUBERNETES_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def kubeconfig(path: Path, server: str, *, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig with one context, called here."""
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return path


@dataclass
class Cluster:
    """A served world, and a way to read it in which nobody really sleeps."""

    world: World
    server: str
    config: Path
    slept: list[float] = field(default_factory=list)
    noticed: list[str] = field(default_factory=list)

    def read(
        self, ask: Callable[[live.LiveReader], Awaitable[T]], timeout: float = live.TIMEOUT
    ) -> T:
        async def main() -> T:
            connecting = live.connect(
                str(self.config), timeout=timeout, sleep=self._sleep, notice=self.noticed.append
            )
            async with connecting as reader:
                return await ask(reader)

        return asyncio.run(main())

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    world = World(token="secret")  # noqa: S106
    with serving(world) as server:
        config = kubeconfig(tmp_path / "config", server, user={"token": "secret"})
        yield Cluster(world, server, config)
