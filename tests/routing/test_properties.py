"""What holds of all routes, whatever is asked."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from replant.gates.history import known_gates
from replant.gates.versions import Version
from replant.routing import (
    RULES,
    AttachController,
    NodeView,
    Operation,
    Process,
    Route,
    Side,
    VolumeView,
    delete,
    detach,
    provision,
    routes,
    unmount,
)
from replant.translate import driver_of
from tests.routing.worlds import BARE, PLUGINS, in_tree, native, node, process

ELSEWHERE = VolumeView("", "disk.example.org", native=True, provisioned=True)
DRIVERS = [*map(driver_of, PLUGINS), ELSEWHERE.driver]

versions = st.builds(Version, st.just(1), st.integers(17, 36), st.integers(0, 17))
processes = st.builds(
    Process, versions, st.dictionaries(st.sampled_from(known_gates()), st.booleans(), max_size=8)
)
names = st.sampled_from(["", *PLUGINS, *DRIVERS, "kubernetes.io/flocker"])
in_tree_volumes = st.builds(
    lambda plugin, provisioned, by, mark: VolumeView(
        plugin, driver_of(plugin), False, provisioned, by, mark
    ),
    st.sampled_from(PLUGINS), st.booleans(), names, st.sampled_from(["", *DRIVERS]),
)  # fmt: skip
native_volumes = st.one_of(
    st.builds(
        lambda plugin, provisioned, by: VolumeView(
            plugin, driver_of(plugin), True, provisioned, by
        ),
        st.sampled_from(PLUGINS), st.booleans(), names,
    ),
    st.just(ELSEWHERE),
)  # fmt: skip
nodes = st.one_of(
    st.just(BARE),
    st.builds(
        NodeView,
        st.just(value=True),
        st.frozensets(st.sampled_from(PLUGINS)),
        st.frozensets(st.sampled_from(DRIVERS)),
    ),
)


@st.composite
def all_routes(draw: st.DrawFn, volumes: st.SearchStrategy[VolumeView]) -> list[Route]:
    return routes(
        draw(volumes),
        controller=draw(processes),
        scheduler=draw(processes),
        kubelet=draw(processes),
        node=draw(nodes),
        adc=draw(st.sampled_from(AttachController)),
    )


@settings(max_examples=500, deadline=None)
@given(all_routes(st.one_of(in_tree_volumes, native_volumes)))
def test_every_route_follows_from_its_rule_and_says_so(found: list[Route]) -> None:
    for route in found:
        rule = RULES[route.rule]
        assert (route.operation, route.served_by) == (rule.operation, rule.served_by)
        assert route.reason.endswith(".")
        assert "{" not in route.reason
        assert "  " not in route.reason
    operations = [route.operation for route in found]
    assert operations == sorted(operations, key=list(Operation).index)


@settings(max_examples=500, deadline=None)
@given(all_routes(native_volumes))
def test_a_native_volume_is_never_in_tree(found: list[Route]) -> None:
    assert Side.IN_TREE not in {route.served_by for route in found}


@settings(max_examples=300, deadline=None)
@given(in_tree_volumes, processes, nodes)
def test_with_all_of_one_mind_attach_and_mount_meet(
    volume: VolumeView, process: Process, node: NodeView
) -> None:
    """A node that says what its kubelet does, gates alike everywhere: the same side, or nobody."""
    migrated = frozenset(plugin for plugin in PLUGINS if process.migrates(plugin))
    honest = NodeView(csi_node=True, migrated=migrated, drivers=node.drivers)
    found = routes(volume, controller=process, scheduler=process, kubelet=process, node=honest)
    sides = {route.operation: route.served_by for route in found}
    if volume.attachable and Side.NOBODY not in (sides[Operation.ATTACH], sides[Operation.MOUNT]):
        assert sides[Operation.ATTACH] is sides[Operation.MOUNT]


def test_every_rule_is_reached() -> None:
    reached: set[str] = set()
    for plugin in PLUGINS:
        some_nodes = [BARE] + [
            node(listed=a, driver=d, plugin=plugin) for a in (True, False) for d in (True, False)
        ]
        volumes = [
            *(make(plugin, provisioned=it) for make in (in_tree, native) for it in (True, False)),
            VolumeView(plugin, driver_of(plugin), True, True, provisioned_by=plugin),
        ]
        for minor in range(17, 37):
            for on in (True, False):
                for taken_away in (True, False):
                    it = process(Version(1, minor), plugin, on=on, taken_away=taken_away)
                    for volume in volumes:
                        for place in some_nodes:
                            found = routes(
                                volume, controller=it, scheduler=it, kubelet=it, node=place
                            )
                            found += [unmount(volume, it, place, side) for side in Side]
                            if volume.attachable:
                                found += [detach(volume, it, side) for side in Side]
                            reached |= {route.rule for route in found}
    old = Process(Version(1, 24), {})
    reached |= {
        provision(name, old).rule
        for name in ("kubernetes.io/flocker", "kubernetes.io/nothing", "disk.example.org")
    }
    assert reached == set(RULES)


def test_the_catalogue_states_every_rule_on_one_line() -> None:
    for name, rule in RULES.items():
        assert rule.id == name
        assert name.startswith(f"{rule.operation.name.lower()}.")
        assert rule.statement.endswith(".")
        assert "{" not in rule.statement
        assert "\n" not in rule.statement


def test_what_needs_no_attach_has_no_such_routes() -> None:
    def operations(plugin: str) -> set[Operation]:
        it = process("1.24.17", plugin, on=True)
        found = routes(in_tree(plugin), controller=it, scheduler=it, kubelet=it, node=BARE)
        return {route.operation for route in found}

    attaching = {Operation.ATTACH, Operation.DETACH}
    assert operations("kubernetes.io/aws-ebs") == set(Operation)
    for plugin in ("kubernetes.io/portworx-volume", "kubernetes.io/azure-file"):
        assert operations(plugin) == set(Operation) - attaching


def test_a_hand_made_volume_changes_hands_only_as_its_plugin_goes() -> None:
    volume = in_tree(provisioned=False)
    seen = [delete(volume, process(Version(1, minor), on=True)).served_by for minor in (24, 27)]
    assert seen == [Side.IN_TREE, Side.NOBODY]


def test_the_page_of_rules_is_the_catalogue() -> None:
    page = (Path(__file__).parents[2] / "docs" / "routes.md").read_text(encoding="utf-8")
    listed = [line for line in page.splitlines() if line.startswith("| `")]
    assert listed == [
        f"| `{rule.id}` | {rule.served_by} | {rule.statement} |"
        for operation in Operation
        for rule in RULES.values()
        if rule.operation is operation
    ]
