"""What comes next for one shoot, from what is seen of it: one action at a time.

Whoever acts looks, asks ``decide``, does that one thing, and asks again. Nothing is remembered
but which Deployments were nudged since; who forgets it nudges again, which changes nothing.
No clock is needed: a wait says how long it is, and all else follows from objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from replant.errors import InputError, shown
from replant.gardener.providers import Provider
from replant.gardener.shoots import (
    FINISHED,
    NEEDS_COMPLETE,
    annotations_of,
    migration_of,
    part,
    provider_type,
    shoot_of,
    version_of,
)
from replant.gates.versions import Version
from replant.objects import Object, name_of

DEPLOYMENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Nudged in this order once a shoot needs the gates of a complete migration."""

OLD_NODES_WAIT = 60
MOVING_WAIT = 60
LEAVING_WAIT = 60
HIBERNATION_WAIT = 300
"""Seconds. Waking is told by the Cluster's change; this is for a change that was not heard of."""

MOVING = ("Migrate", "Restore")
"""The operations by which a shoot goes to another seed, with all the nodes that it has."""

_NAMED = 3
"""So many nodes are named; then they are counted."""


@dataclass(frozen=True, slots=True)
class ClassSeen:
    """A StorageClass of the shoot."""

    name: str
    provisioner: str
    uid: str
    version: str
    leaving: bool = False
    """Whether it is being deleted already."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one shoot; None is what has not been looked at."""

    cluster: Object | None
    """None if it is gone."""
    has_control_plane: bool | None = None
    kubelets: Mapping[str, str] | None = None
    """The version of each node's kubelet, by the node's name."""
    classes: Sequence[ClassSeen] | None = None
    nudged: frozenset[str] = frozenset()
    """The Deployments that were nudged since needs-complete was seen."""


class Look(StrEnum):
    """Look at this, and ask again."""

    CONTROL_PLANE = "the ControlPlane"
    NODES = "the shoot's nodes"
    CLASSES = "the shoot's StorageClasses"


@dataclass(frozen=True, slots=True)
class Leave:
    """There is nothing to do until the Cluster changes."""

    why: str


