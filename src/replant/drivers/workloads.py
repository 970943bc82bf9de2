"""The Deployment of a driver's controllers, and the DaemonSet of its nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from replant.drivers.catalog import DRIVERS, Cloud
from replant.drivers.credentials import CREDENTIALS
from replant.drivers.kinds import made
from replant.drivers.programs import ENDPOINT, PROGRAMS, Program, Told, variable
from replant.drivers.rbac import sidecars

if TYPE_CHECKING:
    from collections.abc import Mapping

    from replant.drivers.catalog import Driver
    from replant.drivers.operand import Facts
    from replant.drivers.settings import Settings
    from replant.drivers.values import Values
    from replant.objects import Object

KUBELET = "/var/lib/kubelet"
_SOCKETS = {"name": "socket-dir", "mountPath": "/csi"}
_NAME = "app.kubernetes.io/name"
_CONTROLLER_PORT = 10301
_NODE_PORTS = {name: 10302 + index for index, name in enumerate(DRIVERS)}
"""Where each driver tells that it lives: on a node's own network, which they share."""
_KUBECONFIG = "/var/run/nodes-cluster"

_TIMEOUT = "--timeout=300s"
"""Clouds take minutes for what sidecars would give up after seconds."""
_NAMES_CLAIMS = (Cloud.AWS, Cloud.GCP, Cloud.AZURE)
"""Whose drivers want to know which claim a volume is for: they tag it so."""


def deployment(driver: Driver, settings: Settings, values: Values, facts: Facts) -> Object:
    """The controllers."""
    names = facts.names
    own = PROGRAMS[driver.name].controller(_told(driver, settings, facts))
    containers = [_own(driver, values, own, _CONTROLLER_PORT)]
    containers += [
        _sidecar(driver, it, settings, values, facts)
        for it in sidecars(driver, snapshots=facts.snapshots)
    ]
    containers += _helpers(driver, settings, values, own, controller=True)
    containers.append(_liveness(settings, values, _CONTROLLER_PORT))
    volumes = [{"name": "socket-dir", "emptyDir": {}}, *own.volumes]
    spec: Object = {
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": "node-role.kubernetes.io/master", "operator": "Exists"},
            {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
        ],
        "affinity": _apart(facts),
        "containers": containers,
        "volumes": volumes,
    }
    if facts.split:
        # Its pods have no business with the cluster that they run in.
        spec["automountServiceAccountToken"] = False
        secret = {"secretName": facts.split.kubeconfig}
        volumes.append({"name": "nodes-cluster", "secret": secret})
        for container in containers:
            _lead_to_nodes(driver, container)
    else:
        spec["serviceAccountName"] = names.controller_account
    return made(
        "Deployment",
        names.controller,
        names.controller_namespace,
        spec={
            "replicas": facts.replicas,
            "selector": {"matchLabels": dict(names.controller_labels)},
            "template": _template(driver, names.controller_labels, spec, facts),
        },
    )


def daemon_set(driver: Driver, settings: Settings, values: Values, facts: Facts) -> Object:
    """What runs on every node."""
    names = facts.names
    told = replace(_told(driver, settings, facts), namespace=names.namespace)
    own = PROGRAMS[driver.name].node(told)
    program = _own(driver, values, own, _NODE_PORTS[driver.name])
    program["securityContext"] = {"privileged": True}
    program["volumeMounts"] += [
        {"name": "kubelet-dir", "mountPath": KUBELET, "mountPropagation": "Bidirectional"},
        {"name": "device-dir", "mountPath": "/dev"},
        {"name": "sys-dir", "mountPath": "/sys"},
    ]
    socket = f"{KUBELET}/plugins/{driver.name}"
    spec: Object = {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "serviceAccountName": names.node_account,
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            program,
            _registrar(settings, values, socket),
            *_helpers(driver, settings, values, own, controller=False),
            _liveness(settings, values, _NODE_PORTS[driver.name]),
        ],
        "volumes": [
            _host("socket-dir", socket, "DirectoryOrCreate"),
            _host("kubelet-dir", KUBELET, "Directory"),
            _host("registration-dir", f"{KUBELET}/plugins_registry", "DirectoryOrCreate"),
            _host("device-dir", "/dev", "Directory"),
            _host("sys-dir", "/sys", "Directory"),
            *own.volumes,
        ],
    }
    return made(
        "DaemonSet",
        names.node,
        names.namespace,
        spec={
            "selector": {"matchLabels": dict(names.node_labels)},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "10%"},
            },
            "template": _template(driver, names.node_labels, spec, facts),
        },
    )


def _told(driver: Driver, settings: Settings, facts: Facts) -> Told:
    namespace = facts.names.controller_namespace
    return Told(driver, namespace, settings.verbosity, bool(facts.credentials), facts.region)


def _template(driver: Driver, labels: Mapping[str, str], spec: Object, facts: Facts) -> Object:
    metadata: Object = {"labels": {_NAME: driver.name, **labels}}
    if facts.credentials and driver.secret in str(spec):
        # Changed credentials change the template, which rolls them out; of pods that use them.
        metadata["annotations"] = {CREDENTIALS: facts.credentials}
    return {"metadata": metadata, "spec": spec}


