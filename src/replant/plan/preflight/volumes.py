"""Volumes, classes and workloads: what a scan says against the plan."""

from __future__ import annotations

from collections import defaultdict

from replant.inventory.checks import attachments, volumes, workloads
from replant.inventory.checks import classes as class_checks
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, Severity
from replant.plan.model import Goal
from replant.plan.preflight.results import Results, blocked_by, blocker, warning
from replant.plan.secrets import unknown_secrets
from replant.plan.situation import Situation

_SCANNED = (volumes.findings, class_checks.findings, workloads.findings, attachments.findings)
_WHAT_A_PLAN_IS_FOR = frozenset({"RP101", "RP115", "RP201", "RP203", "RP204", "RP301"})


def scanned(goal: Goal, situation: Situation) -> Results:
    """The scan's findings about what the plan touches, those of one sort together."""
    mine = _objects(situation)
    view = View(situation.inventory, None, situation.controller_gates)
    by_id: dict[str, list[Finding]] = defaultdict(list)
    for check in _SCANNED:
        for finding in check(view):
            about = (finding.object.kind, finding.object.namespace, finding.object.name)
            matters = finding.severity is not Severity.INFO
            if matters and finding.id not in _WHAT_A_PLAN_IS_FOR and about in mine:
                by_id[finding.id].append(finding)
    for finding_id, found in sorted(by_id.items()):
        first = next((it for it in found if it.severity is Severity.BLOCKER), found[0])
        blocks = first.severity is Severity.BLOCKER and goal is not Goal.DISABLE
        more = f" And {len(found) - 1:,} more of these." if len(found) > 1 else ""
        yield (blocker if blocks else warning)(
            f"{finding_id}, {first.object}: {first.reason}{more}", f"replant explain {finding_id}"
        )


def classes(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether it is known which classes have to be made again."""
    if unread := situation.unread("StorageClass"):
        yield blocker(f"What is to be made again would be said by StorageClasses, {unread}")


def secrets(goal: Goal, situation: Situation) -> Results:  # noqa: ARG001
    """Whether every secret is known that a volume must name."""
    yield from blocked_by(
        [volume.name for volume in unknown_secrets(situation)],
        "has no secret to take the driver's token from, and its class names none",
        "replant explain RP701",
        noun="Volume",
    )


def _objects(situation: Situation) -> frozenset[tuple[str, str, str]]:
    """What the plan touches: kind, namespace and name."""
    inventory = situation.inventory
    names = {("PersistentVolume", "", volume.name) for volume in situation.volumes}
    names |= {("PersistentVolumeClaim", *it.claim) for it in situation.volumes if it.claim}
    names |= {(it.owner.kind, it.owner.namespace, it.owner.name) for it in situation.inline_uses}
    names |= {
        ("StorageClass", "", it.metadata.name)
        for it in inventory.classes
        if it.provisioner in situation.plugins
    }
    mine = {volume.name for volume in situation.volumes}
    names |= {
        ("VolumeAttachment", "", it.metadata.name)
        for it in inventory.attachments
        if it.spec.source.persistentVolumeName in mine
    }
    return frozenset(names)
