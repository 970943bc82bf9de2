"""Every rule that a route can follow from, in one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from replant.routing.model import Operation, Process, Route, Side, VolumeView

_IN_TREE, _CSI, _NOBODY = Side.IN_TREE, Side.CSI, Side.NOBODY

PLUGIN_OFF = "-plugin-off"
DRIVER_ABSENT = "-driver-absent"

_SHARED = {
    "kcm": "kube-controller-manager",
    "no_fallback": "a native CSI volume never falls back to in-tree",
    "waits": "and it waits: the node does not have that driver",
}
"""What several sentences say."""


class _Stated(NamedTuple):
    served_by: Side
    sentence: str


_TABLE: dict[Operation, dict[str, _Stated]] = {
    Operation.PROVISION: {
        "redirected": _Stated(
            _CSI,
            "{kcm} redirects {plugin}, so it names {driver} on the claim and leaves it"
            " to that driver's provisioner.",
        ),
        "in-tree": _Stated(_IN_TREE, "{not_redirected} in {kcm}, so {plugin} provisions in-tree."),
        "in-tree-plugin-off": _Stated(
            _NOBODY,
            "{not_redirected} in {kcm}, but {plugin_off}: ProvisioningFailed.",
        ),
        "no-such-plugin": _Stated(
            _NOBODY,
            "The class names {provisioner}, in-tree by its prefix, but Kubernetes {version} has no"
            " such plugin: ProvisioningFailed.",
        ),
        "without-driver": _Stated(
            _IN_TREE,
            "The class names {provisioner}, which Kubernetes {version} still has in-tree: no driver"
            " took over from it.",
        ),
        "external": _Stated(
            _CSI,
            "The class names {provisioner}, no in-tree plugin, so the claim is left to the"
            " provisioner of that name.",
        ),
    },
    Operation.DELETE: {
        "marked": _Stated(
            _CSI,
            "The volume is marked as migrated to {driver}, so the controller stands down and that"
            " driver's provisioner deletes it.",
        ),
        "external": _Stated(
            _CSI,
            "The volume says that {provisioner} provisioned it, no in-tree plugin, so it is left"
            " to that provisioner.",
        ),
        "in-tree": _Stated(_IN_TREE, "{not_redirected} in {kcm}, so {plugin} deletes in-tree."),
        "in-tree-plugin-off": _Stated(
            _NOBODY,
            "{not_redirected} in {kcm}, but {plugin_off}: VolumeFailedDelete.",
        ),
        "by-hand": _Stated(
            _IN_TREE,
            "The volume does not say who provisioned it, so it is never marked as migrated, and"
            " {plugin} deletes in-tree.",
        ),
        "by-hand-plugin-off": _Stated(
            _NOBODY,
            "The volume does not say who provisioned it, so it is never marked as migrated, but"
            " {plugin_off}: VolumeFailedDelete.",
        ),
        "native-by-hand": _Stated(
            _CSI,
            "A native CSI volume that does not say who provisioned it belongs to its driver: the"
            " csi-provisioner deletes it.",
        ),
        "native-by-plugin": _Stated(
            _NOBODY,
            "{provisioner}, which the volume says provisioned it, is not redirected in {kcm}: it is"
            " asked in-tree, and cannot delete it, and {no_fallback}.",
        ),
    },
    Operation.ATTACH: {
        "native": _Stated(_CSI, "A native CSI volume is attached by {driver}, whatever the gates."),
        "native-driver-absent": _Stated(
            _CSI,
            "A native CSI volume is left to {driver}, {waits}, and {no_fallback}.",
        ),
        "not-redirected": _Stated(
            _IN_TREE,
            "{not_redirected} in {kcm}, so {plugin} attaches in-tree, whatever the node says.",
        ),
        "not-redirected-plugin-off": _Stated(
            _NOBODY,
            "{not_redirected} in {kcm}, but {plugin_off}: the volume is passed over, and no"
            " event says so.",
        ),
        "complete": _Stated(
            _CSI,
            "The migration of {plugin} is complete in {kcm}, so {driver} attaches, and the"
            " node is not asked.",
        ),
        "complete-driver-absent": _Stated(
            _CSI,
            "The migration of {plugin} is complete in {kcm}, so it is left to {driver}, {waits}.",
        ),
        "no-csi-node": _Stated(
            _NOBODY,
            "{kcm} redirects {plugin} and asks the node, but the node has no CSINode: the"
            " volume is passed over, and no event says so.",
        ),
        "node-not-migrated": _Stated(
            _IN_TREE,
            "The node's CSINode does not list {plugin}, so it attaches in-tree there.",
        ),
        "node-not-migrated-plugin-off": _Stated(
            _NOBODY,
            "The node's CSINode does not list {plugin}, so in-tree is chosen, but {plugin_off}:"
            " the volume is passed over, and no event says so.",
        ),
        "driver-check": _Stated(
            _NOBODY,
            "The node's CSINode lists {plugin} but not {driver}, and Kubernetes {version} takes"
            " that for an error: the volume is passed over.",
        ),
        "node-migrated": _Stated(_CSI, "The node's CSINode lists {plugin}, so {driver} attaches."),
        "node-migrated-driver-absent": _Stated(
            _CSI,
            "The node's CSINode lists {plugin}, so it is left to {driver}, {waits}.",
        ),
    },
    Operation.DETACH: {
        "csi": _Stated(_CSI, "It was attached by CSI, so {driver} detaches, whatever the gates."),
        "in-tree": _Stated(
            _IN_TREE,
            "It was attached under the in-tree name, so {plugin} detaches in-tree.",
        ),
        "in-tree-plugin-off": _Stated(
            _NOBODY,
            "It was attached under the in-tree name, but {plugin_off}: it is stranded.",
        ),
        "not-attached": _Stated(_NOBODY, "Nobody attaches it, so there is nothing to detach."),
    },
    Operation.MOUNT: {
        "native": _Stated(_CSI, "A native CSI volume is mounted by {driver}, whatever the gates."),
        "native-driver-absent": _Stated(
            _NOBODY,
            "A native CSI volume is mounted by {driver}, which the node does not have: the mount"
            " fails, and {no_fallback}.",
        ),
        "redirected": _Stated(
            _CSI,
            "The kubelet redirects {plugin}, so {driver} mounts: a kubelet follows its own gates"
            " alone.",
        ),
        "redirected-driver-absent": _Stated(
            _NOBODY,
            "The kubelet redirects {plugin} to {driver}, which the node does not have: the mount"
            " fails, and there is no way back to in-tree.",
        ),
        "in-tree": _Stated(
            _IN_TREE,
            "{not_redirected} in the kubelet, so {plugin} mounts in-tree, whatever the CSINode"
            " says.",
        ),
        "in-tree-plugin-off": _Stated(
            _NOBODY,
            "{not_redirected} in the kubelet, but {plugin_off}: the mount fails.",
        ),
    },
    Operation.UNMOUNT: {
        "csi": _Stated(_CSI, "It was mounted by CSI, so {driver} unmounts, whatever the gates."),
        "csi-driver-absent": _Stated(
            _NOBODY,
            "It was mounted by {driver}, which the node does not have any more: it stays mounted.",
        ),
        "in-tree": _Stated(
            _IN_TREE,
            "It was mounted in-tree, so {plugin} unmounts in-tree, whatever the gates.",
        ),
        "in-tree-plugin-off": _Stated(
            _NOBODY,
            "It was mounted in-tree, but {plugin_off}: it stays mounted.",
        ),
        "not-mounted": _Stated(_NOBODY, "Nobody mounts it, so there is nothing to unmount."),
    },
    Operation.EXPAND: {
        "native": _Stated(_CSI, "A native CSI volume is expanded by the resizer of {driver}."),
        "redirected": _Stated(
            _CSI,
            "{kcm} redirects {plugin}, so it names {driver} as the resizer and leaves the"
            " rest to it.",
        ),
        "in-tree": _Stated(_IN_TREE, "{not_redirected} in {kcm}, so {plugin} expands in-tree."),
        "in-tree-plugin-off": _Stated(
            _NOBODY,
            "{not_redirected} in {kcm}, but {plugin_off}: it waits for somebody external.",
        ),
        "not-expandable": _Stated(
            _NOBODY,
            "{not_redirected} in {kcm}, and {plugin} cannot expand in-tree: it waits for"
            " somebody external.",
        ),
    },
    Operation.COUNT: {
        "native": _Stated(_CSI, "A native CSI volume counts towards the limit of {driver}."),
        "node-migrated": _Stated(
            _CSI,
            "The scheduler redirects {plugin} and the node's CSINode lists it, so it counts towards"
            " the limit of {driver}.",
        ),
        "always": _Stated(
            _CSI,
            "Kubernetes {version} always redirects {plugin} where there is a CSINode, so it counts"
            " towards the limit of {driver}.",
        ),
        "not-redirected": _Stated(
            _IN_TREE,
            "{not_redirected} in the scheduler, so {filter} counts it.",
        ),
        "no-csi-node": _Stated(_IN_TREE, "The node has no CSINode, so {filter} counts it."),
        "node-not-migrated": _Stated(
            _IN_TREE,
            "The node's CSINode does not list {plugin}, so {filter} counts it.",
        ),
        "no-filter": _Stated(
            _NOBODY,
            "It does not count for CSI here, and the scheduler of Kubernetes {version} has no"
            " in-tree limit for {plugin}: nothing keeps a node from being given too many.",
        ),
    },
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it is about, who serves then, and what it says."""

    id: str
    operation: Operation
    served_by: Side
    sentence: str
    """With places for what differs from volume to volume."""

    @property
    def statement(self) -> str:
        """The rule in general, on one line."""
        return _written(self.sentence, _IN_GENERAL)