def _own(driver: Driver, values: Values, program: Program, port: int) -> Object:
    container: Object = {
        "name": "csi-driver",
        "image": values.image(driver.backend),
        "imagePullPolicy": "IfNotPresent",
        "args": list(program.args),
        "ports": [{"name": "healthz", "containerPort": port, "protocol": "TCP"}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "healthz"},
            "initialDelaySeconds": 10,
            "timeoutSeconds": 3,
            "periodSeconds": 10,
            "failureThreshold": 5,
        },
        "resources": _SMALL,
        "volumeMounts": [
            dict(_SOCKETS),
            *({"name": name, "mountPath": path} for name, path in program.mounts),
        ],
    }
    if container["args"][0].startswith("/"):
        # Images of OpenStack's drivers start nothing by themselves.
        container["command"] = [container["args"].pop(0)]
    if program.env:
        container["env"] = list(program.env)
    return container


_LIVENESS = "csi-liveness-probe"
_SMALL = {"requests": {"cpu": "10m", "memory": "50Mi"}}


def _sidecar(driver: Driver, name: str, settings: Settings, values: Values, facts: Facts) -> Object:
    leading = f"--leader-election-namespace={facts.names.namespace}"
    args = [f"--csi-address={ENDPOINT}", "--leader-election", leading, _TIMEOUT]
    if name == "provisioner":
        args += _of_provisioner(driver)
    mounts = [dict(_SOCKETS)]
    if facts.split:
        args.append(f"--kubeconfig={_KUBECONFIG}/kubeconfig")
        mounts.append({"name": "nodes-cluster", "mountPath": _KUBECONFIG})
    return _container(f"csi-{name}", values.image(f"csi-{name}"), args, settings, mounts)


def _of_provisioner(driver: Driver) -> list[str]:
    flags = ["--feature-gates=Topology=true"]
    if driver.attach:
        # A disk has to be formatted; a share has its own ways.
        flags.append("--default-fstype=ext4")
    if driver.cloud in _NAMES_CLAIMS:
        flags.append("--extra-create-metadata")
    return flags


def _container(
    name: str, image: str, args: list[str], settings: Settings, mounts: list[Object]
) -> Object:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": [*args, f"--v={settings.verbosity}"],
        "resources": _SMALL,
        "volumeMounts": mounts,
    }


def _lead_to_nodes(driver: Driver, container: Object) -> None:
    """Have whoever asks the API ask that of the nodes: for its own cluster it has no token."""
    mounted = {it["name"] for it in container["volumeMounts"]}
    if container["name"] == _LIVENESS or "nodes-cluster" in mounted:
        return
    path = f"{_KUBECONFIG}/kubeconfig"
    container["volumeMounts"].append({"name": "nodes-cluster", "mountPath": _KUBECONFIG})
    container["env"] = [*container.get("env", ()), {"name": "KUBECONFIG", "value": path}]
    if driver.cloud is Cloud.AZURE:
        container["args"].append(f"--kubeconfig={path}")  # it looks at no environment


def _liveness(settings: Settings, values: Values, port: int) -> Object:
    args = [f"--csi-address={ENDPOINT}", f"--health-port={port}", "--probe-timeout=3s"]
    image = values.image("livenessprobe")
    return _container(_LIVENESS, image, args, settings, [dict(_SOCKETS)])


def _registrar(settings: Settings, values: Values, socket: str) -> Object:
    args = [f"--csi-address={ENDPOINT}", f"--kubelet-registration-path={socket}/csi.sock"]
    mounts = [dict(_SOCKETS), {"name": "registration-dir", "mountPath": "/registration"}]
    image = values.image("csi-node-driver-registrar")
    registrar = _container("csi-node-driver-registrar", image, args, settings, mounts)
    # With SELinux nobody else may make a socket among the kubelet's.
    return {**registrar, "securityContext": {"privileged": True}}


def _helpers(
    driver: Driver, settings: Settings, values: Values, own: Program, *, controller: bool
) -> list[Object]:
    """What single drivers need beside their own container."""
    if driver.kind == "ManilaDriver" and not controller:
        args = ["--nodeid=$(KUBE_NODE_NAME)", "--endpoint=unix:///csi/csi-nfs.sock"]
        mounts: list[Object] = [
            dict(_SOCKETS),
            {"name": "kubelet-dir", "mountPath": KUBELET, "mountPropagation": "Bidirectional"},
        ]
        nfs = _container("csi-driver-nfs", values.image("csi-driver-nfs"), args, settings, mounts)
        return [{**nfs, "env": list(own.env), "securityContext": {"privileged": True}}]
    if driver.kind == "VSphereDriver" and controller:
        mounts = [{"name": name, "mountPath": path} for name, path in own.mounts]
        syncer = _container(
            "vsphere-syncer",
            values.image("vsphere-syncer"),
            [],
            settings,
            mounts,
        )
        args = ["--leader-election", *own.args]  # it knows no --v
        env = [*own.env, variable("FULL_SYNC_INTERVAL_MINUTES", "30")]
        return [{**syncer, "args": args, "env": env}]
    return []


def _host(name: str, path: str, kind: str) -> Object:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def _apart(facts: Facts) -> Object:
    """Two controllers on one node would go down together."""
    term = {
        "labelSelector": {"matchLabels": dict(facts.names.controller_labels)},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
