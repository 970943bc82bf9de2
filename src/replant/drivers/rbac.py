"""What a driver's pods may do: a role for each sidecar, and one for what is the driver's own."""

from __future__ import annotations

from replant.drivers.catalog import Driver
from replant.drivers.kinds import made
from replant.drivers.naming import Names
from replant.drivers.programs import PROGRAMS
from replant.objects import Object

_READ = "get list watch"
_EVENTS = ("", "events", "list watch create update patch")
_SNAPSHOTS = "snapshot.storage.k8s.io"

Rule = tuple[str, str, str]
"""Group, resources, verbs."""

SIDECARS: dict[str, tuple[Rule, ...]] = {
    "provisioner": (
        ("", "persistentvolumes", "get list watch create patch delete"),
        ("", "persistentvolumeclaims", "get list watch update"),
        ("", "nodes", _READ),
        _EVENTS,
        ("storage.k8s.io", "storageclasses csinodes volumeattachments", _READ),
        (_SNAPSHOTS, "volumesnapshots volumesnapshotcontents", "get list"),
    ),
    "attacher": (
        ("", "persistentvolumes", "get list watch update patch"),
        ("", "nodes", _READ),
        ("storage.k8s.io", "csinodes", _READ),
        ("storage.k8s.io", "volumeattachments", "get list watch update patch"),
        ("storage.k8s.io", "volumeattachments/status", "patch"),
    ),
    "resizer": (
        ("", "persistentvolumes", "get list watch update patch"),
        ("", "persistentvolumeclaims pods", _READ),
        ("", "persistentvolumeclaims/status", "update patch"),
        _EVENTS,
    ),
    "snapshotter": (
        _EVENTS,
        ("", "secrets", "get list"),
        (_SNAPSHOTS, "volumesnapshotclasses", _READ),
        (_SNAPSHOTS, "volumesnapshotcontents", "create get list watch update delete patch"),
        (_SNAPSHOTS, "volumesnapshotcontents/status", "update patch"),
    ),
}
"""By the sidecar: what its own documentation asks for."""

_NODE: tuple[Rule, ...] = (("", "nodes", "get"), ("storage.k8s.io", "csinodes", "get"))
_LEASES: tuple[Rule, ...] = (
    ("coordination.k8s.io", "leases", "get watch list delete update create patch"),
)
_PRIVILEGED = {
    "apiGroups": ["security.openshift.io"],
    "resources": ["securitycontextconstraints"],
    "resourceNames": ["privileged"],
    "verbs": ["use"],
}


def rbac(driver: Driver, names: Names, *, snapshots: bool, openshift: bool) -> tuple[Object, ...]:
    """ServiceAccounts, roles and bindings."""
    own = PROGRAMS[driver.name]
    called = driver.roles or driver.backend
    controller = _account(names.controller_account, names.namespace)
    node = _account(names.node_account, names.namespace)
    made_ = [
        made("ServiceAccount", names.controller_account, names.namespace),
        made("ServiceAccount", names.node_account, names.namespace),
    ]
    for sidecar in sidecars(driver, snapshots=snapshots):
        role = f"{called}-external-{sidecar}-role"
        made_.append(_role(role, [_rule(it) for it in SIDECARS[sidecar]]))
        made_.append(_binding(f"{called}-csi-{sidecar}-binding", role, controller))
    if own.rules:
        made_.append(_role(f"{called}-csi-controller-role", list(own.rules)))
        name = f"{called}-csi-controller-binding"
        made_.append(_binding(name, f"{called}-csi-controller-role", controller))
    made_.append(_role(f"{called}-csi-node-role", [*map(_rule, _NODE), *own.node_rules]))
    made_.append(_binding(f"{called}-csi-node-binding", f"{called}-csi-node-role", node))
    if openshift:
        role = f"{called}-privileged-role"
        made_.append(_role(role, [_PRIVILEGED]))
        made_.append(_binding(f"{called}-controller-privileged-binding", role, controller))
        made_.append(_binding(f"{called}-node-privileged-binding", role, node))
    leases = f"{driver.controller_name}-leases"
    made_.append(made("Role", leases, names.namespace, rules=[_rule(it) for it in _LEASES]))
    made_.append(
        made(
            "RoleBinding",
            leases,
            names.namespace,
            roleRef=_ref("Role", leases),
            subjects=[controller],
        )
    )
    return tuple(made_)


def sidecars(driver: Driver, *, snapshots: bool) -> list[str]:
    """Those that a driver's controller has."""
    wanted = ["provisioner"]
    if driver.attach:
        wanted.append("attacher")
    wanted.append("resizer")
    if snapshots:
        wanted.append("snapshotter")
    return wanted


def _rule(rule: Rule) -> Object:
    group, resources, verbs = rule
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def _role(name: str, rules: list[Object]) -> Object:
    return made("ClusterRole", name, rules=rules)


def _binding(name: str, role: str, account: Object) -> Object:
    return made("ClusterRoleBinding", name, roleRef=_ref("ClusterRole", role), subjects=[account])


def _ref(kind: str, name: str) -> Object:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def _account(name: str, namespace: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