@dataclass(frozen=True, slots=True)
class Complain:
    """Somebody has to put something right; until the Cluster changes there is nothing to do."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again after so many seconds, or when the Cluster changes."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Annotate:
    """Set these annotations on the Cluster, in one update of it as it was seen."""

    names: tuple[str, ...]
    version: str
    why: str


@dataclass(frozen=True, slots=True)
class DeleteClass:
    """Delete this very StorageClass of the shoot, as it was seen."""

    found: ClassSeen


@dataclass(frozen=True, slots=True)
class Nudge:
    """Send a Deployment of the control plane an empty patch, so that webhooks look at it."""

    deployment: str


Action = Look | Leave | Complain | Wait | Annotate | DeleteClass | Nudge


def decide(seen: Seen, provider: Provider) -> Action:
    """The next thing to do for a shoot."""
    cluster = seen.cluster
    if cluster is None:
        return Leave("the Cluster is gone")
    if part(cluster, "metadata", "deletionTimestamp"):
        return Leave("the Cluster is being deleted")
    if FINISHED in annotations_of(cluster):
        return Leave("the migration is finished")
    shoot = shoot_of(cluster)
    if shoot is None:
        return Complain("NoShoot", "spec.shoot embeds no Shoot: whose cluster it is is not known")
    if provider_type(shoot) != provider.type:
        return Leave(f"its provider is not {provider.type}")
    try:
        version, migration = version_of(shoot), migration_of(shoot, provider)
    except InputError as error:
        return Complain("BadVersion", str(error))
    if why := _not_now(shoot, version, migration):
        return Leave(why)
    if NEEDS_COMPLETE in annotations_of(cluster):
        return _complete(cluster, seen.nudged)
    return _begin(seen, cluster, shoot, provider, version, migration)


def _not_now(shoot: Object, version: Version, migration: Version) -> str:
    if version.first_patch < migration:
        return f"{version} is before {migration.of_minor}"
    if part(shoot, "metadata", "deletionTimestamp") is not None:
        return "the shoot is being deleted"
    if part(shoot, "status", "lastOperation", "state") == "Failed":
        return "the shoot's last operation has failed; it is looked at when that changes"
    return ""


def _begin(
    seen: Seen,
    cluster: Object,
    shoot: Object,
    provider: Provider,
    version: Version,
    migration: Version,
) -> Action:
    """What comes before a shoot needs the gates of a complete migration."""
    if seen.has_control_plane is None:
        return Look.CONTROL_PLANE
    if not seen.has_control_plane:
        if part(shoot, "status", "lastOperation", "type") in MOVING:
            # It is not new, only not here yet, or here no longer: its nodes may be old.
            return Wait(MOVING_WAIT, "the shoot is moved to another seed")
        return _annotate(cluster, "the shoot is new", NEEDS_COMPLETE, FINISHED)
    if version.first_patch != migration:
        return Leave(f"{version} is not of the minor {migration.of_minor}, with which it migrates")
    if part(shoot, "spec", "hibernation", "enabled") is True:
        return Wait(HIBERNATION_WAIT, "the shoot is hibernated; it goes on when it is woken")
    return _migrate(seen, cluster, provider, migration)


def _migrate(seen: Seen, cluster: Object, provider: Provider, migration: Version) -> Action:
    """What an awake shoot of the migration's minor takes: new nodes only, and no legacy class."""
    if seen.kubelets is None:
        return Look.NODES
    try:
        old = _older(seen.kubelets, migration)
    except InputError as error:
        return Complain("BadKubeletVersion", str(error))
    if old:
        return Wait(OLD_NODES_WAIT, f"{_named(old)} below {migration.of_minor}")
    if silent := sorted(node for node, version in seen.kubelets.items() if not version):
        return Wait(OLD_NODES_WAIT, f"{_named(silent)} without a version yet")
    if seen.classes is None:
        return Look.CLASSES
    legacy = [it for it in seen.classes if (it.name, it.provisioner) in provider.classes]
    for found in legacy:
        if not found.leaving:
            return DeleteClass(found)
    if legacy:
        names = ", ".join(shown(it.name) for it in legacy)
        return Wait(LEAVING_WAIT, f"a finalizer holds the deleted StorageClass {names}")
    return _annotate(cluster, "only new nodes, and no legacy class, are left", NEEDS_COMPLETE)


def _complete(cluster: Object, nudged: frozenset[str]) -> Action:
    """What comes once it needs them: webhooks are made to look, and that is all."""
    for deployment in DEPLOYMENTS:
        if deployment not in nudged:
            return Nudge(deployment)
    return _annotate(cluster, "the control plane was told", FINISHED)


def _annotate(cluster: Object, why: str, *names: str) -> Action:
    version = part(cluster, "metadata", "resourceVersion")
    if not isinstance(version, str) or not version:
        return Complain("NoVersion", f"{name_of(cluster, 'Cluster')} has no resourceVersion")
    return Annotate(names, version, why)


def _older(kubelets: Mapping[str, str], migration: Version) -> list[str]:
    """The nodes whose kubelet is older; InputError for one that says what cannot be read.

    One that says nothing at all has just been registered.
    """
    old = []
    for node, written in kubelets.items():
        if not written:
            continue
        try:
            version = Version.parse(written)
        except ValueError:
            reason = f"its kubelet's version is {shown(written)!r}, which is none"
            raise InputError(reason, source=f"Node {shown(node)}") from None
        if version < migration:
            old.append(node)
    return sorted(old)


def _named(nodes: Sequence[str]) -> str:
    words = ", ".join(shown(it) for it in nodes[:_NAMED])
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"{len(nodes)} kubelet{'s' if len(nodes) > 1 else ''} ({words}{more})"
