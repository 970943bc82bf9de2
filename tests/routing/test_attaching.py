"""Who attaches and detaches: the truth table, row by row, and for every minor."""

from __future__ import annotations

from itertools import product

import pytest

from replant.gates.versions import Version
from replant.routing import AttachController, NodeView, Side, attach, detach
from tests.routing.worlds import (
    ATTACHABLE,
    AWS,
    BARE,
    HISTORY,
    MINORS,
    in_tree,
    last_patch,
    native,
    node,
    process,
)

PLAIN = node(listed=False, driver=False)
DRIVER = node(listed=False, driver=True)
LISTED = node(listed=True, driver=False)
READY = node(listed=True, driver=True)
NODES = {"bare": BARE, "plain": PLAIN, "driver": DRIVER, "listed": LISTED, "ready": READY}
NODE_DRIVEN = AttachController.NODE_DRIVEN

OFF = {"on": False}
ON = {"on": True}
COMPLETE = {"on": True, "taken_away": True}
TAKEN_AWAY = {"on": False, "taken_away": True}
BASE_OFF = {"on": True, "base": False}

ROWS = [
    # gates, version, what each node gets: bare, plain, with driver, listed, listed with driver
    ("1.20.2", OFF, "in-tree in-tree in-tree in-tree in-tree"),
    ("1.24.17", OFF, "in-tree in-tree in-tree in-tree in-tree"),
    ("1.20.2", BASE_OFF, "in-tree in-tree in-tree in-tree in-tree"),
    ("1.24.17", BASE_OFF, "in-tree in-tree in-tree in-tree in-tree"),
    ("1.20.2", COMPLETE, "csi csi csi csi csi"),
    ("1.24.17", COMPLETE, "csi csi csi csi csi"),
    ("1.20.2", ON, "nobody in-tree in-tree nobody csi"),
    ("1.24.17", ON, "nobody in-tree in-tree csi csi"),
    # Complete does nothing by itself, Unregister takes the plugin away.
    ("1.20.2", TAKEN_AWAY, "in-tree in-tree in-tree in-tree in-tree"),
    ("1.24.17", TAKEN_AWAY, "nobody nobody nobody nobody nobody"),
    # Compiled out, but nodes are still asked; then they are not.
    ("1.27.0", ON, "nobody nobody nobody csi csi"),
    ("1.30.9", ON, "nobody nobody nobody csi csi"),
    ("1.30.9", COMPLETE, "csi csi csi csi csi"),
    ("1.31.0", OFF, "csi csi csi csi csi"),
    ("1.36.3", OFF, "csi csi csi csi csi"),
]


@pytest.mark.parametrize(("version", "gates", "served"), ROWS)
def test_the_table_of_the_upstream_controller(
    version: str, gates: dict[str, bool], served: str
) -> None:
    controller = process(version, AWS, **gates)
    found = {name: attach(in_tree(), controller, it).served_by for name, it in NODES.items()}
    assert found == dict(zip(NODES, served.split(), strict=True))


@pytest.mark.parametrize(
    ("version", "gates", "served"),
    [
        # Gates of the plugin do not matter, but what they took away is missed.
        ("1.24.17", OFF, "nobody in-tree in-tree csi csi"),
        ("1.24.17", ON, "nobody in-tree in-tree csi csi"),
        ("1.24.17", COMPLETE, "nobody nobody nobody csi csi"),
        ("1.24.17", TAKEN_AWAY, "nobody nobody nobody csi csi"),
        ("1.24.17", BASE_OFF, "in-tree in-tree in-tree in-tree in-tree"),
        ("1.27.0", OFF, "nobody nobody nobody csi csi"),
        ("1.30.9", COMPLETE, "nobody nobody nobody csi csi"),
        # From here on no node is asked, and no gate either.
        ("1.31.0", OFF, "csi csi csi csi csi"),
    ],
)
def test_the_table_of_the_node_driven_controller(
    version: str, gates: dict[str, bool], served: str
) -> None:
    controller = process(version, AWS, **gates)
    found = [attach(in_tree(), controller, it, NODE_DRIVEN).served_by for it in NODES.values()]
    assert found == served.split()


@pytest.mark.parametrize(
    ("version", "checked"),
    [
        ("1.17.0", True),
        ("1.23.17", True),
        ("1.24.11", True),
        ("1.24.12", False),
        ("1.25.0", True),
        ("1.25.7", True),
        ("1.25.8", False),
        ("1.26.2", True),
        ("1.26.3", False),
        ("1.27.0", False),
    ],
)
def test_a_missing_driver_was_an_error_until_it_was_not(version: str, checked: bool) -> None:
    found = attach(in_tree(), process(version, on=True), LISTED)
    assert found.served_by is (Side.NOBODY if checked else Side.CSI)
    assert found.rule == (
        "attach.driver-check" if checked else "attach.node-migrated-driver-absent"
    )
    if not checked:
        assert "waits" in found.reason


