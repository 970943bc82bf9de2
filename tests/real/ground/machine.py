"""The one real node: Debian's containerd and runc, and a kubelet.

All of it lives in a PID and a mount namespace of its own. When the first process in there ends,
the kernel ends the others, and the mounts go with the last of them, so nothing is left of the
node however the tests end. Only its control groups and files remain, which `run` clears away.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.real.ground import image, programs, run
from tests.real.ground.controlplane import LOOPBACK, ControlPlane
from tests.real.ground.processes import IN_USE, Died, Process, Stoppable, free_port

IMAGE = image.NAME
PATIENCE = 120
"""Seconds for a node to become Ready on a machine that builds Kubernetes at the same time."""

KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
"""What a kubelet sets them to, for the whole machine and for good, if it does not find them so."""

# The places that containerd and kubelet write to whatever they are told are the node's own in
# here, and kubelet finds the kernel settings that it wants. Nobody waits for the orphans that the
# first process inherits: with SIGCHLD ignored, they are gone when they end.
FIRST = f"""
set -e
mount --make-rshared /
mount -t tmpfs node /run
mount -t tmpfs node /var/log
mkdir /run/node /run/node/lib /run/node/work
mount -t overlay -o lowerdir=/var/lib,upperdir=/run/node/lib,workdir=/run/node/work node /var/lib
for setting in {" ".join(f"{key}={value}" for key, value in KERNEL_SETTINGS.items())}; do
    wanted=$(mktemp -p /run/node)
    echo ${{setting#*=}} > $wanted
    mount --bind $wanted /proc/sys/${{setting%=*}}
done
touch up
exec env --ignore-signal=CHLD sleep infinity
"""

# Native snapshots, since they work on any file system; an image of 2 MB is soon copied. The node
# counts as having a network as soon as there is a configuration: pods use the machine's.
CONTAINERD = f"""
version = 2
[plugins."io.containerd.internal.v1.opt"]
  path = "/run/node/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "FOLDER/cni"
"""
NETWORK = '{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}'
RUNTIME = "unix:///run/containerd/containerd.sock"

# As an init system does it. Whoever ends the kubelet that the file names restarts it.
SUPERVISE = 'file=$1; shift; while true; do "$@" & echo $! > "$file"; wait; sleep 3; done'


class NameTaken(Exception):
    """The control plane has a node of that name."""


class Machine(Stoppable):
    """The real node, Ready. Its pods have to use the machine's network and IMAGE."""

    def __init__(
        self,
        plane: ControlPlane,
        folder: Path,
        name: str,
        gates: Mapping[str, bool] | None = None,
        *,
        address: str = LOOPBACK,
        supervised: bool = False,
    ) -> None:
        """Take a folder that is not there yet, directly in the run's.

        A supervised kubelet is started again whenever it ends. The API server passes requests on
        to one only at an address that is not loopback.
        """
        if plane.api.find("Node", name):
            raise NameTaken(f"There is a Node {name} already: delete it, or take another name.")
        self.name = name
        self.folder = folder
        self.kubelet_folder = folder / "kubelet"
        """Kubelet's own: CSI drivers put their sockets in its plugins and plugins_registry."""
        self.manifests = folder / "kubernetes" / "manifests"
        """Kubelet runs what is in there."""
        self.kubelet_config = folder / "kubelet.yaml"
        self.kubelet_pid = folder / "kubelet.pid"
        self._plane = plane
        self._gates = dict(gates or {})
        self._address = address
        self._supervised = supervised
        self._cgroup = f"/{run.cgroup_name(folder.parent)}/{name}"
        self._parts: list[Process] = []
        """The namespaces first: with them, all the others end."""
        self.kubelet_folder.mkdir(parents=True)
        self.manifests.mkdir(parents=True)
        try:
            self._start_namespaces()
            self._start_containerd()
            self.start_kubelet()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything on the node at once, as when its power fails."""
        for part in self._parts:
            part.kill()

    # What runs

    def run(self, name: str, command: list[str], env: Mapping[str, str] | None = None) -> Process:
        """Start a program on the node, where kubelet and containers see what it mounts."""
        part = Inside(name, [*self._enter, *command], self.folder, env)
        self._parts.append(part)
        return part

    def ask(self, *command: str) -> str:
        """What a command prints that is run on the node."""
        done = subprocess.run([*self._enter, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Died(f"{command[0]} ended with {done.returncode} on {self.name}: {done.stderr}")
        return done.stdout

    def restart_kubelet(self, gates: Mapping[str, bool] | None = None) -> None:
        """Start kubelet anew, with other gates if they are given. Containers go on meanwhile."""
        self.stop_kubelet()
        if gates is not None:
            self._gates = dict(gates)
        self.start_kubelet()

    def stop_kubelet(self) -> None:
        self._kubelet.stop()
        self._parts.remove(self._kubelet)

    def start_kubelet(self) -> None:
        """Start it and wait until it says that the node is Ready."""
        for attempts_left in (2, 1, 0):
            since = time.time()
            self._kubelet = self.run("kubelet", self._kubelet_command())
            try:
                self._kubelet.wait_until(partial(self._is_ready, since), PATIENCE)
            except Died as death:
                # Another process may have been quicker to take the port.
                if IN_USE not in str(death) or not attempts_left:
                    raise
            except AssertionError as late:
                why = self._readiness().get("message", "it has not said a word")
                raise AssertionError(f"{late}; it says of the node: {why}") from None
            else:
                break

    def _start_namespaces(self) -> None:
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        node = Inside("node", [*unshare, "sh", "-c", FIRST], self.folder)
        self._parts.append(node)
        node.wait_until((self.folder / "up").exists)
        [first] = children(node.pid)
        self._enter = ["nsenter", f"--target={first}", "--mount", "--pid", "--"]

    def _start_containerd(self) -> None:
        debian = programs.debian()
        config, archive = self.folder / "containerd.toml", self.folder / "image.tar"
        config.write_text(CONTAINERD.replace("FOLDER", str(self.folder)))
        (self.folder / "cni").mkdir()
        (self.folder / "cni" / "none.conflist").write_text(NETWORK)
        image.write(debian.program("busybox"), archive)
        # It finds its shim and runc on the path, and runc its library next to itself.
        env = {
            "PATH": f"{debian.folder}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(debian.folder),
        }
        containerd = [str(debian.program("containerd")), f"--config={config}"]
        ctr = str(debian.program("ctr"))
        self.run("containerd", containerd, env).wait_until(lambda: self._answers(ctr))
        self.ask(ctr, "--namespace=k8s.io", "images", "import", str(archive))

    def _answers(self, ctr: str) -> bool:
        try:
            return bool(self.ask(ctr, "--timeout=1s", "version"))
        except Died:
            return False

    def _is_ready(self, since: float) -> bool:
        """Whether kubelet has said so since then; what an earlier one said does not count."""
        said = self._readiness()
        if said.get("status") != "True":
            return False
        # Heartbeats are in whole seconds, rounded down.
        return datetime.fromisoformat(said["lastHeartbeatTime"]).timestamp() > since

    def _readiness(self) -> dict[str, str]:
        node = self._plane.api.find("Node", self.name) or {}
        conditions = node.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "Ready"), {})

    def _kubelet_command(self) -> list[str]:
        make_cgroup(self._cgroup)
        self.kubelet_config.write_text(yaml.safe_dump(self._kubelet_config()))
        user = self._plane.kubeconfig(f"system:node:{self.name}", group="system:nodes")
        supervisor = ["sh", "-c", SUPERVISE, "sh", str(self.kubelet_pid)]
        return [
            *(supervisor if self._supervised else ()),
            str(programs.program(self._plane.version, "kubelet")),
            f"--config={self.kubelet_config}",
            f"--kubeconfig={user}",
            f"--root-dir={self.kubelet_folder}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--hostname-override={self.name}",
            f"--container-runtime-endpoint={RUNTIME}",
        ]

    def _kubelet_config(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "featureGates": self._gates,
            "address": self._address,
            "port": free_port(),
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "x509": {"clientCAFile": str(self._plane.folder / "ca.crt")},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "staticPodPath": str(self.manifests),
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self._cgroup,
            # Versions that do not know it warn, and go on.
            "failCgroupV1": False,
            "failSwapOn": False,
            # Tests wait for what kubelet does next.
            "syncFrequency": "1s",
            "nodeStatusUpdateFrequency": "1s",
            # A machine short of disk is no reason to taint the node or to remove the image.
            "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            # The machine's network, memory and names are none of the node's business.
            "makeIPTablesUtilChains": False,
            "oomScoreAdj": 0,
            "resolvConf": "",
            "volumePluginDir": str(self.folder / "flexvolumes"),
        }


class Inside(Process):
    """A process on the node. Our child is unshare or nsenter, which hands no signal on to it."""

    def _send(self, how: signal.Signals) -> None:
        for pid in children(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, how)


def children(parent: int) -> list[int]:
    """The processes that one has started; not every kernel lists them."""
    found = Path("/proc").glob("[0-9]*")
    return [int(process.name) for process in found if _parent(process) == parent]


def _parent(process: Path) -> int:
    try:
        # The name, in brackets, may have spaces and brackets of its own.
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def make_cgroup(name: str) -> None:
    """Kubelet takes the control group that it is told to use only if it is there."""
    if (run.CGROUPS / "cgroup.controllers").exists():
        _make_unified_cgroup(run.CGROUPS, name)
        return
    for controller in run.CGROUPS.iterdir():
        Path(f"{controller}{name}").mkdir(parents=True, exist_ok=True)


def _make_unified_cgroup(top: Path, name: str) -> None:
    for part in name.strip("/").split("/"):
        controllers = (top / "cgroup.controllers").read_text().split()
        wanted = " ".join(f"+{controller}" for controller in controllers)
        (top / "cgroup.subtree_control").write_text(wanted)
        top /= part
        top.mkdir(exist_ok=True)
