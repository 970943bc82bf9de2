"""A real control plane on loopback, with TLS and RBAC, for as long as a test wants it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import trustme
import yaml

from tests.real.ground import programs
from tests.real.ground.api import Api, Object, Refused
from tests.real.ground.cloud import Cloud
from tests.real.ground.processes import (
    IN_USE,
    Died,
    Kept,
    Process,
    Stoppable,
    free_port,
    start_on_free_port,
    wait_for,
)

ROLES = Path(__file__).parents[3] / "deploy" / "rbac"
LOOPBACK = "127.0.0.1"
ATTACHES = re.compile(
    "Caches are synced for attach detach|"
    '"Starting attach detach controller"(.|\n)*"Caches are synced"'
)
"""What the controller manager says when its attach/detach controller knows the cluster. New ones
do not say whose caches they are, but those of all controllers come in together."""
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "userGroups": [
                "system:serviceaccounts:replant",
                "system:serviceaccounts:replant-system",
            ],
        },
    ],
}
"""What those with a role of ours ask is written down; nothing else is."""


class ControlPlane(Stoppable):
    """etcd and kube-apiserver at once; the controller manager and the scheduler when asked."""

    api: Api
    """The administrator's."""

    def __init__(self, version: str, folder: Path) -> None:
        self.version = version
        self.folder = folder
        folder.mkdir()
        self._ca = trustme.CA()
        self._ca.cert_pem.write_to_path(folder / "ca.crt")
        trustme.CA().private_key_pem.write_to_path(folder / "accounts.key")
        self._parts: dict[str, Process | Kept] = {}
        self._server = ""
        try:
            self._start_etcd()
            self._start_api_server()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Take everything down, the last started first. Nothing here is worth a slow farewell."""
        for name in reversed(list(self._parts)):
            self._parts.pop(name).kill()
        if hasattr(self, "api"):
            self.api.close()

    # Who may ask

    def kubeconfig(self, user: str = "admin", group: str = "system:masters") -> Path:
        """The kubeconfig of a user, known by a certificate."""
        certificate, key = self.certificate(user.replace(":", "-"), user=user, group=group)
        return self._write_kubeconfig(
            user, {"client-certificate": str(certificate), "client-key": str(key)}
        )

    def role_kubeconfig(self, role: str) -> Path:
        """The kubeconfig of a role that we ship: `deploy/rbac/<role>.yaml` is applied for it."""
        objects = self.apply_role(role)
        account = next(obj["metadata"] for obj in objects if obj["kind"] == "ServiceAccount")
        token = self.api.token(account["name"], account["namespace"])
        return self._write_kubeconfig(account["name"], {"token": token})

    def apply_role(self, role: str) -> list[Object]:
        """What `deploy/rbac/<role>.yaml` grants is granted from here on."""
        objects = list(yaml.safe_load_all((ROLES / f"{role}.yaml").read_text()))
        for obj in objects:
            meta = obj["metadata"]
            if not self.api.find(obj["kind"], meta["name"], meta.get("namespace", "")):
                self.api.create(obj)
        return objects

    def asked_by_roles(self) -> list[Object]:
        """Every request so far by those with a role of ours, as the API server's audit has it."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def certificate(self, name: str, *hosts: str, user: str, group: str = "") -> tuple[Path, Path]:
        """A certificate that the API server trusts, and its key, as files."""
        # Go takes no certificate with an empty list of hosts, and a user has none.
        names = hosts or ("user.replant.test",)
        issued = self._ca.issue_cert(*names, common_name=user, organization_name=group or None)
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        return certificate, key

    def _write_kubeconfig(self, user: str, credentials: Mapping[str, str]) -> Path:
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        cluster = {"server": self._server, "certificate-authority": str(self.folder / "ca.crt")}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "real",
                    "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
                    "clusters": [{"name": "real", "cluster": cluster}],
                    "users": [{"name": user, "user": dict(credentials)}],
                }
            )
        )
        return path

    def wait_served(self, path: str) -> None:
        """Wait until something is served there, which a definition has promised."""

        def served() -> bool:
            try:
                self.api.text(path)
            except Refused:
                return False
            return True

        wait_for(served, path)

    # What runs

    def start_controller_manager(
        self,
        gates: Mapping[str, bool] | None = None,
        cloud: Cloud | None = None,
        election: Sequence[str] = (),
        rounds: str = "1s",
    ) -> None:
        """Start it, or start it anew with other gates. With a cloud, it has in-tree EBS.

        With flags for its election, it is elected, and started anew whenever it ends. A claim that
        is looked at too early waits for the next of its rounds, by default 15 s.
        """
        self._started = gates, cloud, election, rounds
        self.stop_part("kube-controller-manager")
        flags = [
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--root-ca-file={self.folder / 'ca.crt'}",
            # Light nodes send no heartbeats.
            "--node-monitor-grace-period=24h",
            f"--pvclaimbinder-sync-period={rounds}",
            # The tests wait for it; nobody else is kept waiting by it.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            f"--flex-volume-plugin-dir={self.folder / 'flexvolumes'}",
            *_gate_flags(gates or {}),
        ]
        env: Mapping[str, str] = {}
        if cloud:
            # The rest of the cloud's controllers would judge nodes by the cloud's word alone.
            flags.append("--controllers=*,-cloud-node-lifecycle,-route,-service")
            flags += ["--cloud-provider=aws", f"--cloud-config={cloud.write_config(self.folder)}"]
            env = cloud.credentials
        said = len(self.log("kube-controller-manager"))
        self._start_client("kube-controller-manager", flags, env, election)
        # From then on it means something if nothing happens.
        self._parts["kube-controller-manager"].wait_until(
            lambda: bool(ATTACHES.search(self.log("kube-controller-manager")[said:]))
        )
        # Without it the API server takes no pods.
        wait_for(lambda: self.api.find("ServiceAccount", "default", "default"), "the account")

    def restart_controller_manager(self) -> None:
        """Start it anew as it was started last."""
        self.start_controller_manager(*self._started)

    def start_scheduler(self, gates: Mapping[str, bool] | None = None) -> None:
        # Asked to end, it takes its time; and it has nothing that it could leave half-done.
        if self.runs("kube-scheduler"):
            self.kill_part("kube-scheduler")
        self._start_client("kube-scheduler", _gate_flags(gates or {}))

    def stop_part(self, name: str) -> None:
        if process := self._parts.pop(name, None):
            process.stop()

    def kill_part(self, name: str) -> None:
        """End it without a farewell, as when its machine dies."""
        self._parts.pop(name).kill()

    def starts(self, name: str) -> int:
        """How often a part that is kept running was started."""
        part = self._parts[name]
        return part.starts if isinstance(part, Kept) else 1

    def pids(self) -> list[int]:
        """Of all parts that run."""
        return [it.pid for it in self._parts.values() if isinstance(it, Process)]

    def runs(self, name: str) -> bool:
        return name in self._parts

    def restart_api_server(self) -> None:
        """Start it where it was, once it was killed: everybody knows that address.

        While nobody listens there, a client that connects to the port may be given it as its own,
        and keep it for a moment.
        """
        port = urlsplit(self._server).port or 0

        def is_started() -> bool:
            self._parts["kube-apiserver"] = process = self._api_server(port)
            try:
                process.wait_until(self.api.ready)
            except Died as died:
                if IN_USE not in str(died):
                    raise
                return False
            return True

        wait_for(is_started, "the port of the API server to be free")

    def log(self, name: str) -> str:
        """What a part has written so far, over all its starts."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _start_etcd(self) -> None:
        certificate, key = self.certificate("etcd", LOOPBACK, user="etcd")
        data = self.folder / "etcd"

        def start(port: int) -> Process:
            peers = f"https://{LOOPBACK}:{free_port()}"
            return self._process(
                "etcd",
                f"--data-dir={data}",
                f"--listen-client-urls=https://{LOOPBACK}:{port}",
                f"--advertise-client-urls=https://{LOOPBACK}:{port}",
                f"--listen-peer-urls={peers}",
                f"--initial-advertise-peer-urls={peers}",
                f"--initial-cluster=default={peers}",
                f"--cert-file={certificate}",
                f"--key-file={key}",
                f"--trusted-ca-file={self.folder / 'ca.crt'}",
                "--client-cert-auth=true",
                f"--peer-cert-file={certificate}",
                f"--peer-key-file={key}",
                f"--peer-trusted-ca-file={self.folder / 'ca.crt'}",
                # What is written here need not survive the machine.
                "--unsafe-no-fsync=true",
            )

        self._etcd = f"https://{LOOPBACK}:{self._start('etcd', start)}"

    def _start_api_server(self) -> None:
        self.certificate("kube-apiserver", LOOPBACK, user="kube-apiserver")
        self.certificate("kube-apiserver-client", user="kube-apiserver", group="system:masters")
        (self.folder / "audit.yaml").write_text(yaml.safe_dump(AUDIT))

        def ready(port: int) -> bool:
            server = f"https://{LOOPBACK}:{port}"
            if server != self._server:
                self._server = server
                self.api = Api(self.kubeconfig())
            return self.api.ready()

        self._start("kube-apiserver", self._api_server, ready)

    def _api_server(self, port: int) -> Process:
        folder = self.folder
        authority, accounts = folder / "ca.crt", folder / "accounts.key"
        client, client_key = (folder / f"kube-apiserver-client.{it}" for it in ("crt", "key"))
        return self._process(
            "kube-apiserver",
            f"--etcd-servers={self._etcd}",
            f"--etcd-cafile={authority}",
            f"--etcd-certfile={client}",
            f"--etcd-keyfile={client_key}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--tls-cert-file={folder / 'kube-apiserver.crt'}",
            f"--tls-private-key-file={folder / 'kube-apiserver.key'}",
            f"--client-ca-file={authority}",
            f"--kubelet-client-certificate={client}",
            f"--kubelet-client-key={client_key}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--service-account-issuer=https://replant.test",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
            "--service-cluster-ip-range=10.96.0.0/24",
            f"--audit-policy-file={folder / 'audit.yaml'}",
            f"--audit-log-path={folder / 'audit.log'}",
            # A loopback address may not stand in the service's endpoints.
            "--endpoint-reconciler-type=none",
        )

    def _start_client(
        self,
        name: str,
        flags: list[str],
        env: Mapping[str, str] | None = None,
        election: Sequence[str] = (),
    ) -> None:
        """A part that only asks the API server; there is one of each."""
        config = self.kubeconfig(f"system:{name}", group=f"system:{name}")

        def start(port: int) -> Process:
            return self._process(
                name,
                f"--kubeconfig={config}",
                *(election or ["--leader-elect=false"]),
                f"--bind-address={LOOPBACK}",
                f"--secure-port={port}",
                *flags,
                env=env,
            )

        if election:
            self._parts[name] = Kept(lambda: start_on_free_port(start)[0])
        else:
            self._start(name, start)

    def _process(self, name: str, *flags: str, env: Mapping[str, str] | None = None) -> Process:
        command = [str(programs.program(self.version, name)), *flags]
        return Process(name, command, self.folder, env)

    def _start(
        self,
        name: str,
        start: Callable[[int], Process],
        ready: Callable[[int], bool] = lambda _port: True,
    ) -> int:
        self._parts[name], port = start_on_free_port(start, ready)
        return port


def _gate_flags(gates: Mapping[str, bool]) -> list[str]:
    listed = ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())
    return [f"--feature-gates={listed}"] if listed else []
