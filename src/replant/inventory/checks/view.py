"""The inventory as checks see it: with versions, and what they mean for each plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from replant.gates.plugins import LIVES, Phase, migrated, phase, servable
from replant.gates.versions import Version
from replant.inventory.model import Inventory, source_of
from replant.translate import plugin_of
from replant.translate.manifest import WITHOUT_DRIVER

CONTROLLER = "kube-controller-manager"


@dataclass(frozen=True)
class View:
    """What every check is given."""

    inventory: Inventory
    target: Version | None
    said_gates: Mapping[str, bool] | None = None
    """What the controllers are given, where a person says it; else what is visible."""

    @property
    def server(self) -> Version | None:
        """The cluster's version, where it is known."""
        return self.inventory.server

    @property
    def horizon(self) -> Version | None:
        """The version to be ready for: the target, else the next minor."""
        return self.target or (self.server.next_minor() if self.server else None)

    def migrated_now(self, plugin: str) -> bool:
        """Whether the cluster's controllers redirect this plugin to CSI, as far as is known.

        A managed control plane hides its flags. Nodes are switched after it, so if one of them
        says that it redirects, the controllers do.
        """
        return plugin in self._migrated_now

    def migrated_then(self, plugin: str) -> bool:
        """Whether they will at the horizon, with the flags that they have."""
        return plugin in self._migrated_then

    def servable_then(self, plugin: str) -> bool:
        """Whether anyone can serve this plugin's stored volumes at the horizon."""
        return plugin not in self._unservable_then

    def phase(self, plugin: str, version: Version) -> Phase:
        """The phase of a plugin at a version, as far as the controllers' gates are known."""
        known = phase(plugin, version, self._gates)
        return Phase.REDIRECTED if known is Phase.IN_TREE and plugin in self._hidden else known

    @property
    def _gates(self) -> Mapping[str, bool] | None:
        """What the controllers are given; None if they hide it."""
        if self.said_gates is not None:
            return self.said_gates
        return self.inventory.gates.get(CONTROLLER)

    @property
    def _hidden(self) -> frozenset[str]:
        """What controllers that hide their flags redirect."""
        return self._redirected if self._gates is None else frozenset()

    @cached_property
    def _migrated_now(self) -> frozenset[str]:
        return self._migrated_at(self.server)

    @cached_property
    def _migrated_then(self) -> frozenset[str]:
        return self._migrated_at(self.horizon)

    def _migrated_at(self, version: Version | None) -> frozenset[str]:
        if version is None:
            return frozenset()
        redirected = {plugin for plugin in LIVES if migrated(plugin, version, self._gates)}
        return self._hidden | redirected

    @cached_property
    def _unservable_then(self) -> frozenset[str]:
        horizon = self.horizon
        return frozenset(it for it in LIVES if horizon and not servable(it, horizon))

    @cached_property
    def _redirected(self) -> frozenset[str]:
        nodes = self.inventory.csi_nodes
        return frozenset().union(*(self.inventory.migrated_on(node) for node in nodes))

    @cached_property
    def plugins(self) -> list[str]:
        """The plugins that this cluster uses: in volumes, classes or pods."""
        found = {volume.plugin for volume in self.inventory.in_tree}
        found |= {it.provisioner for it in self.inventory.classes if it.provisioner in LIVES}
        found |= {plugin_of(source_of(volume)) for _, volume in self.inventory.inline_uses()}
        return [plugin for plugin in LIVES if plugin in found]

    @cached_property
    def nodes_by_plugin(self) -> dict[str, Counter[str]]:
        """On which nodes pods use each plugin's volumes, and how many pods do."""
        plugin_by_claim = {it.claim: it.plugin for it in self.inventory.in_tree if it.claim}
        found: dict[str, Counter[str]] = {}
        for pod in self.inventory.pods:
            plugins = {plugin_by_claim.get((pod.owner.namespace, claim)) for claim in pod.claims}
            plugins |= {plugin_of(source_of(inline)) for inline in pod.inline}
            for plugin in plugins - {None}:
                if plugin and pod.node:
                    found.setdefault(plugin, Counter())[pod.node] += 1
        return found


def without_driver(holder: object) -> Iterator[tuple[str, str]]:
    """The sources in a spec or a pod's volume that no driver took over, and their plugins."""
    for source, plugin in WITHOUT_DRIVER.items():
        value = holder.get(source) if isinstance(holder, dict) else getattr(holder, source, None)
        if value is not None:
            yield source, plugin
