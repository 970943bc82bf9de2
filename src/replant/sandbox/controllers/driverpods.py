"""The pods of CSI drivers: what runs of a driver serves, and what is gone does not.

A pod on a node registers the driver whose socket it names with that node's kubelet. A pod with
sidecars for attaching, provisioning or resizing does these for the driver that its labels name: a
real one asks the driver beside it for its name.
"""

from __future__ import annotations

from replant.inventory.driverpods import drivers_in
from replant.sandbox.controllers import parts
from replant.sandbox.controllers.attacher import Attacher
from replant.sandbox.controllers.base import Controller, Key, Queue, World, key_of
from replant.sandbox.controllers.kubelets import Kubelets
from replant.sandbox.controllers.provisioner import Provisioner
from replant.sandbox.controllers.resizer import Resizer
from replant.sandbox.resources import PODS
from replant.sandbox.shelves import Entry, Event

REGISTRAR = b"node-driver-registrar"
NAME = "app.kubernetes.io/name"
Sidecar = Attacher | Provisioner | Resizer


class DriverPods(Controller):
    """Has drivers serve while their pods are ready. What a scenario runs by itself stays so."""

    hears = (PODS,)

    def __init__(self, world: World, kubelets: Kubelets, sidecars: dict[bytes, Sidecar]) -> None:
        super().__init__(world)
        self._kubelets = kubelets
        self._sidecars = sidecars
        """By the word that names of such containers have in them."""
        self._changed: Queue[Key] = Queue()
        self._on_nodes: dict[str, dict[Key, set[str]]] = {}
        """The drivers that pods register, node by node."""
        self._node_of: dict[Key, str] = {}
        self._beside: dict[Key, set[tuple[bytes, str]]] = {}
        """The sidecars that pods run, each for a driver."""
        self._begun: set[tuple[bytes, str]] = set()
        """Those that run only as long as a pod has them."""

    def heard(self, event: Event) -> None:
        """Note pods of drivers that came, changed or went."""
        if b"csi" in event.entry.text:
            self._changed.add(key_of(event.entry))

    def work(self) -> bool:
        """Have what is ready serve, and what is not ready leave."""
        if not self._changed:
            return False
        for key in self._changed.take():
            found = self.store.find(PODS, key[1], key[0])
            ready = found is not None and parts.read_pod_state(found.text).status.ready
            self._look_at_node(key, found if ready else None)
            self._look_at_sidecars(key, found if ready else None)
        return True

    def _look_at_node(self, key: Key, ready: Entry | None) -> None:
        drivers = drivers_in(ready.text) if ready and REGISTRAR in ready.text else set()
        node = ready.fields["spec.nodeName"] if ready and drivers else self._node_of.get(key, "")
        if not node:
            return
        there = self._on_nodes.setdefault(node, {})
        if drivers:
            self._node_of[key], there[key] = node, drivers
        else:
            self._node_of.pop(key, None)
            there.pop(key, None)
        self._register(node, set().union(*there.values()))

    def _register(self, node: str, here: set[str]) -> None:
        kubelet = self._kubelets.all.get(node)
        if kubelet is None:
            return
        own = kubelet.drivers - kubelet.from_pods
        kubelet.from_pods = frozenset(here - own)
        if kubelet.drivers != own | here:
            self._kubelets.register(node, own | here)

    def _look_at_sidecars(self, key: Key, ready: Entry | None) -> None:
        driver = ready.labels.get(NAME, "") if ready else ""
        # Labels cannot be told from containers in the text alone, but none is called like these.
        those = {(it, driver) for it in self._sidecars if driver and ready and it in ready.text}
        if self._beside.get(key, set()) == those:
            return
        self._beside[key] = those
        if not those:
            del self._beside[key]
        wanted = set().union(*self._beside.values())
        for word, name in sorted(wanted - self._begun):
            if name not in self._sidecars[word].drivers:
                self._sidecars[word].run(name)
                self._begun.add((word, name))
        for word, name in sorted(self._begun - wanted):
            self._sidecars[word].stop(name)
        self._begun &= wanted
