"""An agent: a pod that is on a node for some seconds, and reads one file of it or writes one.

It needs an image with sh and what busybox has. It decides nothing: what is to be written comes with
the pod, and is written only if the file is still the one that was read. What it has read comes back
in its log, how it ended in its status (docs/decisions/0012-kubeadm-agent.md).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import secrets
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

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

ACCOUNT = "replant-agent"
LABEL = "replant.dev/agent"
SECURITY = "pod-security.kubernetes.io/enforce"
SERVICE_ACCOUNTS = Resource("ServiceAccount", "serviceaccounts", namespaced=True)

PATIENCE = 300.0
"""Seconds for an agent to come and go, with its image pulled and a kubelet restarted."""

PULLING = 60.0
"""After so many seconds a pull that fails is told; registries have their moments."""

GRACE = 120
"""Seconds in which one that is told to go ends what it has begun."""

MOST_CONTENT = 64 * 2**10
"""A file goes to the node as one variable of a process, which has at most 128 KiB."""

NOT_THERE, CHANGED, PUT_BACK, NOT_WRITTEN = 10, 11, 12, 13
"""What an agent's exit code says; its message says more."""

STATE = "/var/lib/replant"

_COMMON = """
set -eu
say() { echo "$1" > "$SAYS"; exit "$2"; }
file=$HOST$FILE
due=$HOST$STATE/restart-due
[ -e "$file" ] || say "there is no such file" 10
[ -f "$file" ] && [ ! -L "$file" ] || say "it is not a regular file" 10
"""

READ = (
    _COMMON
    + """
echo "-- content"
base64 < "$file"
echo "-- kubelet"
for process in "$HOST"/proc/[0-9]*; do
    if [ "$(cat "$process/comm" 2>/dev/null)" = kubelet ]; then
        base64 < "$process/cmdline"
        break
    fi
done
echo "-- due"
if [ -e "$due" ]; then echo true; fi
echo "-- end"
"""
)
"""The file, the arguments of the node's kubelet, and whether that was never restarted after a
change. A dash is no part of base64."""

WRITE = (
    _COMMON
    + """
trap '' TERM
digest() { sha256sum < "$1" | cut -d ' ' -f 1; }
on_host() { PATH=/usr/sbin:/usr/bin:/sbin:/bin $ENTER /bin/sh -c "$1"; }
stays_up() {
    left=30; good=0
    while [ "$good" -lt 5 ]; do
        [ "$left" -gt 0 ] || return 1
        left=$((left - 1))
        if on_host "$CHECK"; then good=$((good + 1)); else good=0; fi
        sleep "$PAUSE"
    done
}
temp=$HOST$ASIDE/.replant-${FILE##*/}
[ "$(stat -c %d "${file%/*}")" = "$(stat -c %d "$HOST$ASIDE")" ] ||
    say "its folder and $ASIDE are not on the same file system" 13
backup=
now=$(digest "$file")
if [ "$now" != "$NEW" ]; then
    [ "$now" = "$OLD" ] || say "somebody has changed it meanwhile" 11
    mkdir -p "$HOST$STATE/backup"
    chmod 700 "$HOST$STATE/backup"
    backup=$STATE/backup/$(date -u +%Y%m%dT%H%M%SZ)-${FILE##*/}
    while [ -e "$HOST$backup" ]; do backup=$backup.1; done
    cp -p "$file" "$HOST$backup"
    dd if="$file" of="$HOST$backup" conv=fsync 2>/dev/null
    cp -p "$file" "$temp"
    echo "$CONTENT" | base64 -d | dd of="$temp" conv=fsync 2>/dev/null
    if [ "$(digest "$temp")" != "$NEW" ]; then
        rm -f "$temp"
        say "it could not be written whole, and is as it was" 13
    fi
    if [ -n "$RESTART" ] && [ ! -e "$due" ]; then echo "$backup" > "$due"; fi
    mv -f "$temp" "$file"
fi
if [ -n "$RESTART" ]; then
    if [ -e "$due" ]; then backup=$(cat "$due"); fi
    if ! { on_host "$RESTART" && stays_up; }; then
        [ -n "$backup" ] || say "the kubelet does not stay up" 12
        cp -p "$HOST$backup" "$temp"
        mv -f "$temp" "$file"
        # Between two starts there may be nothing to restart; what counts is that it stays up.
        on_host "$RESTART" || true
        stays_up || say "the kubelet does not stay up, not even with the file as it was" 12
        rm -f "$due"
        say "the kubelet does not stay up with it; the file is as it was" 12
    fi
    rm -f "$due"
fi
say "$backup" 0
"""
)
"""Keeps a copy, writes beside the file's folder (kubelet runs whatever is in that of manifests) and
renames; restarts the kubelet, and puts the copy back if it does not stay up. That a restart is due
is written down first, with the last copy that a kubelet is known to have run with, so that whoever
comes after one that was killed knows."""

_HOPELESS = ("InvalidImageName",)
_NOT_PULLED = ("ErrImagePull", "ImagePullBackOff")


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A file of a node, as an agent read it."""

    content: bytes
    kubelet: tuple[str, ...]
    """The arguments that the node's kubelet was started with, none if none was seen."""
    restart_due: bool
    """Whether the kubelet's file was changed, and the kubelet not restarted since."""


