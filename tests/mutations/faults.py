"""The table of faults: one line of Replant each, and what it would cost in a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SOURCES = Path("src/replant")


@dataclass(frozen=True)
class Fault:
    """One line of the product, replaced by a wrong one."""

    id: str
    file: str
    """Below src/replant."""
    old: str
    """What stands on one line of the file, and nowhere else in it."""
    new: str
    why: str
    """What would go wrong in a cluster."""
    tests: tuple[str, ...]
    """Folders or files with the tests that should catch it, before all others are run."""


def find_problems(fault: Fault, root: Path) -> list[str]:
    """Why a fault cannot be planted or tried in a tree, each as a sentence that names it."""
    path = root / SOURCES / fault.file
    if not path.is_file():
        return [f"{fault.id}: there is no file {path}."]
    problems = []
    count = path.read_text().count(fault.old)
    if count != 1:
        problems.append(f"{fault.id}: {fault.file} has {fault.old!r} {count} times, not once.")
    if "\n" in fault.old or "\n" in fault.new:
        problems.append(f"{fault.id}: it changes more than one line.")
    if fault.new == fault.old:
        problems.append(f"{fault.id}: it changes nothing.")
    problems += [
        f"{fault.id}: there are no tests {it}." for it in fault.tests if not (root / it).exists()
    ]
    return problems


def plant(fault: Fault, root: Path) -> None:
    """Write the fault into a tree."""
    path = root / SOURCES / fault.file
    path.write_text(path.read_text().replace(fault.old, fault.new))


FAULTS = (
    Fault(
        "regional-disk-as-zonal",
        "translate/gce_pd.py",
        old='return "regions", region_of(zones)',
        new='return "zones", zones[0]',
        why="The driver would look for a regional disk in one zone and never attach it.",
        tests=("tests/translate",),
    ),
    Fault(
        "locked-gate-turned-off",
        "gates/plugins.py",
        old="return spec.default if spec.locked else given.get(gate, spec.default)",
        new="return given.get(gate, spec.default)",
        why="A plan would count on a kubelet that is told to turn off a gate which is locked on.",
        tests=("tests/gates",),
    ),
    Fault(
        "other-plugin-counts-as-migrated",
        "routing/attaching.py",
        old="if plugin not in node.migrated:",
        new="if not node.migrated:",
        why="CSI would be said to attach to a node that redirects only another plugin.",
        tests=("tests/routing",),
    ),
    Fault(
        "fingerprint-without-migrated-plugins",
        "inventory/fingerprint.py",
        old='encode(("node", node, version, migrated, drivers))',
        new='encode(("node", node, version, drivers))',
        why="A plan would be applied although nodes were switched after it was made.",
        tests=("tests/inventory/test_fingerprint.py",),
    ),
    Fault(
        "stranded-attachment-not-found",
        "inventory/checks/attachments.py",
        old="volume.plugin not in view.inventory.migrated_on(node)",
        new="not view.inventory.migrated_on(node)",
        why="A scan would not warn of a disk that CSI attached and that nobody will detach.",
        tests=("tests/inventory",),
    ),
    Fault(
        "budget-without-room-not-found",
        "plan/preflight/workloads.py",
        old="return 0 < status.expectedPods <= status.desiredHealthy",
        new="return 0 < status.expectedPods < status.desiredHealthy",
        why="A drain would wait for ever for a budget that never allows an eviction.",
        tests=("tests/plan",),
    ),
    Fault(
        "enable-without-drain",
        "plan/compose.py",
        old="on=True, drain=not situation.empty",
        new="on=True, drain=False",
        why="Kubelets would be switched while pods use disks, which are then detached under them.",
        tests=("tests/plan",),
    ),
    Fault(
        "undo-in-order-of-plan",
        "plan/undo.py",
        old="for step in reversed(done):",
        new="for step in done:",
        why="Controllers would go back before nodes, and disks would stay attached for ever.",
        tests=("tests/plan",),
    ),
    Fault(
        "hot-swap-of-in-tree-attachment",
        "core/convert/conditions.py",
        old="if in_tree in place.volumes:",
        new="if in_tree == place.volumes:",
        why="A volume that the in-tree plugin has attached would be replaced under its pod.",
        tests=("tests/plan",),
    ),
    Fault(
        "in-use-attachment-deleted",
        "core/routing/forgotten.py",
        old='handle = name.partition("^")[2] if name.startswith(CSI) else name',
        new="handle = name",
        why="A VolumeAttachment would be deleted although a pod on its node uses the disk by "
        "another name.",
        tests=("tests/core",),
    ),
    Fault(
        "attachment-deleted-upon-old-look",
        "execute/steps/attachments.py",
        old="if fresh is None or now > at + FRESH * self._haste:",
        new="if fresh is None:",
        why="A VolumeAttachment would be deleted although a pod may have come since.",
        tests=("tests/execute/steps/test_attachments.py",),
    ),
    Fault(
        "joined-node-before-csi-node",
        "execute/targets.py",
        old="if name in self._known or not (node and node.ready and csi_node.metadata.name):",
        new="if name in self._known or not node:",
        why="A node that joins with new gates would be drained and switched before it says so.",
        tests=("tests/execute/test_joined.py",),
    ),
    Fault(
        "proof-taints-joined-nodes",
        "proof/events.py",
        old="tainted = world.tainted and node.presence == Presence.MEMBER",
        new="tainted = world.tainted",
        why="The proof would keep pods off a node that has joined and has no taint yet.",
        tests=("tests/proof/test_orders.py",),
    ),
    Fault(
        "proof-forgets-mounts",
        "proof/events.py",
        old="forgotten=node.forgotten | (node.mounted & ~kept),",
        new="forgotten=node.forgotten,",
        why="The proof would call an order safe in which a kubelet is switched under a mount.",
        tests=("tests/proof",),
    ),
    Fault(
        "proof-of-one-node-of-a-group",
        "proof/search.py",
        old="if pair[0] != pair[1] or course.groups[pair[0]].size > 1:",
        new="if pair[0] != pair[1]:",
        why="The proof would not look at what two nodes of one group do to a disk.",
        tests=("tests/proof",),
    ),
    Fault(
        "volume-deleted-with-its-disk",
        "swap/moves.py",
        old="if twin.policy(volume) != twin.RETAIN:",
        new='if twin.policy(volume) == "Recycle":',
        why="A volume with the policy Delete would be deleted together with its disk.",
        tests=("tests/swap",),
    ),
    Fault(
        "retain-lost-on-restore",
        "swap/twin.py",
        old="if RETAIN in (policy(saved), policy(native_now)) and not was_retained:",
        new="if policy(saved) == RETAIN:",
        why="A volume that its owner set to Retain would be Delete again after an undo.",
        tests=("tests/swap",),
    ),
    Fault(
        "next-node-before-pods-serve",
        "execute/rolling.py",
        old="len(self._under_way) + len(self._recovering) < self._at_once",
        new="len(self._under_way) < self._at_once",
        why="With a driver that does not work, every node would be drained and no pod would run.",
        tests=("tests/execute/test_rolling.py", "tests/execute/test_apply.py"),
    ),
    Fault(
        "missing-replica-ignored",
        "execute/switching.py",
        old="if len(standing.observed) >= self._replicas.get(component.name, 0):",
        new="if standing.observed:",
        why="A controller that is down would come back with its old gates and lead.",
        tests=("tests/execute/test_switching.py",),
    ),
    Fault(
        "template-written-unconditionally",
        "execute/hands.py",
        old='for key in ("uid", "resourceVersion")}',
        new='for key in ("uid",)}',
        why="A change that somebody made to a Deployment meanwhile would be overwritten.",
        tests=("tests/execute/test_inline.py", "tests/faults/test_faults.py"),
    ),
    Fault(
        "journal-with-two-writers",
        "execute/journal/configmaps.py",
        old='{"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},',
        new='{"uid": metadata["uid"]},',
        why="Two processes would carry out one run at the same time.",
        tests=("tests/execute/test_journal.py",),
    ),
    Fault(
        "lease-taken-from-the-living",
        "execute/lease.py",
        old="self._timing.now() + DURATION",
        new="self._timing.now() + 1.0",
        why="A second Replant would begin while the first is at work.",
        tests=("tests/execute/test_lease.py",),
    ),
    Fault(
        "attached-by-both-sides-not-found",
        "execute/verifying/disks.py",
        old="if len(names) > 1:",
        new="if len(names) > 2:",
        why="A run would be called good while a disk is about to be detached under its pod.",
        tests=("tests/execute/test_verification.py",),
    ),
    Fault(
        "failed-hook-counts-as-done",
        "platforms/hooks.py",
        old="case 0:",
        new="case 0 | 1:",
        why="A node whose switch failed would be taken for switched.",
        tests=("tests/platforms/test_hooks.py",),
    ),
    Fault(
        "kubelet-loses-other-gates",
        "platforms/nodefiles.py",
        old="if gates.get(gate, True) is not None}",
        new="if gates.get(gate) is not None}",
        why="A kubelet would lose every feature gate that has nothing to do with the migration.",
        tests=("tests/platforms/test_kubeadm_edit.py",),
    ),
    Fault(
        "openshift-controllers-before-nodes",
        "platforms/openshift_changes.py",
        old="        _await_nodes(seen, gates)",
        new="        pass",
        why="OpenShift's controllers would go back while nodes still redirect.",
        tests=("tests/platforms/test_openshift_state.py", "tests/execute/test_openshift.py"),
    ),
    Fault(
        "only-last-page-kept",
        "cluster/live.py",
        old="first=not token)",
        new="first=True)",
        why="Of more than 500 volumes only those on the last page would be migrated.",
        tests=("tests/cluster/test_paging.py",),
    ),
    Fault(
        "token-in-representation",
        "cluster/transport.py",
        old="headers: Mapping[str, str] = field(repr=False)",
        new="headers: Mapping[str, str] = field()",
        why="A log or traceback that shows a connection would show the cluster's token.",
        tests=("tests/cluster",),
    ),
    Fault(
        "ci-report-hides-warnings",
        "report/junit.py",
        old="if finding.severity is Severity.INFO:",
        new="if finding.severity is not Severity.BLOCKER:",
        why="A build server would show warnings as passed tests.",
        tests=("tests/report",),
    ),
    Fault(
        "stopped-run-exits-with-0",
        "cli/applying.py",
        old="return RESUMABLE",
        new="return 0",
        why="A pipeline would go on although the migration has stopped half-way.",
        tests=("tests/cli/test_apply.py",),
    ),
    Fault(
        "stale-write-accepted",
        "sandbox/store.py",
        old="and version != str(entry.version):",
        new="and int(version) > entry.version:",
        why="The sandbox would take writes that a real API server refuses with a conflict.",
        tests=("tests/sandbox/test_store.py",),
    ),
    Fault(
        "detach-before-unmount",
        "sandbox/controllers/attachdetach/__init__.py",
        old="if report is None or name not in report.in_use:",
        new="if report is None or report.healthy:",
        why="The sandbox would detach disks that a kubelet still has mounted.",
        tests=("tests/sandbox/test_disks.py", "tests/sandbox/test_controllers.py"),
    ),
    Fault(
        "change-during-round-lost",
        "operator/rounds.py",
        old="if wait is None and not called.is_set():",
        new="if wait is None:",
        why="A shoot that changes while the operator looks at it would not be looked at again.",
        tests=("tests/operators/test_rounds.py",),
    ),
    Fault(
        "webhook-allows-on-error",
        "operator/admission.py",
        old='response = _no(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", str(error))',
        new="response = ALLOWED",
        why="A control plane would lose its flags while the seed does not answer.",
        tests=("tests/operators/test_webhooks.py",),
    ),
    Fault(
        "driver-removed-in-use",
        "drivers/decisions.py",
        old="if self.seen.uses.names:",
        new="if len(self.seen.uses.names) > 1:",
        why="A driver would be removed under the last volume that needs it.",
        tests=("tests/drivers",),
    ),
    Fault(
        "moved-shoot-counts-as-new",
        "gardener/decisions.py",
        old='if part(shoot, "status", "lastOperation", "type") in MOVING:',
        new='if part(shoot, "status", "lastOperation", "type") == MOVING[0]:',
        why="A shoot restored on another seed would get all gates at once, with old nodes.",
        tests=("tests/gardener",),
    ),
    Fault(
        "failed-attach-harms-nobody",
        "core/routing/dangling.py",
        old="return since is not None and controller >= since",
        new="return False",
        why="The proof would call plans safe that detach disks under pods.",
        tests=("tests/core", "tests/proof", "tests/sandbox/test_records.py"),
    ),
    Fault(
        "azure-driver-takes-nothing",
        "core/routing/dangling.py",
        old="return plugin in _DRIVERS",
        new="return False",
        why="The proof would not know that the driver of Azure Disk detaches before it attaches.",
        tests=("tests/core", "tests/proof"),
    ),
    Fault(
        "both-kinds-while-one-holds",
        "execute/steps/scheduling.py",
        old="allowed = kinds if len(kinds) == 1 and kinds <= BOTH else frozenset()",
        new="allowed = allowed",
        why="A pod's successor could go to a node of the other kind and take its disk.",
        tests=("tests/execute/steps",),
    ),
    Fault(
        "node-on-its-way-takes-pods",
        "proof/events.py",
        old="if tainted and not world.tolerated & rules.kind(node):",
        new="if tainted and not world.tolerated:",
        why="The model would take a taint of the other kind for one that keeps nobody off.",
        tests=("tests/proof",),
    ),
    Fault(
        "detach-under-pod-unseen",
        "execute/postcheck/detaches.py",
        old="if all(self._seen.get(it, 0.0) >= confirmed for it in found.nodes):",
        new="if not found.nodes:",
        why="A run would go on after a disk was detached under a pod.",
        tests=("tests/execute/postcheck",),
    ),
    Fault(
        "sandbox-blames-nobody",
        "sandbox/controllers/attachdetach/__init__.py",
        old="if self.process is None or not other or other == node:",
        new="if self.process is None or other:",
        why="The sandbox would not show an attach that takes a disk from another node.",
        tests=("tests/sandbox/test_records.py",),
    ),
)
