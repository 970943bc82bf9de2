"""What was kept for the in-tree plugin alone: flags of a cloud, and an admission plugin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from replant.plan.courses import CONTROLLER
from replant.plan.model import Component
from replant.plan.situation import Situation, in_use

API_SERVER = "kube-apiserver"
LABEL_ADMISSION = "PersistentVolumeLabel"
ADMISSION_FLAG = "enable-admission-plugins"
EXTERNAL = "external"

CLOUDS = {
    "kubernetes.io/aws-ebs": "aws",
    "kubernetes.io/gce-pd": "gce",
    "kubernetes.io/cinder": "openstack",
    "kubernetes.io/azure-disk": "azure",
    "kubernetes.io/azure-file": "azure",
    "kubernetes.io/vsphere-volume": "vsphere",
}
"""The cloud whose flags a plugin needs; the others need none."""

_GOES_FROM = {
    API_SERVER: ("cloud-provider", "cloud-config"),
    CONTROLLER: ("external-cloud-volume-plugin", "cloud-config"),
}
_WHY = {
    API_SERVER: "It labelled volumes of the cloud when they were made, which the driver's topology "
    "has taken over.",
    CONTROLLER: "The flags told the in-tree plugin how to reach the cloud.",
}


def flag_changes(situation: Situation) -> Iterator[Component]:
    """The flags that nobody needs once the plugins are gone."""
    if not clouds(situation) or still_needed(situation):
        return
    for name, goes in _GOES_FROM.items():
        flags = _flags(situation, name)
        if name == CONTROLLER and runs_cloud_itself(situation):
            continue
        if not named(situation, name) <= clouds(situation):
            continue  # they are another cloud's
        removed = {flag: flags[flag] for flag in goes if flag in flags}
        if LABEL_ADMISSION in flags.get(ADMISSION_FLAG, "").split(","):
            removed[ADMISSION_FLAG] = LABEL_ADMISSION
        if removed:
            yield Component(name=name, why=_WHY[name], remove_flags=removed)


def clouds(situation: Situation, plugins: Iterable[str] | None = None) -> frozenset[str]:
    """The clouds of the plan's plugins, or of some of them."""
    meant = situation.plugins if plugins is None else plugins
    return frozenset(CLOUDS[it] for it in meant if it in CLOUDS)


def named(situation: Situation, component: str) -> frozenset[str]:
    """The clouds that a component's own flags name."""
    flags = _flags(situation, component)
    values = (flags.get("cloud-provider"), flags.get("external-cloud-volume-plugin"))
    return frozenset(it for it in values if it and it != EXTERNAL)


def still_needed(situation: Situation) -> list[str]:
    """Plugins of the same clouds that are in use and not in the plan: they need the flags."""
    inventory = situation.inventory
    used = in_use(inventory) | {it.provisioner for it in inventory.classes}
    mine = clouds(situation)
    return [
        plugin
        for plugin, cloud in CLOUDS.items()
        if cloud in mine
        and plugin in used
        and plugin not in situation.plugins
        and not situation.controller.complete(plugin)
    ]


def runs_cloud_itself(situation: Situation) -> bool:
    """Whether the controllers look after nodes and load balancers of the cloud too.

    Then the flags serve more than volumes, and stay until a cloud-controller-manager takes over.
    """
    return _flags(situation, CONTROLLER).get("cloud-provider", EXTERNAL) != EXTERNAL


def _flags(situation: Situation, component: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pod in situation.inventory.control_plane:
        if pod.component == component:
            found |= pod.flags
    return found