_IN_GENERAL = {
    "plugin": "the plugin",
    "driver": "its driver",
    "provisioner": "the provisioner",
    "version": "at this version",
    "filter": "the in-tree filter",
    "not_redirected": "the plugin's migration is off",
    "plugin_off": "the in-tree plugin is unregistered or gone",
}


def _catalogue() -> Iterator[Rule]:
    for operation, stated in _TABLE.items():
        for name, (side, sentence) in stated.items():
            yield Rule(f"{operation.name.lower()}.{name}", operation, side, sentence)


RULES: dict[str, Rule] = {rule.id: rule for rule in _catalogue()}
"""The catalogue: every rule by its id."""


def route(
    operation: Operation, name: str, volume: VolumeView, process: Process, **words: str
) -> Route:
    """The route that follows from a rule of that operation."""
    rule = RULES[f"{operation.name.lower()}.{name}"]
    known = {
        "plugin": volume.plugin,
        "driver": volume.driver,
        "provisioner": volume.provisioner,
        "version": process.version.of_minor,
        **words,
    }
    # These two are made only where a sentence has a place for them: they make sense only there.
    if "{not_redirected}" in rule.sentence:
        known["not_redirected"] = process.why_not_redirected(volume.plugin)
    if "{plugin_off}" in rule.sentence:
        known["plugin_off"] = process.why_not_registered(volume.plugin)
    return Route(operation, rule.served_by, _written(rule.sentence, known), rule.id)


def in_tree_route(operation: Operation, name: str, volume: VolumeView, process: Process) -> Route:
    """In-tree was chosen: looking the plugin up gives it, or an error, and then nobody serves."""
    there = process.registered(volume.plugin)
    return route(operation, name if there else name + PLUGIN_OFF, volume, process)


def _written(sentence: str, words: dict[str, str]) -> str:
    text = sentence.format(**_SHARED, **words)
    return text if text.startswith(("kube", "CSI")) else text[0].upper() + text[1:]
