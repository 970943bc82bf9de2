"""A Reader that answers from a table; only what actuators ask."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from replant.cluster.ports import EVERYTHING, Change, Page, Resource, Selected
from replant.errors import Missing

Pod = dict[str, Any]


def component_pod(
    component: str, node: str, *command: str, ready: bool = True, name: str = ""
) -> Pod:
    """A static pod's mirror, as kubeadm's clusters have them."""
    return {
        "metadata": {
            "name": name or f"{component}-{node}",
            "namespace": "kube-system",
            "labels": {"component": component, "tier": "control-plane"},
        },
        "spec": {"nodeName": node, "containers": [{"command": [component, *command]}]},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


@dataclass
class FakeReader:
    pods: list[Pod] | Exception = field(default_factory=list)
    configs: dict[str, bytes | Exception] = field(default_factory=dict)
    """By node, what its kubelet says of itself."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
    ) -> AsyncIterator[Page]:
        self.asked.append((resource.plural, namespace, selected.labels))
        if isinstance(self.pods, Exception):
            raise self.pods
        # As where a list expires: what came first does not count.
        yield Page(b'{"items": [{"metadata": {"name": "stale"}}]}', first=True)
        half = len(self.pods) // 2
        yield Page(json.dumps({"items": self.pods[:half]}).encode(), first=True)
        yield Page(json.dumps({"items": self.pods[half:]}).encode(), first=False)

    async def node_config(self, node: str) -> bytes:
        config = self.configs[node]
        if isinstance(config, Exception):
            raise config
        return config

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        raise Missing(f"{resource.kind} {namespace}/{name}")

    def watch(self, resource: Resource, version: str) -> AsyncIterator[Change]:
        raise AssertionError(f"nobody asks to watch {resource} {version} here")

    async def server_version(self) -> str:
        raise AssertionError("nobody asks for the server version here")
