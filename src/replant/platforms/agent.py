"""An agent: a pod that is on a node for some seconds, and reads one file of it or writes one.

It needs an image with sh and what busybox has. It decides nothing: what is to be written comes with
the pod, and is written only if the file is still the one that was read. What it has read comes back
in its log, how it ended in its status (docs/decisions/0012-kubeadm-agent.md).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import time
from collections import defaultdict
from contextlib import suppress

import msgspec

from replant.cluster.ports import NAMESPACES, PODS, LogReader, Resource, Selected, Writer
from replant.errors import (
    Conflict,
    Final,
    Forbidden,
    Missing,
    ReplantError,
    Retryable,
    Unreachable,
    shown,
)
from replant.execute.namespace import NAMESPACE
from replant.objects import Object
from replant.platforms.agent_pods import (
    GRACE,
    LABEL,
    PATIENCE,
    SECURITY,
    Pod,
    Pods,
    Terminated,
    Waiting,
    agent_pod,
    how_it_is,
    surroundings,
)
from replant.platforms.agent_scripts import (
    CHANGED,
    NOT_THERE,
    NOT_WRITTEN,
    PUT_BACK,
    READ,
    WRITE,
    NodeFile,
    what_was_read,
)

PULLING = 60.0
"""After so many seconds a pull that fails is told; registries have their moments."""

MOST_CONTENT = 64 * 2**10
"""A file goes to the node as one variable of a process, which has at most 128 KiB."""

_HOPELESS = ("InvalidImageName",)
_NOT_PULLED = ("ErrImagePull", "ImagePullBackOff")
_DELETIONS = 5


class Agents:
    """Sends agents to nodes, one at a time to each, and removes them afterwards."""

    def __init__(
        self, reader: LogReader, writer: Writer, image: str, *, pause: float = 1.0
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._image = image
        self._pause = pause
        self._places: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._preparing = asyncio.Lock()
        self._prepared = False
        self._sent: set[str] = set()
        """Those that may still be there."""

    async def read(self, node: str, path: str) -> NodeFile:
        """A file of a node."""
        said = await self._send(node, READ, {"FILE": path}, writes=False)
        try:
            return what_was_read(said)
        except (ValueError, KeyError) as error:
            raise Retryable(f"node {node}: what the agent read of {path} is not whole") from error

    async def write(
        self,
        node: str,
        path: str,
        *,
        old: bytes,
        new: bytes,
        aside: str,
        restart: str = "",
        check: str = "true",
    ) -> str:
        """Write a file if it is still as it was, and restart the kubelet if a command says how.

        Returns where the copy is of what the file was, nothing if it was so already. ``aside`` is a
        folder for the new text until it is whole, on the same file system.
        """
        if len(new) > MOST_CONTENT:
            raise Final(f"node {node}: {path} is too large to be written: {len(new)} bytes")
        given = {
            "FILE": path,
            "ASIDE": aside,
            "OLD": hashlib.sha256(old).hexdigest(),
            "NEW": hashlib.sha256(new).hexdigest(),
            "CONTENT": base64.b64encode(new).decode(),
            "RESTART": restart,
            "CHECK": check,
        }
        return (await self._send(node, WRITE, given, writes=True)).strip()

    async def aclose(self) -> None:
        """Remove what could not be removed before; what still cannot, the next run finds."""
        for name in tuple(self._sent):
            await self._remove(name)

    async def _send(self, node: str, script: str, given: dict[str, str], *, writes: bool) -> str:
        """What an agent has said; one that had no success is an error."""
        await self._prepare()
        name = f"replant-agent-{secrets.token_hex(5)}"
        about = f"node {node}: {given['FILE']}"
        async with self._places[node]:
            await self._wait_until_alone(node)
            self._sent.add(name)
            try:
                obj = agent_pod(name, node, self._image, script, given, writes=writes)
                await self._writer.create(PODS, obj, namespace=NAMESPACE)
                ended = await self._wait_for_end(name, node)
                if ended.exit_code:
                    raise _failure(ended, about)
                if writes:
                    return ended.message
                return (await self._reader.log(name, namespace=NAMESPACE)).decode(errors="replace")
            finally:
                await self._remove(name)

    async def _prepare(self) -> None:
        """Have a namespace for agents, in which there are none of an earlier run."""
        async with self._preparing:
            if self._prepared:
                return
            for resource, obj in surroundings():
                await self._ensure(resource, obj)
            await self._let_be_privileged()
            for pod in await self._agents():
                await self._remove(pod.metadata.name)
            self._prepared = True

    async def _ensure(self, resource: Resource, obj: Object) -> None:
        namespace = obj["metadata"].get("namespace", "")
        try:
            await self._reader.get(resource, obj["metadata"]["name"], namespace=namespace)
        except Forbidden:
            return  # if it is not there, the pod is refused, and the answer says why
        except Missing:
            with suppress(Conflict):
                await self._writer.create(resource, obj, namespace=namespace)

    async def _let_be_privileged(self) -> None:
        """Label the namespace where nobody has; a label that somebody chose stays."""
        # Without the right, it is for whoever has it: an agent that is refused says so.
        with suppress(Forbidden):
            body = await self._reader.get(NAMESPACES, NAMESPACE)
            labels = (msgspec.json.decode(body)["metadata"].get("labels")) or {}
            if SECURITY not in labels:
                change = {"metadata": {"labels": {SECURITY: "privileged"}}}
                await self._writer.patch(NAMESPACES, NAMESPACE, change)

    async def _agents(self, fields: str = "") -> list[Pod]:
        found: list[Pod] = []
        selected = Selected(fields=fields, labels=LABEL)
        async for page in self._reader.list_pages(PODS, namespace=NAMESPACE, selected=selected):
            if page.first:
                found.clear()
            try:
                found += msgspec.json.decode(page.body, type=Pods).items
            except msgspec.DecodeError as error:
                raise Final(f"the pods in {NAMESPACE} cannot be read: {error}") from error
        return found

    async def _wait_until_alone(self, node: str) -> None:
        """One that an earlier run left may still be writing; it must have ended."""
        end = time.monotonic() + GRACE + PULLING
        while others := await self._agents(f"spec.nodeName={node}"):
            if time.monotonic() > end:
                name = others[0].metadata.name
                raise Retryable(f"node {node}: the agent {name} of an earlier run does not go away")
            for pod in others:
                await self._remove(pod.metadata.name)
            await asyncio.sleep(self._pause)

    async def _wait_for_end(self, name: str, node: str) -> Terminated:
        began = time.monotonic()
        seen = "it was not seen yet"
        while (waited := time.monotonic() - began) < PATIENCE:
            # While an API server or a kubelet starts anew there is no answer, for a while.
            with suppress(Unreachable):
                pod = await self._pod(name, node)
                if pod.state.terminated:
                    return pod.state.terminated
                seen = how_it_is(pod)
                self._give_up_if_hopeless(pod, node, waited)
            await asyncio.sleep(self._pause)
        raise Retryable(f"node {node}: the agent has not ended after {PATIENCE:g} s: {shown(seen)}")

    async def _pod(self, name: str, node: str) -> Pod:
        try:
            body = await self._reader.get(PODS, name, namespace=NAMESPACE)
            return msgspec.json.decode(body, type=Pod)
        except Missing as error:
            raise Retryable(f"node {node}: somebody has removed the agent {name}") from error
        except msgspec.DecodeError as error:
            raise Final(f"node {node}: the agent's pod cannot be read: {error}") from error

    def _give_up_if_hopeless(self, pod: Pod, node: str, waited: float) -> None:
        status, waiting = pod.status, pod.state.waiting or Waiting()
        if status.phase == "Failed":
            raise Retryable(f"node {node}: the agent was not run: {shown(how_it_is(pod))}")
        why = f"node {node}: the image {shown(self._image)} cannot be had: {shown(waiting.message)}"
        if waiting.reason in _HOPELESS:
            raise Final(why)
        if waiting.reason in _NOT_PULLED and waited > PULLING:
            raise Retryable(why)

    async def _remove(self, name: str) -> None:
        """Delete a pod. If that does not work now, it is tried again at the end, and next time."""
        try:
            for _ in range(_DELETIONS):
                try:
                    body = await self._reader.get(PODS, name, namespace=NAMESPACE)
                    meta = msgspec.json.decode(body, type=Pod).metadata
                    await self._writer.delete(
                        PODS, name, uid=meta.uid, version=meta.version, namespace=NAMESPACE
                    )
                except Conflict:
                    continue  # its status has changed meanwhile
                break
        except Missing:
            pass
        except (ReplantError, msgspec.DecodeError):
            return
        self._sent.discard(name)


def _failure(ended: Terminated, about: str) -> ReplantError:
    lines = ended.message.strip().splitlines() or [ended.reason or "it did not say why"]
    said = f"{about}: {shown(lines[-1])}"
    match ended.exit_code:
        case code if code == CHANGED:
            return Conflict(said)
        case code if code in (NOT_THERE, PUT_BACK, NOT_WRITTEN):
            return Final(said)
    return Final(f"{said} (the agent ended with {ended.exit_code})")
