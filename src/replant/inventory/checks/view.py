"""The inventory as checks see it: with versions, and what they mean for each plugin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from replant.gates.plugins import LIVES, migrated, servable
from replant.gates.versions import Version
from replant.inventory.model import IN_TREE_SOURCES, Inventory, source_of
from replant.translate import plugin_of
from replant.translate.manifest import WITHOUT_DRIVER

CONTROLLER = "kube-controller-manager"


@dataclass(frozen=True)
class View:
    """What every check is given."""

    inventory: Inventory
    target: Version | None

    @property
    def server(self) -> Version | None:
        """The cluster's version, where it is known."""
        return self.inventory.server

    @property
    def horizon(self) -> Version | None:
        """The version to be ready for: the target, else the next minor."""
        return self.target or (self.server.next_minor() if self.server else None)

    def migrated_now(self, plugin: str) -> bool:
        """Whether the cluster's controllers redirect this plugin to CSI, as far as is known."""
        gates = self.inventory.gates.get(CONTROLLER)
        return self.server is not None and migrated(plugin, self.server, gates)

    def migrated_then(self, plugin: str) -> bool:
        """Whether they will at the horizon, with the flags that they have."""
        gates = self.inventory.gates.get(CONTROLLER)
        return self.horizon is not None and migrated(plugin, self.horizon, gates)

    def servable_then(self, plugin: str) -> bool:
        """Whether anyone can serve this plugin's stored volumes at the horizon."""
        return self.horizon is None or servable(plugin, self.horizon)

    @cached_property
    def plugins(self) -> list[str]:
        """The plugins that this cluster uses: in volumes, classes or pods."""
        found = {volume.plugin for volume in self.inventory.in_tree}
        found |= {it.provisioner for it in self.inventory.classes if it.provisioner in LIVES}
        found |= {plugin_of(source_of(volume)) for _, volume in self.inventory.inline_uses()}
        return [plugin for plugin in LIVES if plugin in found]

    @cached_property
    def nodes_by_plugin(self) -> dict[str, dict[str, int]]:
        """On which nodes pods use each plugin's volumes, and how many do."""
        found: dict[str, dict[str, int]] = {}
        for volume in self.inventory.in_tree:
            for pod in self.inventory.users(volume):
                self._count(found, volume.plugin, pod.node)
        for pod in self.inventory.pods:
            for inline in pod.inline:
                self._count(found, plugin_of(source_of(inline)), pod.node)
        return found

    @staticmethod
    def _count(found: dict[str, dict[str, int]], plugin: str | None, node: str) -> None:
        if plugin and node:
            nodes = found.setdefault(plugin, {})
            nodes[node] = nodes.get(node, 0) + 1


def without_driver(holder: object) -> Iterator[tuple[str, str]]:
    """The sources in a spec or a pod's volume that no driver took over, and their plugins."""
    for source, plugin in WITHOUT_DRIVER.items():
        value = holder.get(source) if isinstance(holder, dict) else getattr(holder, source, None)
        if value is not None:
            yield source, plugin


__all__ = ["CONTROLLER", "IN_TREE_SOURCES", "View", "without_driver"]
