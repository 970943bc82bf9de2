"""Objects of a seed, as small as they may be."""

from __future__ import annotations

from typing import Any

from replant.gardener.providers import PROVIDERS
from replant.gardener.shoots import OVERRIDE
from replant.gates.versions import Version

AWS = PROVIDERS["aws"]
LISTED = AWS.told(Version(1, 18), (("foo", "bar"),))
"""A table with one class, foo, of the provisioner bar."""
NAMESPACE = "shoot--dev--crazy"


def shoot(version: Any = "1.18.2", *, override: str = "", **more: Any) -> dict[str, Any]:
    annotations = {OVERRIDE: override} if override else {}
    spec = {"provider": {"type": "aws"}, "kubernetes": {"version": version}, **more}
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "crazy", "namespace": "garden-dev", "annotations": annotations},
        "spec": spec,
        "status": {"lastOperation": {"state": "Succeeded"}},
    }


def cluster(
    embedded: dict[str, Any] | None = None, *annotations: str, name: str = NAMESPACE, **meta: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Cluster",
        "metadata": {
            "name": name,
            "resourceVersion": "7",
            "annotations": dict.fromkeys(annotations, "true"),
            **meta,
        },
        "spec": {
            "cloudProfile": {},
            "seed": {},
            "shoot": shoot() if embedded is None else embedded,
        },
    }


def deployment(name: str, *flags: str, namespace: str = NAMESPACE) -> dict[str, Any]:
    containers = [
        {"name": "vpn", "image": "vpn:1"},
        {"name": name, "image": f"{name}:1", "command": [f"/usr/local/bin/{name}", *flags]},
    ]
    labels = {"app": "kubernetes", "role": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
