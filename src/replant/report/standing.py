"""A standing as people read it at a glance, and what is being done about it on top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import to_builtins

from replant.errors import printable
from replant.inventory.standing import (
    NodeStanding,
    PluginStanding,
    ReplicaStanding,
    Standing,
    VolumeMark,
)
from replant.report.wording import number_of

SHOWN = 5
"""So many names are shown; then they are counted."""

_INDENT = " " * 12


@dataclass(frozen=True, slots=True)
class RunStanding:
    """A run of a plan: where it is, and what it waits for."""

    id: str
    goal: str
    state: str
    step: str = ""
    waiting_for: tuple[str, ...] = ()
    holder: str = ""
    since: str = ""
    done: int = 0
    """Nodes that are done, of ``total``."""
    total: int = 0
    away: tuple[str, ...] = ()
    """The PersistentVolumes that it has deleted and not created again."""


@dataclass(frozen=True, slots=True)
class JoinedStanding:
    """A node that has joined with other gates since the last run was done."""

    node: str
    run: str
    missing: tuple[str, ...]
    """Plugins that it should redirect."""
    surplus: tuple[str, ...]
    """Plugins that it should not redirect."""


def document(
    standing: Standing, run: RunStanding | None = None, joined: Sequence[JoinedStanding] = ()
) -> dict[str, Any]:
    """The standing as plain data, for whichever notation."""
    data: dict[str, Any] = to_builtins(standing)
    if joined:
        data = {"joined": to_builtins(joined), **data}
    if run is not None:
        data = {"run": _camel(to_builtins(run)), **data}
    return data


def text(
    standing: Standing,
    run: RunStanding | None = None,
    joined: Sequence[JoinedStanding] = (),
    *,
    nodes: bool = False,
    volumes: bool = False,
) -> str:
    """The standing in lines; with a line for each node or volume of each plugin, if wanted."""
    lines = [*_run(run), *_joined(joined), *_heading(standing)]
    for plugin in standing.plugins:
        lines += ["", *_plugin(plugin, every_node=nodes, every_volume=volumes)]
    return "\n".join(map(printable, lines)) + "\n"


def _camel(data: dict[str, Any]) -> dict[str, Any]:
    data["waitingFor"] = data.pop("waiting_for")
    return data


def _run(run: RunStanding | None) -> Iterator[str]:
    if run is None:
        return
    step = f", step {run.step}" if run.step else ""
    done = f", {run.done:,} of {number_of(run.total, 'node')} done" if run.total else ""
    yield f"Run {run.id}, {run.goal}: {run.state}{step}{done}"
    if run.holder:
        yield f"  held by   {run.holder}" + (f" since {run.since}" if run.since else "")
    for it in run.waiting_for:
        yield f"  waits for {it}"
    if run.away:
        yield f"  away      PersistentVolume {_named(run.away)}: deleted, and not created again"
        yield (
            f"{_INDENT}Go on at once: replant apply --resume. Until then restart no kubelet and no "
            "kube-controller-manager:"
        )
        yield f"{_INDENT}they would unmount its disk under its pod, and then detach it."
    yield ""


def _joined(joined: Sequence[JoinedStanding]) -> Iterator[str]:
    if not joined:
        return
    yield f"Joined with other gates since run {joined[0].run}: {_named([it.node for it in joined])}"
    first = joined[0]
    if first.missing:
        yield f"  {first.node} does not redirect {', '.join(first.missing)}, as other nodes do"
    if first.surplus:
        yield f"  {first.node} redirects {', '.join(first.surplus)}, which other nodes do not"
    names = " ".join(it.node for it in joined[:SHOWN])
    yield "  A pod there may take its disk from a pod on another node, or never get it. Do this:"
    yield f"  1. kubectl cordon {names}"
    yield "  2. Give what creates nodes (a template, an image) the gates of the others."
    yield "  3. Remove these nodes, or drain them and switch their kubelets."
    yield ""


def _heading(standing: Standing) -> Iterator[str]:
    version = f"Kubernetes {standing.server}" if standing.server else "Kubernetes, version unknown"
    yield f"{version}, {number_of(standing.nodes, 'node')}"
    for kind, why in standing.unknown.items():
        yield f"  not seen: {kind} ({why})"
    if not standing.plugins:
        yield "There is no volume and no class of a plugin that a driver takes over from."


def _plugin(plugin: PluginStanding, *, every_node: bool, every_volume: bool) -> Iterator[str]:
    yield f"{plugin.plugin} → {plugin.driver}" + (
        "" if plugin.driver_installed else ", which is not installed"
    )
    yield from _rows("gates", [*_components(plugin)])
    yield from _rows("nodes", [*(_every_node if every_node else _nodes)(plugin)])
    yield from _rows("volumes", [*_volumes(plugin)])
    if every_volume:
        yield from (f"{_INDENT}{row}" for row in _every_volume(plugin.volumes.each))
    if plugin.attachable:
        by_csi, in_tree = (
            sum(it.csi for it in plugin.nodes),
            sum(it.in_tree for it in plugin.nodes),
        )
        row = f"{by_csi:,} by the driver, {in_tree:,} by the in-tree plugin"
        yield from _rows("attached", [row])
    if plugin.classes:
        yield from _rows("classes", [f"still in-tree: {_named(plugin.classes)}"])
    yield from _stuck(plugin)


def _rows(label: str, rows: Sequence[str]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"  {label:<10}{row}" if number == 0 else f"{_INDENT}{row}"


def _components(plugin: PluginStanding) -> Iterator[str]:
    rows = [(it.replica, _side(it), _given(it)) for it in plugin.components]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
    for replica, side, given in rows:
        yield f"{replica:<{widths[0]}}  {side:<{widths[1]}}  {given}".rstrip()
    for component in plugin.hidden:
        yield f"{component}: hidden, no pod of it can be seen"


def _side(replica: ReplicaStanding) -> str:
    if replica.redirects is None:
        return "unknown"
    side = "redirects" if replica.redirects else "in-tree"
    return f"{side}, plugin off" if replica.plugin_off else side


def _given(replica: ReplicaStanding) -> str:
    return ",".join(f"{gate}={str(on).lower()}" for gate, on in replica.gates.items())


def _nodes(plugin: PluginStanding) -> Iterator[str]:
    total, migrated = len(plugin.nodes), len(plugin.migrated)
    others = plugin.not_migrated
    if not migrated or not others:
        yield f"{'none' if not migrated else 'all'} of {total:,} migrated"
    else:
        yield f"{migrated:,} of {total:,} migrated; not yet: {_named(others)}"
    if plugin.without_driver:
        yield f"driver not registered on {_named(plugin.without_driver)}"
    down = tuple(it.name for it in plugin.nodes if not it.ready)
    if down:
        yield f"not ready: {_named(down)}"


def _every_node(plugin: PluginStanding) -> Iterator[str]:
    width = max((len(it.name) for it in plugin.nodes), default=0)
    yield f"{'NODE':<{width}}  READY  MIGRATED  DRIVER  CSI  IN-TREE"
    for it in plugin.nodes:
        yield f"{it.name:<{width}}  {_node(it)}"


def _node(it: NodeStanding) -> str:
    ready, migrated, driver = ("yes" if so else "no" for so in (it.ready, it.migrated, it.driver))
    return f"{ready:<5}  {migrated:<8}  {driver:<6}  {it.csi:>3}  {it.in_tree:>7}"


def _volumes(plugin: PluginStanding) -> Iterator[str]:
    volumes = plugin.volumes
    never = f" ({volumes.never_marked:,} made by hand, which are never marked)"
    yield (
        f"{volumes.in_tree:,} stored in-tree, {volumes.marked:,} marked with migrated-to"
        + (never if volumes.never_marked else "")
        + f"; {volumes.native:,} native"
    )
    if plugin.marking and volumes.not_marked:
        yield f"not marked: {_named(volumes.not_marked)}"


def _every_volume(volumes: Sequence[VolumeMark]) -> Iterator[str]:
    rows = [("VOLUME", "CLAIM", "STORED", "MIGRATED-TO")]
    rows += [
        (it.name, it.claim or "-", "native" if it.native else "in-tree", _marked(it))
        for it in volumes
    ]
    names, claims = (max(len(row[column]) for row in rows) for column in range(2))
    for name, claim, stored, marked in rows:
        yield f"{name:<{names}}  {claim:<{claims}}  {stored:<7}  {marked}"


def _marked(volume: VolumeMark) -> str:
    return volume.migrated_to or ("- (made by hand)" if volume.never_marked else "-")


def _stuck(plugin: PluginStanding) -> Iterator[str]:
    for number, it in enumerate(plugin.stuck[:SHOWN]):
        label = "stuck" if number == 0 else ""
        yield f"  {label:<10}{it.object} on {it.node}"
        yield f"{_INDENT}  {it.why}"
        for log in it.logs:
            yield f"{_INDENT}  read the log of {log}"
    if len(plugin.stuck) > SHOWN:
        yield f"{_INDENT}and {len(plugin.stuck) - SHOWN:,} more (-o json has all)"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
