"""A cluster of folders: agents run for real, as processes, and static pods are their manifests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from replant.cluster.ports import EVERYTHING, PODS, Change, Page, Resource, Selected
from replant.errors import Conflict, Missing
from replant.execute.namespace import NAMESPACE
from replant.objects import Object

MANIFESTS = "/etc/kubernetes/manifests"
CONFIG = "/var/lib/kubelet/config.yaml"


@dataclass
class FakeCluster:
    """Reads and writes like a cluster whose nodes are folders, each the root of one."""

    folder: Path
    objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    logs: dict[str, bytes] = field(default_factory=dict)
    happened: list[str] = field(default_factory=list)
    before_agent: Callable[[str, Mapping[str, str]], None] = lambda _node, _env: None
    """Called with the node and the variables of an agent before it runs."""
    after_agent: Callable[[Object], None] = lambda _pod: None
    """Called with the pod of an agent that has ended."""
    not_ready: set[str] = field(default_factory=set)
    """The nodes whose static pods are not ready."""

    def node(self, name: str) -> Path:
        root = self.folder / name
        for folder in (MANIFESTS, "/var/lib/kubelet"):
            (root / folder[1:]).mkdir(parents=True, exist_ok=True)
        return root

    def file(self, node: str, path: str) -> Path:
        return self.folder / node / path[1:]

    def agents(self) -> list[str]:
        return [
            name
            for kind, namespace, name in self.objects
            if namespace == NAMESPACE and kind == "pods"
        ]

    # What a Reader does

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> bytes:
        try:
            return json.dumps(self.objects[resource.plural, namespace, name]).encode()
        except KeyError:
            raise Missing(f"{resource.kind} {namespace}/{name}") from None

    async def list_pages(
        self, resource: Resource, *, namespace: str = "", selected: Selected = EVERYTHING
    ) -> AsyncIterator[Page]:
        pods = self._agents(selected) if namespace == NAMESPACE else self._static(selected)
        yield Page(json.dumps({"kind": f"{resource.kind}List", "items": pods}).encode(), first=True)

    def _agents(self, selected: Selected) -> list[Object]:
        node = selected.fields.removeprefix("spec.nodeName=")
        pods = [it for (kind, _, _), it in self.objects.items() if kind == "pods"]
        return [it for it in pods if node in ("", it["spec"]["nodeName"])]

    def _static(self, selected: Selected) -> list[Object]:
        component = selected.labels.removeprefix("component=")
        found = []
        for manifest in sorted(self.folder.glob(f"*{MANIFESTS}/{component}.yaml")):
            pod: Any = yaml.safe_load(manifest.read_text())
            node = manifest.relative_to(self.folder).parts[0]
            pod["metadata"]["name"] += f"-{node}"
            pod["spec"]["nodeName"] = node
            ready = "False" if node in self.not_ready else "True"
            pod["status"] = {"conditions": [{"type": "Ready", "status": ready}]}
            found.append(pod)
        return found

    async def log(self, pod: str, *, namespace: str) -> bytes:
        assert (("pods", namespace, pod)) in self.objects
        return self.logs[pod]

    def watch(self, resource: Resource, version: str) -> AsyncIterator[Change]:
        raise AssertionError(f"nobody asks to watch {resource} {version} here")

    async def server_version(self) -> str:
        raise AssertionError("nobody asks for the server version here")

    async def node_config(self, node: str) -> bytes:
        config = yaml.safe_load(self.file(node, CONFIG).read_text())
        return json.dumps({"kubeletconfig": config}).encode()

    # What a Writer does

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        key = (resource.plural, namespace, obj["metadata"]["name"])
        if key in self.objects:
            raise Conflict("it is there")
        made: Object = json.loads(json.dumps(obj))
        made["metadata"] |= {"uid": f"uid-{len(self.happened)}", "resourceVersion": "1"}
        self.objects[key] = made
        if resource == PODS:
            self._run(made)
            self.after_agent(made)
        return made

    def _run(self, pod: Object) -> None:
        node, [container] = pod["spec"]["nodeName"], pod["spec"]["containers"]
        root, says = self.node(node), self.folder / f"{pod['metadata']['name']}.says"
        env = {it["name"]: it["value"].replace("$$", "$") for it in container["env"]}
        self.before_agent(node, env)
        env |= {"HOST": str(root), "ENTER": "", "SAYS": str(says), "PAUSE": "0"}
        env["PATH"] = "/usr/bin:/bin"
        command = [it.replace("$$", "$") for it in container["command"]]
        done = subprocess.run(command, env=env, capture_output=True, check=False)
        self.happened.append(f"{'write' if 'NEW' in env else 'read'} {node} {env['FILE']}")
        self.logs[pod["metadata"]["name"]] = done.stdout + done.stderr
        said = says.read_text() if says.exists() else (done.stdout + done.stderr).decode()[-2048:]
        ended = {"exitCode": done.returncode, "message": said}
        pod["status"] = {
            "phase": "Failed" if done.returncode else "Succeeded",
            "containerStatuses": [{"state": {"terminated": ended}}],
        }

    async def delete(
        self, resource: Resource, name: str, *, uid: str, version: str, namespace: str = ""
    ) -> Object:
        found = self.objects.get((resource.plural, namespace, name))
        if not found:
            raise Missing(name)
        meta = found["metadata"]
        if (meta["uid"], meta["resourceVersion"]) != (uid, version):
            raise Conflict(name)
        return self.objects.pop((resource.plural, namespace, name))

    async def rehearse(self, resource: Resource, obj: Object) -> None:
        raise AssertionError(f"nobody asks for {resource.kind} {obj}")

    async def patch(
        self, resource: Resource, name: str, patch: Mapping[str, object], *, namespace: str = ""
    ) -> Object:
        found = self.objects[resource.plural, namespace, name]
        labels: Any = patch["metadata"]
        found["metadata"].setdefault("labels", {}).update(labels["labels"])
        return found

    async def evict(self, pod: str, *, namespace: str, uid: str) -> None:
        raise AssertionError(f"nobody asks to evict {pod} {namespace} {uid} here")
