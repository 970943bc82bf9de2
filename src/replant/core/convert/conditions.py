"""What a conversion relies on, which is looked at once more right before a volume is deleted.

While a volume is in use, both of its forms must give the disk the same name: where it is in use,
the kubelet and the controllers redirect the plugin, and the driver is registered. The plan has
checked that, maybe days ago.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from replant.gates.history import gate_at
from replant.gates.plugins import LIVES, migrated
from replant.gates.versions import Version


@dataclass(frozen=True, slots=True)
class Disk:
    """A volume by all the names under which a cluster knows it."""

    name: str
    """Of its PersistentVolume."""
    claim: str
    """With its namespace; nothing where no claim has it."""
    plugin: str
    driver: str
    in_tree: str
    """The unique name of the volume by which the in-tree plugin attaches it."""
    csi: str
    """The one by which the driver attaches it."""
    in_use: bool
    """Whether it may be in use while it is converted."""
    sees_controllers: bool = False
    """Whether the pods of kube-controller-manager could be seen when the plan was made."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node as it is now, as far as a disk is concerned that is in use there."""

    node: str
    redirects: bool
    has_driver: bool
    volumes: Collection[str]
    """The unique names of what is attached or in use there."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What was seen right before a volume is deleted, or created."""

    broken: str = ""
    """Why it must not be deleted, as a sentence."""
    missing: str = ""
    """What must be there first, and may come by itself, such as a driver that is started anew."""
    detaching: str = ""
    """What must end before the volume is created: a pod whose disk would be detached then."""


MET: Final = Conditions()


def conditions_of(disk: Disk, places: Iterable[Place], controllers: Iterable[bool]) -> Conditions:
    """What is not as the conversion of a disk in use needs it.

    ``controllers`` are the replicas of kube-controller-manager that can be seen, each by whether it
    redirects the plugin.
    """
    seen, places = tuple(controllers), tuple(places)
    redirects = all(seen)
    if why := why_only_unused(places, disk.plugin, disk.in_tree, controllers=redirects):
        return Conditions(broken=f"{_capital(why)}.")
    if not redirects:  # and the disk is nowhere
        return Conditions(broken=f"The controllers do not redirect {disk.plugin}.")
    if disk.sees_controllers and not seen:
        return Conditions(missing="the pods of kube-controller-manager to be seen again")
    for place in places:
        if not place.has_driver:
            return Conditions(missing=f"{disk.driver} to be registered on {place.node}")
    return MET


def why_only_unused(
    places: Iterable[Place], plugin: str, in_tree: str, *, controllers: bool
) -> str:
    """Why a disk in these places can go to its driver only while nothing uses it."""
    for place in places:
        if in_tree in place.volumes:
            return f"it is attached to {place.node} by the in-tree plugin"
        if not place.redirects:
            return f"{place.node} does not redirect {plugin}"
        if not controllers:
            return f"the controllers do not redirect {plugin}"
    return ""


def kubelet_redirects(plugin: str, announced: Collection[str], version: Version | None) -> bool:
    """Whether a kubelet redirects a plugin, by what its CSINode announces or by its version."""
    if plugin in announced:
        return True
    if version is None or gate_at(LIVES[plugin].migration_gate, version):
        return False
    return migrated(plugin, version)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
