"""Switches gates on clusters as kubeadm makes them: static pods' manifests, kubelets' files."""

from __future__ import annotations

import asyncio
import posixpath
import time
from collections.abc import Callable
from contextlib import suppress

from replant.cluster.ports import LogReader, Writer
from replant.errors import Final, InputError, Refused, Retryable, Unreachable, shown
from replant.execute.actuators import Place, Replica, Wanted, differences
from replant.platforms.agent import Agents
from replant.platforms.agent_scripts import NodeFile
from replant.platforms.command_lines import flag_value, given_by_flags
from replant.platforms.nodefiles import edit_kubelet_config, edit_manifest
from replant.platforms.seen import Seen

MANIFESTS = "/etc/kubernetes/manifests"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
RESTART = "systemctl restart kubelet"
CHECK = "systemctl is-active --quiet kubelet"

PATIENCE = 300.0
"""Seconds for a replica to come back with other flags."""

Tell = Callable[[str], None]


class Kubeadm:
    """An actuator that sends agents to nodes."""

    def __init__(
        self,
        reader: LogReader,
        writer: Writer,
        image: str,
        *,
        restart_command: str = RESTART,
        check_command: str = CHECK,
        manifests: str = MANIFESTS,
        kubelet_config: str = KUBELET_CONFIG,
        tell: Tell = lambda _: None,
        pause: float = 1.0,
    ) -> None:
        self._seen = Seen(reader)
        self._agents = Agents(reader, writer, image, pause=pause)
        self._restart = restart_command
        self._check = check_command
        self._manifests = manifests
        self._config = kubelet_config
        self._tell = tell
        self._pause = pause

    async def observe(self, place: Place) -> tuple[Replica, ...] | None:
        """What the API tells; see Actuator."""
        if place.node:
            return await self._seen.observe(place)
        # Here they do run as pods: if there is none, they are down.
        return tuple(it.replica for it in await self._seen.pods(place.component))

    async def switch(self, place: Place, wanted: Wanted) -> None:
        """Edit the files of a kubelet, or of a component on one node after the other."""
        if place.node:
            await self._switch_kubelet(place.node, wanted)
        else:
            await self._switch_component(place.component, wanted)

    async def aclose(self) -> None:
        """Remove the agents."""
        await self._agents.aclose()

    async def _switch_component(self, component: str, wanted: Wanted) -> None:
        nodes = {it.node: None for it in await self._seen.pods(component)}
        if not nodes:
            raise Retryable(
                f"no pod of {component} is in kube-system, so there is no telling on which nodes "
                "it runs; is it down, or does this cluster not run it as a static pod?"
            )
        path = f"{self._manifests}/{component}.yaml"
        for node in nodes:
            file = await self._agents.read(node, path)
            new = edit_manifest(
                _text(file, node, path), component, wanted, source=f"node {node}: {path}"
            ).encode()
            if new != file.content:
                aside = posixpath.dirname(self._manifests)
                copy = await self._agents.write(node, path, old=file.content, new=new, aside=aside)
                self._tell_of(node, path, copy)
            await self._wait_until_so(component, node, wanted)

    async def _wait_until_so(self, component: str, node: str, wanted: Wanted) -> None:
        """No second replica is taken down before the first is back."""
        end = time.monotonic() + PATIENCE
        seen = "there is no pod"
        while time.monotonic() < end:
            # Where this is the only API server there is no answer for a while.
            with suppress(Unreachable):
                pods = [it.replica for it in await self._seen.pods(component) if it.node == node]
                if pods and all(it.ready and not differences(it, wanted) for it in pods):
                    return
                seen = "; ".join(_how_it_is(it, wanted) for it in pods) or "there is no pod"
            await asyncio.sleep(self._pause)
        raise Retryable(
            f"{component} on {node} has not come back with its new flags after {PATIENCE:g} s: "
            f"{shown(seen)}; what its manifest was is on the node, in /var/lib/replant/backup"
        )

    async def _switch_kubelet(self, node: str, wanted: Wanted) -> None:
        if wanted.add_flags or wanted.remove_flags:
            raise Refused(f"node {node}: a kubelet's gates can be switched here, not its flags")
        path = self._config
        file = await self._agents.read(node, path)
        self._refuse_if_not_told_by_file(node, file, wanted)
        text = _text(file, node, path)
        new = edit_kubelet_config(text, wanted.gates, source=f"node {node}: {path}").encode()
        if new == file.content and not file.restart_due:
            return
        copy = await self._agents.write(
            node,
            path,
            old=file.content,
            new=new,
            aside=posixpath.dirname(path),
            restart=self._restart,
            check=self._check,
        )
        self._tell_of(node, path, copy)

    def _refuse_if_not_told_by_file(self, node: str, file: NodeFile, wanted: Wanted) -> None:
        """A kubelet that has its gates from elsewhere would not obey its file."""
        used = flag_value(file.kubelet, "config")
        if file.kubelet and used != self._config:
            raise Final(
                f"node {node}: the kubelet has its configuration from {shown(used or 'flags')}, "
                f"not from {self._config}"
            )
        if gates := given_by_flags(file.kubelet, wanted.gates):
            raise Final(
                f"node {node}: the kubelet is given {', '.join(gates)} by its flag "
                "--feature-gates, which wins over its file; take it out there first, commonly in "
                "/var/lib/kubelet/kubeadm-flags.env or /etc/default/kubelet"
            )

    def _tell_of(self, node: str, path: str, copy: str) -> None:
        if copy:
            self._tell(f"node {node}: {path} was changed; what it was is in {shown(copy)}")


def _text(file: NodeFile, node: str, path: str) -> str:
    try:
        return file.content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8: {error}", source=f"node {node}: {path}") from error


def _how_it_is(replica: Replica, wanted: Wanted) -> str:
    found = differences(replica, wanted) or ["as wanted"]
    return f"{replica.name}: {', '.join(found)}{'' if replica.ready else ', not ready'}"