def expected(plugin: str, minor: int, gates: dict[str, bool], place: str) -> str:
    """The table again, in the order of its rows, from the history alone."""
    history = HISTORY[plugin]
    taken_away = gates.get("taken_away", False) and minor >= history.gate_since
    redirects = gates["on"] or minor >= history.always_on_since
    redirects &= gates.get("base", True) or minor >= 25
    redirects &= minor >= history.gate_since
    redirects &= not (plugin.endswith("rbd") and minor >= 31)
    there = minor < history.code_gone
    there &= not taken_away or (minor < 21 and not redirects)
    side = "in-tree" if there else "nobody"
    if not redirects:
        return side
    if (taken_away and minor < 31) or minor >= history.complete_since:
        return "csi"
    if place == "bare":
        return "nobody"
    if place in ("plain", "driver"):
        return side
    return "nobody" if place == "listed" and minor < 24 else "csi"


@pytest.mark.parametrize(("plugin", "minor"), list(product(ATTACHABLE, MINORS)))
def test_the_table_for_every_plugin_and_minor(plugin: str, minor: int) -> None:
    nodes = {
        "bare": BARE,
        "plain": node(listed=False, driver=False, plugin=plugin),
        "driver": node(listed=False, driver=True, plugin=plugin),
        "listed": node(listed=True, driver=False, plugin=plugin),
        "ready": node(listed=True, driver=True, plugin=plugin),
    }
    for gates, place in product((OFF, ON, COMPLETE, TAKEN_AWAY, BASE_OFF), nodes):
        controller = process(last_patch(minor), plugin, **gates)
        found = attach(in_tree(plugin), controller, nodes[place])
        assert found.served_by == expected(plugin, minor, gates, place), (gates, place, found)


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("adc", AttachController)
def test_a_native_volume_is_left_to_its_driver_alone(minor: int, adc: AttachController) -> None:
    for gates, (place, it) in product((OFF, ON, COMPLETE, BASE_OFF), NODES.items()):
        found = attach(native(), process(last_patch(minor), AWS, **gates), it, adc)
        assert found.served_by is Side.CSI
        assert ("waits" in found.reason) is (place not in ("driver", "ready"))


def test_the_reason_names_the_gate_that_decides() -> None:
    def why(version: str, gates: dict[str, bool], plugin: str = AWS) -> str:
        return attach(in_tree(plugin), process(version, plugin, **gates), BARE).reason

    assert why("1.24.17", OFF).startswith("CSIMigrationAWS is off in kube-controller-manager")
    assert why("1.24.17", BASE_OFF).startswith("CSIMigration is off in kube-controller-manager")
    assert "InTreePluginAWSUnregister is on" in why("1.24.17", TAKEN_AWAY)
    assert "cannot yet redirect" in why("1.22.0", ON, "kubernetes.io/rbd")
    assert "1.31 no longer translates" in why("1.31.0", ON, "kubernetes.io/rbd")
    compiled_out = attach(in_tree(), process("1.28.0", on=True), PLAIN).reason
    assert "its in-tree code left Kubernetes with 1.27" in compiled_out


def test_a_volume_is_detached_by_the_side_that_attached_it_or_stranded() -> None:
    there, gone = process("1.24.17", on=False), process("1.24.17", on=True, taken_away=True)
    for controller in (there, gone):
        assert detach(in_tree(), controller, Side.CSI).served_by is Side.CSI
    assert detach(in_tree(), there, Side.IN_TREE).served_by is Side.IN_TREE
    stranded = detach(in_tree(), gone, Side.IN_TREE)
    assert stranded.served_by is Side.NOBODY
    assert stranded.reason.endswith("stranded.")
    assert detach(in_tree(), there, Side.NOBODY).rule == "detach.not-attached"


@pytest.mark.parametrize("plugin", ["kubernetes.io/portworx-volume", "kubernetes.io/azure-file"])
def test_who_needs_no_attach_is_not_to_be_asked(plugin: str) -> None:
    controller = process(Version(1, 24), plugin, on=True)
    with pytest.raises(ValueError, match="need no attach"):
        attach(in_tree(plugin), controller, READY)
    with pytest.raises(ValueError, match="need no attach"):
        detach(native(plugin), controller, Side.CSI)


@pytest.mark.parametrize("adc", list(AttachController))
def test_a_node_that_redirects_only_another_plugin_counts_as_one_that_redirects_none(
    adc: AttachController,
) -> None:
    other = NodeView(
        csi_node=True, migrated=frozenset({"kubernetes.io/cinder"}), drivers=READY.drivers
    )
    found = attach(in_tree(), process("1.24.17", on=True), other, adc)
    assert found == attach(in_tree(), process("1.24.17", on=True), DRIVER, adc)
    assert found.served_by is Side.IN_TREE