class _Waiting(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Terminated(msgspec.Struct):
    exit_code: int = msgspec.field(name="exitCode", default=-1)
    message: str = ""
    reason: str = ""


class _State(msgspec.Struct):
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _Container(msgspec.Struct):
    state: _State = msgspec.field(default_factory=_State)


class _PodStatus(msgspec.Struct):
    phase: str = ""
    reason: str = ""
    message: str = ""
    containers: list[_Container] = msgspec.field(name="containerStatuses", default_factory=list)


class _Metadata(msgspec.Struct):
    name: str
    uid: str
    version: str = msgspec.field(name="resourceVersion")


class _Pod(msgspec.Struct):
    metadata: _Metadata
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def state(self) -> _State:
        return self.status.containers[0].state if self.status.containers else _State()


class _Pods(msgspec.Struct):
    items: list[_Pod]


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
            return _read(said)
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

    async def _agents(self, fields: str = "") -> list[_Pod]:
        found: list[_Pod] = []
        selected = Selected(fields=fields, labels=LABEL)
        async for page in self._reader.list_pages(PODS, namespace=NAMESPACE, selected=selected):
            if page.first:
                found.clear()
            try:
                found += msgspec.json.decode(page.body, type=_Pods).items
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

    async def _wait_for_end(self, name: str, node: str) -> _Terminated:
        began = time.monotonic()
        seen = "it was not seen yet"
        while (waited := time.monotonic() - began) < PATIENCE:
            # While an API server or a kubelet starts anew there is no answer, for a while.
            with suppress(Unreachable):
                pod = await self._pod(name, node)
                if pod.state.terminated:
                    return pod.state.terminated
                seen = _how_it_is(pod)
                self._give_up_if_hopeless(pod, node, waited)
            await asyncio.sleep(self._pause)
        raise Retryable(f"node {node}: the agent has not ended after {PATIENCE:g} s: {shown(seen)}")

    async def _pod(self, name: str, node: str) -> _Pod:
        try:
            body = await self._reader.get(PODS, name, namespace=NAMESPACE)
            return msgspec.json.decode(body, type=_Pod)
        except Missing as error:
            raise Retryable(f"node {node}: somebody has removed the agent {name}") from error
        except msgspec.DecodeError as error:
            raise Final(f"node {node}: the agent's pod cannot be read: {error}") from error

    def _give_up_if_hopeless(self, pod: _Pod, node: str, waited: float) -> None:
        status, waiting = pod.status, pod.state.waiting or _Waiting()
        if status.phase == "Failed":
            raise Retryable(f"node {node}: the agent was not run: {shown(_how_it_is(pod))}")
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
                    meta = msgspec.json.decode(body, type=_Pod).metadata
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


_DELETIONS = 5


def agent_pod(
    name: str, node: str, image: str, script: str, given: dict[str, str], *, writes: bool
) -> Object:
    """An agent, bound to its node whatever taints that has."""
    told = {
        "HOST": "/host",
        "ENTER": "chroot /host",
        "STATE": STATE,
        "SAYS": "/dev/termination-log",
        "PAUSE": "1",
        **given,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {LABEL: "true", "app.kubernetes.io/managed-by": "replant"},
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": int(2 * PATIENCE),
            "terminationGracePeriodSeconds": GRACE,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "serviceAccountName": ACCOUNT,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostPID": True,
            # It needs no network, so it shall not wait for one.
            "hostNetwork": True,
            "containers": [
                {
                    "name": "agent",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", _literal(script)],
                    "env": [{"name": it, "value": _literal(text)} for it, text in told.items()],
                    "securityContext": {"privileged": True, "runAsUser": 0},
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": [
                        {"name": "host", "mountPath": "/host", "readOnly": not writes}
                    ],
                }
            ],
            "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
        },
    }


def _literal(text: str) -> str:
    """A text in which Kubernetes finds no $(VARIABLE) of its own."""
    return text.replace("$", "$$")


def surroundings() -> list[tuple[Resource, Object]]:
    """An account of its own, since a new namespace has none while the controllers are away."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": {SECURITY: "privileged"},
        },
    }
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "automountServiceAccountToken": False,
    }
    return [(NAMESPACES, namespace), (SERVICE_ACCOUNTS, account)]


def _how_it_is(pod: _Pod) -> str:
    waiting = pod.state.waiting
    parts = (waiting.reason, waiting.message) if waiting else ("", "")
    said = (pod.status.phase or "Pending", pod.status.reason, pod.status.message, *parts)
    return ": ".join(it for it in said if it)


def _failure(ended: _Terminated, about: str) -> ReplantError:
    lines = ended.message.strip().splitlines() or [ended.reason or "it did not say why"]
    said = f"{about}: {shown(lines[-1])}"
    match ended.exit_code:
        case code if code == CHANGED:
            return Conflict(said)
        case code if code in (NOT_THERE, PUT_BACK, NOT_WRITTEN):
            return Final(said)
    return Final(f"{said} (the agent ended with {ended.exit_code})")


def _read(said: str) -> NodeFile:
    """What an agent has read; KeyError or ValueError if that is not all of it."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in said.splitlines():
        if line.startswith("-- "):
            lines = sections.setdefault(line.removeprefix("-- "), [])
        else:
            lines.append(line)
    sections["end"]
    arguments = _decoded(sections["kubelet"]).decode(errors="replace").split("\0")
    return NodeFile(
        _decoded(sections["content"]),
        tuple(it for it in arguments if it),
        bool(sections["due"]),
    )


def _decoded(lines: list[str]) -> bytes:
    try:
        return base64.b64decode("".join(lines), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
