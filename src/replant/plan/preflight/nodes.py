"""Nodes: whether each can be switched, and says what it does."""

from __future__ import annotations

from collections.abc import Iterator

from replant.drivers.catalog import DRIVERS
from replant.gates.plugins import LIVES
from replant.plan.model import Check, Goal, NodeMethod, Weight
from replant.plan.preflight.results import Results, blocked_by, blocker, listed, warning
from replant.plan.situation import Situation
from replant.translate import driver_of


def versions(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether Kubernetes supports these kubelets beside this API server."""
    server = situation.server
    allowed = server.supported_skew
    unknown, newer, older = [], [], []
    for node in situation.inventory.nodes:
        version = situation.inventory.kubelet_version(node)
        if version is None:
            unknown.append(node)
        elif version.first_patch > server.first_patch:
            newer.append(node)
        elif server.minor - version.minor > allowed:
            older.append(node)
    yield from blocked_by(unknown, "does not say which kubelet runs there", "kubectl get nodes")
    yield from blocked_by(
        newer,
        f"has a kubelet newer than the API server ({server.of_minor})",
        "Upgrade the control plane first.",
    )
    yield from blocked_by(
        older,
        f"has a kubelet more than {allowed} minors older than the API server ({server.of_minor})",
        "Upgrade the node first.",
    )


def drivers(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether the drivers are installed, and on every node."""
    inventory = situation.inventory
    for plugin in situation.plugins:
        driver = driver_of(plugin)
        if unread := situation.unread("CSIDriver"):
            yield blocker(f"Whether {driver} is installed would be said by CSIDrivers, {unread}")
        elif driver not in inventory.drivers:
            yield blocker(f"{driver} is not installed.", _install(driver))
        else:
            yield from blocked_by(
                [node for node in inventory.nodes if driver not in inventory.drivers_on(node)],
                f"does not have {driver}",
                f"See whether its DaemonSet runs there: {_see(driver)}kubectl get csinodes -o yaml",
            )


def _install(driver: str) -> str:
    """How a driver comes into a cluster: by us, unless it is one that we do not install."""
    known = DRIVERS.get(driver)
    if known is None or known.own_operator:
        return f"Install it; then: kubectl get csidriver {driver}"
    return f"replant drivers install {known.backend}; then: kubectl get csidriver {driver}"


def _see(driver: str) -> str:
    known = DRIVERS.get(driver)
    return f"replant drivers status {known.backend}; " if known else ""


def ready(goal: Goal, situation: Situation) -> Results:
    """Whether each node is up, and what draining it means."""
    inventory = situation.inventory
    yield from blocked_by(
        [node for node in inventory.nodes if not inventory.ready(node)],
        "is not ready, so it can be neither drained nor switched",
        "Repair it, or delete the node if it is gone for good.",
    )
    if goal is not Goal.COMPLETE and len(inventory.nodes) == 1 and not situation.empty:
        yield warning(
            "There is one node: what is drained has nowhere to go and waits for the uncordon."
        )
    cordoned = [node for node in inventory.nodes if inventory.cordoned(node)]
    if cordoned:
        yield warning(f"Node {listed(cordoned)} is cordoned already, and will stay so.")


def bereft(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether a kubelet serves a plugin in neither way: no plan should lead back to that."""
    for plugin in situation.plugins:
        lost = []
        for node in situation.inventory.nodes:
            kubelet = situation.kubelet(node)
            if not kubelet.registered(plugin) and not kubelet.migrates(plugin):
                lost.append(node)
        yield from blocked_by(
            lost,
            f"neither has {plugin} nor redirects it: no pod there gets its volume",
            f"Give its kubelet {LIVES[plugin].off_gates[-1]}=false, and plan again.",
        )


def announced(goal: Goal, situation: Situation) -> Results:
    """Whether each CSINode says what its kubelet does, and the controllers do the same."""
    inventory = situation.inventory
    yield from blocked_by(
        [node for node in inventory.nodes if node not in inventory.csi_nodes],
        "has no CSINode: the controllers would serve no volume there",
        "Restart its kubelet, and see what it logs.",
    )
    for plugin in situation.plugins:
        gate = LIVES[plugin].migration_gate
        silent, alone = [], []
        for node in inventory.nodes:
            redirected = plugin in inventory.migrated_on(node)
            should = goal is Goal.COMPLETE or situation.kubelet(node).migrates(plugin)
            if should and not redirected:
                silent.append(node)
            elif redirected and not situation.controller.migrates(plugin):
                alone.append(node)
        yield from blocked_by(
            silent,
            f"does not list {plugin} as migrated",
            f"Plan and apply enable first ({gate}=true on its kubelet).",
        )
        yield from blocked_by(
            alone,
            f"redirects {plugin} while the controllers do not: what they attached there in-tree, a "
            "switch of the controllers would pull out",
            f"Drain it and give its kubelet {gate}=false first.",
        )


def platform_drains(method: NodeMethod, situation: Situation) -> Iterator[Check]:
    """What a platform that rolls nodes by itself does not do."""
    if method is NodeMethod.PLATFORM and not situation.empty:
        yield Check(
            check="platform-drains",
            result=Weight.WARNING,
            message="The platform drains nodes, but does not wait until their volumes are "
            "detached before it restarts them; the proof takes for granted that they are.",
            fix="If detaches take longer than a reboot here, find out why first.",
        )
